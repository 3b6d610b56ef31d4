"""A sample of many cases in which every two of their values meet: what `make test` runs in place of all of them.

A fault is that of one value, as a rule, or of two that meet. Cases in which no two values meet for the first time
mostly repeat what others have tried: `SNNJAX_TESTS=all` runs them too, as `make test-all` does every night.
"""

import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import pytest

Row = TypeVar("Row")
Values = Mapping[str, Hashable]
ALL = os.environ.get("SNNJAX_TESTS") == "all"


def _meetings(values: Values) -> Iterable[frozenset[tuple[str, Hashable]]]:
    """Every value by its name, and every two of them."""
    return map(frozenset, itertools.combinations_with_replacement(values.items(), 2))


def covering(rows: Sequence[Row], *views: Callable[[Row], Values]) -> list[Row]:
    """Some of the rows, in their order: every two values of a view that meet in any row meet in one of these.

    The choice is greedy: each next row is the first of those with the most meetings that are still missing; what later
    ones have made superfluous is left out again.
    """
    meetings = [
        {(number, each) for number, view in enumerate(views) for each in _meetings(view(row))} for row in rows
    ]
    missing: set[object] = set().union(*meetings)
    chosen: list[int] = []
    while missing:
        chosen.append(max(range(len(rows)), key=lambda place: len(meetings[place] & missing)))
        missing -= meetings[chosen[-1]]
    for place in tuple(chosen):
        others = set().union(*(meetings[other] for other in chosen if other != place))
        if meetings[place] <= others:
            chosen.remove(place)
    return [rows[place] for place in sorted(chosen)]


def sampled(rows: Sequence[Row], *views: Callable[[Row], Values]) -> Sequence[Row]:
    """The rows that `covering` chooses, or all of them where all tests are to run."""
    return rows if ALL else covering(rows, *views)


def each_meeting(**axes: Iterable[object]) -> pytest.MarkDecorator:
    """Runs a test for a sample of the product of its arguments, or for the product where all tests are to run."""
    values = [list(axis) for axis in axes.values()]
    places = sampled(
        list(itertools.product(*(range(len(axis)) for axis in values))),
        lambda row: dict(zip(axes, row, strict=True)),
    )
    rows = [tuple(axis[place] for axis, place in zip(values, row, strict=True)) for row in places]
    return pytest.mark.parametrize(list(axes), rows)
