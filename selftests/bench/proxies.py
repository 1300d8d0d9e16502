# SPDX-License-Identifier: GPL-2.0-or-later
"""The contestants: how each is found, configured, started and asked."""

import os
import re
import shutil
import socket
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
LISTEN_PORT, ORIGIN_PORT = 8443, 9000
LISTEN, ORIGIN = f"127.0.0.1:{LISTEN_PORT}", f"127.0.0.1:{ORIGIN_PORT}"
NAME = "bench.example"
ALL_WORK = ("conn", "req", "down", "up", "idle")


def output(argv):
    """What a program says about itself; nothing if it will not."""
    try:
        return subprocess.run(argv, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, timeout=5,
                              stderr=subprocess.STDOUT, text=True).stdout
    except subprocess.TimeoutExpired:
        return ""


class Proxy:
    word = None     # in its log when it is ready
    config = None   # a file under peers/
    is_peer = False  # counts when the cheapest peer is sought
    work = ALL_WORK

    def __init__(self, name, out, workers):
        self.name, self.out, self.workers = name, out, workers

    @property
    def program(self):
        return os.path.basename(self.binary())

    def missing(self):
        """Why it cannot run here; None when it can."""
        if not shutil.which(self.binary()):
            return f"{self.binary()} is not there"
        return None

    def fields(self, run_dir):
        return {"LISTEN": LISTEN, "ORIGIN": ORIGIN, "NAME": NAME,
                "WORKERS": str(self.workers), "DIR": run_dir}

    def command(self, run_dir):
        with open(os.path.join(HERE, "peers", self.config)) as f:
            text = f.read()
        for key, value in self.fields(run_dir).items():
            text = text.replace(f"@{key}@", value)
        path = os.path.join(run_dir, self.config)
        with open(path, "w") as f:
            f.write(text)
        return self.argv(path, run_dir)

    def splice_note(self, run_dir):
        """What the daemon itself says about its splicing, after a turn."""
        return None


class Direct(Proxy):
    def missing(self):
        return None

    def version(self):
        return None


class Bare(Proxy):
    work = ("conn", "req", "idle")
    options = []

    def binary(self):
        return os.path.join(self.out, "bench/bare")

    def command(self, run_dir):
        return [self.binary(), LISTEN, ORIGIN, str(self.workers),
                *self.options]

    def version(self):
        return None


class BareSplice(Bare):
    work = ("down", "up")
    options = ["--splice"]


class Headgate(Proxy):
    word = "ready"
    config = "headgate.conf"

    def binary(self):
        return os.path.join(self.out, "headgated")

    def argv(self, path, run_dir):
        return [self.binary(), "-c", path, "--run-dir", f"{run_dir}/run",
                "--pin-dir", f"{run_dir}/pin"]

    def version(self):
        found = re.search(r"\d+\.\d+\.\d+", output([self.binary(), "-V"]))
        return found and found.group()


class Haproxy(Proxy):
    config = "haproxy.cfg"
    is_peer = True
    splice = ""

    def binary(self):
        return "haproxy"

    def fields(self, run_dir):
        return super().fields(run_dir) | {"SPLICE": self.splice}

    def argv(self, path, run_dir):
        return [self.binary(), "-db", "-f", path]

    def version(self):
        return re.search(r"version (\S+)", output([self.binary(), "-v"]))[1]

    def splice_note(self, run_dir):
        info = ask(f"{run_dir}/haproxy.sock", "show info\n")
        # "Spliced" is misspelt in every version so far
        spliced = re.search(r"^TotalSpl\w*BytesOut: (\d+)", info, re.M)
        total = re.search(r"^TotalBytesOut: (\d+)", info, re.M)
        if spliced and total and int(total[1]):
            return int(spliced[1]) / int(total[1])
        return None


class HaproxySplice(Haproxy):
    splice = "\toption splice-request\n\toption splice-response"


class Nginx(Proxy):
    config = "nginx.conf"
    is_peer = True

    def binary(self):
        return "nginx"

    def module(self):
        """The stream module when it is a file of its own."""
        built = output([self.binary(), "-V"])
        if "--with-stream=dynamic" not in built:
            return None
        where = re.search(r"--modules-path=(\S+)", built)
        return os.path.join(where[1], "ngx_stream_module.so")

    def missing(self):
        reason = super().missing()
        if not reason and self.module() and not os.path.exists(self.module()):
            return f"{self.module()} is not there"
        return reason

    def fields(self, run_dir):
        module = self.module()
        return super().fields(run_dir) | {
            "LOAD_MODULE": f"load_module {module};" if module else ""}

    def argv(self, path, run_dir):
        return [self.binary(), "-e", "stderr", "-p", run_dir, "-c", path]

    def version(self):
        return re.search(r"nginx/(\S+)", output([self.binary(), "-v"]))[1]


KINDS = {"direct": Direct, "bare": Bare, "bare-splice": BareSplice,
         "headgate": Headgate, "haproxy": Haproxy,
         "haproxy-splice": HaproxySplice, "nginx": Nginx}


def ask(path, question):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(2)
        s.connect(path)
        s.sendall(question.encode())
        answer = b""
        while True:
            more = s.recv(65536)
            if not more:
                return answer.decode()
            answer += more
