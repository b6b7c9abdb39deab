"""What is wrong with a sequence-parallel module is refused or changes the hash: what ranks exchange dropped, doubled, of another value, over
other ranks, in another order; gradients that are scaled or counted on every rank; positions of the local row, labels one off at a shard's edge,
masks and dropout of another shard, means over a shard's rows.

usage: sequence_mutations.py DSOPT [COUNT [SEED]]
"""
import re
import sys
import tempfile

from grouped_model import LENGTH, grouped
from mutations import KERNEL, VALUE, Module, begin_of_function, campaign, end_of_function, function_named, is_doubled, is_drop, is_of_another_value, replaced, runs, substituted, uses_renamed

dsopt = sys.argv[1]
count, seed = int(sys.argv[2]) if len(sys.argv) > 2 else 12, int(sys.argv[3]) if len(sys.argv) > 3 else 1
MODULES = [
    ("gpt2-tiny", "-sp=2 -sp-method=ulysses -tp=2"), ("gpt2-tiny", "-sp=4 -sp-method=ring"), ("gpt2-tiny", "-sp=2 -sp-method=ring -dp=2 -zero=3"), ("gpt2-tiny", "-sp=4 -sp-method=ulysses -zero=3"),
    ("bert-tiny", "-sp=2 -sp-method=ring -tp=2"), ("bert-tiny", "-sp=4 -sp-method=ulysses"), ("bert-tiny", "-sp=2 -sp-method=ulysses -dp=2 -zero=3"), ("bert-tiny", "-sp=4 -sp-method=ring -zero=3"),
    # Without a rule that hides how large gradients are.
    ("grouped", "-sp=2 -sp-method=ring -tp=2 -zero=3 -optimizer=sgd"), ("grouped", "-sp=2 -sp-method=ulysses -dp=2 -zero=3 -optimizer=sgd"), ("grouped", "-sp=4 -sp-method=ulysses -optimizer=sgd"),
    ("gpt2-tiny", "-sp=4 -sp-method=ulysses*2 -zero=3"), ("bert-tiny", "-sp=4 -sp-method=ulysses*2"), ("grouped", "-sp=4 -sp-method=ulysses*2 -optimizer=sgd"),
    ("dropped", "-sp=4 -optimizer=sgd"), ("long", "-sp=2 -sp-method=ulysses -optimizer=sgd"),
]


# The axis, or neighbours that exchange heads and the ring of these.
OVER = r"over \[sp(?: (?:inner|outer) \d+)?\]"


def exchange(*names):
    return re.compile(rf"^ +(%\S+) = dist\.(?:{'|'.join(names)}) (%\S+) {OVER} : (\S+)(?: to (\S+))?$")


SUM, SWAP, HOP, BOTH, GATHER, SCATTER = (exchange(*names) for names in (["all_reduce"], ["all_to_all"], ["shift"], ["all_reduce", "all_to_all"], ["all_gather"], ["reduce_scatter"]))
ALL = exchange("all_reduce", "all_to_all", "shift", "all_gather", "reduce_scatter")
ADDED = re.compile(rf"^ +graph\.accumulate (@\S+), ({VALUE}) : (\S+)$")


def ranks_of(lines):
    return int(re.search(r"sp = (\d+)", next(line for line in lines if "dist.grid" in line))[1])


def rows_of(type):
    shape = [int(size) for size in re.findall(r"\d+(?=x)", type)]
    return shape, type.rsplit("x", 1)[1].rstrip(">")


def typed(shape, element):
    return f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"


def sliced(value, shape, element, begin, size, into):
    zeros, ones = [0] * (len(shape) - 1), [1] * len(shape)
    sizes, starts, steps = (", ".join(map(str, one)) for one in ([size, *shape[1:]], [begin, *zeros], ones))
    attributes = f"{{sizes = array<i64: {sizes}>, starts = array<i64: {starts}>, steps = array<i64: {steps}>}}"
    return f"    {into} = graph.slice {value} {attributes} : ({typed(shape, element)}) -> {typed([size, *shape[1:]], element)}"


