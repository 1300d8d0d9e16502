# SPDX-License-Identifier: GPL-2.0-or-later
"""Other people's programs: nginx, HAProxy, OpenSSL, and certificates."""

import os
import socket
import subprocess
import textwrap

from .harness import need
from .process import wait_until
from .sockets import split_host


def run(*argv, **options):
    return subprocess.run(argv, check=True, capture_output=True, text=True,
                          **options)


class Authority:
    """A certificate authority for one test."""

    def __init__(self, directory):
        need("openssl")
        self.directory = directory
        self.key, self.certificate = f"{directory}/ca.key", f"{directory}/ca"
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            "/CN=headgate test authority", "-keyout", self.key, "-out",
            self.certificate)

    def issue(self, label, *names):
        """(certificate, key, both in one file) for these names."""
        base = f"{self.directory}/{label}"
        listed = ",".join(f"DNS:{name}" for name in names)
        run("openssl", "req", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={label}",
            "-addext", f"subjectAltName={listed}", "-keyout", f"{base}.key",
            "-out", f"{base}.csr")
        run("openssl", "x509", "-req", "-in", f"{base}.csr", "-CA",
            self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days",
            "2", "-copy_extensions", "copy", "-out", f"{base}.crt")
        with open(f"{base}.pem", "w") as both:
            for part in ("crt", "key"):
                with open(f"{base}.{part}") as f:
                    both.write(f.read())
        return f"{base}.crt", f"{base}.key", f"{base}.pem"


def is_open(ns, address):
    host, port = split_host(address)
    with ns.inside():
        try:
            socket.create_connection((host, port), timeout=1).close()
            return True
        except OSError:
            return False


def wait_open(process, ns, *addresses):
    def ready():
        assert process.is_running(), f"{process.argv}: {process.text()}"
        return all(is_open(ns, address) for address in addresses)

    wait_until(ready, 5, f"{addresses} to accept")


NGINX = """
daemon off; pid {directory}/nginx.pid; error_log stderr warn;
worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {directory}; proxy_temp_path {directory};
    fastcgi_temp_path {directory}; uwsgi_temp_path {directory};
    scgi_temp_path {directory};
    client_max_body_size 100m;
    default_type text/plain;
{servers}
}}
"""


def start_nginx(t, ns, servers, *addresses, name="nginx"):
    """nginx with these server blocks; waits until the addresses accept."""
    need("nginx")
    directory = f"{t.directory}/{name}"
    os.mkdir(directory)
    os.chmod(directory, 0o711)
    path = f"{directory}/nginx.conf"
    with open(path, "w") as f:
        f.write(NGINX.format(directory=directory, servers=servers))
    process = t.process(["nginx", "-p", directory, "-e", "stderr", "-c", path],
                        name, ns=ns)
    wait_open(process, ns, *addresses)
    return process


def haproxy_page(text):
    return ("http-request return status 200 content-type text/plain "
            f'lf-string "{text}"')


def start_haproxy(t, ns, text, *addresses, name="haproxy"):
    need("haproxy")
    path = f"{t.directory}/{name}.cfg"
    defaults = """
        defaults
            mode http
            timeout connect 5s
            timeout client 30s
            timeout server 30s
        """
    with open(path, "w") as f:
        f.write(textwrap.dedent(defaults) + textwrap.dedent(text))
    process = t.process(["haproxy", "-db", "-f", path], name, ns=ns)
    wait_open(process, ns, *addresses)
    return process


def start_s_server(t, ns, address, certificate, key, *options):
    host, port = split_host(address)
    process = t.process(
        ["openssl", "s_server", "-accept", f"{host}:{port}", "-cert",
         certificate, "-key", key, *options], f"s_server-{port}", ns=ns)
    wait_open(process, ns, address)
    return process


def s_client(t, address, *options, text="", timeout=10):
    """OpenSSL's client; everything that it prints."""
    answer = t.net.client.run(
        "openssl", "s_client", "-connect", address, *options, input=text,
        capture_output=True, text=True, timeout=timeout,
        errors="backslashreplace")
    return answer.stdout + answer.stderr
