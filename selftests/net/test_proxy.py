# SPDX-License-Identifier: GPL-2.0-or-later
"""The PROXY protocol, out and in, byte for byte."""

import time

from lib import hello, netns, proxy, sockets
from lib.harness import LISTEN6, between, equal, test

NAME = "a.example"
HELLO = hello.genuine(NAME, ("h2", "http/1.1"))


def receive(t, server_line, data=HELLO, listen="listen :443 tcp", **options):
    """(all bytes that the server got, the client's port, headgate)"""
    server = t.server(sockets.recorder)
    gate = t.headgate(f"""
{listen}
backend site {server} {server_line}
default to site
default plain to site
""")
    sock = t.connect(**options)
    port = sock.getsockname()[1]
    sock.sendall(data)
    sockets.finish(sock)
    sockets.read_to_end(sock)
    session = server.sessions[0]
    assert session.has_ended.wait(3)
    return bytes(session.data), port, gate


@test
def none_unless_asked_for(t):
    data, _, _ = receive(t, "")
    equal(data, HELLO)


@test
def v1_over_ipv4(t):
    data, port, _ = receive(t, "proxy v1")
    equal(data, proxy.v1(netns.CLIENT, port, netns.ROUTER, 443) + HELLO)


@test
def v1_over_ipv6(t):
    data, port, _ = receive(t, "proxy v1", address=LISTEN6)
    equal(data, proxy.v1(netns.CLIENT6, port, netns.ROUTER6, 443) + HELLO)


@test
def v2_over_ipv4(t):
    data, port, _ = receive(t, "proxy v2")
    equal(data, proxy.v2(netns.CLIENT, port, netns.ROUTER, 443) + HELLO)


@test
def v2_over_ipv6(t):
    data, port, _ = receive(t, "proxy v2", address=LISTEN6)
    equal(data, proxy.v2(netns.CLIENT6, port, netns.ROUTER6, 443) + HELLO)


@test
def v2_with_tlvs(t):
    data, port, _ = receive(t, "proxy v2 tlv alpn, authority, unique-id")
    header = proxy.header_of(data)
    equal(data[len(header):], HELLO)
    plain = proxy.v2(netns.CLIENT, port, netns.ROUTER, 443)
    equal(header[16:28], plain[16:28], "addresses")
    tlvs = dict(proxy.tlvs_of(header))
    equal(tlvs[proxy.ALPN], b"h2")
    equal(tlvs[proxy.AUTHORITY], NAME.encode())
    between(len(tlvs[proxy.UNIQUE_ID]), 1, 128, "bytes of the unique id")


@test
def unique_ids_are_unique(t):
    server = t.server(sockets.recorder)
    t.headgate(f"""
        listen :443 tcp
        backend site {server} proxy v2 tlv unique-id
        default to site
        """)
    for _ in range(50):
        sock = t.open(NAME)
        sockets.finish(sock)
        sockets.read_to_end(sock)
    ids = {dict(proxy.tlvs_of(proxy.header_of(s.data)))[proxy.UNIQUE_ID]
           for s in server.sessions}
    equal(len(ids), 50, "different ids")


@test
def header_and_hello_come_in_one_segment(t):
    first = []

    def serve(session):
        time.sleep(0.2)
        first.append(session.sock.recv(65536))

    server = t.server(serve)
    t.headgate(f"""
        listen :443 tcp
        backend site {server} proxy v2
        default to site
        """)
    sockets.read_to_end(t.open(NAME))
    data = hello.genuine(NAME)
    assert first[0].endswith(data) and len(first[0]) > len(data), first


@test
def payload_that_is_a_header_stays_payload(t):
    for fake in (proxy.v1("192.0.2.66", 666, "192.0.2.67", 443),
                 proxy.v2("192.0.2.66", 666, "192.0.2.67", 443)):
        for version, build in (("v1", proxy.v1), ("v2", proxy.v2)):
            data, port, gate = receive(t, f"proxy {version}", fake + HELLO)
            ours = build(netns.CLIENT, port, netns.ROUTER, 443)
            equal(data, ours + fake + HELLO, version)
            gate.stop()


