"""The benchmark's table, made of its raw rows.

usage: table.py BENCH.jsonl   the newest rows of each comparison, from one or many calls
"""
import json
import statistics
import sys

HEAD = (f"{'':33} {'tokens/s':^23}  {'peak MB':^22}  {'first loss, s':^21}  {'compile, s':^13}\n"
        f"{'size':8}{'type':5}{'layout':12}{'peer':10}{'dsopt':>7}{'peer':>8}{'ratio':>8}  {'dsopt':>7}{'peer':>7}{'ratio':>8}  "
        f"{'dsopt':>6}{'first':>8}{'again':>7}  {'cold':>7}{'warm':>6}  losses differ by")


def median(rounds, value):
    return statistics.median(value(*pair) for pair in rounds)


def training_line(rows):
    """One line from the rows of one comparison: `rounds` of (dsopt's, the peer's or nothing). Ratios are medians of the
    rounds' ratios, above 1 where dsopt is better. Whether the losses agree comes second."""
    head = rows[0]
    ours = [row for row in rows if row["who"] == "dsopt"]
    theirs = [row for row in rows if row["who"] != "dsopt"]
    rounds = list(zip(ours, theirs or ours, strict=True))
    tokens, cold, warm = head["tokens"], ours[0]["compile_cold_s"], ours[0]["compile_warm_s"]
    name = f"{head['size']:8}{head['precision']:5}{head['layout']:12}{head['against'] or 'none':10}"
    cells = [f"{name}{median(rounds, lambda o, t: tokens / o['step_s']):7.0f}",
             f"  {median(rounds, lambda o, t: o['peak_mb']):7.0f}", f"  {median(rounds, lambda o, t: o['first_loss_s']):6.2f}"]
    if not theirs:
        return f"{cells[0]}{'-':>8}{'-':>8}{cells[1]}{'-':>7}{'-':>8}{cells[2]}{'-':>8}{'-':>7}  {cold:7.2f}{warm:6.2f}", True
    again = median(rounds[1:] or rounds, lambda o, t: t["first_loss_s"])
    differ = max(abs(a - b) / abs(b) for o, t in rounds for a, b in zip(o["losses"], t["losses"], strict=True))
    same = differ <= head["tolerance"]
    return (f"{cells[0]}{median(rounds, lambda o, t: tokens / t['step_s']):8.0f}{median(rounds, lambda o, t: t['step_s'] / o['step_s']):7.2f}x"
            f"{cells[1]}{median(rounds, lambda o, t: t['peak_mb']):7.0f}{median(rounds, lambda o, t: t['peak_mb'] / o['peak_mb']):7.2f}x"
            f"{cells[2]}{theirs[0]['first_loss_s']:8.2f}{again:7.2f}  {cold:7.2f}{warm:6.2f}  {differ:.0e}{'' if same else ' LOSSES DIFFER'}"), same


def efficiency_line(row):
    return (f"{row['size']} {row['precision']}: {row['gflop']:.1f} GFLOP of products a step at {row['rate']:.0f} GFLOP/s; "
            f"the step is at {row['efficiency']:.0f} % of the peak of multiplications on registers alone")


def update_lines(rows):
    """Of one benchmark of the update: dsopt first."""
    lines, count = [], rows[0]["parameters"]
    for name in rows[0]["ms"]:
        ms, ratio = (statistics.median(values) for values in zip(*((row["ms"][name], row["ms"][name] / row["ms"]["dsopt"]) for row in rows)))
        lines.append(f"AdamW on {count / 1e6:.0f}M parameters, {rows[0]['threads']} threads: {name:10}{ms:6.1f} ms {28 * count / ms / 1e6:5.0f} GB/s"
                     + (f"{ratio:7.2f}x" if name != "dsopt" else ""))
    return lines


def table(rows):
    """The newest rows of each kind, as text."""
    latest = {}
    for row in rows:
        key = tuple(row.get(name) for name in ("kind", "size", "precision", "layout", "against"))
        kept = latest.setdefault(key, [])
        if kept and kept[0]["began"] != row["began"]:
            kept.clear()
        kept.append(row)
    groups = {kind: [kept for key, kept in latest.items() if key[0] == kind] for kind in ("training", "efficiency", "update")}
    return "\n".join([HEAD, *(training_line(kept)[0] for kept in groups["training"]), *(efficiency_line(kept[-1]) for kept in groups["efficiency"]),
                      *(line for kept in groups["update"] for line in update_lines(kept))])


if __name__ == "__main__":
    print(table([json.loads(line) for line in open(sys.argv[1])]))
