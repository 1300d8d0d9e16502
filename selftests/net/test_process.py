# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes, privileges, the command line, the control socket."""

import array
import json
import os
import pwd
import signal
import socket
import stat
import subprocess
import sys
import time

from lib import netns, sockets
from lib.harness import between, equal, raises, test
from lib.headgate import CLI, DAEMON
from lib.process import resident_bytes, status_field, wait_until

NAME = "a.example"


def config(server, more=""):
    return f"""
listen :443 tcp
backend site {server}
default to site
{more}
"""


def site(t, serve="site", more="", **options):
    return t.headgate(config(t.server(serve), more), **options)


@test
def router_has_no_privileges(t):
    gate = site(t)
    router = gate.router
    assert router != gate.pid
    for key in ("Uid", "Gid"):
        ids = status_field(router, key).split()
        assert "0" not in ids, f"{key} of the router: {ids}"
    user = pwd.getpwuid(int(status_field(router, "Uid").split()[0])).pw_name
    assert user in ("headgate", "nobody"), user
    for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        equal(int(status_field(router, key), 16), 0, key)
    equal(status_field(router, "NoNewPrivs"), "1", "NoNewPrivs")
    assert "0" not in status_field(router, "Groups").split()


@test
def router_sees_no_files(t):
    gate = site(t)
    root = f"/proc/{gate.router}/root"
    assert set(os.listdir(root)) <= {"etc", "run", "tmp"}, os.listdir(root)
    # what a resolver reads, and no more
    assert set(os.listdir(f"{root}/etc")) <= {
        "hosts", "resolv.conf", "nsswitch.conf", "host.conf"}
    assert os.stat(root).st_ino != os.stat("/").st_ino


@test
def supervisor_has_no_socket_of_a_client(t):
    """It binds, but never holds an accepted connection."""
    gate = site(t, sockets.echo)
    before = len(os.listdir(f"/proc/{gate.pid}/fd"))
    held = [t.open(NAME) for _ in range(20)]
    for sock in held:
        sock.recv(1)
    equal(len(os.listdir(f"/proc/{gate.pid}/fd")), before, "descriptors")


@test
def status_has_every_key(t):
    server = t.server(sockets.echo)
    gate = t.headgate(config(server, "listen :80 tcp to site"))
    sock = t.open(NAME)
    first = len(sock.recv(4096))
    status = gate.status()
    kinds = {"version": str, "uptime_s": (int, float), "listeners": list,
             "backends": list, "connections": dict, "bytes": dict,
             "engines": dict, "flows": dict, "refused": dict}
    for key, kind in kinds.items():
        assert isinstance(status[key], kind), f"{key}: {status.get(key)}"
    equal(len(status["listeners"]), 2, "listeners")
    for listener in status["listeners"]:
        equal(listener["transport"], "tcp", "transport")
        equal(listener["mode"], "normal", "mode")
        assert listener["address"].endswith((":443", ":80")), listener
    backend = status["backends"][0]
    equal(backend["name"], "site", "name")
    entry = backend["servers"][0]
    equal(entry["address"], server.address, "address")
    equal(entry["state"], "up", "state")
    equal((entry["connections"], entry["failures"]), (1, 0), "counters")
    equal(status["connections"], {"now": 1, "total": 1}, "connections")
    equal(status["engines"]["rw"], 1, "engines.rw")
    assert {"rw", "splice", "sockmap"} <= set(status["engines"])
    equal(status["flows"], {"now": 0, "total": 0}, "flows")
    assert set(status["bytes"]) == {"in", "out"}
    sock.close()
    wait_until(lambda: gate.connections() == 0, 2)
    equal(gate.status()["bytes"], {"in": first, "out": first}, "bytes")


@test
def status_for_people(t):
    gate = site(t)
    equal(t.ask(NAME), "site")
    answer = gate.cli("status")
    equal(answer.returncode, 0, answer.stderr)
    for word in ("443", "site", netns.ONE):
        assert word in answer.stdout, answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 80, answer.stdout


@test
def unreachable_is_exit_3(t):
    answer = subprocess.run([CLI, "--run-dir", f"{t.directory}/none",
                             "status"], capture_output=True, text=True)
    equal(answer.returncode, 3, answer.stderr)
    assert answer.stderr, "it says nothing"


