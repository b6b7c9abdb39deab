"""What is wrong with a tensor-parallel module is refused or changes the hash: a sum that is dropped, doubled, over other ranks or of something
else; a shard of a parameter that is another's, or whose runs lie elsewhere; a bucket that is no longer told apart between tensor ranks; a shard
that looks for labels and words elsewhere.

usage: tensor_mutations.py DSOPT [COUNT [SEED]]
"""
import re
import sys
import tempfile

from mutations import Module, campaign, is_doubled, is_drop, is_of_another_value, runs, substituted

dsopt = sys.argv[1]
count, seed = int(sys.argv[2]) if len(sys.argv) > 2 else 12, int(sys.argv[3]) if len(sys.argv) > 3 else 1
MODULES = [("gpt2-tiny", "-tp=2 -dp=2 -zero=3"), ("bert-tiny", "-tp=2"), ("gpt2-tiny", "-tp=4 -recompute=full"), ("resnet-tiny", "-tp=2 -dp=2 -zero=1")]
SUM = re.compile(r"^ +(%\S+) = dist\.all_reduce (%\S+) over \[tp\] : (\S+)$")

KINDS = [
    ("dropped", SUM, is_drop(SUM)), ("doubled", SUM, is_doubled(SUM)), ("other ranks", SUM, substituted(r"over \[tp\]", "over [edp]")),
    ("other value", SUM, is_of_another_value(SUM)),
    ("the first rank's shard", r"graph\.runs<", runs(lambda length, stride, step: (length, stride, 0))),
    ("other runs", r"graph\.runs<", runs(lambda length, stride, step: (length // 2, stride // 2, step // 2))),
    # The number of the micro-batch instead of the place along tp.
    ("elsewhere", r"starts = array<i64: 5>", substituted("starts = array<i64: 5>", "starts = array<i64: 3>")),
    ("a bucket of all", r" distinct over \[tp\]", substituted(r" distinct over \[tp\]", "")),
]

with tempfile.TemporaryDirectory() as folder:
    campaign([Module(dsopt, *one, folder) for one in MODULES], KINDS, count, seed, allowed=0.1)
