# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time and memory, of processes and of the whole machine.

Nothing here counts timer ticks. A process's clock is the scheduler's own, in
nanoseconds, with what softirq did in its name; the machine's is all that its
processors were not idle, and idle time is clocked at its edges, too.
"""

import os
import time

CLOCK_CPU = 2  # of a process: what clock_getcpuclockid(3) makes of a pid
TICK = os.sysconf("SC_CLK_TCK")
PROCESSORS = os.sysconf("SC_NPROCESSORS_ONLN")


def read(path):
    with open(path) as f:
        return f.read()


def children(pid):
    try:
        return [int(p) for t in os.listdir(f"/proc/{pid}/task")
                for p in read(f"/proc/{pid}/task/{t}/children").split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def family(pid):
    """All descendants of pid, without itself."""
    found = children(pid)
    for p in found:
        found += children(p)
    return found


def process_seconds(pid):
    try:
        return time.clock_gettime_ns(~pid << 3 | CLOCK_CPU) / 1e9
    except OSError:
        return 0.0


def kernel_threads():
    """Empty where another PID namespace hides them."""
    try:
        if read("/proc/2/comm") == "kthreadd\n":
            return children(2)
    except FileNotFoundError:
        pass
    return []


def machine_seconds():
    stat = [int(n) for n in read("/proc/stat").split("\n")[0].split()[1:9]]
    idle, iowait, steal = stat[3], stat[4], stat[7]
    return PROCESSORS * time.monotonic() - (idle + iowait + steal) / TICK


class Sample:
    """One reading of all clocks; sample.since(earlier) has the seconds."""

    def __init__(self, roles):
        self.clocks = {role: {p: process_seconds(p) for p in pids}
                       for role, pids in roles.items()}
        self.clocks["kernel"] = {p: process_seconds(p)
                                 for p in kernel_threads()}
        self.time = time.monotonic()
        self.machine = machine_seconds()

    def since(self, earlier):
        spent = {"elapsed": self.time - earlier.time,
                 "machine": self.machine - earlier.machine}
        for role, clocks in self.clocks.items():
            before = earlier.clocks.get(role, {})
            spent[role] = sum(max(0.0, t - before.get(p, 0.0))
                              for p, t in clocks.items())
        return spent


def memory(pids):
    """Bytes of the processes together: {"pss", "private"}.

    Of pss only anonymous and shared memory: a file's pages are divided by
    all who map it, so another instance of the same program would show.
    """
    kib = dict.fromkeys(
        ("Pss_Anon", "Pss_Shmem", "Private_Clean", "Private_Dirty"), 0)
    for pid in pids:
        for line in read(f"/proc/{pid}/smaps_rollup").splitlines()[1:]:
            key, value = line.split(":")
            if key in kib:
                kib[key] += int(value.split()[0])
    return {"pss": (kib["Pss_Anon"] + kib["Pss_Shmem"]) * 1024,
            "private": (kib["Private_Clean"] + kib["Private_Dirty"]) * 1024}
