# SPDX-License-Identifier: GPL-2.0-or-later
"""Which server of a backend, and what happens when one does not answer."""

import collections
import os
import signal
import socket
import sys
import time

from lib import hello, netns, sockets
from lib.harness import between, equal, test
from lib.peers import wait_open
from lib.process import wait_until

NAME = "a.example"
BLACK_HOLE = "10.77.2.99:443"  # nobody has this address: ARP never answers


def site(t, servers, more=""):
    return t.headgate(f"""
listen :443 tcp
backend site {servers}
default to site
{more}
""")


def closed_port(t):
    """An address of a server that refuses connections."""
    server = t.server("never")
    server.close()
    return server.address


def ask_many(t, count, **options):
    return collections.Counter(t.ask(NAME, **options) for _ in range(count))


def is_refused(t):
    """No server: the client hears an alert or an end, soon."""
    start = time.monotonic()
    try:
        reply = t.ask(NAME)
    except ConnectionResetError:
        reply = ""
    between(time.monotonic() - start, 0, 1, "seconds until refused")
    return not reply or hello.is_alert(reply, hello.INTERNAL_ERROR)


@test
def round_robin(t):
    a, b, c = (t.server(n) for n in "abc")
    site(t, f"{a}, {b}, {c} balance round-robin")
    equal(ask_many(t, 30), {"a": 10, "b": 10, "c": 10})


@test
def weights(t):
    a, b = t.server("a"), t.server("b")
    site(t, f"{a} weight 3, {b} weight 1 balance round-robin")
    equal(ask_many(t, 40), {"a": 30, "b": 10})


@test
def least_conn(t):
    def serve(letter):
        def speak(session):
            session.send(letter)
            session.read_to_end()
        return speak

    a, b = t.server(serve(b"a")), t.server(serve(b"b"))
    gate = site(t, f"{a}, {b} balance least-conn")

    def hold(count):
        socks = [t.open(NAME) for _ in range(count)]
        return [(sock.recv(1), sock) for sock in socks]

    held = hold(20)
    equal((len(a.sessions), len(b.sessions)), (10, 10), "connections")
    # those of `a` end: it gets the next ten
    for letter, sock in held:
        if letter == b"a":
            sock.close()
    wait_until(lambda: gate.connections() == 10, 3, "10 to be left")
    hold(10)
    equal((len(a.sessions), len(b.sessions)), (20, 10), "connections")


@test
def hash_is_by_client(t):
    servers = [t.server(n) for n in "abcd"]
    listed = ", ".join(map(str, servers))
    gate = site(t, f"{listed} balance hash")
    clients = [f"10.78.0.{n}" for n in range(1, 201)]

    def where():
        return {c: t.ask(NAME, source=c) for c in clients}

    first = where()
    equal(where(), first, "the second time")
    shares = collections.Counter(first.values())
    for name in "abcd":
        between(shares[name], 25, 80, f"clients of {name}, of 200")
    # one server fewer: the clients of the others stay where they are
    gate.reloaded(f"""
listen :443 tcp
backend site {", ".join(map(str, servers[:3]))} balance hash
default to site
""")
    after = where()
    moved = sum(after[c] != first[c] for c in clients if first[c] != "d")
    between(moved, 0, 0.1 * 200, "clients that moved without need")


@test
def hash_takes_the_whole_ipv6_prefix(t):
    servers = ", ".join(str(t.server(n)) for n in "abcd")
    site(t, f"{servers} balance hash")
    address = f"[{netns.ROUTER6}]:443"
    replies = {t.ask(NAME, address=address, source=f"fd78:0:0:1::{n}")
               for n in range(1, 20)}
    equal(len(replies), 1, "servers of one /64")
    replies = {t.ask(NAME, address=address, source=f"fd78:0:0:{n:x}::1")
               for n in range(1, 60)}
    equal(len(replies), 4, "servers of 59 prefixes")


@test
def second_server_is_tried(t):
    dead, alive = closed_port(t), t.server("alive")
    gate = site(t, f"{dead}, {alive}")
    equal(ask_many(t, 20), {"alive": 20})
    states = gate.server_states("site")
    assert states[dead]["failures"] >= 1, states
    # a failing server is left alone for a while, not tried every time
    assert states[dead]["failures"] <= 5, states
    equal(sum(gate.status()["refused"].values()), 0, "refusals")


