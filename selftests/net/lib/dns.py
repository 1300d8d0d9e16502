# SPDX-License-Identifier: GPL-2.0-or-later
"""The name server of dns_server.py, in a namespace of the tests."""

import os
import subprocess
import sys

from .process import Process

PROGRAM = os.path.join(os.path.dirname(__file__), "../dns_server.py")


class NameServer:
    """Answers on port 53 of the namespace's loopback, with a TTL of 1 s."""

    def __init__(self, t, ns):
        self.process = Process(
            ns.command(sys.executable, PROGRAM, "--port", "53"), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)
        t.undo.callback(self.close)
        self.output = self.process.popen.stdout
        self.output.readline()  # its port

    def tell(self, *words):
        print(*words, file=self.process.popen.stdin, flush=True)
        return self.output.readline().strip()

    def answer(self, name, *addresses):
        self.tell("answer", name, "A", 1, *addresses)

    def queries(self, name):
        """How often `name` was asked for."""
        return sum(map(int, self.tell("queries", name).split()))

    def close(self):
        self.process.popen.stdin.close()
        self.process.kill()
        self.output.close()
