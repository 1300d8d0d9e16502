# SPDX-License-Identifier: GPL-2.0-or-later
"""Bytes, ends and resets, on both engines."""

import hashlib
import socket
import threading
import time

from lib import hello, sockets
from lib.harness import equal, raises, test
from lib.process import wait_until
from lib.relaying import COPY, MB, NAME, each_engine, site


@each_engine
def download(t, relay):
    stream = sockets.Stream(50 * MB)

    def serve(session):
        session.read_some()
        for part in stream.parts():
            session.send(part)

    gate, _ = site(t, serve, relay)
    sock = t.open(NAME)
    equal(sockets.hash_to_end(sock), (stream.size, stream.hash))
    sock.close()
    event = gate.wait_events(1)[0]
    equal(event["engine"], "rw" if relay == COPY else "splice", "engine")
    equal(int(event["out"]), stream.size, "out")
    equal(gate.status()["bytes"]["out"], stream.size, "bytes.out")


@each_engine
def upload(t, relay):
    stream = sockets.Stream(50 * MB)
    gate, server = site(t, sockets.recorder, relay)
    sock = t.open(NAME)
    for part in stream.parts():
        sock.sendall(part)
    sockets.finish(sock)
    sockets.read_to_end(sock)
    first = len(hello.genuine(NAME))
    session = server.sessions[0]
    equal(len(session.data) - first, stream.size, "bytes at the server")
    equal(hashlib.sha256(session.data[first:]).hexdigest(), stream.hash)
    equal(int(gate.wait_events(1)[0]["in"]), stream.size + first)


@each_engine
def both_ways_at_once(t, relay):
    gate, _ = site(t, sockets.echo, relay)
    stream = sockets.Stream(30 * MB)
    sock = t.open(NAME)
    equal(len(sockets.read_exactly(sock, len(hello.genuine(NAME)))),
          len(hello.genuine(NAME)))

    def send():
        for part in stream.parts():
            sock.sendall(part)
        sockets.finish(sock)

    threading.Thread(target=send, daemon=True).start()
    equal(sockets.hash_to_end(sock), (stream.size, stream.hash))


@each_engine
def client_fin_then_10_mb(t, relay):
    """The client says FIN at once, and then the whole answer comes."""
    stream = sockets.Stream(10 * MB)

    def serve(session):
        session.read_to_end()
        time.sleep(0.3)
        for part in stream.parts():
            session.send(part)

    site(t, serve, relay)
    sock = t.open(NAME)
    sockets.finish(sock)
    equal(sockets.hash_to_end(sock), (stream.size, stream.hash))


@each_engine
def server_fin_then_10_mb(t, relay):
    """The mirror: the server says FIN, and the client goes on sending."""
    stream = sockets.Stream(10 * MB)

    def serve(session):
        session.read_some()
        session.send(b"go on")
        sockets.finish(session.sock)
        session.read_to_end()

    _, server = site(t, serve, relay)
    sock = t.open(NAME)
    equal(sockets.read_to_end(sock), b"go on")
    time.sleep(0.3)
    for part in stream.parts():
        sock.sendall(part)
    sockets.finish(sock)
    session = server.sessions[0]
    assert session.has_ended.wait(5), "the server saw no end"
    first = len(hello.genuine(NAME))
    equal(hashlib.sha256(session.data[first:]).hexdigest(), stream.hash)


@each_engine
def fin_with_the_last_bytes(t, relay):
    """FIN right behind data, both ways, many times: nothing overtakes."""
    def serve(session):
        data = session.read_to_end()
        session.send(bytes(data) + b"!")

    site(t, serve, relay)
    for turn in range(100):
        more = b"x" * (turn * 997)
        sock = t.open(NAME, more=more)
        sockets.finish(sock)
        equal(sockets.read_to_end(sock), hello.genuine(NAME) + more + b"!")
        sock.close()


@each_engine
def reset_by_the_client(t, relay):
    gate, server = site(t, sockets.echo, relay)
    sock = t.open(NAME, more=b"x" * 200000)
    sockets.read_exactly(sock, 200000)
    sockets.reset(sock)
    session = server.sessions[0]
    assert session.has_ended.wait(2), "the server was not told"
    assert session.was_reset, "the server saw a FIN instead of a RST"
    equal(len(gate.wait_events(1)), 1)


