# SPDX-License-Identifier: GPL-2.0-or-later
"""PROXY headers as the specification has them, written independently."""

import ipaddress
import struct

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL, PROXY = 0x20, 0x21
TCP4, TCP6 = 0x11, 0x21
ALPN, AUTHORITY, UNIQUE_ID = 1, 2, 5


def v1(source, source_port, destination, destination_port):
    family = "TCP6" if ":" in source else "TCP4"
    return (f"PROXY {family} {source} {destination} {source_port} "
            f"{destination_port}\r\n").encode()


def tlv(kind, value):
    return struct.pack("!BH", kind, len(value)) + value


def v2_raw(command, family, body):
    return (SIGNATURE + bytes((command, family)) +
            struct.pack("!H", len(body)) + body)


def v2(source, source_port, destination, destination_port, tlvs=b""):
    body = (ipaddress.ip_address(source).packed +
            ipaddress.ip_address(destination).packed +
            struct.pack("!HH", source_port, destination_port))
    return v2_raw(PROXY, TCP6 if ":" in source else TCP4, body + tlvs)


def header_of(wire):
    """The bytes of a version 2 header at the front of `wire`."""
    assert wire.startswith(SIGNATURE), bytes(wire[:16])
    return bytes(wire[:16 + int.from_bytes(wire[14:16], "big")])


def tlvs_of(header):
    """[(kind, value)] of a version 2 header over TCP."""
    left = header[16 + (12 if header[13] == TCP4 else 36):]
    found = []
    while left:
        kind, length = struct.unpack("!BH", left[:3])
        assert len(left) >= 3 + length
        found.append((kind, left[3:3 + length]))
        left = left[3 + length:]
    return found
