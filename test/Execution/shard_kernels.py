"""What each degree of tensor parallelism computes: at equal tensor shards the same kernels, but for sums over shards of one rank and for
which shards these are."""
import hashlib
import re

from runs import check, execute

ARGUMENT = re.compile(r"(%arg\d+): ([^,)]+(?:<[^>]*>)?)")
OPERATION = re.compile(r"^(%\S+) = (.*)$")
VALUE = re.compile(r"%[\w#]+")


def kernels(dsopt, command):
    """The different kernels of a program: what their results are made of, whatever the order it is written in; and one text of each."""
    lines, found = execute([dsopt, *command, "-emit=dist"]).stdout.splitlines(), {}
    for at in [at for at, line in enumerate(lines) if line.startswith("  func.func private @")]:
        header, *body = " ".join(line.strip() for line in lines[at : lines.index("  }", at)]).split(" attributes {", 1)
        if not body or "graph.iterate" not in body[0]:
            continue
        # Which elements of the whole value dropout is of.
        text = re.sub(r"begin = \d+ : i64, |(?<= every )(\d+) step \d+", r"\1", re.sub(r"@[\w.]+", "@", body[0]))
        # A statement begins with its value, or is the last one.
        statements = re.split(r" (?=%\d+(?::\d+)? = |return )", text)
        # Sums over shards of a rank; a shard's number among all, of the context's sixth number.
        if "graph.tree_add" in body[0] or "starts = array<i64: 5>" in body[0]:
            continue
        # What only moves: where the row shards of a rank lie among its rows, and its rows among all.
        moves = [re.search(r" = graph\.(slice|slice_grad|concat|gather|cast) |^return ", statement) for statement in statements[1:]]
        if all(moves) and any(move[1] in ("slice", "slice_grad", "concat", "gather") for move in moves):
            continue
        made = {name: kind for name, kind in ARGUMENT.findall(header)}
        results = ""
        for statement in statements[1:]:
            operation = OPERATION.match(statement)
            made_of = VALUE.sub(lambda value: made.get(value[0], value[0]), operation[2] if operation else statement)
            digest = hashlib.sha256(made_of.encode()).hexdigest()
            if operation:
                made[operation[1]] = digest
            else:
                results = " ".join(sorted(re.findall(r"\b[0-9a-f]{64}\b", made_of)))
        found[statements[0] + results] = header + " ".join(statements)
    return found


def check_kernels(title, dsopt, command, degrees):
    expected = kernels(dsopt, [*command, f"-tp={degrees[0]}"])
    check(expected, f"{title}: no kernels")
    for degree in degrees[1:]:
        own = kernels(dsopt, [*command, f"-tp={degree}"])
        differ = sorted((own | expected)[key] for key in own.keys() ^ expected.keys())
        check(not differ, f"{title}: at -tp={degrees[0]} and at {degree} kernels differ: {differ[:2]}")
    return len(expected)