def with_kernel(lines, argument, result, body):
    """The module with one kernel more: the last value that its body makes is %made."""
    at = next(at for at, line in enumerate(lines) if line.startswith("  func"))
    head = f"  func.func private @mutant(%arg0: {argument}) -> {result} attributes {{graph.iterate = #graph.iteration<rows>, graph.range = array<i64>}} {{"
    return [*lines[:at], head, *body, f"    return %made : {result}", "  }", *lines[at:]]


def call(into, value, argument, result):
    return f"    {into} = graph.kernel @mutant({value}) : ({argument}) -> {result}"


def scaled(type, factor):
    element = rows_of(type)[1] if "x" in type else re.search(r"\w+(?=>)", type)[0]
    return [f"    %by = graph.constant dense<{factor:e}> : tensor<{element}>", f"    %made = graph.mul %arg0, %by : ({type}, tensor<{element}>) -> {type}"]


def result_scaled(pattern, factor):
    """What is exchanged counts so many times."""

    def change(lines, at):
        found = pattern.match(lines[at])
        type = found[4] or found[3]
        lines = uses_renamed(lines, at + 1, found[1], "%scaled")
        return with_kernel(replaced(lines, at, lines[at], call("%scaled", found[1], type, type)), type, type, scaled(type, factor))

    return change


def gradient_scaled(factor):
    def change(lines, at):
        name, value, type = ADDED.match(lines[at]).groups()
        added = f"    graph.accumulate {name}, %scaled : {type}"
        return with_kernel(replaced(lines, at, call("%scaled", value, type, type), added), type, type, scaled(type, factor))

    return change


def other_gradient(lines, at):
    """Another parameter's of the same type is added."""
    name, value, type = ADDED.match(lines[at]).groups()
    for line in lines[begin_of_function(lines, at) : end_of_function(lines, at)]:
        found = ADDED.match(line)
        if found and found[3] == type and found[2] != value:
            return replaced(lines, at, f"    graph.accumulate {name}, {found[2]} : {type}")
    return None


