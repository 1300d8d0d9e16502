# SPDX-License-Identifier: GPL-2.0-or-later
"""Small servers and clients that do exactly what a test tells them to."""

import hashlib
import os
import socket
import struct
import threading

CHUNK = 65536
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


def family_of(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def join_host(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_host(address):
    host, port = address.rsplit(":", 1)
    return host.strip("[]"), int(port)


def connect(ns, address, source=None, timeout=5.0, source_port=0, setup=None):
    """A connected socket of namespace `ns`; every wait on it is bounded."""
    host, port = split_host(address)
    with ns.inside():
        sock = socket.socket(family_of(host), socket.SOCK_STREAM)
    sock.settimeout(timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if setup:
        setup(sock)
    try:
        if source or source_port:
            any_host = "::" if ":" in host else "0.0.0.0"
            sock.bind((source or any_host, source_port))
        sock.connect((host, port))
    except BaseException:
        sock.close()
        raise
    return sock


def reset(sock):
    """Closes with a RST."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    sock.close()


def finish(sock):
    """Says FIN and goes on reading."""
    sock.shutdown(socket.SHUT_WR)


def read_exactly(sock, count):
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        if not part:
            break
        data += part
    return data


def read_to_end(sock):
    """All bytes up to the FIN; a reset raises ConnectionResetError."""
    parts = []
    while part := sock.recv(CHUNK):
        parts.append(part)
    return b"".join(parts)


def hash_to_end(sock):
    """(bytes, SHA-256) of all up to the FIN."""
    digest, count = hashlib.sha256(), 0
    while part := sock.recv(CHUNK):
        digest.update(part)
        count += len(part)
    return count, digest.hexdigest()


class Stream:
    """`size` bytes that never repeat at a short distance, with their hash."""

    block = os.urandom(1 << 20)

    def __init__(self, size):
        self.size = size
        digest = hashlib.sha256()
        for part in self.parts():
            digest.update(part)
        self.hash = digest.hexdigest()

    def parts(self):
        left, turn = self.size, 0
        while left:
            part = turn.to_bytes(8, "big") + self.block[:min(left, CHUNK) - 8]
            part = part[:left]
            left -= len(part)
            turn += 1
            yield part


class Session:
    """One connection as its server saw it."""

    def __init__(self, sock, peer):
        self.sock, self.peer = sock, peer
        self.data = bytearray()
        self.sent = 0
        self.was_reset = False
        self.has_ended = threading.Event()

    def read_some(self):
        part = self.sock.recv(CHUNK)
        self.data += part
        return part

    def read_until(self, count):
        while len(self.data) < count and self.read_some():
            pass
        return self.data

    def read_to_end(self):
        while self.read_some():
            pass
        return self.data

    def send(self, data):
        self.sock.sendall(data)
        self.sent += len(data)


class Server:
    """Accepts in a thread, and runs serve(session) in one more for each."""

    def __init__(self, ns, host, serve, port=0, unix=None, backlog=1024):
        self.serve = serve
        self.sessions = []
        self.is_closed = False
        with ns.inside():
            family = socket.AF_UNIX if unix else family_of(host)
            self.sock = socket.socket(family, socket.SOCK_STREAM)
        if unix:
            self.sock.bind(unix)
            os.chmod(unix, 0o666)
            self.address = f"unix:{unix}"
        else:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sock.bind((host, port))
            self.port = self.sock.getsockname()[1]
            self.address = join_host(host, self.port)
        self.sock.listen(backlog)
        threading.Thread(target=self.accept, daemon=True).start()

    def __str__(self):
        return self.address

    def accept(self):
        while True:
            try:
                sock, peer = self.sock.accept()
            except OSError:
                return
            sock.settimeout(60)
            session = Session(sock, peer)
            self.sessions.append(session)
            threading.Thread(target=self.attend, args=(session,),
                             daemon=True).start()

    def attend(self, session):
        try:
            self.serve(session)
        except (ConnectionResetError, BrokenPipeError):
            session.was_reset = True
        except OSError:
            pass
        finally:
            session.sock.close()
            session.has_ended.set()

    def close(self):
        if self.is_closed:
            return
        self.is_closed = True
        # close() alone does not wake the thread that sits in accept()
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        for session in self.sessions:
            try:
                session.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def greeter(text):
    """Answers the first bytes with `text`, and reads on to the end."""
    def serve(session):
        if not session.read_some():
            return
        session.send(text.encode())
        finish(session.sock)
        session.read_to_end()
    return serve


def recorder(session):
    """Only listens."""
    session.read_to_end()


def echo(session):
    while part := session.read_some():
        session.send(part)
