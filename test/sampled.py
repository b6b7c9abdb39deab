"""What a test takes of a long list."""
import os
import random

#: ./dev nightly, which takes all.
NIGHTLY = os.environ.get("DSOPT_NIGHTLY") == "1"


def sampled(items, count):
    """At most `count` of the items in their order, the first among them, the others drawn always alike; all of them at night."""
    items = list(items)
    if NIGHTLY or len(items) <= count:
        return items
    drawn = random.Random(len(items)).sample(range(1, len(items)), count - 1)
    return [items[index] for index in sorted([0, *drawn])]