@test
def all_servers_refuse(t):
    gate = site(t, f"{closed_port(t)}, {closed_port(t)}")
    assert is_refused(t)
    assert is_refused(t)
    equal(gate.refused("connect_failed"), 2, "connect_failed")


@test
def all_servers_down_by_their_check(t):
    gate = site(t, f"{closed_port(t)} check tcp every 100ms")
    wait_until(lambda: [s["state"] for s in gate.server_states(
        "site").values()] == ["down"], 3, "the server to be down")
    assert is_refused(t)
    equal(gate.refused("no_server"), 1, "no_server")


@test
def connect_timeout(t):
    gate = site(t, BLACK_HOLE, "timeout connect 700ms")
    start = time.monotonic()
    reply = t.ask(NAME)
    between(time.monotonic() - start, 0.6, 1.5, "seconds")
    assert not reply or len(reply) == 7
    equal(gate.refused("connect_timeout"), 1, "connect_timeout")


@test
def connect_timeout_control(t):
    gate = site(t, BLACK_HOLE, "timeout connect 30s")
    sock = t.open(NAME, timeout=1.5)
    try:
        sock.recv(1)
    except TimeoutError:
        pass
    else:
        raise AssertionError("closed although it had 30 s")
    equal(gate.refused("connect_timeout"), 0, "connect_timeout")


@test
def black_hole_then_the_next_server(t):
    """SYNs are dropped by the server's own firewall."""
    dead, alive = t.server("dead"), t.server("alive", host=netns.TWO)
    t.net.one.nft(f"""
        table inet hole {{
            chain in {{
                type filter hook input priority 0;
                tcp dport {dead.port} drop;
            }}
        }}""")
    t.undo.callback(t.net.one.nft, "delete table inet hole")
    gate = site(t, f"{dead}, {alive}", "timeout connect 500ms")
    start = time.monotonic()
    equal(ask_many(t, 6), {"alive": 6})
    between(time.monotonic() - start, 0.3, 2.5, "seconds for six")
    equal(gate.refused("connect_timeout"), 0, "connect_timeout")


@test
def accept_queue_is_full(t):
    """The first server accepts nothing any more; the second is asked."""
    with t.net.one.inside():
        stuck = socket.create_server((netns.ONE, 9300), backlog=0)
    t.undo.callback(stuck.close)
    for _ in range(4):
        with t.net.one.inside():
            sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex((netns.ONE, 9300))
        t.sockets.append(sock)
    site(t, f"{netns.ONE}:9300, {t.server('alive')} backup",
         "timeout connect 500ms")
    equal(ask_many(t, 5), {"alive": 5})


@test
def black_hole_does_not_delay_other_names(t):
    good = t.server("good")
    t.headgate(f"""
        listen :443 tcp
        backend hole {BLACK_HOLE}
        backend good {good}
        route hole.example to hole
        route good.example to good
        timeout connect 3s
        """)
    for _ in range(100):
        t.open("hole.example")
    start = time.monotonic()
    for _ in range(20):
        equal(t.ask("good.example"), "good")
    between(time.monotonic() - start, 0, 1, "seconds for 20")


@test
def client_leaves_during_the_connect(t):
    gate = site(t, BLACK_HOLE, "timeout connect 3s")
    sock = t.open(NAME)
    wait_until(lambda: gate.connections() == 1, 2, "the connection")
    sockets.reset(sock)
    wait_until(lambda: gate.connections() == 0, 1, "it to be gone")


@test
def backup_server(t):
    main, spare = t.server("main"), t.server("spare")
    gate = site(t, f"{main}, {spare} backup check tcp every 100ms "
                   "rise 1 fall 1")
    equal(ask_many(t, 10), {"main": 10})
    port = main.port
    main.close()
    equal(ask_many(t, 10), {"spare": 10})
    again = t.server("main again", port=port)
    wait_until(lambda: gate.server_states("site")[again.address]["state"] ==
               "up", 3, "the main server to be up")
    equal(ask_many(t, 10), {"main again": 10})


