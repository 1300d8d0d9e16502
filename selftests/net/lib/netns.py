# SPDX-License-Identifier: GPL-2.0-or-later
"""
Network namespaces: a client, the router and two hosts of servers.

        client ---------- router ---------- one
    10.77.1.2    10.77.1.1    10.77.2.1 \\    10.77.2.2
                              10.77.3.1  `-- two
                                             10.77.3.2

IPv6 is the same with fd77:N::M. Every address of 10.78.0.0/16 and fd78::/32
is the client's too, for tests that need many clients.
"""

import contextlib
import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)

CLIENT, ROUTER, ONE, TWO = "10.77.1.2", "10.77.1.1", "10.77.2.2", "10.77.3.2"
CLIENT6, ROUTER6, ONE6, TWO6 = (
    "fd77:1::2", "fd77:1::1", "fd77:2::2", "fd77:3::2")

SYSCTLS = {
    "ipv4/ip_local_port_range": "10000 65000",
    "ipv4/tcp_tw_reuse": "1",
    # an address serves at once, its neighbour's questions too
    "ipv6/conf/all/accept_dad": "0",
    "ipv6/conf/default/accept_dad": "0",
    "core/somaxconn": "4096",
    "ipv4/tcp_max_syn_backlog": "8192",
    # newer kernels let a socket hold 32 MiB; what is promised for a client
    # that stops reading goes by this
    "ipv4/tcp_rmem": "4096 131072 6291456",
}


def setns(descriptor):
    if libc.setns(descriptor, CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


class Namespace:
    """One namespace; a thread can step into it to open a socket there."""

    def __init__(self, name):
        self.name = name
        self.path = f"/run/netns/{name}"
        subprocess.run(["ip", "netns", "add", name], check=True)

    @contextlib.contextmanager
    def inside(self):
        # A socket stays where it was opened, so a short visit is enough.
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        there = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            setns(there)
            try:
                yield self
            finally:
                setns(here)
        finally:
            os.close(there)
            os.close(here)

    def command(self, *argv):
        # Not "ip netns exec": that mounts a new /sys, and bpffs is gone.
        return ["nsenter", f"--net={self.path}", "--", *map(str, argv)]

    def run(self, *argv, **options):
        return subprocess.run(self.command(*argv), **options)

    def ip(self, *lines):
        subprocess.run(["ip", "-n", self.name, "-batch", "-"], check=True,
                       text=True, input="\n".join(lines) + "\n")

    def nft(self, rules):
        self.run("nft", "-f", "-", input=rules, text=True, check=True)

    def sysctl(self, values):
        with self.inside():
            for key, value in values.items():
                with open(f"/proc/sys/net/{key}", "w") as f:
                    f.write(value)

    def delete(self):
        subprocess.run(["ip", "netns", "del", self.name], check=False)


class Network:
    """The four namespaces of the drawing above."""

    def __init__(self, prefix=None):
        prefix = prefix or f"hg{os.getpid()}"
        self.all = []
        try:
            for role in ("client", "router", "one", "two"):
                ns = Namespace(f"{prefix}-{role}")
                self.all.append(ns)
                setattr(self, role, ns)
                ns.ip("link set lo up")
                ns.sysctl(SYSCTLS)
            self.join(self.client, "to-client", 1)
            self.join(self.one, "to-one", 2)
            self.join(self.two, "to-two", 3)
            self.add_many_clients()
        except BaseException:
            self.delete()
            raise

    def join(self, ns, device, number):
        self.router.ip(f"link add {device} type veth peer name eth0 "
                       f"netns {ns.name}")
        for side, name, host in ((self.router, device, 1),
                                 (ns, "eth0", 2)):
            side.ip(f"addr add 10.77.{number}.{host}/24 dev {name}",
                    f"addr add fd77:{number}::{host}/64 dev {name} nodad",
                    f"link set {name} up")
        ns.ip(f"route add default via 10.77.{number}.1",
              f"route add default via fd77:{number}::1")

    def add_many_clients(self):
        self.client.ip("route add local 10.78.0.0/16 dev lo",
                       "route add local fd78::/32 dev lo")
        self.router.ip("route add 10.78.0.0/16 via 10.77.1.2",
                       "route add fd78::/32 via fd77:1::2")
        # binding to them is allowed although no interface has them
        self.client.sysctl({"ipv4/ip_nonlocal_bind": "1",
                            "ipv6/ip_nonlocal_bind": "1"})

    def delete(self):
        for ns in self.all:
            ns.delete()
