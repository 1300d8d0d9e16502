# SPDX-License-Identifier: GPL-2.0-or-later
"""The supervisor: a router that dies or hangs, the run directory, warnings,
and what it says to whom."""

import json
import os
import pty
import pwd
import re
import signal
import socket
import subprocess
import sys
import time

from lib.harness import between, equal, test
from lib.headgate import CLI, DAEMON, parse_log
from lib.process import wait_until

NAME = "a.example"
OTHER_USER = "daemon"  # on every Debian


def config(server, more=""):
    return f"""
listen :443 tcp
backend site {server}
default to site
{more}
"""


def site(t, more="", **options):
    return t.headgate(config(t.server("site"), more), **options)


def kill_router(t, gate):
    """Its successor has to serve."""
    gate.expect_error("the router")
    old = gate.router
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: gate.router != old, 5, "another router")
    wait_until(lambda: gate.cli("status").returncode == 0, 5, "status")
    gate.rebase()
    equal(t.ask(NAME), "site")


@test
def refused_second_start_harms_nothing(t):
    gate = site(t)
    twin = t.prepare(config(t.server("x")).replace(":443", ":8443"))
    twin.run_dir, twin.pin_dir = gate.run_dir, gate.pin_dir
    twin.expect_error("another headgated")
    twin.launch()
    equal(twin.process.wait(5), 1, "exit status")
    kill_router(t, gate)
    t.gates.remove(twin)


@test
def jail_directory_is_made_again(t):
    gate = site(t)
    os.rmdir(f"{gate.run_dir}/jail")
    kill_router(t, gate)


@test(timeout=40)
def router_that_hangs(t):
    """It is replaced after 10 s; one that pauses for 3 s is left alone."""
    gate = site(t)
    router = gate.router
    os.kill(router, signal.SIGSTOP)
    time.sleep(3)
    os.kill(router, signal.SIGCONT)
    time.sleep(3)
    equal(gate.router, router, "router")
    equal(t.ask(NAME), "site")
    gate.expect_error("the router")
    start = time.monotonic()
    os.kill(router, signal.SIGSTOP)
    wait_until(lambda: gate.router != router, 18, "another router")
    between(time.monotonic() - start, 7, 15, "seconds")
    assert "has not answered" in gate.text(), gate.text()
    wait_until(lambda: gate.cli("status").returncode == 0, 5, "status")
    gate.rebase()
    equal(t.ask(NAME), "site")


@test
def status_while_the_router_restarts(t):
    """The one who asks is told; the log is not filled by it."""
    gate = site(t)
    gate.expect_error("died of signal")
    told = 0
    for _ in range(4):  # 200, 400, 800 ms … without a router
        wait_until(lambda: gate.cli("status").returncode == 0, 8, "status")
        os.kill(gate.router, signal.SIGKILL)
        for _ in range(10):
            answer = gate.cli("status")
            # 3: it was asked on the very verge of its death
            if answer.returncode != 3:
                equal(answer.returncode, "is being restarted" in answer.stderr,
                      answer.stderr)
                told += answer.returncode
    assert told, "it was never told"
    wait_until(lambda: gate.cli("status").returncode == 0, 8, "status")
    gate.rebase()


# The run directory.

def ask_as(gate, uid, gid):
    script = ("import os, socket, sys; os.setgroups([]); "
              "os.setgid(int(sys.argv[3])); os.setuid(int(sys.argv[2])); "
              "s = socket.socket(socket.AF_UNIX); s.settimeout(2); "
              "s.connect(sys.argv[1] + '/control.sock'); "
              "s.sendall(b'status\\n'); print(s.recv(100))")
    return subprocess.run([sys.executable, "-c", script, gate.run_dir,
                           str(uid), str(gid)],
                          capture_output=True, text=True).stdout


def prepared(t, mode):
    user = pwd.getpwnam(OTHER_USER)
    gate = t.prepare(config(t.server("site"), f"user {OTHER_USER}"))
    os.mkdir(gate.run_dir)
    os.chmod(gate.run_dir, mode)
    gate.start()
    return gate, user, os.stat(gate.run_dir)


@test
def run_directory_lets_the_group_in(t):
    """As systemd makes it: root:root 0750."""
    gate, user, now = prepared(t, 0o750)
    equal((now.st_uid, now.st_gid), (0, user.pw_gid), "owner and group")
    equal(now.st_mode & 0o7777, 0o750, "mode")
    nobody = pwd.getpwnam("nobody")
    assert "version" in ask_as(gate, nobody.pw_uid, user.pw_gid)
    assert "version" not in ask_as(gate, nobody.pw_uid, nobody.pw_gid)


@test
def run_directory_of_others_is_left_alone(t):
    """Such as /tmp."""
    gate, user, now = prepared(t, 0o1777)
    equal((now.st_uid, now.st_gid), (0, 0), "owner and group")
    equal(now.st_mode & 0o7777, 0o1777, "mode")
    nobody = pwd.getpwnam("nobody")
    assert "version" in ask_as(gate, nobody.pw_uid, user.pw_gid)
    assert "version" not in ask_as(gate, nobody.pw_uid, nobody.pw_gid)


@test
def group_of_nobody_may_not_speak(t):
    nobody = pwd.getpwnam("nobody")
    gate = site(t, "user nobody")
    os.chmod(gate.run_dir, 0o755)
    equal(os.stat(f"{gate.run_dir}/control.sock").st_gid, 0, "group")
    assert "version" not in ask_as(gate, 65533, nobody.pw_gid)


# Warnings.