@test
def to_a_unix_socket(t):
    server = t.unix_server(sockets.recorder)
    t.headgate(f"""
        listen :443 tcp
        backend site {server} proxy v1
        default to site
        """)
    sock = t.open(NAME)
    port = sock.getsockname()[1]
    sockets.finish(sock)
    sockets.read_to_end(sock)
    equal(bytes(server.sessions[0].data),
          proxy.v1(netns.CLIENT, port, netns.ROUTER, 443) +
          hello.genuine(NAME))


# In: from whom we trust, and from everybody else.

TRUST = f"trust proxy {netns.CLIENT}/32\ntrust proxy {netns.CLIENT6}/128"


def trusting(t, trust=TRUST, more=""):
    server = t.server(sockets.recorder)
    gate = t.headgate(f"""
listen :443 tcp
backend site {server} proxy v1
route {NAME} to site
{trust}
{more}
""")
    return gate, server


def forwarded(t, server, header, pieces=0, address=LISTEN6, data=HELLO):
    """What reached the server of `header` and a hello; b"" when nothing."""
    count = len(server.sessions)
    sock = t.connect(address)
    try:
        if pieces:
            hello.send_in_pieces(sock, header + data, pieces)
        else:
            sock.sendall(header + data)
        sockets.finish(sock)
        sockets.read_to_end(sock)
    except (ConnectionResetError, BrokenPipeError, OSError):
        pass
    port = sock.getsockname()[1] if sock.fileno() >= 0 else 0
    sock.close()
    if len(server.sessions) == count:
        return b"", port
    session = server.sessions[-1]
    assert session.has_ended.wait(3)
    return bytes(session.data), port


GOOD = {
    "v1 TCP4": proxy.v1("192.0.2.1", 1111, "192.0.2.2", 443),
    "v1 TCP6": proxy.v1("2001:db8::1", 1111, "2001:db8::2", 443),
    "v2 TCP4": proxy.v2("192.0.2.1", 1111, "192.0.2.2", 443),
    "v2 TCP6": proxy.v2("2001:db8::1", 1111, "2001:db8::2", 443),
    "v2 with TLVs": proxy.v2("192.0.2.1", 1111, "192.0.2.2", 443,
                             proxy.tlv(4, bytes(500)) +
                             proxy.tlv(0xE0, b"own")),
}


@test
def trusted_headers_are_passed_on(t):
    gate, server = trusting(t)
    for kind, header in GOOD.items():
        data, _ = forwarded(t, server, header)
        expected = GOOD["v1 TCP6" if "TCP6" in kind else "v1 TCP4"]
        equal(data, expected + HELLO, kind)
    events = gate.wait_events(len(GOOD))
    equal({e["client"] for e in events},
          {"192.0.2.1:1111", "[2001:db8::1]:1111"}, "clients in the log")


@test
def trusted_headers_over_ipv4(t):
    _, server = trusting(t)
    data, _ = forwarded(t, server, GOOD["v2 TCP4"],
                        address=f"{netns.ROUTER}:443")
    equal(data, GOOD["v1 TCP4"] + HELLO)


@test(timeout=40)
def trusted_headers_split_anywhere(t):
    _, server = trusting(t)
    for kind in ("v1 TCP4", "v2 TCP6"):
        header = GOOD[kind]
        expected = GOOD["v1 TCP6" if "TCP6" in kind else "v1 TCP4"]
        data, _ = forwarded(t, server, header, pieces=1)
        equal(data, expected + HELLO, f"{kind} in bytes")
        for at in range(1, len(header) + 2):
            count = len(server.sessions)
            sock = t.connect(LISTEN6)
            sock.sendall((header + HELLO)[:at])
            time.sleep(0.002)
            sock.sendall((header + HELLO)[at:])
            sockets.finish(sock)
            sockets.read_to_end(sock)
            sock.close()
            assert len(server.sessions) > count, f"{kind} split at {at}"
            session = server.sessions[-1]
            assert session.has_ended.wait(2)
            equal(bytes(session.data), expected + HELLO, f"split at {at}")


