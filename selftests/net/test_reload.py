# SPDX-License-Identifier: GPL-2.0-or-later
"""Reload, drain, and a router that is killed."""

import json
import os
import signal
import socket
import threading
import time

from lib import hello, invariants, netns, sockets
from lib.harness import LISTEN, between, compile_c, equal, raises, test
from lib.process import descriptors, listening_inodes, wait_until

NAME = "a.example"


def config(server, more=""):
    return f"""
listen :443 tcp
backend site {server}
default to site
{more}
"""


def site(t, serve="site", more=""):
    server = t.server(serve)
    return t.headgate(config(server, more)), server


@test
def routes_and_backends_change(t):
    gate, a = site(t, "a")
    b = t.server("b")
    equal(t.ask(NAME), "a")
    gate.reloaded(config(b))
    equal(t.ask(NAME), "b")
    gate.reloaded(f"listen :443 tcp\nbackend a {a}\nbackend b {b}\n"
                  f"route {NAME} to a\ndefault to b\n")
    equal(t.ask(NAME), "a")
    equal(t.ask("other.example"), "b")


@test
def by_signal(t):
    gate, _ = site(t, "a")
    b = t.server("b")
    gate.write(config(b))
    gate.process.send(signal.SIGHUP)
    wait_until(lambda: t.ask(NAME) == "b", 3, "the new backend")


@test
def live_connections_stay(t):
    gate, a = site(t, sockets.echo)
    sock = t.open(NAME)
    sockets.read_exactly(sock, len(hello.genuine(NAME)))
    b = t.server("b")
    for _ in range(5):
        gate.reloaded(config(b))
        sock.sendall(b"ping")
        equal(sockets.read_exactly(sock, 4), b"ping")
    # its server is in no configuration any more, and yet counted
    equal(gate.connections(), 1, "connections.now")
    assert a.address not in gate.server_states("site")


@test
def bad_then_good(t):
    gate, _ = site(t, "a")
    bad = ["listen :443 tcp\nbackend a", "nonsense\n",
           "listen :443 tcp\ndefault to nowhere\n",
           "listen :443 tcp\nlisten :443 tcp\n", "\0", ""]
    for turn in range(20):
        answer = gate.reload(bad[turn % len(bad)])
        if not bad[turn % len(bad)]:
            continue  # an empty file is for the daemon to judge
        equal(answer.returncode, 2, f"exit status for {bad[turn % len(bad)]!r}")
        assert f"{gate.config}:" in answer.stderr + answer.stdout, answer
    gate.reloaded(config(t.server("b")))
    equal(t.ask(NAME), "b")
    invariants.check_descriptors(gate)
    gate.expect_error(r"\.conf:\d|reload|listen")


@test
def bad_reload_changes_nothing(t):
    gate, _ = site(t, "a")
    inodes = listening_inodes(gate.pid, 443)
    answer = gate.reload(config(t.server("b"), "rout x to site"))
    equal(answer.returncode, 2, "exit status")
    assert "route" in answer.stderr, f"suggests the nearest: {answer.stderr}"
    gate.process.send(signal.SIGHUP)
    time.sleep(0.3)
    equal(t.ask(NAME), "a")
    equal(listening_inodes(gate.pid, 443), inodes, "listening sockets")
    gate.expect_error(r"\.conf:\d|reload")


@test
def bind_failure_changes_nothing(t):
    """A reload that cannot have its listener is refused as a whole."""
    gate, server = site(t, "a")
    with t.net.router.inside():
        taken = socket.create_server(("", 8443))
    t.undo.callback(taken.close)
    answer = gate.reload(config(t.server("b"), "listen :8443 tcp"))
    assert answer.returncode in (1, 2), answer
    assert "8443" in answer.stderr, answer.stderr
    equal(t.ask(NAME), "a")
    gate.reloaded(config(server))
    gate.expect_error("8443|reload")


