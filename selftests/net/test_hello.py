# SPDX-License-Identifier: GPL-2.0-or-later
"""How the ClientHello may arrive, and how long it may take."""

import time

from lib import hello, sockets
from lib.harness import between, equal, test
from lib.process import wait_until

NAME = "a.example"


def one_site(t, more="", serve="site"):
    server = t.server(serve)
    gate = t.headgate(f"""
listen :443 tcp
backend site {server}
route {NAME} to site
{more}
""")
    return gate, server


def seconds_until_closed(sock):
    start = time.monotonic()
    try:
        data = sockets.read_to_end(sock)
    except ConnectionResetError:
        data = b""
    return time.monotonic() - start, data


@test
def split_into_records(t):
    gate, server = one_site(t)
    message = hello.message_of(hello.genuine(NAME))
    for size in (1, 2, 3, 4, 5, 37, 100, len(message) - 1):
        equal(t.send(hello.in_records(message, size)), "site",
              f"records of {size} bytes")
        wire = bytes(server.sessions[-1].data)
        equal(wire, hello.in_records(message, size), "at the server")
    equal(sum(gate.status()["refused"].values()), 0, "refusals")


@test
def one_byte_segments(t):
    one_site(t)
    for gap in (0, 0.001):
        sock = t.connect()
        hello.send_in_pieces(sock, hello.genuine(NAME), 1, gap)
        equal(sockets.read_to_end(sock), b"site")


@test
def one_byte_records_in_one_byte_segments(t):
    one_site(t)
    wire = hello.in_records(hello.message_of(hello.genuine(NAME)), 1)
    sock = t.connect()
    hello.send_in_pieces(sock, wire, 1)
    equal(sockets.read_to_end(sock), b"site")


@test
def every_two_way_split(t):
    one_site(t)
    data = hello.genuine(NAME)
    for at in range(1, len(data), 7):
        sock = t.connect()
        sock.sendall(data[:at])
        time.sleep(0.002)
        sock.sendall(data[at:])
        equal(sockets.read_to_end(sock), b"site", f"split at {at}")
        sock.close()


@test
def post_quantum(t):
    one_site(t)
    wire = hello.post_quantum(NAME)
    assert len(wire) > 1500
    equal(t.send(wire), "site")
    sock = t.connect()
    hello.send_in_pieces(sock, wire, 1400, 0.01)
    equal(sockets.read_to_end(sock), b"site")


@test
def large(t):
    one_site(t)
    # OpenSSL itself: 20 KiB of ALPN is more than one record holds
    alpn = tuple(f"{n:03}{'x' * 200}" for n in range(100))
    wire = hello.genuine(NAME, alpn)
    assert len(wire) > 16384 + 10
    equal(t.send(wire), "site", "OpenSSL's")
    for size in (8000, 16384, 16388, 32767, 32768):
        wire = hello.in_records(hello.with_size(NAME, size))
        equal(t.send(wire), "site", f"{size} bytes")


@test
def too_large(t):
    gate, server = one_site(t)
    # the body, without the 4 bytes of its header, may have 32 KiB
    message = hello.with_size(NAME, 32768 + 4)
    equal(t.send(hello.in_records(message)), "site", "the largest")
    message = hello.with_size(NAME, 32768 + 5)
    sock = t.connect()
    sock.sendall(hello.in_records(message)[:9])
    seconds, reply = seconds_until_closed(sock)
    assert b"site" not in reply
    between(seconds, 0, 1, "seconds until the header alone is refused")
    equal(gate.refused("tls_hello_large"), 1, "tls_hello_large")
    equal(len(server.sessions), 1, "connections of the server")


