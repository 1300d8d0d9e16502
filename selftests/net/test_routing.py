# SPDX-License-Identifier: GPL-2.0-or-later
"""Which server a connection goes to."""

import time

from lib import hello, sockets
from lib.harness import LISTEN, LISTEN6, between, equal, test
from lib.netns import ONE6, ROUTER, ROUTER6


def three_sites(t, default="default refuse", more=""):
    names = ("one", "two", "apps")
    servers = {name: t.server(name) for name in names}
    backends = "\n".join(f"backend {n} {s}" for n, s in servers.items())
    return t.headgate(f"""
listen :443 tcp
{backends}
route one.example, www.one.example to one
route two.example to two
route *.apps.example to apps
{default}
{more}
""")


@test
def two_names(t):
    three_sites(t)
    equal(t.ask("one.example"), "one")
    equal(t.ask("www.one.example"), "one")
    equal(t.ask("two.example"), "two")


@test
def case_and_final_dot(t):
    one, two = t.server("one"), t.server("two")
    t.headgate(f"""
        listen :443 tcp
        backend one {one}
        backend two {two}
        route One.EXAMPLE to one
        route two.example. to two
        """)
    equal(t.send(hello.with_raw_name(b"oNe.eXample")), "one")
    equal(t.send(hello.with_raw_name(b"one.example.")), "one")
    equal(t.send(hello.with_raw_name(b"TWO.example.")), "two")


@test
def wildcard(t):
    three_sites(t)
    equal(t.ask("a.apps.example"), "apps")
    equal(t.ask("a.b.c.apps.example"), "apps")
    assert hello.is_alert(t.ask("apps.example"), hello.UNRECOGNIZED_NAME)
    assert hello.is_alert(t.ask("xapps.example"), hello.UNRECOGNIZED_NAME)


@test
def longest_wildcard_wins_and_exact_beats_it(t):
    short, long, exact = t.server("short"), t.server("long"), t.server("exact")
    t.headgate(f"""
        listen :443 tcp
        backend short {short}
        backend long  {long}
        backend exact {exact}
        route *.example        to short
        route *.deep.example   to long
        route x.deep.example   to exact
        """)
    equal(t.ask("a.example"), "short")
    equal(t.ask("a.deep.example"), "long")
    equal(t.ask("a.b.deep.example"), "long")
    equal(t.ask("x.deep.example"), "exact")
    equal(t.ask("deep.example"), "short")


@test
def default_backend(t):
    three_sites(t, "default to two")
    equal(t.ask("unknown.example"), "two")
    equal(t.ask(None), "two", "no name at all")
    equal(t.ask("one.example"), "one")


@test
def default_refuse_sends_the_alert(t):
    gate = three_sites(t, "default refuse")
    reply = t.ask("unknown.example")
    assert hello.is_alert(reply, hello.UNRECOGNIZED_NAME), reply
    reply = t.ask(None)
    assert hello.is_alert(reply, hello.UNRECOGNIZED_NAME), reply
    equal(gate.refused("name_unknown"), 1, "name_unknown")
    equal(gate.refused("name_missing"), 1, "name_missing")


@test
def no_default_means_refuse(t):
    three_sites(t, "")
    assert hello.is_alert(t.ask("unknown.example"), hello.UNRECOGNIZED_NAME)


@test
def default_drop_is_silent(t):
    gate = three_sites(t, "default drop")
    equal(t.ask("unknown.example"), "")
    equal(gate.refused("name_unknown"), 1, "name_unknown")


@test
def route_may_refuse_and_drop(t):
    site = t.server("site")
    gate = t.headgate(f"""
        listen :443 tcp
        backend site {site}
        route refused.example refuse
        route dropped.example drop
        default to site
        """)
    assert hello.is_alert(t.ask("refused.example"), hello.UNRECOGNIZED_NAME)
    equal(t.ask("dropped.example"), "")
    equal(t.ask("other.example"), "site")
    equal(gate.refused("route_refused"), 2, "route_refused")


@test
def invalid_names_are_refused(t):
    gate = three_sites(t, "default to one")
    names = [b"", b"a\0b.example", b"10.1.2.3", b"::1", b"a" * 64 + b".example",
             b".".join([b"a" * 50] * 6), b"a..example", b"a b.example"]
    for name in names:
        reply = t.send(hello.with_raw_name(name))
        assert reply != "one", f"{name!r} was routed"
    equal(gate.refused("sni_invalid") + gate.refused("tls_hello"), len(names),
          "refusals")
    twice = hello.message_of(hello.genuine("one.example"))
    body = b"\x00\x0e\x00\x00\x0btwo.example"
    twice = hello.with_extension(twice, hello.SERVER_NAME, body)
    assert t.send(hello.in_records(twice)) not in ("one", "two")