@test
def health_check_takes_out_and_brings_back(t):
    a, b = t.server("a"), t.server("b")
    gate = site(t, f"{a}, {b} check tcp every 200ms rise 2 fall 2")
    equal(ask_many(t, 10), {"a": 5, "b": 5})
    port = a.port
    start = time.monotonic()
    a.close()

    def state():
        return gate.server_states("site")[a.address]["state"]

    wait_until(lambda: state() == "down", 3, "a to be down")
    between(time.monotonic() - start, 0.1, 1.5, "seconds to notice")
    equal(ask_many(t, 10), {"b": 10})
    start = time.monotonic()
    t.server("a", port=port)
    wait_until(lambda: state() == "up", 3, "a to be up")
    between(time.monotonic() - start, 0.1, 1.5, "seconds to notice")
    equal(ask_many(t, 10), {"a": 5, "b": 5})
    changes = [line for line in gate.lines() if a.address in line]
    assert len(changes) >= 2, "both changes stand in the log"


@test
def check_of_a_unix_socket(t):
    server = t.unix_server("u")
    gate = site(t, f"{server} check tcp every 100ms rise 1 fall 1")
    equal(t.ask(NAME), "u")
    server.close()
    wait_until(lambda: gate.server_states("site")[server.address]["state"] ==
               "down", 3, "it to be down")


SERVE_FOREVER = """
import socket, sys
s = socket.create_server((sys.argv[1], int(sys.argv[2])))
held = []
while True:
    held.append(s.accept()[0])
    held[-1].send(b"there")
"""


@test
def backend_is_killed(t):
    """SIGKILL of a server: its clients hear at once, others are served."""
    port = 9100
    victim = t.process([sys.executable, "-c", SERVE_FOREVER, netns.ONE, port],
                       "victim")
    wait_open(victim, t.net.one, f"{netns.ONE}:{port}")
    other = t.server("other")
    gate = site(t, f"{netns.ONE}:{port}, {other} backup")
    clients = [t.open(NAME) for _ in range(200)]
    for sock in clients:
        sock.recv(5)
    os.kill(victim.pid, signal.SIGKILL)
    start = time.monotonic()
    for sock in clients:
        try:
            sockets.read_to_end(sock)
        except ConnectionResetError:
            pass
    between(time.monotonic() - start, 0, 1, "seconds for 200 clients")
    start = time.monotonic()
    equal(t.ask(NAME), "other")
    between(time.monotonic() - start, 0, 0.3, "seconds for the next client")
    wait_until(lambda: gate.connections() == 0, 2, "no connection")


@test
def no_second_server_after_bytes_were_delivered(t):
    """A server that took the hello and died is not replayed elsewhere."""
    def serve(session):
        session.read_some()
        sockets.reset(session.sock)

    first, second = t.server(serve), t.server("second")
    site(t, f"{first}, {second} backup")
    try:
        equal(t.ask(NAME), "")
    except ConnectionResetError:
        pass
    equal(len(second.sessions), 0, "connections of the second server")


@test
def connections_are_counted_by_server(t):
    a = t.server(sockets.echo)
    gate = site(t, str(a))
    socks = [t.open(NAME) for _ in range(3)]
    for sock in socks:
        sock.recv(1)
    equal(gate.server_states("site")[a.address]["connections"], 3)


@test
def unix_socket_with_a_full_queue_is_asked_again(t):
    """Full is not down: the client waits, and nobody is marked."""
    path = f"{t.directory}/full.sock"
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    os.chmod(path, 0o777)
    server.listen(0)
    gate = t.headgate(f"""
        listen :443 tcp
        backend site unix:{path}
        default to site
        """)
    socks = [t.open("a.example") for _ in range(4)]
    time.sleep(0.5)
    equal(gate.refused("connect_failed"), 0, "refused")
    held = []
    for _ in socks:
        held.append(server.accept()[0])
        held[-1].sendall(b"here")
    for sock in socks:
        equal(sockets.read_exactly(sock, 4), b"here")
    entry = gate.status()["backends"][0]["servers"][0]
    equal((entry["state"], entry["failures"]), ("up", 0), "the server")
    for sock in held + [server]:
        sock.close()