@test
def malformed(t):
    gate, server = one_site(t)
    good = hello.genuine(NAME)
    at = 5 + hello.extensions_at(hello.message_of(good))
    broken = [
        good[:at] + b"\xff\xff" + good[at + 2:],
        good[:at] + b"\x00\x01" + good[at + 2:],
        good[:43] + b"\xff" + good[44:],  # length of the session id
        good[:5] + b"\x02" + good[6:],    # a ServerHello
        b"\x15\x03\x01\x00\x02\x02\x28",  # an alert
        b"\x16\x03\x01\x00\x00" + good,   # an empty record
    ]
    for data in broken:
        sock = t.connect()
        sock.sendall(data)
        seconds, _ = seconds_until_closed(sock)
        between(seconds, 0, 1, f"seconds until {data[:12]!r} is refused")
    equal(len(server.sessions), 0, "connections of the server")
    equal(sum(gate.status()["refused"].values()), len(broken), "refusals")


@test
def deadline_closes_the_silent(t):
    gate, _ = one_site(t, "timeout hello 1s")
    silent, partial = t.connect(), t.connect()
    partial.sendall(hello.genuine(NAME)[:-1])
    start = time.monotonic()
    sockets.read_to_end(silent)
    between(time.monotonic() - start, 0.8, 1.7, "seconds for the silent one")
    sockets.read_to_end(partial)
    between(time.monotonic() - start, 0.8, 1.7, "seconds for the partial one")
    equal(gate.refused("hello_timeout"), 2, "hello_timeout")


@test
def deadline_control(t):
    gate, _ = one_site(t, "timeout hello 30s")
    silent = t.connect(timeout=2)
    try:
        silent.recv(1)
    except TimeoutError:
        pass
    else:
        raise AssertionError("closed although it had 30 s")
    equal(gate.refused("hello_timeout"), 0, "hello_timeout")
    silent.sendall(hello.genuine(NAME))
    silent.settimeout(3)
    equal(sockets.read_to_end(silent), b"site")


@test
def deadline_default_is_5_seconds(t):
    one_site(t)
    seconds, _ = seconds_until_closed(t.connect(timeout=10))
    between(seconds, 4.5, 6, "seconds")


@test
def trickling_does_not_extend_the_deadline(t):
    gate, _ = one_site(t, "timeout hello 1s")
    sock = t.connect()
    start = time.monotonic()
    try:
        hello.send_in_pieces(sock, hello.genuine(NAME), 1, 0.1)
        raise AssertionError("it took the whole hello")
    except (ConnectionResetError, BrokenPipeError):
        between(time.monotonic() - start, 0.8, 2, "seconds")
    equal(gate.refused("hello_timeout"), 1, "hello_timeout")


@test
def deadline_does_not_touch_a_live_connection(t):
    one_site(t, "timeout hello 500ms", serve=sockets.echo)
    sock = t.open(NAME)
    data = hello.genuine(NAME)
    equal(sockets.read_exactly(sock, len(data)), data)
    for _ in range(4):
        time.sleep(0.5)
        sock.sendall(b"still here")
        equal(sockets.read_exactly(sock, 10), b"still here")


@test
def client_that_leaves_early(t):
    gate, server = one_site(t)
    for data in (b"", b"\x16", hello.genuine(NAME)[:100]):
        sock = t.connect()
        sock.sendall(data)
        sockets.finish(sock)
        seconds, _ = seconds_until_closed(sock)
        between(seconds, 0, 1, "seconds")
        sock = t.connect()
        sock.sendall(data)
        sockets.reset(sock)
    wait_until(lambda: gate.refused("hello_eof") == 6, 2, "6 hello_eof")
    equal(len(server.sessions), 0, "connections of the server")


@test
def server_speaks_before_the_hello_is_whole(t):
    """With `listen … to` there is no hello, so neither is its deadline."""
    def serve(session):
        session.send(b"hello")
        sockets.echo(session)

    gate, _ = one_site(t, f"backend raw {t.server(serve)}\n"
                          "listen :25 tcp to raw\ntimeout hello 500ms")
    sock = t.connect("10.77.1.1:25")
    equal(sockets.read_exactly(sock, 5), b"hello")
    time.sleep(1.2)
    sock.sendall(b"x")
    equal(sockets.read_exactly(sock, 1), b"x")
    equal(gate.refused("hello_timeout"), 0, "hello_timeout")