@test
def listeners_come_and_go(t):
    gate, server = site(t, "a")
    inodes = listening_inodes(gate.pid, 443)
    assert inodes, "no listening socket is seen"
    gate.reloaded(config(server, "listen :8443 tcp"))
    equal(t.ask(NAME, address=f"{netns.ROUTER}:8443"), "a")
    equal(t.ask(NAME), "a")
    equal(listening_inodes(gate.pid, 443), inodes, "sockets of :443")
    held = t.open(NAME, address=f"{netns.ROUTER}:8443")
    gate.reloaded(config(server))
    with raises(ConnectionRefusedError):
        wait_until(lambda: t.connect(f"{netns.ROUTER}:8443") and False, 2)
    equal(sockets.read_to_end(held), b"a")
    equal(listening_inodes(gate.pid, 443), inodes, "sockets of :443")
    equal(t.ask(NAME), "a")
    gate.reloaded(config(server, "listen :8443 tcp"))
    equal(t.ask(NAME, address=f"{netns.ROUTER}:8443"), "a")
    gate.reloaded(config(server))


@test
def listener_changes_its_target(t):
    """The same socket, to another backend: nothing is bound anew."""
    a, b = t.server("a"), t.server("b")
    gate = t.headgate(f"listen :80 tcp to a\nbackend a {a}\nbackend b {b}\n"
                      "default refuse\n")
    inodes = listening_inodes(gate.pid, 80)
    equal(t.send(b"x", f"{netns.ROUTER}:80"), "a")
    gate.reloaded(f"listen :80 tcp to b\nbackend a {a}\nbackend b {b}\n"
                  "default refuse\n")
    equal(t.send(b"x", f"{netns.ROUTER}:80"), "b")
    equal(listening_inodes(gate.pid, 80), inodes, "sockets of :80")


def start_load(t, rate, seconds):
    """2 servers and a client, in C: (their addresses, end of the load)."""
    program = compile_c(t.directory, "load.c")
    path = f"{t.directory}/hello"
    with open(path, "wb") as f:
        f.write(hello.genuine(NAME))
    for ns, host in ((t.net.one, netns.ONE), (t.net.two, netns.TWO)):
        t.process([program, "serve", host, 9000], f"serve-{host}", ns=ns)
    time.sleep(0.2)

    def run():
        host, port = sockets.split_host(LISTEN)
        client = t.process([program, "run", host, port, path, rate, seconds],
                           "load", ns=t.net.client)
        return client

    def result(client):
        client.wait(seconds + 10)
        return json.loads(client.text())

    return f"{netns.ONE}:9000", f"{netns.TWO}:9000", run, result


@test(timeout=60)
def under_load(t):
    """2,000 connections a second, 20 reloads, none lost."""
    one, two, run, result = start_load(t, 2000, 10)
    gate = t.headgate(config(one, "log connections off"))
    client = run()
    for turn in range(20):
        time.sleep(0.45)
        more = "listen :8443 tcp" if turn % 4 == 1 else ""
        server = (two, one, f"{one}, {two}")[turn % 3]
        gate.reloaded(config(server, more + "\nlog connections off"))
    count = result(client)
    gate.reloaded(config(one, "log connections off"))
    equal(sum(count["failures"].values()), 0, f"failures {count}")
    between(count["ok"], 19000, 20001, "connections")
    equal(gate.status()["connections"]["total"], count["ok"], "total")
    between(count["p99_us"], 0, 200000, "p99 in µs")


@test(timeout=60)
def storm(t):
    """Many reload commands and signals at once: served one by one."""
    one, two, run, result = start_load(t, 500, 5)
    gate = t.headgate(config(one, "log connections off"))
    client = run()
    codes = []

    def ask():
        codes.append(gate.cli("reload", timeout=20).returncode)

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for n, thread in enumerate(threads):
        thread.start()
        if n % 5 == 0:
            gate.process.send(signal.SIGHUP)
    for thread in threads:
        thread.join()
    equal(set(codes), {0}, "exit statuses")
    count = result(client)
    equal(sum(count["failures"].values()), 0, f"failures {count}")
    gate.reloaded(config(two, "log connections off"))


# SIGTERM

@test
def drain_lets_connections_end(t):
    gate, _ = site(t, sockets.echo, "timeout drain 20s")
    sock = t.open(NAME)
    first = len(hello.genuine(NAME))
    sockets.read_exactly(sock, first)
    gate.process.send(signal.SIGTERM)
    wait_until(lambda: not listening_inodes(gate.pid, 443), 2,
               "the listeners to be closed")
    with raises(ConnectionRefusedError):
        t.connect()
    for _ in range(3):
        time.sleep(0.2)
        sock.sendall(b"ping")
        equal(sockets.read_exactly(sock, 4), b"ping")
    assert gate.process.is_running()
    sock.close()
    start = time.monotonic()
    equal(gate.process.wait(5), 0, "exit status")
    between(time.monotonic() - start, 0, 1, "seconds after the last one")


