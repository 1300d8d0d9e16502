# SPDX-License-Identifier: GPL-2.0-or-later
"""The idle watchdog, in every phase and on both engines."""

import time

from lib import sockets
from lib.harness import between, equal
from lib.process import wait_until
from lib.relaying import NAME, each_engine, site


def with_end(sock):
    try:
        return sockets.read_to_end(sock)
    except ConnectionResetError:
        return b""


@each_engine
def idle_connection_is_closed(t, relay):
    gate, server = site(t, sockets.recorder, relay, "timeout idle 1s")
    sock = t.open(NAME, more=b"x" * 300000)
    start = time.monotonic()
    with_end(sock)
    between(time.monotonic() - start, 0.8, 3, "seconds")
    assert server.sessions[0].has_ended.wait(1)
    assert "idle" in gate.wait_events(1)[0]["end"], gate.events()


@each_engine
def idle_after_half_close(t, relay):
    """Held until its total time elsewhere: the watchdog covers it here."""
    _, server = site(t, lambda s: (s.read_to_end(), time.sleep(8)), relay,
                     "timeout idle 1s")
    sock = t.open(NAME, more=b"x" * 300000)
    sockets.finish(sock)
    start = time.monotonic()
    with_end(sock)
    between(time.monotonic() - start, 0.8, 3, "seconds")


@each_engine
def idle_after_the_servers_half_close(t, relay):
    def serve(session):
        session.read_some()
        session.send(b"x" * 300000)
        sockets.finish(session.sock)
        session.read_to_end()

    gate, server = site(t, serve, relay, "timeout idle 1s")
    sock = t.open(NAME)
    sockets.read_to_end(sock)
    start = time.monotonic()
    assert server.sessions[0].has_ended.wait(4), "never closed"
    between(time.monotonic() - start, 0.6, 3, "seconds")
    wait_until(lambda: gate.connections() == 0, 1, "no connection")


@each_engine
def steady_one_way_data_is_not_idle(t, relay):
    """The control of the idle tests, and gobetween's issue 35."""
    def serve(session):
        session.read_some()
        session.send(b"x" * 300000)
        for _ in range(12):
            time.sleep(0.25)
            session.send(b"tick")

    site(t, serve, relay, "timeout idle 1s")
    sock = t.open(NAME)
    equal(len(sockets.read_to_end(sock)), 300000 + 48)


@each_engine
def steady_data_after_half_close_is_not_idle(t, relay):
    def serve(session):
        session.read_to_end()
        for _ in range(12):
            time.sleep(0.25)
            session.send(b"tick")

    site(t, serve, relay, "timeout idle 1s")
    sock = t.open(NAME, more=b"x" * 300000)
    sockets.finish(sock)
    equal(len(sockets.read_to_end(sock)), 48)