@test
def restart_is_needed_as_long_as_it_is(t):
    server = t.server("site")
    gate = t.headgate(config(server, f"workers 1\nuser {OTHER_USER}"))

    def warnings(more):
        answer = gate.reload(config(server, more))
        equal(answer.returncode, 0, answer.stderr)
        return {word for word in ("workers changes to 2", "user changes to",
                                  "there is no user")
                if word in answer.stderr}

    changed = "workers 2\nuser nobody"
    equal(warnings(changed), {"workers changes to 2", "user changes to"})
    equal(warnings(changed), {"workers changes to 2", "user changes to"},
          "the same file again")
    equal(warnings("workers 1\nuser no-such-user"), {"there is no user"})
    equal(warnings(f"workers 1\nuser {OTHER_USER}"), set(), "what runs")


PENDING = "limit penalty 1min"


@test
def warnings_are_lines_of_the_log(t):
    gate = site(t, f"log json\n{PENDING}")

    def warned():
        # all of what it wrote, with nothing in front of the log
        lines = [parse_log(line) for line in gate.text().splitlines()]
        assert None not in lines, gate.text()
        return [line for line in lines
                if re.fullmatch(r"\S+:\d+:1: warning: `limit penalty`.*",
                                line.get("text", ""))]

    equal(len(warned()), 1, "warnings at the start")
    equal((warned()[0]["event"], warned()[0]["level"]),
          ("message", "warning"))
    gate.process.send(signal.SIGHUP)
    wait_until(lambda: len(warned()) == 2, 3, "the warning of the reload")
    equal(warned()[0], {**warned()[1], "time": warned()[0]["time"]})


@test
def missing_user(t):
    """-t warns of it, a start fails, and `check` is for any host."""
    path = f"{t.directory}/user.conf"
    with open(path, "w") as f:
        f.write(config("127.0.0.1:1", "user no-such-user"))
    answer = subprocess.run([DAEMON, "-t", "-c", path], capture_output=True,
                            text=True, timeout=5)
    equal(answer.returncode, 0, answer.stderr)
    assert "warning: there is no user no-such-user" in answer.stderr
    answer = subprocess.run([CLI, "check", "-c", path], capture_output=True,
                            text=True, timeout=5)
    equal((answer.returncode, answer.stderr), (0, ""))
    answer = t.net.router.run(DAEMON, "-c", path, "--run-dir",
                              f"{t.directory}/run", capture_output=True,
                              text=True, timeout=5)
    equal(answer.returncode, 2, answer.stderr)
    assert "there is no user no-such-user" in answer.stderr, answer.stderr


@test
def reload_time_is_exact(t):
    path = f"{t.directory}/notify"
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.settimeout(5)
    notify.bind(path)
    gate = t.prepare(config(t.server("site")),
                     prefix=("env", f"NOTIFY_SOCKET={path}"))
    gate.start()
    times = []
    for _ in range(5):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        gate.reloaded()
        text = ""
        while "RELOADING=1" not in text:
            text = notify.recv(4096).decode()
        times.append(int(re.search(r"MONOTONIC_USEC=(\d+)", text)[1]))
        # systemd wants one that is not before its signal
        between(times[-1], before, before + 1_000_000, "MONOTONIC_USEC")
    assert any(when % 1000 for when in times), times
    notify.close()


# What people see.

def wide_config(t, server, count):
    lines = ["listen :443 tcp", "default to site", f"backend site {server}"]
    for i in range(1, count):
        long = "x" * (i * 3)
        kind = i % 4
        lines.append([
            f"backend b{i}{long[:58]} 127.0.0.1:{i}, 127.0.0.2:{i}",
            f"backend b{i} unix:{t.directory}/{long}{i}.sock",
            f"backend b{i} [2001:db8:1111:2222:3333:4444:5555:{i}]:65535",
            f"backend b{i} {long[:50]}{i}.invalid:443",
        ][kind])
    return "\n".join(lines)


@test
def status_fits_80_columns(t):
    server = t.server("site")
    gate = t.headgate(wide_config(t, server, 1))
    gate.expect_error("resolve")
    for count in 1, 3, 20:
        gate.reloaded(wide_config(t, server, count))
        text = gate.cli("status").stdout
        assert max(map(len, text.splitlines())) <= 80, text
        for i in range(1, count):
            assert f"b{i}" in text, text
        for line in text.splitlines():
            assert line == line.rstrip() and "\x1b" not in line, repr(line)
    assert re.search(r"^listener +:443", text, re.M), text
    assert "1 workers" not in text and "1 routes" not in text, text


@test
def status_has_colours_on_a_terminal(t):
    gate = site(t)
    master, slave = pty.openpty()
    subprocess.run([CLI, "--run-dir", gate.run_dir, "status"], stdout=slave,
                   check=True, timeout=5)
    os.close(slave)
    text = os.read(master, 65536).decode()
    os.close(master)
    assert "\x1b[32mup" in text, text
    plain = re.sub(r"\x1b\[\d+m", "", text)
    assert max(map(len, plain.splitlines())) <= 80, plain


@test
def status_counts_in_words(t):
    gate = site(t)
    assert "restarted" not in gate.cli("status").stdout
    kill_router(t, gate)
    text = gate.cli("status").stdout
    assert "restarted once" in text, text
    kill_router(t, gate)
    text = gate.cli("status").stdout
    assert "restarted 2 times" in text, text


@test
def json_by_one_letter(t):
    gate = site(t)
    for command in ("check", "-c", gate.config), ("status",), ("reload",):
        long, short = (gate.cli(*command, option)
                       for option in ("--json", "-j"))
        equal(json.loads(long.stdout).keys(), json.loads(short.stdout).keys())
    answer = gate.cli("sniff", "-j", "/dev/null")
    assert "not a capture" in answer.stderr, answer.stderr
    for line in gate.cli("--help").stdout.splitlines():
        equal(line, line.rstrip(), "a line of --help")