@test
def bad_configuration_is_exit_2(t):
    path = f"{t.directory}/bad.conf"
    with open(path, "w") as f:
        f.write("listen :443 tcp\nroute a.example to nowhere\n")
    answer = t.net.router.run(DAEMON, "-c", path, "--run-dir", t.directory,
                              capture_output=True, text=True, timeout=5)
    equal(answer.returncode, 2, answer.stderr)
    assert f"{path}:2:20: " in answer.stderr, answer.stderr
    answer = t.net.router.run(DAEMON, "--nonsense", capture_output=True,
                              text=True, timeout=5)
    equal(answer.returncode, 2, answer.stderr)


@test
def port_in_use_is_exit_1(t):
    with t.net.router.inside():
        taken = socket.create_server(("", 443))
    t.undo.callback(taken.close)
    gate = t.prepare(config(t.server("x")))
    gate.expect_error("443|listen")
    gate.launch()
    equal(gate.process.wait(5), 1, "exit status")
    assert "443" in gate.text(), gate.text()


@test
def two_on_one_host(t):
    first = site(t, "first")
    second = t.headgate(config(t.server("second")).replace("443", "8443"))
    equal(t.ask(NAME), "first")
    equal(t.ask(NAME, address=f"{netns.ROUTER}:8443"), "second")
    for gate in first, second:
        equal(gate.status()["connections"]["total"], 1, "connections")
    first.stop()
    equal(t.ask(NAME, address=f"{netns.ROUTER}:8443"), "second")


@test
def second_start_with_the_same_directory(t):
    """It is told that one is running, and harms it in no way."""
    gate = site(t)
    twin = t.prepare(config(t.server("x"), "").replace(":443", ":8443"))
    twin.run_dir, twin.pin_dir = gate.run_dir, gate.pin_dir
    twin.launch()
    assert twin.process.wait(5) in (1, 2)
    equal(t.ask(NAME), "site")
    gate.status()
    t.gates.remove(twin)


# The control socket, and local users who mean no good.

def control(gate):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(3)
    sock.connect(f"{gate.run_dir}/control.sock")
    return sock


def serves_and_answers(t, gate, within=2):
    equal(t.ask(NAME), "site")
    start = time.monotonic()
    gate.status()
    between(time.monotonic() - start, 0, within, "seconds for status")


@test
def control_socket_is_private(t):
    gate = site(t)
    mode = os.stat(f"{gate.run_dir}/control.sock").st_mode
    assert stat.S_ISSOCK(mode) and not mode & 0o007, oct(mode)
    script = ("import os, socket, sys; os.setgroups([]); os.setgid(65534); "
              "os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
              "s.settimeout(2); s.connect(sys.argv[1]); "
              "s.sendall(b'status\\n'); print(s.recv(100))")
    answer = subprocess.run([sys.executable, "-c", script,
                             f"{gate.run_dir}/control.sock"],
                            capture_output=True, text=True)
    assert answer.returncode or answer.stdout.strip() == "b''", answer
    # without the file's mode, the credentials of the peer decide
    os.chmod(gate.run_dir, 0o755)
    os.chmod(f"{gate.run_dir}/control.sock", 0o666)
    answer = subprocess.run([sys.executable, "-c", script,
                             f"{gate.run_dir}/control.sock"],
                            capture_output=True, text=True)
    assert "version" not in answer.stdout, answer
    serves_and_answers(t, gate)


@test
def control_idle_clients(t):
    gate = site(t)
    held = []
    for _ in range(300):
        try:
            held.append(control(gate))
        except OSError:
            break
    # each of those in front of us may take its place for 250 ms
    serves_and_answers(t, gate, within=300 / 16 * 0.25 + 2)
    for sock in held:
        sock.close()
    serves_and_answers(t, gate)


@test
def control_endless_line(t):
    gate = site(t)
    before = resident_bytes(gate.pid)
    sock = control(gate)
    with raises(BrokenPipeError, ConnectionResetError, TimeoutError):
        for _ in range(1024):
            sock.sendall(b"x" * 65536)
    serves_and_answers(t, gate)
    between(resident_bytes(gate.pid) - before, -1 << 20, 1 << 20, "growth")
    sock.close()


