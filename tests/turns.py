"""Which cases of a test that has many `make test` runs: some, and others on another day."""

import itertools
import math

#: Of as many neighbours one is taken, and as many turns have them all.
NEIGHBOURS = 5


def items_of_turn(items, turn):
    """The tests of a turn, in the order in which they are: of one with many cases, some of these."""
    cases_of = {}
    for item in items:
        cases_of.setdefault(item.nodeid.partition("[")[0], []).append(item)
    taken = {case.nodeid for cases in cases_of.values() for case in cases_of_turn(cases, turn)}
    return [item for item in items if item.nodeid in taken]


def cases_of_turn(cases, turn):
    """One of `NEIGHBOURS` neighbours at most; as many turns have all.

    Each block of neighbours gives the case of another place, so that where dtypes, say, come round again and again, a
    turn does not have all sizes of one dtype.
    """
    count = math.ceil(len(cases) / NEIGHBOURS)
    borders = [block * len(cases) // count for block in range(count + 1)]
    blocks = [cases[start:end] for start, end in itertools.pairwise(borders)]
    return [block[(turn + place) % len(block)] for place, block in enumerate(blocks)]