@each_engine
def reset_by_the_server(t, relay):
    def serve(session):
        session.read_until(100)
        session.send(b"x" * 200000)
        if session.read_until(len(session.data) + 4):
            sockets.reset(session.sock)

    site(t, serve, relay)
    sock = t.open(NAME)
    equal(len(sockets.read_exactly(sock, 200000)), 200000)
    sock.sendall(b"now!")
    with raises(ConnectionResetError):
        sockets.read_to_end(sock)


@each_engine
def reset_after_half_close(t, relay):
    """The client has said FIN; the server's reset still reaches it."""
    def serve(session):
        session.read_to_end()
        session.send(b"some")
        time.sleep(0.3)
        sockets.reset(session.sock)

    site(t, serve, relay)
    sock = t.open(NAME)
    sockets.finish(sock)
    equal(sockets.read_exactly(sock, 4), b"some")
    with raises(ConnectionResetError):
        sockets.read_to_end(sock)


@each_engine
def half_close_over_a_unix_socket(t, relay):
    stream = sockets.Stream(10 * MB)

    def serve(session):
        session.read_to_end()
        for part in stream.parts():
            session.send(part)

    t.headgate(f"""
        listen :443 tcp
        backend site {t.unix_server(serve)}
        default to site
        {relay}
        """)
    sock = t.open(NAME, more=b"x" * 300000)
    sockets.finish(sock)
    equal(sockets.hash_to_end(sock), (stream.size, stream.hash))


@test
def reset_while_the_other_side_is_full(t):
    """A client that does not read is told all the same, when it reads."""
    def serve(session):
        session.read_some()
        try:
            while True:
                session.send(b"x" * 65536)
        finally:
            session.was_reset = True

    gate, server = site(t, serve)
    sock = t.open(NAME)
    time.sleep(0.5)
    sockets.reset(sock)
    assert server.sessions[0].has_ended.wait(2), "the server was not told"
    gate.wait_events(1)


@test(timeout=40)
def many_short_connections(t):
    """Every order of ending, in turn: FIN or RST, client or server first."""
    def serve(session):
        first = session.read_some()
        if not first:
            return
        kind = first[-1:]
        session.send(b"ok")
        if kind == b"S":
            return
        if kind == b"R":
            sockets.reset(session.sock)
            return
        session.read_to_end()

    gate, _ = site(t, serve)
    for turn in range(400):
        kind = b"SRcr"[turn % 4:turn % 4 + 1]
        sock = t.open(NAME, more=kind)
        try:
            sockets.read_exactly(sock, 2)
            if kind == b"r":
                sockets.reset(sock)
        except ConnectionResetError:
            assert kind == b"R"
        sock.close()
    equal(len(gate.wait_events(400)), 400, "log lines")
    equal(gate.status()["connections"]["total"], 400, "connections.total")


@each_engine
def reset_behind_a_half_close(t, relay):
    """FIN, and then a reset, of a side that nobody reads from any more."""
    go = threading.Event()

    def serve(session):
        session.read_some()
        session.read_to_end()
        session.sock.sendall(b"x")
        go.wait(10)

    gate, _ = site(t, serve, relay)
    sock = t.open(NAME)
    sockets.finish(sock)
    sockets.read_exactly(sock, 1)
    sockets.reset(sock)
    wait_until(lambda: gate.connections() == 0, 3, "the end")
    go.set()


@each_engine
def reset_of_a_blocked_upload(t, relay):
    """The server does not read, and the client gives up."""
    go = threading.Event()

    def serve(session):
        session.read_some()
        go.wait(10)

    gate, _ = site(t, serve, relay)
    sock = t.open(NAME)
    sock.setblocking(False)
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            sock.send(bytes(65536))
        except BlockingIOError:
            time.sleep(0.01)
    sockets.reset(sock)
    wait_until(lambda: gate.connections() == 0, 5, "the end")
    go.set()


@each_engine
def urgent_data_stalls_nothing(t, relay):
    """A read stops short at the mark; what is behind it goes on."""
    def serve(session):
        data = session.read_some()
        while len(data) < first + 400000:
            data += session.sock.recv(65536)
        session.sock.sendall(b"done")

    first = len(hello.genuine(NAME))
    site(t, serve, relay)
    sock = t.open(NAME)
    sock.sendall(bytes(100000))
    time.sleep(0.1)
    for _ in range(3):
        sock.send(b"!", socket.MSG_OOB)
        sock.sendall(bytes(100000))
    equal(sockets.read_exactly(sock, 4), b"done")
