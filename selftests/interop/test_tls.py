# SPDX-License-Identifier: GPL-2.0-or-later
"""Whole TLS handshakes through the router, by clients and servers of others."""

import hashlib
import json
import os
import shutil

from lib import netns, peers
from lib.harness import (LISTEN, LISTEN6, Skip, between, equal, need, test)
from lib.peers import s_client

NGINX_SITE = """
    server {{
        listen {address} ssl http2;
        server_name {names};
        ssl_certificate {certificate}; ssl_certificate_key {key};
        ssl_protocols TLSv1.2 TLSv1.3;
        root {root};
        location = /who {{
            set $tls "$ssl_server_name $ssl_protocol";
            return 200 "{label} $tls $server_protocol";
        }}
        location = /upload {{
            proxy_pass http://unix:{root}/count.sock;
        }}
    }}
"""


class Sites:
    """nginx and HAProxy with a certificate each, headgate in front."""

    def __init__(self, t):
        need("curl")
        self.t = t
        ca = peers.Authority(t.directory)
        self.ca = ca.certificate
        self.root = f"{t.directory}/root"
        os.mkdir(self.root)
        nginx = ca.issue("nginx.example", "nginx.example", "*.apps.example")
        haproxy = ca.issue("haproxy.example", "haproxy.example")
        one, two = f"{netns.ONE}:8443", f"{netns.TWO}:8443"
        peers.start_nginx(t, t.net.one, NGINX_SITE.format(
            address=one, names="_", certificate=nginx[0], key=nginx[1],
            root=self.root, label="nginx"), one)
        page = "haproxy %[ssl_fc_sni] %[ssl_fc_protocol] HTTP/%[req.ver]"
        peers.start_haproxy(t, t.net.two, f"""
            frontend tls
                bind {two} ssl crt {haproxy[2]} alpn h2,http/1.1
                {peers.haproxy_page(page)}
            """, two)
        self.gate = t.headgate(f"""
            listen :443 tcp
            backend nginx   {one}
            backend haproxy {two}
            route nginx.example, *.apps.example to nginx
            route haproxy.example to haproxy
            """)

    def curl(self, name, path="/who", *options, to=LISTEN):
        answer = self.t.curl("--cacert", self.ca, "--connect-to",
                             f"{name}:443:{to}", *options,
                             f"https://{name}{path}")
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@test
def http2_and_http1_and_tls12(t):
    sites = Sites(t)
    for peer in ("nginx", "haproxy"):
        name = f"{peer}.example"
        reply = sites.curl(name)
        assert reply.startswith(f"{peer} {name} TLSv1.3 HTTP/2"), reply
        reply = sites.curl(name, "/who", "--http1.1")
        assert reply.startswith(f"{peer} {name} TLSv1.3 HTTP/1.1"), reply
        reply = sites.curl(name, "/who", "--tls-max", "1.2")
        assert reply.startswith(f"{peer} {name} TLSv1.2 HTTP/2"), reply
        reply = sites.curl(name, to=LISTEN6)
        assert reply.startswith(f"{peer} {name} TLSv1.3"), reply
    assert "nginx x.apps.example" in sites.curl("x.apps.example")


@test
def unknown_name_in_curl(t):
    sites = Sites(t)
    answer = t.curl("--cacert", sites.ca, "--connect-to",
                    f"no.example:443:{LISTEN}", "https://no.example/")
    equal(answer.returncode, 35, "curl's exit status")
    assert "unrecognized name" in answer.stderr, answer.stderr


@test
def session_is_resumed(t):
    sites = Sites(t)
    for version in ("-tls1_2", "-tls1_3"):
        ticket = f"{t.directory}/ticket"
        options = ("-servername", "nginx.example", "-CAfile", sites.ca,
                   version, "-ign_eof")
        request = "GET /who HTTP/1.0\r\n\r\n"
        text = s_client(t, LISTEN, *options, "-sess_out", ticket,
                        text=request)
        assert "New, TLSv1" in text, text
        text = s_client(t, LISTEN, *options, "-sess_in", ticket, text=request)
        assert "Reused, TLSv1" in text, text


@test
def hello_retry_request(t):
    """The server asks for another group: a second ClientHello follows."""
    sites = Sites(t)
    assert sites.gate
    ca = peers.Authority(t.directory)
    crt, key, _ = ca.issue("retry.example", "retry.example")
    address = f"{netns.ONE}:8444"
    peers.start_s_server(t, t.net.one, address, crt, key, "-www", "-groups",
                         "P-384")
    sites.gate.reloaded(f"listen :443 tcp\nbackend retry {address}\n"
                        "default to retry\n")
    text = s_client(t, LISTEN, "-servername", "retry.example", "-CAfile",
                    ca.certificate, "-groups", "X25519:P-384", "-trace",
                    "-verify_return_error", "-ign_eof",
                    text="GET / HTTP/1.0\r\n\r\n")
    assert text.count("ClientHello, Length=") == 2, text[:2000]
    assert "HTTP/1.0 200 ok" in text, text[-2000:]


