"""Adds the collectives of a plan and compares them with its traffic, stage by stage."""
import collections
import json
import sys

plan = json.load(open(sys.argv[1]))
sums = collections.defaultdict(collections.Counter)
for row in plan["collectives"]:
    assert row["step"] == "step" and row["calls"] > 0, row
    sums[row["stage"]][row["kind"]] += row["bytes"]
    sums[row["stage"]]["padding"] += row["padding"]
    sums[row["stage"], "logical"][row["kind"]] += row["logical"]
assert plan["ranks"] and len({rank["stage"] for rank in plan["ranks"]}) == 2
for rank in plan["ranks"]:
    expected = {kind: count for kind, count in rank["traffic"].items() if count}
    assert +sums[rank["stage"]] == expected, (sums[rank["stage"]], expected)
    for kind, count in rank["logical"].items():
        assert sums[rank["stage"], "logical"][kind] == count, (kind, count)
