# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers that stop, and what is held for them and for the idle."""

import hashlib
import socket
import threading
import time

from lib import hello, sockets
from lib.harness import between, equal, need_plain_build, test
from lib.headgate import DAEMON
from lib.process import resident_bytes, wait_until
from lib.relaying import MB, NAME, SPLICE, each_engine, site


def own_buffers(sock):
    """Small ones for the two ends: what is held lies in between."""
    for option in socket.SO_SNDBUF, socket.SO_RCVBUF:
        sock.setsockopt(socket.SOL_SOCKET, option, 262144)


def wait_stall(count):
    """Until count() has stood still for a while; returns it."""
    def has_stopped():
        before = count()
        time.sleep(0.4)
        return before == count()

    wait_until(has_stopped, 10, "the sender to be held back")
    return count()


@each_engine
def stalled_reader(t, relay):
    """A client reads 1 MB of its download, and then nothing for a while."""
    stream = sockets.Stream(200 * MB)

    def serve(session):
        own_buffers(session.sock)
        session.read_some()
        for part in stream.parts():
            session.send(part)

    gate, server = site(t, serve, relay)
    before = resident_bytes(gate.router)
    sock = t.open(NAME, timeout=20, setup=own_buffers)
    head = sockets.read_exactly(sock, MB)
    sent = wait_stall(lambda: server.sessions[0].sent)
    between(sent - MB, 0, 16 * MB, "bytes held on the way")
    grown = resident_bytes(gate.router) - before
    between(grown, -MB, MB, "growth of the router")
    digest, count = hashlib.sha256(head), len(head)
    while part := sock.recv(sockets.CHUNK):
        digest.update(part)
        count += len(part)
    equal((count, digest.hexdigest()), (stream.size, stream.hash))


@each_engine
def stalled_server(t, relay):
    """The mirror: an upload to a server that does not read for a while."""
    go = threading.Event()

    def serve(session):
        own_buffers(session.sock)
        session.read_some()
        go.wait(20)
        session.read_to_end()

    _, server = site(t, serve, relay)
    stream = sockets.Stream(60 * MB)
    sock = t.open(NAME, timeout=20, setup=own_buffers)
    sent = [0]

    def send():
        for part in stream.parts():
            sock.sendall(part)
            sent[0] += len(part)
        sockets.finish(sock)

    threading.Thread(target=send, daemon=True).start()
    held = wait_stall(lambda: sent[0])
    go.set()
    sockets.read_to_end(sock)
    first = len(hello.genuine(NAME))
    data = server.sessions[0].data
    equal(hashlib.sha256(data[first:]).hexdigest(), stream.hash)
    between(held, 0, 16 * MB, "bytes held on the way")


@test(timeout=40)
def flip_flop_reader(t):
    """Stalls and reads in turn: each engine change must lose nothing."""
    stream = sockets.Stream(40 * MB)

    def serve(session):
        session.read_some()
        for part in stream.parts():
            session.send(part)

    site(t, serve, SPLICE)
    sock = t.open(NAME, setup=lambda s: s.setsockopt(1, 8, 65536))
    digest, count = hashlib.sha256(), 0
    while part := sock.recv(MB):
        digest.update(part)
        count += len(part)
        if count % 7 == 0:
            time.sleep(0.05)
    equal((count, digest.hexdigest()), (stream.size, stream.hash))


def relayed(gate):
    engines = gate.status()["engines"]
    return engines["rw"] + engines["splice"]


@test(timeout=40)
def idle_connection_holds_no_buffer(t):
    """At most 512 bytes of the daemon's memory for each."""
    need_plain_build(DAEMON)
    gate, _ = site(t, sockets.recorder, more="limit connections 4000")
    count = 2000
    warm = [t.open(NAME) for _ in range(100)]
    wait_until(lambda: relayed(gate) == 100, 5, "100 connections")
    time.sleep(1)
    before = resident_bytes(gate.router)
    held = [t.open(NAME) for _ in range(count)]
    # one whose server has not answered yet holds its hello
    wait_until(lambda: relayed(gate) == count + 100, 20, "all of them")
    time.sleep(1)
    grown = resident_bytes(gate.router) - before
    assert held and warm
    # 16 pages for what is not theirs
    between(grown, 0, 512 * count + 65536, f"bytes for {count}")