def own_rows_alone(lines, at):
    """A rank's rows stand for those of all; of a sum that is scattered it has its own piece of the first ones."""
    result, operand, before, behind = ALL.match(lines[at]).groups()
    (many, element), few = rows_of(before), rows_of(behind)[0]
    if many[0] < few[0]:
        names = ", ".join(["%arg0"] * (few[0] // many[0]))
        types = ", ".join([before] * (few[0] // many[0]))
        body = [f"    %made = graph.concat {names} {{axis = 0 : i64}} : ({types}) -> {behind}"]
    else:
        body = [sliced("%arg0", many, element, 0, few[0], "%made")]
    return with_kernel(replaced(lines, at, call(result, operand, before, behind)), before, behind, body)


def turned(type, own):
    """Rows of a value, those of the first rank behind all others."""
    shape, element = rows_of(type)
    rest = typed([shape[0] - own, *shape[1:]], element)
    return [sliced("%arg0", shape, element, own, shape[0] - own, "%behind"), sliced("%arg0", shape, element, 0, own, "%first"),
            f"    %made = graph.concat %behind, %first {{axis = 0 : i64}} : ({rest}, {typed([own, *shape[1:]], element)}) -> {type}"]


def other_order(lines, at):
    """Every rank takes what is the next one's."""
    result, operand, before, behind = ALL.match(lines[at]).groups()
    behind = behind or before
    own = max(rows_of(before)[0][0], rows_of(behind)[0][0]) // ranks_of(lines)
    if "all_gather" in lines[at]:
        lines = uses_renamed(lines, at + 1, result, "%turned")
        return with_kernel(replaced(lines, at, lines[at], call("%turned", result, behind, behind)), behind, behind, turned(behind, own))
    lines = replaced(lines, at, call("%turned", operand, before, before), lines[at].replace(operand + " over", "%turned over"))
    return with_kernel(lines, before, before, turned(before, own))


def swapped(lines, at):
    """Who exchanges heads are a ring, and the other way round."""
    return replaced(lines, at, re.sub("inner|outer", lambda part: "outer" if part[0] == "inner" else "inner", lines[at]))


def summed_before(lines, at):
    """What is added and scattered was added before: each row counts once for each rank."""
    _, operand, before, _ = SCATTER.match(lines[at]).groups()
    return replaced(lines, at, f"    %summed = dist.all_reduce {operand} over [sp] : {before}", lines[at].replace(operand + " over", "%summed over"))


MEETING = re.compile(rf"^ +({VALUE}), ({VALUE}) = graph\.attention_part (?:{VALUE}, )+({VALUE}), ({VALUE}) \{{.*operandSegmentSizes = array<i32: 1, 1, 1, [01], 1, 1>.* partial")


def without_meeting(lines, at):
    """What rows have read before is handed on as if it were with the columns of one more shard."""
    result, lse, before, lse_before = MEETING.match(lines[at]).groups()
    return uses_renamed(uses_renamed(replaced(lines, at), at, result, before), at, lse, lse_before)


def local_rows(lines, at):
    """One reader of places takes a shard's first ones: of all places, that of the rank is left out."""
    call = KERNEL.match(lines[at])
    if ALIKE in lines[at]:
        return None
    for line in lines[begin_of_function(lines, at) : at]:
        places = re.match(r"^ +(%\S+) = graph\.kernel @\w+\(%\w+, (%\S+)\) : \(tensor<1xi32>, (tensor<\d+xi32>)\) -> \3$", line)
        if places and re.search(re.escape(places[1]) + r"\b", call[3]):
            return replaced(lines, at, re.sub(re.escape(places[1]) + r"(?=[,)])", places[2], lines[at], count=1))
    return None


def one_off(lines, at):
    """The places in a shard, each the next one's; of a mask's columns, which may be alike inside of one, those of the next shard."""
    value, listed = re.search(r"(%\S+) = .*dense<\[([\d, ]+)\]>", lines[at]).groups()
    numbers, own = listed.split(", "), lines[at + 1 : end_of_function(lines, at)]
    others = [*numbers[1:], numbers[0]]
    for line in own:
        reader = re.match(rf"^ +({VALUE})(?::\d+)? = graph\.kernel @\w+\((.*?{re.escape(value)}\b.*?)\) : ", line)
        if not reader:
            continue
        place = reader[2].split(", ").index(value) - 1
        made = re.compile(re.escape(reader[1]) + (rf"#{place}" if "#" not in reader[1] and f"{reader[1]}:" in line else "") + r"[,)]")
        read = [line for line in own if made.search(line)]
        if any(ALIKE in line for line in read):
            return None
        if any("tensor<2x1x" in line for line in read):
            others = [str(int(one) + len(numbers)) for one in numbers]
    return replaced(lines, at, lines[at].replace(", ".join(numbers), ", ".join(others)))


def counted_here(lines, at):
    """The labels of a shard are counted, and not those of all."""
    found = KERNEL.match(lines[at])
    names, types = found[3].split(", "), re.findall(r"tensor<[^>]*>", found[4])
    begin, end = function_named(lines, found[2])
    if types[0].count("x") != 1 or not types[0].endswith("xi64>") or not any("graph.reduce_sum" in line for line in lines[begin:end]):
        return None
    for place in range(begin_of_function(lines, at), end_of_function(lines, at)):
        own = KERNEL.match(lines[place])
        if own and own[3].split(", ")[0] == names[0] and re.fullmatch(r"tensor<\d+xi64>", own[5]) and own[5] != types[0]:
            break
    else:
        return None
    here = lines[at].replace("@" + found[2], "@mutant").replace(f"({names[0]}", f"({own[1]}").replace(types[0], own[5])
    body = [line.replace("@" + found[2], "@mutant").replace(types[0][:-4], own[5][:-4]) for line in lines[begin:end]]
    lines = [*lines[:at], *lines[at + 1 : place + 1], here, *lines[place + 1 :]] if place > at else replaced(lines, at, here)
    first = next(at for at, line in enumerate(lines) if line.startswith("  func"))
    return [*lines[:first], *body, *lines[first:]]


WHERE = re.compile(rf"graph\.where ({VALUE}), ({VALUE}), ({VALUE}) : \((\S+), (\S+), (\S+)\) -> ")


def either_way(lines, at):
    """What one rank alone counts is counted by all."""
    condition, first, _, *types = WHERE.search(lines[at]).groups()
    return replaced(lines, at, WHERE.sub(f"graph.where {condition}, {first}, {first} : ({types[0]}, {types[1]}, {types[1]}) -> ", lines[at]))


def the_other_way(lines, at):
    """All but the one rank that should count it do; of two it is the other one, which is as good."""
    if ranks_of(lines) == 2:
        return None
    condition, first, second, *types = WHERE.search(lines[at]).groups()
    return replaced(lines, at, WHERE.sub(f"graph.where {condition}, {second}, {first} : ({types[0]}, {types[2]}, {types[1]}) -> ", lines[at]))


GATE = r"graph\.where .* : \(tensor<(?:1x)+i1>, \S+f32>, "
# All rows of BERT's mask are alike: those of another shard are the same.
ALIKE = "tensor<2x1x32x32x"
ROWS = rf"graph\.slice .*starts = array<i64: 0, 0, [1-9]\d*, 0>(?!.*{ALIKE})"
PART = r"graph\.attention_part.*\bcausal"
WHOLE = re.escape(f"dense<{LENGTH:e}> : tensor<f32>")
JOINED = re.compile(rf"graph\.concat ({VALUE}), ({VALUE})((?:, {VALUE})*)(?= )")
ADDENDS = re.compile(rf"graph\.tree_add ({VALUE}), {VALUE}((?:, {VALUE})*)(?= )")
KINDS = [
    ("not exchanged", BOTH, is_drop(BOTH)), ("summed twice", SUM, is_doubled(SUM)), ("exchanged twice", SWAP, is_doubled(SWAP)), ("a hop too few", HOP, is_drop(HOP)), ("a hop too many", HOP, is_doubled(HOP)), ("summed before", SCATTER, summed_before),
    ("own rows for all", GATHER, own_rows_alone), ("the first rows, not summed", SCATTER, own_rows_alone), ("another rank's rows", exchange("all_gather", "all_to_all", "reduce_scatter"), other_order),
    ("over tp", ALL, substituted(OVER, "over [tp]")), ("over a group for a ring", r"over \[sp (?:inner|outer)", swapped), ("over all of a sequence", r"over \[sp (?:inner|outer)", substituted(OVER, "over [sp]")),
    ("over data-parallel ranks", ALL, substituted(OVER, "over [edp]")), ("another value", ALL, is_of_another_value(ALL)),
    ("exchanged, half", ALL, result_scaled(ALL, 0.5)), ("a gradient by 1/2", ADDED, gradient_scaled(0.5)), ("a gradient by 1/4", ADDED, gradient_scaled(0.25)), ("a gradient twice", ADDED, gradient_scaled(2)),
    ("another's gradient", ADDED, other_gradient), ("a gradient left out", ADDED, replaced),
    ("places of tp", r"starts = array<i64: 6>", substituted("starts = array<i64: 6>", "starts = array<i64: 5>")), ("places of the micro-batch", r"starts = array<i64: 6>", substituted("starts = array<i64: 6>", "starts = array<i64: 3>")),
    # Rows that meet the columns of their own shard do so alike in each.
    ("all of the first shard", rf"{PART}.* distance = [1-9].* group = [1-9]", substituted(r"group = \d+", "group = 8")), ("rows of another group", rf"{PART}.* distance = [1-9].* group = [1-9]", substituted(r"group = (\d+)", lambda group: f"group = {int(group[1]) * 2 % 3}")),
    ("entries of one shard", rf"{PART}.* distance = [1-9].* entries = [2-9]", substituted(r"entries = \d+", "entries = 1")),
    # Where rows meet columns of other shards, the edge is not among them.
    ("one position further", rf"{PART}.* distance = 0", substituted(r"\bbegin = (\d+)", lambda begin: f"begin = {int(begin[1]) + 1}")),
    ("another shard's columns", PART, substituted(r"distance = (\d+)", lambda distance: f"distance = {int(distance[1]) ^ 1}")), ("a meeting left out", MEETING, without_meeting),
    ("places without the rank", r"graph\.mul %arg0, %0 : \(tensor<1xi32>, tensor<i32>\)", substituted(r"graph\.mul .*", "graph.sub %arg0, %arg0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>")),
    ("local rows", r"graph\.kernel .*xi32>.*\) ->", local_rows), ("rows one off", r"^    %\S+ = graph\.constant dense<\[[\d, ]+\]> : tensor<\d+xi32>", one_off),
    ("labels of the same position", r"starts = array<i64: 0, 1>", substituted("starts = array<i64: 0, 1>", "starts = array<i64: 0, 0>")),
    ("labels behind the next", r"highs = array<i64: 0, 1>, lows = array<i64: 0, 0>", substituted("highs = array<i64: 0, 1>, lows = array<i64: 0, 0>", "highs = array<i64: 0, 0>, lows = array<i64: 0, 1>")),
    ("rows of the first shard", ROWS, substituted(r"starts = array<i64: 0, 0, \d+, 0>", "starts = array<i64: 0, 0, 0, 0>")),
    ("one shard's dropout", r"time_runs = ", runs(lambda length, stride, step: (length, stride, 0))), ("dropout of the local rows", r"time_runs = ", runs(lambda length, stride, step: (length, length, step))),
    ("own labels counted", r"graph\.kernel .*\(tensor<\d+xi64>, tensor<f32>\) ->", counted_here), ("a mean of own rows", WHOLE, substituted(WHOLE, f"dense<{LENGTH // 2:e}> : tensor<f32>")),
    ("counted by all", GATE, either_way), ("counted by the others", GATE, the_other_way),
    ("shards in another order", JOINED, substituted(JOINED, r"graph.concat \2, \1\3")), ("the first shard again", JOINED, substituted(JOINED, r"graph.concat \1, \1\3")),
    ("the first piece twice", ADDENDS, substituted(ADDENDS, r"graph.tree_add \1, \1\2")),
    ("a bucket without sp", r"dist\.bucket .*over \[edp, ep, sp\]", substituted(r"over \[edp, ep, sp\]", "over [edp, ep]")), ("a sum without sp", r"dist\.reduce .*over \[edp, ep, sp\]", substituted(r"over \[edp, ep, sp\]", "over [edp, ep]")),
    # Where sequences are long, sums of a gradient are cut by how many heads there are in all.
    ("sums as of many heads", r"attention_part_grad.* pairs = .*x256x", substituted(r"\bpairs = \d+", "pairs = 64")),
    ("another grid", r"dist\.grid", substituted(r"edp = (\d+), ep = 1, sp = (\d+)", r"edp = \2, ep = 1, sp = \1")),
]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        files = {"grouped": grouped(folder), "dropped": grouped(folder, shares=True)}
        files["long"] = grouped(folder, few=4, layers=1, dropout=0, classes=False, rows=1, length=512)
        campaign([Module(dsopt, *one, folder, files.get(one[0])) for one in MODULES], KINDS, count, seed, allowed=0)
