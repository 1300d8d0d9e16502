# SPDX-License-Identifier: GPL-2.0-or-later
"""The PROXY protocol, read and written by nginx and HAProxy."""

from lib import netns, peers
from lib.harness import LISTEN, LISTEN6, equal, need, test

NGINX_ADDRESSES = """
    server {{
        listen {address} ssl proxy_protocol;
        ssl_certificate {certificate}; ssl_certificate_key {key};
        set $client "$proxy_protocol_addr $proxy_protocol_port";
        set $server "$proxy_protocol_server_addr $proxy_protocol_server_port";
        return 200 "$client $server";
    }}
"""


def ask(t, ca, to=LISTEN, source_port=0):
    """curl's own port, and the page."""
    need("curl")
    options = ["--local-port", str(source_port)] if source_port else []
    answer = t.curl("--cacert", ca, "--connect-to", f"a.example:443:{to}",
                    "-w", "\n%{local_port}", *options, "https://a.example/")
    assert answer.returncode == 0, answer.stderr
    page, port = answer.stdout.rsplit("\n", 1)
    return port, page


def expected(client, port, router):
    return f"{client} {port} {router} 443"


@test
def nginx_reads_both_versions(t):
    ca = peers.Authority(t.directory)
    crt, key, _ = ca.issue("a.example", "a.example")
    address = f"{netns.ONE}:8443"
    peers.start_nginx(t, t.net.one, NGINX_ADDRESSES.format(
        address=address, certificate=crt, key=key), address)
    for version in ("v1", "v2", "v2 tlv alpn, authority, unique-id"):
        gate = t.headgate(f"""
            listen :443 tcp
            backend site {address} proxy {version}
            default to site
            """)
        port, page = ask(t, ca.certificate)
        equal(page, expected(netns.CLIENT, port, netns.ROUTER), version)
        port, page = ask(t, ca.certificate, LISTEN6)
        equal(page, expected(netns.CLIENT6, port, netns.ROUTER6), version)
        gate.stop()


@test
def haproxy_reads_both_versions(t):
    ca = peers.Authority(t.directory)
    _, _, pem = ca.issue("a.example", "a.example")
    address = f"{netns.TWO}:8443"
    page = "%[src] %[src_port] %[dst] %[dst_port] %[fc_pp_authority]"
    peers.start_haproxy(t, t.net.two, f"""
        frontend tls
            bind {address} ssl crt {pem} alpn h2,http/1.1 accept-proxy
            {peers.haproxy_page(page)}
        """, address)
    for version, more in (("v1", ""), ("v2", ""),
                          ("v2 tlv authority", "a.example")):
        gate = t.headgate(f"""
            listen :443 tcp
            backend site {address} proxy {version}
            default to site
            """)
        for client, router, to in (
                (netns.CLIENT, netns.ROUTER, LISTEN),
                (netns.CLIENT6, netns.ROUTER6, LISTEN6)):
            port, page = ask(t, ca.certificate, to)
            equal(page, f"{expected(client, port, router)} {more}", version)
        gate.stop()


@test
def haproxy_in_front(t):
    """HAProxy sends PROXY to us; the last server sees the first client."""
    ca = peers.Authority(t.directory)
    crt, key, _ = ca.issue("a.example", "a.example")
    address = f"{netns.ONE}:8443"
    peers.start_nginx(t, t.net.one, NGINX_ADDRESSES.format(
        address=address, certificate=crt, key=key), address)
    t.headgate(f"""
        listen :443 tcp
        backend site {address} proxy v2
        route a.example to site
        trust proxy {netns.TWO}/32
        """)
    for option in ("send-proxy", "send-proxy-v2"):
        front = f"{netns.TWO}:443"
        proxy = peers.start_haproxy(t, t.net.two, f"""
            frontend front
                mode tcp
                bind {front}
                default_backend gate
            backend gate
                mode tcp
                server gate 10.77.3.1:443 {option}
            """, front, name=option)
        with_forwarding(t)
        port, page = ask(t, ca.certificate, front)
        equal(page, f"{netns.CLIENT} {port} {netns.TWO} 443", option)
        proxy.stop()


def with_forwarding(t):
    """The client reaches "two" through the router's kernel, for once."""
    t.net.router.sysctl({"ipv4/ip_forward": "1"})
    t.undo.callback(t.net.router.sysctl, {"ipv4/ip_forward": "0"})
