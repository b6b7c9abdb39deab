"""What each degree of tensor parallelism computes: at equal tensor shards the same kernels, but for sums over shards of one rank and for
which shards these are."""
import re

from runs import check, execute


def kernels(dsopt, command):
    """The different kernels of a program as text, without names."""
    lines, found = execute([dsopt, *command, "-emit=dist"]).stdout.splitlines(), set()
    starts = [at for at, line in enumerate(lines) if line.startswith("  func.func private @")]
    for at in starts:
        text = " ".join(line.strip() for line in lines[at : lines.index("  }", at)])
        # Sums over shards of a rank; a shard's number among all, of the context's sixth number.
        if "graph.iterate" in text and "graph.tree_add" not in text and "starts = array<i64: 5>" not in text:
            found.add(re.sub(r"@[\w.]+", "@", text))
    return found


def check_kernels(title, dsopt, command, degrees):
    expected = kernels(dsopt, [*command, f"-tp={degrees[0]}"])
    check(expected, f"{title}: no kernels")
    for degree in degrees[1:]:
        differ = expected ^ kernels(dsopt, [*command, f"-tp={degree}"])
        check(not differ, f"{title}: at -tp={degrees[0]} and at {degree} kernels differ: {sorted(differ)[:2]}")
    return len(expected)
