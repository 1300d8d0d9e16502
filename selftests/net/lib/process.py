# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes that a test starts, and what /proc says of them."""

import ctypes
import os
import re
import signal
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")


def wait_until(condition, timeout=5.0, what="a condition", every=0.01):
    """Returns the first true answer of condition(); fails after `timeout`."""
    end = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout:g} s in vain for {what}")
        time.sleep(every)


def adopt_orphans():
    """Grandchildren whose parent dies become ours, so that we see them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid):
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                found += map(int, f.read().split())
    except FileNotFoundError:
        pass
    return found


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def bury(pid):
    """Whether `pid` is gone; an orphan that ended is ours to wait for."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not os.path.exists(f"/proc/{pid}")


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def descriptors(pid):
    """What each open descriptor is: {"socket": 3, "pipe": 2, …}."""
    kinds = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            continue
        kind = re.sub(r":\[\d+\]$", "", target)
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


def status_field(pid, key):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(key + ":"):
                return line.split(":", 1)[1].strip()
    return None


def resident_bytes(pid):
    return int(status_field(pid, "VmRSS").split()[0]) * 1024


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def cpu_share(pid, seconds):
    """The share of one core that `pid` takes during the next seconds."""
    before, start = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_seconds(pid) - before) / (time.monotonic() - start)


def listening_inodes(pid, port):
    """Inodes of the sockets that listen on `port` in the process's netns."""
    inodes = set()
    for family in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{family}") as f:
            for fields in map(str.split, f.readlines()[1:]):
                is_listening = fields[3] == "0A"
                if is_listening and fields[1].endswith(f":{port:04X}"):
                    inodes.add(int(fields[9]))
    return inodes


class Process:
    """A child that is stopped, for certain, at the end of the test."""

    def __init__(self, argv, log=None, **options):
        self.argv = argv
        self.log = log
        output = open(log, "ab") if log else None
        self.popen = subprocess.Popen(
            argv, stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=options.pop("stdout", output),
            stderr=options.pop("stderr", output), **options)
        if output:
            output.close()
        self.pid = self.popen.pid

    def is_running(self):
        return self.popen.poll() is None

    def send(self, number):
        self.popen.send_signal(number)

    def wait(self, timeout):
        return self.popen.wait(timeout)

    def text(self):
        if not self.log:
            return ""
        with open(self.log, errors="backslashreplace") as f:
            return f.read()

    def stop(self, number=signal.SIGTERM, timeout=3):
        if not self.is_running():
            return self.popen.returncode
        self.send(number)
        try:
            return self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def kill(self):
        # the parent first, or it may replace a child that has died
        family = descendants(self.pid)
        kill_all([self.pid, *family])
        self.popen.wait()
        for pid in family:
            wait_until(lambda: bury(pid), 2, f"process {pid} to be gone")
