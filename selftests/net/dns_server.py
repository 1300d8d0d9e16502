#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
A DNS server for tests: UDP and TCP on one port of loopback, told on its
standard input what to say. It prints its port first, then a line `ok` (or
what was asked for) after each command; it ends when its input does.

    answer NAME TYPE TTL ADDRESS…   A or AAAA records, in this order
    alias NAME TTL TARGET           a CNAME, with the target's own records
    nodata NAME TYPE                the name exists, without such records
    rcode NAME nxdomain|servfail|refused
    silent NAME [TYPE]              queries are heard and not answered
    truncate NAME                   over UDP only the TC bit
    forget NAME                     as if it had never been mentioned
    queries NAME                    prints the number of queries: UDP, TCP

A type that was not mentioned of a known name is nodata, an unknown name is
nxdomain. Negative answers have an SOA with a minimum of 1 s.
"""

import argparse
import ipaddress
import select
import socket
import struct
import sys

TYPES = {"A": 1, "AAAA": 28}
RCODES = {"servfail": 2, "nxdomain": 3, "refused": 5}
CNAME, SOA, OPT = 5, 6, 41


class Name:
    def __init__(self):
        self.records = {}  # type: (ttl, [address bytes])
        self.alias = None  # (ttl, target)
        self.rcode = 0
        self.silent = set()  # types; None is all
        self.truncate = False


class Zone:
    def __init__(self):
        self.names = {}
        self.queries = {}

    def get(self, name):
        return self.names.setdefault(name.lower(), Name())

    def command(self, words):
        verb, name, rest = words[0], words[1], words[2:]
        if verb == "queries":
            return "%d %d" % tuple(self.queries.get(name.lower(), [0, 0]))
        if verb == "forget":
            self.names.pop(name.lower(), None)
            return "ok"
        n = self.get(name)
        if verb == "silent":
            n.silent.add(TYPES[rest[0]] if rest else None)
            return "ok"
        if verb == "truncate":
            n.truncate = True
            return "ok"
        n.rcode = 0
        n.silent = set()
        if verb == "answer":
            packed = [ipaddress.ip_address(a).packed for a in rest[2:]]
            n.records[TYPES[rest[0]]] = (int(rest[1]), packed)
        elif verb == "alias":
            n.alias = (int(rest[0]), rest[1])
        elif verb == "nodata":
            n.records.pop(TYPES[rest[0]], None)
        elif verb == "rcode":
            n.rcode = RCODES[rest[0]]
        else:
            raise ValueError(verb)
        return "ok"


def wire_name(name):
    labels = [part.encode() for part in name.rstrip(".").split(".")]
    return b"".join(bytes([len(part)]) + part for part in labels) + b"\0"


def record(name, rtype, ttl, data):
    return (wire_name(name) +
            struct.pack(">HHIH", rtype, 1, ttl, len(data)) + data)


def read_question(query):
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    qtype = struct.unpack_from(">H", query, at + 1)[0]
    return ".".join(labels), qtype, query[12:at + 5]


def udp_limit(query):
    """512, or what the OPT record says (RFC 6891, 6.2.3)."""
    at = query.rfind(struct.pack(">BH", 0, OPT))
    return max(512, struct.unpack_from(">H", query, at + 3)[0]) \
        if at >= 12 else 512


def answers_of(zone, name, qtype):
    """(rcode, records, the last name of the chain)"""
    records = []
    for _ in range(8):
        n = zone.names.get(name.lower())
        if n is None:
            return 3, records
        if n.rcode:
            return n.rcode, records
        if not n.alias:
            break
        ttl, target = n.alias
        records.append(record(name, CNAME, ttl, wire_name(target)))
        name = target
    ttl, addresses = n.records.get(qtype, (0, []))
    records += [record(name, qtype, ttl, a) for a in addresses]
    return 0, records


def reply_to(zone, query, is_udp):
    name, qtype, question = read_question(query)
    counts = zone.queries.setdefault(name.lower(), [0, 0])
    counts[0 if is_udp else 1] += 1
    n = zone.names.get(name.lower())
    if n and (None in n.silent or qtype in n.silent):
        return None
    rcode, records = answers_of(zone, name, qtype)
    authority = b""
    if not records:
        authority = record(
            "test", SOA, 1,
            wire_name("ns.test") + wire_name("admin.test") +
            struct.pack(">IIIII", 1, 1, 1, 1, 1))

    def build(flags, records, authority):
        return (query[:2] +
                struct.pack(">HHHHH", flags | rcode, 1, len(records),
                            1 if authority else 0, 0) +
                question + b"".join(records) + authority)

    whole = build(0x8580, records, authority)
    if is_udp and ((n and n.truncate) or len(whole) > udp_limit(query)):
        return build(0x8780, [], b"")
    return whole


def open_sockets(address):
    for _ in range(64):
        tcp = socket.socket()
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        tcp.bind(address)
        udp = socket.socket(type=socket.SOCK_DGRAM)
        try:
            udp.bind(tcp.getsockname())
        except OSError:
            continue
        tcp.listen(64)
        return udp, tcp
    raise OSError("no port is free in both protocols")


def serve_tcp(zone, conn, buffers):
    data = conn.recv(65536)
    buffers[conn] += data
    while len(buffers[conn]) >= 2:
        size = struct.unpack_from(">H", buffers[conn])[0]
        if len(buffers[conn]) < 2 + size:
            break
        reply = reply_to(zone, buffers[conn][2:2 + size], False)
        buffers[conn] = buffers[conn][2 + size:]
        if reply:
            conn.sendall(struct.pack(">H", len(reply)) + reply)
    if not data:
        del buffers[conn]
        conn.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    udp, tcp = open_sockets((args.address, args.port))
    zone, buffers = Zone(), {}
    print(udp.getsockname()[1], flush=True)
    stdin = sys.stdin.buffer.raw
    pending = b""
    while True:
        ready = select.select([udp, tcp, stdin, *buffers], [], [])[0]
        for s in ready:
            if s is udp:
                query, peer = udp.recvfrom(4096)
                reply = reply_to(zone, query, True)
                if reply:
                    udp.sendto(reply, peer)
            elif s is tcp:
                buffers[tcp.accept()[0]] = b""
            elif s is stdin:
                data = stdin.read(4096)
                if not data:
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    print(zone.command(line.decode().split()), flush=True)
            else:
                serve_tcp(zone, s, buffers)


if __name__ == "__main__":
    main()
