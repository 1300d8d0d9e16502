# SPDX-License-Identifier: GPL-2.0-or-later
"""When there is not enough: descriptors, connections."""

import subprocess
import time

from lib import sockets
from lib.harness import between, equal, need, test
from lib.process import cpu_share, status_field, wait_until

NAME = "a.example"


def site(t, serve, more=""):
    server = t.server(serve)
    return t.headgate(f"""
listen :443 tcp
backend site {server}
default to site
{more}
""")


def limit_descriptors(pid, count):
    """As the process's own user: that needs no capability."""
    need("setpriv", "prlimit")
    user = status_field(pid, "Uid").split()[0]
    group = status_field(pid, "Gid").split()[0]
    subprocess.run(["setpriv", f"--reuid={user}", f"--regid={group}",
                    "--clear-groups", "prlimit", f"--pid={pid}",
                    f"--nofile={count}:{count}"], check=True)


def open_and_see(t, count):
    """How many of `count` connections are served; those stay open."""
    served = 0
    for _ in range(count):
        sock = t.open(NAME, timeout=2)
        try:
            served += bool(sock.recv(1))
        except (ConnectionResetError, TimeoutError):
            pass
    return served


@test(timeout=40)
def out_of_descriptors(t):
    gate = site(t, "site", "timeout hello 60s")
    limit_descriptors(gate.router, 64)
    gate.status()  # a few are kept for questions, from the next one on
    held = [t.connect() for _ in range(200)]
    gate.expect_error("descriptors|Too many open files")
    time.sleep(0.5)
    lines = len(gate.lines())
    between(cpu_share(gate.router, 2), 0, 0.5, "share of a core")
    # the log takes 10 refusals in each second, whatever their number
    between(len(gate.lines()) - lines, 0, 36, "log lines in 2 s")
    status = gate.status()
    between(status["connections"]["now"], 10, 64, "connections.now")
    for sock in held:
        sock.close()
    start = time.monotonic()
    wait_until(lambda: served(t), 3, "service")
    between(time.monotonic() - start, 0, 1, "seconds until it serves")
    wait_until(lambda: gate.connections() == 0, 5, "no connection")


def served(t):
    try:
        return t.ask(NAME) == "site"
    except OSError:
        return False


@test
def out_of_descriptors_control(t):
    gate = site(t, "site", "timeout hello 60s")
    held = [t.connect() for _ in range(200)]
    wait_until(lambda: gate.connections() == 200, 3, "all of them")
    equal(t.ask(NAME), "site")
    equal(gate.refused("descriptors"), 0, "refused for descriptors")
    assert held


@test(timeout=40)
def starts_with_few_descriptors(t):
    """It says how many connections that allows, and keeps to it."""
    server = t.server("site")
    gate = t.headgate(f"""
        listen :443 tcp
        backend site {server}
        default to site
        timeout hello 60s
        """, prefix=("prlimit", "--nofile=64:64"))
    assert any("open file limit" in line for line in gate.lines())
    held = [t.connect() for _ in range(200)]
    wait_until(lambda: gate.refused("connections_total"), 3, "a refusal")
    between(gate.connections(), 5, 40, "connections.now")
    between(cpu_share(gate.router, 1), 0, 0.5, "share of a core")
    for sock in held:
        sock.close()
    wait_until(lambda: served(t), 1, "service")
    equal(gate.refused("descriptors"), 0, "refused for descriptors")


@test
def total_cap(t):
    gate = site(t, sockets.echo, "limit connections 10")
    equal(open_and_see(t, 20), 10, "served of 20")
    equal(gate.refused("connections_total"), 10, "connections_total")
    equal(gate.connections(), 10, "connections.now")
    for sock in t.sockets:
        sock.close()
    wait_until(lambda: gate.connections() == 0, 3, "no connection")
    equal(open_and_see(t, 10), 10, "served afterwards")


@test
def total_cap_control(t):
    gate = site(t, sockets.echo, "limit connections 4000")
    equal(open_and_see(t, 20), 20, "served of 20")
    equal(gate.refused("connections_total"), 0, "connections_total")


@test
def cap_is_exact_over_reloads(t):
    server = t.server(sockets.echo)
    text = f"""
listen :443 tcp
backend site {server}
default to site
limit connections %d
"""
    gate = t.headgate(text % 10)
    equal(open_and_see(t, 8), 8, "served of 8")
    gate.reloaded(text % 5)
    equal(open_and_see(t, 2), 0, "served with a lower cap")
    equal(gate.connections(), 8, "connections.now")
    gate.reloaded(text % 12)
    equal(open_and_see(t, 8), 4, "served with a higher cap")


@test
def refused_connections_hold_nothing(t):
    """5,000 refusals: no memory, no descriptor is kept for them."""
    gate = site(t, sockets.echo, "limit connections 1")
    equal(open_and_see(t, 1), 1)
    for _ in range(200):
        sock = t.connect()
        sock.close()
    before = gate.resident()
    for _ in range(4800):
        sock = t.connect()
        sock.close()
        t.sockets.pop()
    between(gate.resident() - before, -1 << 20, 1 << 20, "growth")
    wait_until(lambda: gate.refused("connections_total") == 5000, 3,
               "5,000 to be counted")
