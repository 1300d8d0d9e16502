# SPDX-License-Identifier: GPL-2.0-or-later
"""What a test is, and what it is given."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import textwrap

from . import hello, netns, sockets
from .headgate import Headgate
from .process import Process

TESTS = {}
LISTEN = f"{netns.ROUTER}:443"
LISTEN6 = f"[{netns.ROUTER6}]:443"


class Skip(Exception):
    pass


def test(function=None, timeout=20):
    """Registers a test; its file's name without "test_" is its group."""
    def register(f):
        group = f.__module__.removeprefix("test_")
        f.timeout = timeout
        TESTS[f"{group}.{f.__name__}"] = f
        return f
    return register(function) if function else register


def equal(actual, expected, what="value"):
    if actual != expected:
        raise AssertionError(f"{what}: {shorten(actual)}, expected "
                             f"{shorten(expected)}"
                             f"{first_difference(actual, expected)}")


def first_difference(a, b):
    if not isinstance(a, bytes) or not isinstance(b, bytes):
        return ""
    at = len(os.path.commonprefix([a, b]))
    return f" (of {len(a)} and {len(b)} bytes, they differ at {at})"


def between(value, low, high, what="value"):
    if not low <= value <= high:
        raise AssertionError(f"{what}: {value:.4g} is not within "
                             f"{low:.4g} … {high:.4g}")


def shorten(value):
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:160]}…"


@contextlib.contextmanager
def raises(*kinds):
    try:
        yield
    except kinds:
        return
    raise AssertionError(f"no {' or '.join(k.__name__ for k in kinds)}")


class Test:
    """Handed to each test; everything made through it is undone at its end."""

    def __init__(self, net):
        self.net = net
        self.directory = tempfile.mkdtemp(prefix="headgate-net-")
        os.chmod(self.directory, 0o755)
        self.undo = contextlib.ExitStack()
        self.gates, self.sockets = [], []

    # daemons and peers

    def headgate(self, text, **options):
        gate = self.prepare(text, **options)
        return gate.start()

    def prepare(self, text, ns=None, **options):
        options.setdefault("name", f"headgate{len(self.gates)}")
        gate = Headgate(ns or self.net.router, self.directory,
                        textwrap.dedent(text), **options)
        self.undo.callback(gate.kill)
        self.gates.append(gate)
        return gate

    def server(self, serve, ns=None, host=None, **options):
        """A server in namespace "one", or where host or ns say."""
        hosts = {netns.TWO: self.net.two, netns.TWO6: self.net.two,
                 netns.ROUTER: self.net.router, "127.0.0.1": self.net.router}
        ns = ns or hosts.get(host, self.net.one)
        if isinstance(serve, str):
            serve = sockets.greeter(serve)
        server = sockets.Server(ns, host or netns.ONE, serve, **options)
        self.undo.callback(server.close)
        return server

    def unix_server(self, serve, name="server.sock"):
        path = f"{self.directory}/{name}"
        return self.server(serve, ns=self.net.router, unix=path)

    def process(self, argv, name, ns=None, **options):
        argv = (ns or self.net.one).command(*argv)
        log = f"{self.directory}/{name}.log"
        process = Process(argv, log=log, **options)
        self.undo.callback(process.kill)
        return process

    # clients

    def connect(self, address=LISTEN, **options):
        sock = sockets.connect(self.net.client, address, **options)
        self.sockets.append(sock)
        return sock

    def open(self, name, alpn=(), address=LISTEN, more=b"", **options):
        """Connects and sends a ClientHello for `name`."""
        sock = self.connect(address, **options)
        sock.sendall(hello.genuine(name, tuple(alpn)) + more)
        return sock

    def ask(self, name, alpn=(), address=LISTEN, **options):
        """All that comes back for a ClientHello with `name`."""
        return self.send(hello.genuine(name, tuple(alpn)), address, **options)

    def send(self, data, address=LISTEN, **options):
        sock = self.connect(address, **options)
        sock.sendall(data)
        reply = sockets.read_to_end(sock)
        sock.close()
        # the servers of the tests answer text, headgate itself an alert
        return reply if reply[:1] == b"\x15" else reply.decode()

    def curl(self, *arguments, ns=None, timeout=15):
        argv = ["curl", "-sS", "--max-time", "10", *arguments]
        return (ns or self.net.client).run(
            *argv, capture_output=True, text=True, timeout=timeout)

    # the end

    def finish(self):
        """The invariants: only asked after a test that has passed."""
        for sock in self.sockets:
            sock.close()
        for gate in self.gates:
            if gate.process:
                gate.stop()

    def clean_up(self):
        for sock in self.sockets:
            sock.close()
        self.undo.close()
        if not os.environ.get("KEEP_LOGS"):
            shutil.rmtree(self.directory, ignore_errors=True)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"{program} is not installed")


def need_plain_build(program):
    """For measurements of memory, which a sanitizer has its own of."""
    with open(program, "rb") as f:
        if b"__asan_init" in f.read():
            raise Skip("built with the address sanitizer")


def compile_c(directory, source):
    """Builds one C file of this directory; returns the program's path."""
    need("cc")
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    out = f"{directory}/{source.removesuffix('.c')}"
    subprocess.run(["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall",
                    "-Wextra", "-Werror", "-o", out, f"{here}/{source}"],
                   check=True)
    return out
