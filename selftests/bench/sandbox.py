# SPDX-License-Identifier: GPL-2.0-or-later
"""A network namespace for each turn, and processes that cannot outlive us.

The namespace has no name: it goes, with its TIME-WAIT sockets, when the last
process in it does. Daemons run in a PID namespace each; killing its first
process kills them all, and that one dies with the driver, however that ends.
"""

import ctypes
import os
import resource
import select
import signal
import socket
import subprocess
import time

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1

CONGESTION = "net/ipv4/tcp_congestion_control"
SYSCTL = {
    "net/core/somaxconn": "65535",
    "net/ipv4/tcp_max_syn_backlog": "65535",
    "net/ipv4/tcp_tw_reuse": "1",
    "net/ipv4/ip_local_port_range": "10000 65535",
    # the same on every host: no pacing by timers, the kernel's own buffers
    CONGESTION: "reno",
    "net/ipv4/tcp_rmem": "4096 131072 6291456",
    "net/ipv4/tcp_wmem": "4096 16384 4194304",
}

libc = ctypes.CDLL(None, use_errno=True)


class Failure(Exception):
    """What makes a turn void."""


def raise_descriptors():
    """Returns how many this process and its children may have."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def enter_namespace():
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for name, value in SYSCTL.items():
        with open(f"/proc/sys/{name}", "w") as f:
            f.write(value)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    def __init__(self, argv, log, is_daemon=False, **pipes):
        self.name = os.path.basename(argv[0])
        self.log = log
        if is_daemon:
            argv = ["unshare", "--pid", "--fork", "--kill-child", *argv]
        with open(log, "w") as f:
            self.popen = subprocess.Popen(
                argv, preexec_fn=die_with_parent, stderr=f,
                **({"stdin": subprocess.DEVNULL, "stdout": f} | pipes))

    def failure(self, what):
        with open(self.log, errors="replace") as f:
            last = f.read().strip().splitlines()[-3:]
        return Failure(": ".join([f"{self.name} {what}"] + last))

    def wait_ready(self, port, word=None, seconds=10):
        """Until it accepts on port, and its log has the word."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.popen.poll() is not None:
                raise self.failure("exited")
            with open(self.log, errors="replace") as f:
                has_word = not word or word in f.read()
            if has_word and accepts(port):
                return
            time.sleep(0.02)
        raise self.failure("is not ready")

    def read_line(self, seconds=60):
        if not select.select([self.popen.stdout], [], [], seconds)[0]:
            raise self.failure(f"said nothing for {seconds} s")
        line = self.popen.stdout.readline()
        if not line:
            self.popen.wait()
            raise self.failure("failed")
        return line

    def stop(self):
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe:
                pipe.close()


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False
