# SPDX-License-Identifier: GPL-2.0-or-later
"""What the log says, and that nobody waits for its reader."""

import os
import re
import time

from lib import hello, netns, sockets
from lib.harness import between, equal, test
from lib.headgate import CONFIGURATION, parse_log
from lib.process import wait_until

NAME = "a.example"
FIELDS = {"time", "level", "event", "client", "listener", "sni", "alpn",
          "route", "backend", "server", "in", "out", "duration", "engine",
          "end"}


def config(server, more=""):
    return f"""
listen :443 tcp
backend site {server}
route {NAME} to site
{more}
"""


def one_connection(t, more=""):
    server = t.server("x" * 1000)
    gate = t.headgate(config(server, more))
    sock = t.connect()
    port = sock.getsockname()[1]
    sock.sendall(hello.genuine(NAME, ("h2", "http/1.1")))
    sockets.read_to_end(sock)
    sock.close()
    event = gate.wait_events(1)[0]
    equal(FIELDS - set(event), set(), f"missing from {event}")
    expected = {
        "client": f"{netns.CLIENT}:{port}", "sni": NAME, "route": NAME,
        "backend": "site", "server": server.address, "engine": "rw",
        "end": "server_closed",
    }
    for key, value in expected.items():
        equal(event[key], value, key)
    assert event["listener"].endswith(":443"), event
    assert event["alpn"].startswith("h2"), event
    equal(int(event["in"]), len(hello.genuine(NAME, ("h2", "http/1.1"))))
    equal(int(event["out"]), 1000, "out")
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", event["time"]), event
    between(float(str(event["duration"]).rstrip("s")), 0, 2, "duration")
    return gate


@test
def connection_in_logfmt(t):
    gate = one_connection(t)
    assert not any(line.startswith("{") for line in gate.lines())


@test
def connection_in_json(t):
    gate = one_connection(t, "log json")
    last = [line for line in gate.lines() if "connection" in line][-1]
    assert last.startswith("{"), last


@test
def connections_off(t):
    gate = t.headgate(config(t.server("x"), "log connections off"))
    equal(t.ask(NAME), "x")
    time.sleep(0.3)
    equal(gate.events(), [], "lines")


HOSTILE = [
    b'a"b.example', b"a\nlevel=err x.example", b"a\r\n.example",
    b"\x1b[31mred.example", b"a=b c=d", b"{}[]\\", b"\xff\xfe\x80.example",
    b"\xe2\x80\xae.example", b"a\0b", b"%s%n%x.example", b"x" * 253,
    b"'; drop table.example",
]


def hostile_names(t, more):
    gate = t.headgate(config(t.server("x"), more + "\ndefault to site"))
    for name in HOSTILE:
        t.send(hello.with_raw_name(name))
        alpn = hello.message_of(hello.genuine(NAME))
        body = name[:250]
        body = bytes((len(body),)) + body
        body = len(body).to_bytes(2, "big") + body
        t.send(hello.in_records(
            hello.with_extension(alpn, hello.ALPN, body)))
    wait_until(lambda: gate.connections() == 0, 2)
    time.sleep(0.3)
    raw = open(gate.log, "rb").read()
    assert not re.search(rb"[^\x20-\x7e\n]", raw), "a raw byte in the log"
    for line in gate.lines():
        event = parse_log(line)
        assert event, f"not well-formed: {line!r}"
        assert event.get("level") != "err", f"forged: {line!r}"
        assert "c" not in event, f"forged: {line!r}"
    assert gate.events(), "no connection was logged"


@test
def hostile_names_in_logfmt(t):
    hostile_names(t, "log logfmt")


@test
def hostile_names_in_json(t):
    hostile_names(t, "log json")


@test
def refusals_are_named_and_sampled(t):
    gate = t.headgate(config(t.server("x")))
    for _ in range(300):
        t.ask("unknown.example")
    wait_until(lambda: gate.refused("name_unknown") == 300, 2, "300 counted")
    time.sleep(0.3)
    lines = [e for e in map(parse_log, gate.lines())
             if e and e.get("reason") == "name_unknown"]
    between(len(lines), 1, 150, "lines for 300 refusals")
    equal(lines[0].get("sni"), "unknown.example", "sni")
    assert netns.CLIENT in lines[0]["client"], lines[0]


@test(timeout=60)
def reader_that_has_stopped(t):
    """stderr is a pipe that nobody drains: traffic goes on."""
    read_end, write_end = os.pipe()
    gate = t.prepare(config(t.server("x"), "limit connections 4000"),
                     stderr=write_end)
    gate.launch()
    os.close(write_end)
    head = b""
    while b"ready" not in head:
        head += os.read(read_end, 4096)
    # each line has over 150 bytes, the pipe 64 KiB
    start = time.monotonic()
    count = 3000
    for _ in range(count):
        equal(t.ask(NAME), "x")
        t.sockets.clear()
    between(time.monotonic() - start, 0, 30, "seconds")
    equal(gate.status()["connections"]["total"], count, "total")
    gate.reloaded(config(t.server("y")))
    equal(t.ask(NAME), "y")
    # the reader comes back: it is told how many lines it has missed
    os.set_blocking(read_end, False)
    text = drain(read_end, head.decode())
    seen = text.count("event=connection")
    for _ in range(3):
        t.ask(NAME)
    text = drain(read_end, text)
    assert text.count("event=connection") > seen, "the log has stopped"
    torn = [line for line in text.splitlines()
            if not CONFIGURATION.match(line) and not parse_log(line)]
    equal(torn, [], "torn lines")
    assert "log_lost" in text or seen >= count, "lines were lost in silence"
    gate.process.send(15)
    wait_until(lambda: (drain(read_end, "", 0.1), not
                        gate.process.is_running())[1], 5, "the end")
    equal(gate.process.popen.returncode, 0, "exit status")
    os.close(read_end)


def drain(descriptor, text, seconds=1.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            text += os.read(descriptor, 1 << 16).decode()
        except BlockingIOError:
            time.sleep(0.02)
    return text


@test
def stop_with_a_stopped_reader(t):
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, True)
    gate = t.prepare(config(t.server("x")), stderr=write_end)
    gate.launch()
    head = b""
    while b"ready" not in head:
        head += os.read(read_end, 4096)
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, b"#" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(write_end, True)
    for _ in range(20):
        equal(t.ask(NAME), "x")
    gate.process.send(15)
    start = time.monotonic()
    equal(gate.process.wait(8), 0, "exit status")
    between(time.monotonic() - start, 0, 5, "seconds to end")
    os.close(write_end)
    os.close(read_end)


@test
def reader_that_is_gone(t):
    """stderr was closed at its other end: EPIPE, and no signal."""
    read_end, write_end = os.pipe()
    gate = t.prepare(config(t.server("x")), stderr=write_end)
    gate.launch()
    os.close(write_end)
    head = b""
    while b"ready" not in head:
        head += os.read(read_end, 4096)
    os.close(read_end)
    for _ in range(20):
        equal(t.ask(NAME), "x")
    gate.rebase()


@test
def disk_is_full(t):
    """The log goes to a file system without room."""
    with open("/dev/full", "wb") as full:
        gate = t.prepare(config(t.server("x")), stderr=full.fileno())
        gate.launch()

    def serves():
        try:
            return t.ask(NAME) == "x"
        except OSError:
            return False

    wait_until(serves, 5, "service")
    for _ in range(20):
        equal(t.ask(NAME), "x")
    gate.rebase()
