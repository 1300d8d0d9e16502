# SPDX-License-Identifier: GPL-2.0-or-later
"""ClientHellos: genuine ones by OpenSSL, and what can be done to them."""

import functools
import ssl
import struct
import time

HANDSHAKE, ALERT = 22, 21
SERVER_NAME, ALPN, KEY_SHARE = 0, 16, 51
FILLER = 0x6A6A  # of the GREASE range (RFC 8701)
INTERNAL_ERROR, UNRECOGNIZED_NAME = 80, 112
X25519MLKEM768 = 0x11EC


def genuine(name=None, alpn=(), newest=ssl.TLSVersion.TLSv1_3):
    """What OpenSSL's client sends first; the same for the same arguments."""
    return handshake(name, tuple(alpn), newest)


@functools.lru_cache(maxsize=256)
def handshake(name, alpn, newest):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = newest
    if alpn:
        context.set_alpn_protocols(list(alpn))
    to_client, from_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, from_client, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return from_client.read()


def message_of(wire):
    """The handshake message inside one or more records."""
    message = b""
    while wire:
        kind, _, length = struct.unpack("!BHH", wire[:5])
        assert kind == HANDSHAKE and len(wire) >= 5 + length
        message += wire[5:5 + length]
        wire = wire[5 + length:]
    return message


def in_records(message, size=16384):
    """The message in records of `size` bytes each."""
    wire = b""
    for start in range(0, len(message), size):
        part = message[start:start + size]
        wire += struct.pack("!BHH", HANDSHAKE, 0x0301, len(part)) + part
    return wire


def extensions_at(message):
    """Where the extension block's length stands in a ClientHello."""
    at = 4 + 2 + 32
    at += 1 + message[at]
    at += 2 + int.from_bytes(message[at:at + 2], "big")
    return at + 1 + message[at]


def with_extension(message, kind, body):
    """The ClientHello with one more extension, as its first."""
    at = extensions_at(message)
    block = struct.pack("!HH", kind, len(body)) + body + message[at + 2:]
    head = message[4:at] + struct.pack("!H", len(block))
    whole = head + block
    return b"\x01" + len(whole).to_bytes(3, "big") + whole


def with_raw_name(raw, alpn=()):
    """One record with a ClientHello whose server name is any bytes at all."""
    entry = b"\x00" + struct.pack("!H", len(raw)) + raw
    body = struct.pack("!H", len(entry)) + entry
    message = message_of(genuine(None, alpn))
    return in_records(with_extension(message, SERVER_NAME, body))


def with_size(name, size):
    """A message of exactly `size` bytes."""
    message = message_of(genuine(name))
    missing = size - len(message) - 4
    assert missing >= 0
    return with_extension(message, FILLER, bytes(missing))


def post_quantum(name):
    """As a browser sends it: a key share of X25519MLKEM768, 1216 bytes."""
    share = struct.pack("!HH", X25519MLKEM768, 1216) + bytes(range(256)) * 4
    share += bytes(1216 - 1024)
    body = struct.pack("!H", len(share)) + share
    # OpenSSL's own key share is renamed to a value of the GREASE range
    message = bytearray(message_of(genuine(name)))
    at = extensions_at(message) + 2
    while int.from_bytes(message[at:at + 2], "big") != KEY_SHARE:
        at += 4 + int.from_bytes(message[at + 2:at + 4], "big")
    message[at:at + 2] = FILLER.to_bytes(2, "big")
    return in_records(with_extension(bytes(message), KEY_SHARE, body))


def send_in_pieces(sock, data, size, gap=0.0):
    """One segment a piece, as far as TCP_NODELAY can promise."""
    for start in range(0, len(data), size):
        sock.sendall(data[start:start + size])
        if gap:
            time.sleep(gap)


def is_alert(reply, description):
    """Exactly one fatal alert, and nothing else."""
    return (len(reply) == 7 and reply[0] == ALERT and reply[1] == 3 and
            reply[3:] == bytes((0, 2, 2, description)))
