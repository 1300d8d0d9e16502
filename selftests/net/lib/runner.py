# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs each test in a process of its own, with a deadline, and counts."""

import fnmatch
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback

from . import invariants
from .harness import TESTS, Skip, Test
from .headgate import CLI, DAEMON
from .netns import Network
from .process import adopt_orphans, descendants, kill_all

GRACE = 20  # seconds for the end of a test, once its time is over
SKIPPED = 4


class TimedOut(Exception):
    pass


def ring(_signal, _frame):
    raise TimedOut


def load(directory):
    sys.path.insert(0, directory)
    for name in sorted(os.listdir(directory)):
        if name.startswith("test_") and name.endswith(".py"):
            importlib.import_module(name.removesuffix(".py"))


def choose(patterns):
    if not patterns:
        return list(TESTS)
    chosen = []
    for pattern in patterns:
        found = [name for name in TESTS if pattern in name.split(".") or
                 fnmatch.fnmatch(name, pattern)]
        if not found:
            sys.exit(f"no test is called {pattern} (-l lists them)")
        chosen += [name for name in found if name not in chosen]
    return chosen


def explain(error, is_verbose):
    if is_verbose:
        traceback.print_exception(error)
    frames = [f for f in traceback.extract_tb(error.__traceback__)
              if os.path.basename(f.filename).startswith("test_")]
    where = ""
    if frames:
        last = frames[-1]
        where = f" [{os.path.basename(last.filename)}:{last.lineno}]"
    kind = "" if isinstance(error, AssertionError) else type(error).__name__
    text = ": ".join(filter(None, (kind, str(error)))) or "assertion failed"
    return text.replace("\n", " | ") + where


def attempt(function, net, is_verbose):
    """The body of the child: (verdict, why)."""
    kernel = invariants.KernelLog()
    context = Test(net)
    verdict, why = "ok", ""
    try:
        signal.alarm(function.timeout)
        function(context)
        signal.alarm(GRACE)
        context.finish()
    except Skip as skip:
        verdict, why = "skip", str(skip)
    except TimedOut as error:
        verdict = "not ok"
        why = f"no end within {function.timeout} s; {explain(error, False)}"
    except BaseException as error:
        verdict, why = "not ok", explain(error, is_verbose)
    signal.alarm(0)
    context.clean_up()
    try:
        if verdict == "ok":
            invariants.check_no_children()
        trouble = kernel.trouble()
        assert not trouble, f"the kernel says: {trouble[0]}"
    except AssertionError as error:
        verdict, why = "not ok", str(error)
    return verdict, why


def run_child(function, net, is_verbose, result):
    os.setsid()
    adopt_orphans()
    signal.signal(signal.SIGALRM, ring)
    verdict = attempt(function, net, is_verbose)
    os.write(result, json.dumps(verdict).encode())
    os._exit(0)


def kill_family(pid):
    kill_all([pid, *descendants(pid)])


def run_one(function, net, is_verbose):
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.close(read_end)
        run_child(function, net, is_verbose, write_end)
    os.close(write_end)
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(function.timeout + 2 * GRACE)
    try:
        data = os.read(read_end, 1 << 20)
    except TimedOut:
        data = b""
    except BaseException:
        kill_family(pid)
        raise
    finally:
        signal.alarm(0)
        os.close(read_end)
    if not data:
        kill_family(pid)
    os.waitpid(pid, 0)
    return json.loads(data) if data else ("not ok", "the test itself hung")


def run_all(names, is_verbose, title):
    count = {"ok": 0, "not ok": 0, "skip": 0}
    net = Network()
    try:
        for name in names:
            start = time.monotonic()
            verdict, why = run_one(TESTS[name], net, is_verbose)
            count[verdict] += 1
            line = f"{verdict} {name}"
            if verdict == "ok":
                line += f" ({time.monotonic() - start:.1f} s)"
            print(line + (f": {why}" if why else ""), flush=True)
    finally:
        net.delete()
    print(f"{title}: {count['ok']} passed, {count['not ok']} failed, "
          f"{count['skip']} skipped")
    return 1 if count["not ok"] else 0


def refuse(title, why):
    print(f"skip {title}: {why}")
    print(f"{title}: 0 passed, 0 failed, 1 skipped")
    sys.exit(SKIPPED)


def main(directory, title):
    arguments = sys.argv[1:]
    is_verbose = "-v" in arguments
    load(directory)
    names = choose([a for a in arguments if not a.startswith("-")])
    if "-l" in arguments:
        print("\n".join(names))
        return 0
    if os.geteuid():
        refuse(title, "network namespaces need root")
    for program in (DAEMON, CLI):
        if not os.access(program, os.X_OK):
            refuse(title, f"{program} is not built")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return run_all(names, is_verbose, title)
