"""The sample of a table holds what it says, and little more."""

import itertools

import hypothesis
import hypothesis.strategies as st
import pytest

from tests.project import sampling
from tests.project.sampling import covering, each_meeting, sampled


def by_place(row: tuple[object, ...]) -> dict[str, object]:
    return {str(place): value for place, value in enumerate(row)}


def pairs(rows):
    """Every two values that meet in a row, by their places."""
    places = itertools.combinations(range(len(rows[0])), 2)
    return {(i, row[i], j, row[j]) for i, j in places for row in rows}


@hypothesis.given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1))
def test_every_two_values_that_meet_in_a_row_meet_in_the_sample(rows):
    chosen = covering(rows, by_place)
    assert pairs(chosen) == pairs(rows)
    places = iter(rows)
    assert all(row in places for row in chosen)  # in their order


def test_a_product_of_three_is_sampled_by_about_its_two_longest_axes():
    rows = list(itertools.product(range(7), range(4), range(3)))
    assert 28 <= len(covering(rows, by_place)) <= 34


def test_a_product_of_two_is_all_of_it():
    rows = list(itertools.product(range(5), range(3)))
    assert covering(rows, by_place) == rows


def test_values_of_different_views_need_not_meet():
    rows = list(itertools.product(range(3), range(3)))
    chosen = covering(rows, lambda row: {"first": row[0]}, lambda row: {"second": row[1]})
    assert len(chosen) == 3
    assert {first for first, _ in chosen} == {second for _, second in chosen} == {0, 1, 2}


def test_nothing_is_a_sample_of_nothing():
    assert covering([], by_place) == []


@pytest.mark.parametrize("is_all, number", [(True, 8), (False, 4)])
def test_the_environment_chooses_between_the_sample_and_all(monkeypatch, is_all, number):
    monkeypatch.setattr(sampling, "ALL", is_all)
    rows = list(itertools.product(range(2), repeat=3))
    assert len(sampled(rows, by_place)) == number
    mark = each_meeting(first="ab", second=[[], {}], third=(None, 1)).mark
    assert mark.args[0] == ["first", "second", "third"]
    assert len(mark.args[1]) == number
    assert all(first in "ab" and second in ([], {}) for first, second, _ in mark.args[1])
