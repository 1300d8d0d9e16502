# SPDX-License-Identifier: GPL-2.0-or-later
"""What must hold at the end of every test, whatever the test was."""

import os
import re

from .process import bury, children, descriptors, wait_until

SANITIZER = re.compile(r"(Address|Leak|Thread|Memory|UndefinedBehavior)"
                       r"Sanitizer|runtime error:")
KERNEL_TROUBLE = re.compile(r"WARNING:|BUG:|KASAN|Oops|general protection|"
                            r"segfault|trap .* error|RCU stall")
# refused without having become a connection
TURNED_AWAY = ("connections_total", "descriptors", "memory")
# idle pipes wait in a pool of fixed size for the next busy connection
POOLED_PIPE_ENDS = 64


class KernelLog:
    """What the kernel says from now on, if we may read it."""

    def __init__(self):
        try:
            self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self.fd, 0, os.SEEK_END)
        except OSError:
            self.fd = -1

    def trouble(self):
        found = []
        while self.fd >= 0:
            try:
                record = os.read(self.fd, 8192).decode(errors="replace")
            except OSError:
                break
            if KERNEL_TROUBLE.search(record):
                found.append(record.split(";", 1)[-1].splitlines()[0])
        return found


def ledger(hg):
    """(connections accepted, connections that the log and counters end)"""
    status = hg.status()
    refused = sum(count for reason, count in status["refused"].items()
                  if reason not in TURNED_AWAY)
    return (status["connections"]["total"],
            refused + len(hg.events("connection")))


def check_ledger(hg):
    """Each connection that was accepted has ended, once, by name."""
    if not os.path.getsize(hg.log) or "log connections off" in hg.written:
        return

    def is_even():
        accepted, ended = ledger(hg)
        return accepted - ended == hg.base_ledger

    try:
        wait_until(is_even, 2)
    except AssertionError:
        accepted, ended = ledger(hg)
        raise AssertionError(
            f"{accepted - hg.base_ledger} connections were accepted, {ended} "
            "ended in a log line or a refusal") from None


def check_descriptors(hg):
    for pid, base in hg.base.items():
        def surplus():
            now = descriptors(pid)
            diff = {kind: now.get(kind, 0) - base.get(kind, 0)
                    for kind in {*now, *base}}
            if 0 <= diff.get("pipe", 0) <= POOLED_PIPE_ENDS:
                diff.pop("pipe", None)
            return {kind: n for kind, n in diff.items() if n}

        try:
            wait_until(lambda: not surplus(), 3)
        except AssertionError:
            raise AssertionError(
                f"descriptors of process {pid} differ: {surplus()}") from None


def check_alive(hg):
    """Nothing is left of the connections while the daemon still runs."""
    wait_until(lambda: hg.connections() == 0, 4, "connections.now to be 0")
    engines = hg.status()["engines"]
    assert not any(engines.values()), f"engines still count: {engines}"
    for backend in hg.status()["backends"]:
        for server in backend["servers"]:
            assert server["connections"] == 0, f"server still counts: {server}"
    check_descriptors(hg)
    check_ledger(hg)


def check_gone(family):
    for pid in family:
        wait_until(lambda: bury(pid), 2, f"process {pid} to be gone")


def check_log(hg):
    # imported here: headgate.py imports this file
    from .headgate import parse_log

    for line in hg.lines():
        assert not SANITIZER.search(line), f"sanitizer: {line}"
        fields = parse_log(line)
        assert fields is not None, f"not a well-formed log line: {line!r}"
        is_error = fields.get("level") in ("err", "error", "crit", "alert")
        if is_error and not any(re.search(pattern, line)
                                for pattern in hg.expected_errors):
            raise AssertionError(f"unexpected in the log: {line}")


def check_no_children():
    left = [pid for pid in children(os.getpid()) if not bury(pid)]
    names = []
    for pid in left:
        with open(f"/proc/{pid}/comm") as f:
            names.append(f"{f.read().strip()} ({pid})")
    assert not left, f"processes left behind: {', '.join(names)}"
