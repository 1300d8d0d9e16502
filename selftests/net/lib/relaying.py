# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the relay share: one site, and both engines."""

from .harness import test

MB = 1 << 20
NAME = "a.example"
COPY, SPLICE = "relay splice off", "relay splice after 64KiB or 1s"
ENGINES = {"copy": COPY, "splice": SPLICE}


def site(t, serve, relay="", more=""):
    server = t.server(serve)
    gate = t.headgate(f"""
listen :443 tcp
backend site {server}
default to site
{relay}
{more}
""")
    return gate, server


def each_engine(function):
    """Registers function(t, relay) as one test for each engine."""
    for name, line in ENGINES.items():
        def body(t, line=line):
            function(t, line)

        body.__module__ = function.__module__
        body.__name__ = f"{function.__name__}_{name}"
        test(body, timeout=30)
    return function