@test
def acme_alpn_goes_elsewhere(t):
    site, acme, star = t.server("site"), t.server("acme"), t.server("star")
    t.headgate(f"""
        listen :443 tcp
        backend site {site}
        backend acme {acme}
        backend star {star}
        route site.example to site
        route site.example alpn "h3x" to star
        route * alpn "acme-tls/1" to acme
        """)
    equal(t.ask("site.example", ["acme-tls/1"]), "acme")
    equal(t.ask("other.example", ["acme-tls/1"]), "acme")
    equal(t.ask("site.example", ["h2", "http/1.1"]), "site")
    equal(t.ask("site.example"), "site")
    # the client's order decides between routes by ALPN
    equal(t.ask("site.example", ["h3x", "acme-tls/1"]), "star")
    equal(t.ask("site.example", ["acme-tls/1", "h3x"]), "acme")
    assert hello.is_alert(t.ask("other.example", ["h2"]),
                          hello.UNRECOGNIZED_NAME)


@test
def plain_http_is_closed_at_once(t):
    gate = three_sites(t)
    for first in (b"GET / HTTP/1.1\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"\x00",
                  b"\x80\x2e\x01\x03\x01", bytes((22, 3, 9, 0xff, 0xff, 2))):
        sock = t.connect()
        start = time.monotonic()
        sock.sendall(first)
        try:
            reply = sockets.read_to_end(sock)
        except ConnectionResetError:
            reply = b""
        assert not reply or reply[0] == hello.ALERT, reply
        between(time.monotonic() - start, 0, 1, f"seconds for {first!r}")
    assert gate.refused("not_tls") >= 4, gate.status()["refused"]


@test
def default_plain_takes_what_is_not_tls(t):
    plain = t.server(sockets.echo)
    three_sites(t, more=f"backend plain {plain}\ndefault plain to plain")
    sock = t.connect()
    sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
    sockets.finish(sock)
    equal(sockets.read_to_end(sock), b"GET / HTTP/1.0\r\n\r\n")
    equal(t.ask("one.example"), "one")


@test
def port_80_is_forwarded_unread(t):
    def serve(session):  # speaks first: nothing may be waited for
        session.send(b"220 ready\r\n")
        sockets.echo(session)

    gate = three_sites(t, more=f"backend raw {t.server(serve)}\n"
                               "listen :80 tcp to raw")
    sock = t.connect(f"{ROUTER}:80")
    equal(sockets.read_exactly(sock, 11), b"220 ready\r\n")
    sock.sendall(b"\x16\x03")
    equal(sockets.read_exactly(sock, 2), b"\x16\x03")
    equal(t.ask("one.example"), "one")
    equal(sum(gate.status()["refused"].values()), 0, "refusals")


@test
def ipv6_both_ways(t):
    six, four = t.server("six", host=ONE6), t.server("four")
    t.headgate(f"""
        listen :443 tcp
        backend six  {six}
        backend four {four}
        route six.example to six
        route four.example to four
        """)
    for address in (LISTEN, LISTEN6):
        equal(t.ask("six.example", address=address), "six")
        equal(t.ask("four.example", address=address), "four")


@test
def listener_with_one_address(t):
    site = t.server("site")
    t.headgate(f"""
        listen {ROUTER}:443 tcp
        listen [{ROUTER6}]:8443 tcp
        backend site {site}
        default to site
        """)
    equal(t.ask("a.example"), "site")
    equal(t.ask("a.example", address=f"[{ROUTER6}]:8443"), "site")
    for address in (LISTEN6, f"{ROUTER}:8443"):
        try:
            t.ask("a.example", address=address)
        except ConnectionRefusedError:
            continue
        raise AssertionError(f"{address} accepts")


@test
def unix_socket_backend(t):
    server = t.unix_server("through a file")
    t.headgate(f"""
        listen :443 tcp
        backend site {server}
        default to site
        """)
    equal(t.ask("a.example"), "through a file")


@test
def hello_arrives_unchanged_with_what_follows(t):
    server = t.server(sockets.recorder)
    t.headgate(f"""
        listen :443 tcp
        backend site {server}
        default to site
        """)
    more = bytes(range(256)) * 20
    for data in (hello.genuine("a.example"), hello.post_quantum("a.example"),
                 hello.in_records(hello.with_size("a.example", 20000))):
        sock = t.connect()
        sock.sendall(data + more)
        sockets.finish(sock)
        sockets.read_to_end(sock)
        session = server.sessions[-1]
        assert session.has_ended.wait(3)
        equal(bytes(session.data), data + more)