@test
def drain_has_a_deadline(t):
    gate, _ = site(t, sockets.echo, "timeout drain 1s")
    sock = t.open(NAME)
    sockets.read_exactly(sock, len(hello.genuine(NAME)))
    gate.process.send(signal.SIGTERM)
    start = time.monotonic()
    try:
        sockets.read_to_end(sock)
    except ConnectionResetError:
        pass
    between(time.monotonic() - start, 0.8, 2, "seconds")
    equal(gate.process.wait(3), 0, "exit status")


@test
def drain_takes_what_is_queued(t):
    """A hello on its way when SIGTERM comes is still served."""
    gate, _ = site(t, "site", "timeout drain 5s")
    socks = [t.connect() for _ in range(50)]
    gate.process.send(signal.SIGTERM)
    time.sleep(0.2)
    for sock in socks:
        sock.sendall(hello.genuine(NAME))
        equal(sockets.read_to_end(sock), b"site")
        sock.close()
    equal(gate.process.wait(5), 0, "exit status")


@test
def second_signal_does_not_wait(t):
    """An operator in a hurry: SIGTERM again ends the drain."""
    gate, _ = site(t, sockets.echo, "timeout drain 60s")
    sock = t.open(NAME)
    sockets.read_exactly(sock, len(hello.genuine(NAME)))
    gate.process.send(signal.SIGTERM)
    time.sleep(0.5)
    assert gate.process.is_running()
    gate.process.send(signal.SIGTERM)
    assert gate.process.wait(3) in (0, 1)


# The router process dies.

def begin_anew(gate):
    """A killed router takes with it the log lines that were on their way."""
    time.sleep(0.2)
    gate.rebase()


@test
def router_is_killed(t):
    gate, _ = site(t, "site")
    inodes = listening_inodes(gate.pid, 443)
    gate.expect_error(r"router|signal|kill")
    for _ in range(3):
        old = gate.router
        equal(t.ask(NAME), "site")
        os.kill(old, signal.SIGKILL)
        start = time.monotonic()
        equal(t.ask(NAME), "site")
        between(time.monotonic() - start, 0, 1, "seconds until it serves")
        assert gate.router != old
        equal(listening_inodes(gate.pid, 443), inodes, "listening sockets")
    equal(gate.connections(), 0, "connections.now")
    between(gate.status()["connections"]["total"], 6, 9, "total")
    # the new router has other descriptors, the supervisor has not
    supervisor = gate.base[gate.pid]
    equal(descriptors(gate.pid), supervisor, "the supervisor's descriptors")
    begin_anew(gate)


@test
def reload_after_a_restart(t):
    gate, _ = site(t, "a")
    gate.expect_error(r"router|signal|kill")
    os.kill(gate.router, signal.SIGKILL)
    equal(t.ask(NAME), "a")
    gate.reloaded(config(t.server("b"), "listen :8443 tcp"))
    equal(t.ask(NAME, address=f"{netns.ROUTER}:8443"), "b")
    os.kill(gate.router, signal.SIGKILL)
    equal(t.ask(NAME, address=f"{netns.ROUTER}:8443"), "b")
    begin_anew(gate)


@test
def supervisor_is_killed(t):
    """The router does not outlive it, and a new start succeeds."""
    gate, _ = site(t, "site")
    gate.expect_error("supervisor is gone")
    router = gate.router
    os.kill(gate.pid, signal.SIGKILL)
    gate.process.wait(2)
    wait_until(lambda: not os.path.exists(f"/proc/{router}") or
               os.waitpid(router, os.WNOHANG)[0], 3, "the router to end")
    gate.start()
    equal(t.ask(NAME), "site")


@test
def a_pipe_is_no_configuration(t):
    """A daemon that opened it would wait for a writer for ever."""
    gate, _ = site(t, "site")
    gate.expect_error("it is a pipe")
    os.unlink(gate.config)
    os.mkfifo(gate.config)
    answer = gate.cli("reload")
    equal(answer.returncode, 2, answer.stderr)
    assert "it is a pipe" in answer.stderr, answer.stderr
    equal(t.ask(NAME), "site")