@test
def local_and_unknown_keep_our_own_addresses(t):
    _, server = trusting(t)
    headers = {
        "LOCAL": proxy.v2_raw(proxy.LOCAL, 0, b""),
        "LOCAL with addresses": proxy.v2_raw(
            proxy.LOCAL, proxy.TCP4, GOOD["v2 TCP4"][16:]),
        "UNSPEC": proxy.v2_raw(proxy.PROXY, 0, b""),
        "UNIX": proxy.v2_raw(proxy.PROXY, 0x31, bytes(216)),
        "UNKNOWN": b"PROXY UNKNOWN\r\n",
        "UNKNOWN with more": b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n",
    }
    for kind, header in headers.items():
        data, port = forwarded(t, server, header)
        own = proxy.v1(netns.CLIENT6, port, netns.ROUTER6, 443)
        equal(data.split(b"\r\n", 1)[1], HELLO, kind)
        equal(data.split(b" ")[2], own.split(b" ")[2], f"source of {kind}")


@test
def trusted_but_malformed(t):
    gate, server = trusting(t)
    bad = [
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1111\r\n",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1111 65536\r\n",
        b"PROXY TCP4 2001:db8::1 192.0.2.2 1111 443\r\n",
        b"PROXY TCP4 " + b"1" * 120 + b"\r\n",
        proxy.SIGNATURE + b"\x31\x11\x00\x0c" + bytes(12),
        proxy.SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
        proxy.v2_raw(proxy.PROXY, proxy.TCP4, bytes(11)),
        proxy.v2("192.0.2.1", 1, "192.0.2.2", 2, b"\x01\x00\xff"),
    ]
    for header in bad:
        data, _ = forwarded(t, server, header)
        equal(data, b"", f"forwarded for {header[:40]!r}")
    equal(gate.refused("proxy_header"), len(bad), "proxy_header")


@test
def trusted_header_of_full_length(t):
    _, server = trusting(t)
    room = 65535 - 12
    long = proxy.v2("192.0.2.1", 1111, "192.0.2.2", 443,
                    proxy.tlv(0xE0, bytes(room - 3)))
    equal(len(long), 16 + 65535)
    data, _ = forwarded(t, server, long)
    equal(data, GOOD["v1 TCP4"] + HELLO)


@test
def trusted_without_a_header(t):
    """A trusted client may also speak for itself."""
    _, server = trusting(t)
    data, port = forwarded(t, server, b"")
    assert data.endswith(HELLO) and netns.CLIENT6.encode() in data, data[:80]


@test
def second_header_is_not_believed(t):
    gate, server = trusting(t)
    data, _ = forwarded(t, server, GOOD["v1 TCP4"] + GOOD["v1 TCP6"])
    equal(data, b"")
    equal(gate.refused("not_tls"), 1, "not_tls")


@test
def untrusted_header_is_not_tls(t):
    gate, server = trusting(t, "trust proxy 192.0.2.0/24")
    for kind, header in GOOD.items():
        data, _ = forwarded(t, server, header)
        equal(data, b"", kind)
    equal(gate.refused("not_tls"), len(GOOD), "not_tls")
    equal(gate.refused("proxy_header"), 0, "proxy_header")
    assert forwarded(t, server, b"")[0].endswith(HELLO), "its control"


@test
def deadline_covers_the_header(t):
    gate, server = trusting(t, more="timeout hello 1s")
    sock = t.connect(LISTEN6)
    sock.sendall(GOOD["v1 TCP4"][:10])
    start = time.monotonic()
    sockets.read_to_end(sock)
    between(time.monotonic() - start, 0.8, 1.7, "seconds")
    equal(gate.refused("hello_timeout"), 1, "hello_timeout")
