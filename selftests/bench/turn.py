# SPDX-License-Identifier: GPL-2.0-or-later
"""One turn: one proxy, one kind of work, one namespace of its own."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager

import cpu
import proxies
from sandbox import Failure, Process, enter_namespace

# connections, warm-up, work: connections, requests, bytes
FULL = {"conn": (64, 4000, 40000), "req": (64, 16000, 160000),
        "down": (8, 400_000_000, 4_000_000_000),
        "up": (8, 400_000_000, 4_000_000_000), "idle": (4000, 4000, 4000)}
QUICK = {"conn": (64, 2000, 12000), "req": (64, 8000, 50000),
         "down": (8, 200_000_000, 1_200_000_000),
         "up": (8, 200_000_000, 1_200_000_000), "idle": (1000, 1000, 1000)}
# what a figure is given per, and the unit of CPU time
UNIT = {"conn": (1, 1e6), "req": (1, 1e6), "down": (1e9, 1e3),
        "up": (1e9, 1e3)}


class Stage:
    """The processes of a turn: origin, proxy, load."""

    def __init__(self, proxy, stack):
        enter_namespace()
        self.dir = tempfile.mkdtemp(prefix="headgate-bench-")
        stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        os.chmod(self.dir, 0o755)
        self.stack, self.proxy = stack, proxy
        self.origin = self.start(
            [os.path.join(proxy.out, "bench/origin"), proxies.ORIGIN])
        self.origin.wait_ready(proxies.ORIGIN_PORT)
        self.daemon, self.port = None, proxies.ORIGIN_PORT
        if proxy.name != "direct":
            self.port = proxies.LISTEN_PORT
            self.daemon = self.start(proxy.command(self.dir), is_daemon=True)
            self.daemon.wait_ready(self.port, proxy.word)

    def start(self, argv, **how):
        log = os.path.join(self.dir, os.path.basename(argv[0]) + ".log")
        process = Process(argv, log, **how)
        self.stack.callback(process.stop)
        return process

    def daemon_pids(self):
        return cpu.family(self.daemon.popen.pid) if self.daemon else []

    def start_load(self, work, sizes):
        """Returns once it is warm."""
        self.load = self.start(
            [os.path.join(self.proxy.out, "bench/load"), work,
             f"127.0.0.1:{self.port}", proxies.NAME,
             *(str(n) for n in sizes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.hear()

    def hear(self):
        """A line from load; its failure may be the fault of another."""
        try:
            return self.load.read_line()
        except Failure:
            for process in (self.origin, self.daemon):
                if process and process.popen.poll() is not None:
                    raise process.failure("failed") from None
            raise

    def sample(self):
        return cpu.Sample({"client": [self.load.popen.pid],
                           "origin": [self.origin.popen.pid],
                           "daemon": self.daemon_pids()})

    def work(self):
        """Let the load run; returns what it reports."""
        self.load.popen.stdin.write(b"go\n")
        self.load.popen.stdin.flush()
        return json.loads(self.hear())


@contextmanager
def stage(proxy):
    with ExitStack() as stack:
        yield Stage(proxy, stack)


def control(seconds):
    """What the machine does when it has nothing to do, per second."""
    before = cpu.Sample({})
    time.sleep(seconds)
    spent = cpu.Sample({}).since(before)
    return {k: spent[k] / spent["elapsed"] for k in ("machine", "kernel")}


def measure(proxy, work, sizes, idle):
    """idle: what control() returned in the same round."""
    with stage(proxy) as s:
        s.start_load(work, sizes)
        before = s.sample()
        result = s.work()
        spent = s.sample().since(before)
        note = proxy.splice_note(s.dir)
    per, scale = UNIT[work]
    units = result["work"] / per
    kernel = spent["kernel"] - idle["kernel"] * spent["elapsed"]
    parts = {"client": spent["client"], "origin": spent["origin"],
             "daemon": spent["daemon"], "kernel": max(0.0, kernel),
             "machine": spent["machine"] - idle["machine"] * spent["elapsed"]}
    turn = {k: v / units * scale for k, v in parts.items()}
    turn["involved"] = sum(
        turn[k] for k in ("client", "origin", "daemon", "kernel"))
    turn["rate"] = units / result["seconds"]
    turn["client_share"] = spent["client"] / result["seconds"]
    turn["origin_share"] = spent["origin"] / result["seconds"]
    turn |= {k: result[k] for k in ("p50_us", "p99_us") if k in result}
    if note is not None:
        turn["spliced"] = note
    return turn


def measure_idle(proxy, sizes, settle):
    """Memory per connection that has carried bytes and fell silent."""
    with stage(proxy) as s:
        time.sleep(0.3)
        before = cpu.memory(s.daemon_pids())
        s.start_load("idle", sizes)
        s.work()
        time.sleep(settle)
        after = cpu.memory(s.daemon_pids())
    turn = {"connections": sizes[0]}
    for kind in ("pss", "private"):
        turn[f"{kind}_empty"] = before[kind]
        turn[f"{kind}_each"] = (after[kind] - before[kind]) / sizes[0]
    return turn


def is_traced(pid):
    return all("\nTracerPid:\t0\n" not in
               cpu.read(f"/proc/{pid}/task/{t}/status")
               for t in os.listdir(f"/proc/{pid}/task"))


def count_splices(proxy, size):
    """Calls of splice(2) in a download, counted by strace in no one's turn."""
    with stage(proxy) as s:
        s.start_load("down", (8, 8_000_000, size))
        report = os.path.join(s.dir, "strace.out")
        pids = [a for p in s.daemon_pids() for a in ("-p", str(p))]
        strace = s.start(["strace", "-f", "-c", "-e", "trace=splice",
                          "-o", report, *pids])
        while not all(is_traced(p) for p in s.daemon_pids()):
            if strace.popen.poll() is not None:
                raise strace.failure("exited")
            time.sleep(0.02)
        s.work()
        strace.popen.send_signal(signal.SIGINT)
        strace.popen.wait(10)
        lines = [line.split() for line in cpu.read(report).splitlines()]
    # % time, seconds, usecs/call, calls, [errors], syscall
    return sum(int(f[3]) for f in lines if f and f[-1] == "splice")