@test
def control_reader_that_has_stopped(t):
    gate = site(t)
    before = resident_bytes(gate.pid)
    held = []
    for _ in range(20):
        sock = control(gate)
        sock.settimeout(0.2)
        try:
            for _ in range(500):
                sock.sendall(b"status --json\n")
        except OSError:
            pass
        held.append(sock)
    serves_and_answers(t, gate)
    between(resident_bytes(gate.pid) - before, -1 << 20, 4 << 20, "growth")
    for sock in held:
        sock.close()


@test
def control_slow_command(t):
    gate = site(t)
    sock = control(gate)
    for byte in b"status":
        sock.sendall(bytes((byte,)))
        time.sleep(0.05)
        serves_and_answers(t, gate)
    sock.close()


@test
def control_descriptors_are_not_kept(t):
    gate = site(t)
    with open("/dev/null") as null:
        for _ in range(20):
            sock = control(gate)
            many = array.array("i", [null.fileno()] * 250)
            try:
                sock.sendmsg([b"status\n"], [(socket.SOL_SOCKET,
                                              socket.SCM_RIGHTS, many)])
            except OSError:
                pass
            sock.close()
    serves_and_answers(t, gate)


@test
def control_garbage(t):
    gate = site(t)
    for data in (b"\0" * 100, b"\n" * 100, b"{}\n", b"stat\n", b"\xff\xfe\n",
                 b"status" + b" x" * 1000 + b"\n"):
        sock = control(gate)
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        try:
            sockets.read_to_end(sock)
        except (ConnectionResetError, TimeoutError):
            pass
        sock.close()
    serves_and_answers(t, gate)
    gate.expect_error("control|command")


@test
def notify_and_socket_activation(t):
    """READY=1 to systemd, and a listening socket taken from it."""
    path = f"{t.directory}/notify"
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.settimeout(5)
    notify.bind(path)
    gate = t.prepare(config(t.server("site")), prefix=(
        "env", f"NOTIFY_SOCKET={path}"))
    gate.start()
    text = notify.recv(4096).decode()
    while "READY=1" not in text:
        text += notify.recv(4096).decode()
    gate.process.send(signal.SIGHUP)
    while "RELOADING=1" not in text:
        text += notify.recv(4096).decode()
    gate.process.send(signal.SIGTERM)
    while "STOPPING=1" not in text:
        text += notify.recv(4096).decode()
    gate.process.wait(5)
    notify.close()


ACTIVATE = """
import os, socket, sys
s = socket.create_server(("", 443), family=socket.AF_INET6,
                         dualstack_ipv6=True, backlog=100)
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
os.environ["LISTEN_FDS"] = "1"
os.environ["LISTEN_PID"] = str(os.getpid())
print(os.stat(3).st_ino, file=open(sys.argv[1], "w"))
os.execvp(sys.argv[2], sys.argv[2:])
"""


@test
def socket_activation(t):
    inode = f"{t.directory}/inode"
    gate = site(t, prefix=(sys.executable, "-c", ACTIVATE, inode))
    equal(t.ask(NAME), "site")
    number = int(open(inode).read())
    kept = set()
    for fd in os.listdir(f"/proc/{gate.pid}/fd"):
        kept.add(os.readlink(f"/proc/{gate.pid}/fd/{fd}"))
    assert f"socket:[{number}]" in kept, "the socket is not used"


@test
def version(t):
    for program in (DAEMON, CLI):
        answer = subprocess.run([program, "--version"], capture_output=True,
                                text=True, timeout=5)
        equal(answer.returncode, 0, program)
        assert any(c.isdigit() for c in answer.stdout), answer.stdout


@test
def check_command_agrees_with_the_daemon(t):
    gate = site(t)
    answer = gate.cli("check", "-c", gate.config)
    equal(answer.returncode, 0, answer.stderr)
    answer = gate.cli("check", "-c", gate.config, "--route", NAME)
    assert "site" in answer.stdout, answer
    answer = gate.cli("check", "-c", gate.config, "--print")
    gate.reloaded(answer.stdout)
    equal(t.ask(NAME), "site")
    assert json.loads(gate.cli("status", "--json").stdout)