@test
def alpn_of_acme(t):
    """TLS-ALPN-01 (RFC 8737) reaches the responder, all else the site."""
    ca = peers.Authority(t.directory)
    crt, key, _ = ca.issue("a.example", "a.example")
    site, acme = f"{netns.ONE}:8444", f"{netns.ONE}:8445"
    peers.start_s_server(t, t.net.one, site, crt, key, "-alpn", "h2", "-quiet")
    peers.start_s_server(t, t.net.one, acme, crt, key, "-alpn", "acme-tls/1",
                         "-quiet")
    t.headgate(f"""
        listen :443 tcp
        backend site {site}
        backend acme {acme}
        route a.example to site
        route * alpn "acme-tls/1" to acme
        """)
    for offered, chosen in (("acme-tls/1", "acme-tls/1"), ("h2", "h2"),
                            ("h2,acme-tls/1", "acme-tls/1")):
        text = s_client(t, LISTEN, "-servername", "a.example", "-CAfile",
                        ca.certificate, "-alpn", offered)
        assert f"ALPN protocol: {chosen}" in text, text


@test
def gnutls_client(t):
    need("gnutls-cli")
    sites = Sites(t)
    host, port = LISTEN.split(":")
    answer = t.net.client.run(
        "gnutls-cli", "--x509cafile", sites.ca, "--sni-hostname",
        "nginx.example", "--verify-hostname", "nginx.example", "-p", port,
        host, input="GET /who HTTP/1.0\r\n\r\n", capture_output=True,
        text=True, timeout=10)
    assert "nginx nginx.example TLS" in answer.stdout, answer


def hash_file(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


@test(timeout=30)
def large_downloads(t):
    sites = Sites(t)
    data = os.urandom(30 << 20)
    with open(f"{sites.root}/large", "wb") as f:
        f.write(data)
    out = f"{t.directory}/got"
    for option in ("--http1.1", "--http2"):
        sites.curl("nginx.example", "/large", option, "-o", out)
        equal(hash_file(out), hashlib.sha256(data).hexdigest(), option)
    events = sites.gate.wait_events(2)
    assert "splice" in {e["engine"] for e in events}, events


UPLOAD = """
import hashlib, http.server, os, socketserver, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        left = int(self.headers["Content-Length"])
        digest = hashlib.sha256(self.rfile.read(left)).hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(digest)))
        self.end_headers()
        self.wfile.write(digest)
    def address_string(self):
        return "unix"
server = socketserver.UnixStreamServer(sys.argv[1], Handler)
os.chmod(sys.argv[1], 0o777)
server.serve_forever()
"""


@test(timeout=30)
def large_upload(t):
    sites = Sites(t)
    socket = f"{sites.root}/count.sock"
    t.process([shutil.which("python3"), "-c", UPLOAD, socket], "count")
    path = f"{t.directory}/up"
    with open(path, "wb") as f:
        f.write(os.urandom(20 << 20))
    for option in ("--http1.1", "--http2"):
        reply = sites.curl("nginx.example", "/upload", option,
                           "--data-binary", f"@{path}", "--retry", "3",
                           "--retry-all-errors")
        equal(reply, hash_file(path), option)


@test
def many_requests_on_one_connection(t):
    sites = Sites(t)
    urls = [f"https://nginx.example/who?{n}" for n in range(100)]
    answer = t.curl("--cacert", sites.ca, "--connect-to",
                    f"nginx.example:443:{LISTEN}", "-w", "\n", *urls)
    equal(answer.stdout.count("nginx nginx.example"), 100, answer.stderr)
    equal(sites.gate.status()["connections"]["total"], 1, "connections")


@test
def status_while_in_use(t):
    sites = Sites(t)
    sites.curl("nginx.example")
    answer = sites.gate.cli("status", "--json")
    between(json.loads(answer.stdout)["bytes"]["out"], 500, 100000, "bytes")
    if not shutil.which("jq"):
        raise Skip("jq is not installed")
    equal(t.net.client.run("jq", "-r", ".backends[].name",
                           input=answer.stdout, capture_output=True,
                           text=True).stdout.split(), ["nginx", "haproxy"])
