# SPDX-License-Identifier: GPL-2.0-or-later
"""Medians, spreads, what a proxy adds, and the table of it all."""

from statistics import median, quantiles

TITLES = {
    "conn": ("connections, {conns} at a time", "conn/s", "µs per connection"),
    "req": ("small requests, {conns} connections", "req/s", "µs per request"),
    "down": ("download, {conns} connections", "GB/s", "ms per GB"),
    "up": ("upload, {conns} connections", "GB/s", "ms per GB"),
}
FIGURES = ("rate", "p50_us", "p99_us", "daemon", "machine", "involved",
           "spliced", "client_share", "origin_share")
MAY_BE_BUSY = 0.3  # processors, for the machine's figure to be shown
ADDED = ("machine", "involved")


def spread(values):
    """Half of what lies between the quartiles, over the median."""
    if len(values) < 2 or not median(values):
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return abs((high - low) / 2 / median(values))


def summarise(rounds, is_peer):
    """rounds: a list of {proxy: turn} of one kind of work."""
    rows = {}
    for name in dict.fromkeys(n for r in rounds for n in r):
        turns = [r[name] for r in rounds if name in r]
        row = {k: median(t[k] for t in turns)
               for k in FIGURES if k in turns[0]}
        row["spread"] = {k: spread([t[k] for t in turns])
                         for k in ("rate", *ADDED)}
        row["rounds"] = len(turns)
        for k in ADDED if name != "direct" else ():
            added = [r[name][k] - r["direct"][k]
                     for r in rounds if name in r and "direct" in r]
            if added:
                row[f"added_{k}"] = median(added)
                row["spread"][f"added_{k}"] = spread(added)
        rows[name] = row
    add_ratios(rows, is_peer)
    return rows


def add_ratios(rows, is_peer):
    """Over the cheapest peer: for CPU the smallest, for rates the largest."""
    for key, best in (("rate", max), ("daemon", min),
                      *((f"added_{k}", min) for k in ADDED)):
        peers = [r[key] for n, r in rows.items() if is_peer(n) and key in r]
        for row in rows.values():
            if peers and key in row and best(peers) > 0:
                row.setdefault("ratio", {})[key] = row[key] / best(peers)


def number(value, width):
    if value is None:
        return "-".rjust(width)
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}".rjust(width)


def ratio(row, key):
    value = row.get("ratio", {}).get(key)
    return ("-" if value is None else f"{value:.2f}").rjust(6)


def percent(row, key):
    value = row["spread"].get(key)
    return ("" if value is None else f"±{100 * value:.0f}%").rjust(5)


def columns(work):
    """(heading, width, row -> text) of each."""
    def figure(heading, width, key):
        return heading, width, lambda row: number(row.get(key), width)

    def spread_of(key):
        return "", 5, lambda row: percent(row, key)

    def ratio_of(heading, key):
        return heading, 6, lambda row: ratio(row, key)

    latency = [figure("p50 µs", 8, "p50_us"), figure("p99 µs", 8, "p99_us")]
    return [figure(TITLES[work][1], 9, "rate"), spread_of("rate"),
            *(latency if work == "req" else []),
            figure("daemon", 8, "daemon"),
            figure("machine", 9, "machine"),
            figure("added", 7, "added_machine"), spread_of("added_machine"),
            figure("involved", 10, "involved"),
            figure("added", 7, "added_involved"),
            spread_of("added_involved"),
            ("  |", 3, lambda row: "  |"),
            ratio_of("rate", "rate"), ratio_of("mach.", "added_machine"),
            ratio_of("inv.", "added_involved")]


def without_machine(row):
    """Where others were at work the machine's figure is theirs."""
    def keep(figures):
        return {k: v for k, v in figures.items()
                if k not in ("machine", "added_machine")}

    return keep(row) | {k: keep(row[k]) for k in ("spread", "ratio")
                        if k in row}


def work_lines(work, rows, conns):
    title, _, unit = TITLES[work]
    table = columns(work)
    yield f"{title.format(conns=conns)}: CPU in {unit}"
    yield f"  {'':14}" + "".join(h.rjust(w) for h, w, _ in table)
    for name, row in rows.items():
        yield f"  {name:14}" + "".join(text(row) for _, _, text in table)


def idle_lines(rows):
    count = next(iter(rows.values()))["connections"]
    yield f"memory of the daemon, {count:,} idle connections"
    yield (f"  {'':15}{'empty MiB':>10}{'Pss B each':>12}"
           f"{'private B each':>16}")
    for name, r in rows.items():
        yield (f"  {name:15}{r['pss_empty'] / 2**20:10.1f}"
               f"{r['pss_each']:12,.0f}{r['private_each']:16,.0f}")


def splice_lines(report):
    for name, row in report["work"].get("down", {}).items():
        if "spliced" in row:
            yield (f"{name} spliced {100 * row['spliced']:.0f} % of what it "
                   "sent in the download, by its own count")
    for name, s in report["splices"].items():
        word = "yes" if s["calls"] else "no"
        yield (f"splices: {name}: {word}, {s['calls']:,} calls of splice(2) "
               f"in {s['bytes'] / 1e6:.0f} MB, by strace")


def warning_lines(report):
    busy = report["control"]["machine"]
    if busy > MAY_BE_BUSY:
        yield (f"WARNING: others kept {100 * busy:.0f} % of a processor busy: "
               "no figures of the machine")
    elif busy > 0.05:
        yield (f"WARNING: others kept {100 * busy:.0f} % of a processor busy; "
               "judge by `involved`, not by `machine`")
    for work, rows in report["work"].items():
        for name, row in rows.items():
            share = max(row.get("client_share", 0), row.get("origin_share", 0))
            if name != "direct" and share > 0.95:
                yield (f"WARNING: {work} {name}: the generator was at its "
                       "limit; the rate says nothing about the proxy")


def print_report(report):
    m = report["machine"]
    print(f"{m['cpu']}, {m['processors']} processors, Linux {m['kernel']}; "
          + ", ".join(f"{n} {v}" for n, v in report["versions"].items()))
    print(f"median of {report['rounds']} rounds, ± half the distance of the "
          f"quartiles; {report['workers']} workers each; added: over direct "
          "in the same round;\nright of the bar: ratio to the best peer, of "
          "rate and of added CPU")
    for work, rows in report["work"].items():
        if report["control"]["machine"] > MAY_BE_BUSY and work != "idle":
            rows = {name: without_machine(r) for name, r in rows.items()}
        print()
        lines = idle_lines(rows) if work == "idle" else work_lines(
            work, rows, report["sizes"][work][0])
        print("\n".join(lines))
    print()
    for line in [*splice_lines(report), *warning_lines(report),
                 *report["notes"]]:
        print(line)
