# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon under test: start, ask, reload, read its log, stop."""

import json
import os
import re
import signal
import subprocess

from . import invariants
from .process import (Process, children, descendants, descriptors,
                      resident_bytes, wait_until)

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../.."))
DAEMON = os.environ.get("HEADGATED", f"{ROOT}/.output/headgated")
CLI = os.environ.get("HEADGATE",
                     os.path.join(os.path.dirname(DAEMON), "headgate"))

# what the configuration is told stands before the log begins
CONFIGURATION = re.compile(r"\S+:\d+:\d+: (error|warning): ")
PAIR = re.compile(r'([A-Za-z_][\w.-]*)=("(?:[^"\\\n]|\\.)*"|[^\s"=]*)(?: |$)')


def parse_logfmt(line):
    """The line as a dict; None unless it is logfmt from end to end."""
    fields, at = {}, 0
    while at < len(line):
        match = PAIR.match(line, at)
        if not match:
            return None
        value = match.group(2)
        fields[match.group(1)] = value[1:-1] if value[:1] == '"' else value
        at = match.end()
    return fields or None


def parse_log(line):
    line = re.sub(r"^<\d>", "", line)
    if line.startswith("{"):
        try:
            return json.loads(line)
        except ValueError:
            return None
    return parse_logfmt(line)


# All of a test comes from one client; tests of these limits set them.
NO_CLIENT_LIMITS = """
limit connections off per client
limit new-connections off per client
limit syns off per client
"""


class Headgate:
    def __init__(self, ns, directory, text, name="headgate", stderr=None,
                 prefix=()):
        self.ns = ns
        self.name = name
        self.run_dir = f"{directory}/{name}.run"
        self.pin_dir = f"/sys/fs/bpf/{ns.name}-{name}"
        self.config = f"{directory}/{name}.conf"
        self.log = f"{directory}/{name}.log"
        self.stderr = stderr
        self.prefix = prefix  # a command that runs the daemon
        self.expected_errors = []
        self.process = None
        self.write(text)

    def write(self, text):
        if "per client" not in text:
            text += NO_CLIENT_LIMITS
        self.written = text
        # atomically, as an operator's editor would
        with open(self.config + ".new", "w") as f:
            f.write(text)
        os.rename(self.config + ".new", self.config)

    def launch(self):
        argv = [DAEMON, "-c", self.config, "--run-dir", self.run_dir,
                "--pin-dir", self.pin_dir]
        self.seen = len(self.text())  # of an earlier run
        options = {} if self.stderr is None else {"stderr": self.stderr}
        self.process = Process(self.ns.command(*self.prefix, *argv),
                               log=self.log, **options)
        return self.process

    def start(self, timeout=10):
        self.launch()
        wait_until(self.is_ready, timeout, "the line 'ready'")
        self.rebase()
        return self

    def is_ready(self):
        text = self.text()[self.seen:]
        if not self.process.is_running():
            raise AssertionError(
                f"headgated ended with {self.process.popen.returncode} "
                f"before it was ready: {text[-600:]}")
        return re.search(r"\bready\b", text)

    def rebase(self):
        """From here on the invariants count."""
        accepted, ended = invariants.ledger(self)
        self.base_ledger = accepted - ended
        self.base = {pid: descriptors(pid) for pid in self.pids()}

    # processes

    @property
    def pid(self):
        return self.process.pid

    @property
    def router(self):
        """The process that reads from the network."""
        return wait_until(lambda: children(self.pid), 3,
                          "the router process")[-1]

    def pids(self):
        return [self.pid, *descendants(self.pid)]

    def resident(self):
        return sum(map(resident_bytes, self.pids()))

    # questions

    def cli(self, *arguments, timeout=10):
        return subprocess.run([CLI, "--run-dir", self.run_dir, *arguments],
                              capture_output=True, text=True, timeout=timeout)

    def status(self):
        answer = self.cli("status", "--json")
        assert answer.returncode == 0, f"status: {answer.stderr.strip()}"
        return json.loads(answer.stdout)

    def refused(self, reason):
        return self.status()["refused"].get(reason, 0)

    def connections(self):
        return self.status()["connections"]["now"]

    def server_states(self, backend):
        for entry in self.status()["backends"]:
            if entry["name"] == backend:
                return {s["address"]: s for s in entry["servers"]}
        raise AssertionError(f"status knows no backend {backend}")

    # the log

    def text(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, errors="surrogateescape") as f:
            return f.read()

    def lines(self):
        return [line for line in self.text().splitlines()
                if not CONFIGURATION.match(line)]

    def events(self, name="connection"):
        parsed = map(parse_log, self.lines())
        return [p for p in parsed if p and p.get("event") == name]

    def wait_events(self, count, name="connection", timeout=3):
        wait_until(lambda: len(self.events(name)) >= count, timeout,
                   f"{count} log lines of event={name}")
        return self.events(name)

    def expect_error(self, pattern):
        """A line of level=err that matches is part of this test."""
        self.expected_errors.append(pattern)

    # changes

    def reload(self, text=None):
        if text is not None:
            self.write(text)
        return self.cli("reload")

    def reloaded(self, text=None):
        answer = self.reload(text)
        assert answer.returncode == 0, f"reload: {answer.stderr.strip()}"

    def stop(self, timeout=8):
        """SIGTERM, an orderly end, and the invariants before and after."""
        if self.process.is_running():
            invariants.check_alive(self)
            family = self.pids()
            self.process.send(signal.SIGTERM)
            try:
                code = self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                raise AssertionError("still there 8 s after SIGTERM") from None
            assert code == 0, f"exit status {code} after SIGTERM"
            invariants.check_gone(family)
        invariants.check_log(self)

    def kill(self):
        if self.process:
            self.process.kill()
