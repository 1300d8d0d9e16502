# SPDX-License-Identifier: GPL-2.0-or-later
"""Backends by name: a name server that changes its answers, or fails."""

import collections

from lib import dns, hello, netns
from lib.harness import between, equal, test
from lib.process import wait_until

NAME, HOST = "a.example", "web.test"
PORT = 9200


def ask_many(t, count):
    return collections.Counter(t.ask(NAME) for _ in range(count))


def site_by_name(t):
    """A backend "web.test", and a resolv.conf that knows our name server."""
    resolv = f"{t.directory}/resolv.conf"
    with open(resolv, "w") as f:
        f.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    mount = f"mount --bind {resolv} /etc/resolv.conf && exec \"$@\""
    return t.headgate(f"""
        listen :443 tcp
        backend site {HOST}:{PORT} balance round-robin
        default to site
        """, prefix=("unshare", "--mount", "sh", "-c", mount, "sh"))


def wait_addresses(gate, count):
    wait_until(lambda: len(gate.server_states("site")) == count, 6,
               f"{count} addresses")


@test(timeout=30)
def answers_change(t):
    names = dns.NameServer(t, t.net.router)
    t.server("one", port=PORT)
    t.server("two", host=netns.TWO, port=PORT)
    names.answer(HOST, netns.ONE)
    gate = site_by_name(t)
    wait_addresses(gate, 1)
    equal(ask_many(t, 4), {"one": 4})
    names.answer(HOST, netns.TWO)
    wait_until(lambda: t.ask(NAME) == "two", 4, "the new address")
    equal(ask_many(t, 4), {"two": 4})
    names.answer(HOST, netns.ONE, netns.TWO)
    wait_addresses(gate, 2)
    equal(ask_many(t, 10), {"one": 5, "two": 5})
    between(names.queries(HOST), 4, 40, "queries, with a TTL of 1 s")


@test(timeout=40)
def last_good_answer_is_kept(t):
    names = dns.NameServer(t, t.net.router)
    t.server("one", port=PORT)
    names.answer(HOST, netns.ONE)
    gate = site_by_name(t)
    wait_addresses(gate, 1)
    equal(t.ask(NAME), "one")

    def wait_queries():
        before = names.queries(HOST)
        wait_until(lambda: names.queries(HOST) >= before + 2, 10,
                   "two queries", every=0.1)

    for failure in (("rcode", HOST, "servfail"), ("rcode", HOST, "nxdomain"),
                    ("silent", HOST)):
        names.tell(*failure)
        wait_queries()
        equal(t.ask(NAME), "one", f"with {failure}")
    names.answer(HOST, netns.ONE)
    wait_queries()


@test(timeout=30)
def name_that_does_not_resolve_yet(t):
    names = dns.NameServer(t, t.net.router)
    gate = site_by_name(t)
    assert hello.is_alert(t.ask(NAME), hello.INTERNAL_ERROR)
    equal(gate.refused("no_server"), 1, "no_server")
    t.server("at last", port=PORT)
    names.answer(HOST, netns.ONE)
    wait_addresses(gate, 1)
    equal(t.ask(NAME), "at last")
