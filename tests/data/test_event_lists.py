"""Binning of raw events, and the packing of lists."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnjax.data import EventDataset, bin_events

EVENTS = st.lists(st.tuples(st.integers(-3, 24), st.integers(0, 9)), max_size=40)


def listed(lists):
    """The ids of each step as sets, which must be ascending and padded with 10."""
    rows = [row[row < 10].tolist() for row in lists.ids]
    assert all(row == sorted(set(row)) for row in rows)
    assert all((row[len(used) :] == 10).all() for row, used in zip(lists.ids, rows, strict=True))
    return [set(row) for row in rows]


@pytest.mark.filterwarnings("ignore:bin_events")
@given(EVENTS, st.integers(1, 7), st.booleans())
def test_bin_events_lists_each_id_once_a_step(events, num_steps, real):
    times, ids = np.array(events, np.int64).reshape(-1, 2).T
    lists = bin_events(times / 8 if real else times, ids, num_steps, 10, duration=20 / 8 if real else 20)
    expected = [
        {i for t, i in events if 0 <= t < 20 and t * num_steps // 20 == step} for step in range(num_steps)
    ]
    assert listed(lists) == expected
    assert lists.counts.tolist() == [len(row) for row in expected]
    assert lists.ids.dtype == np.uint16


@pytest.mark.filterwarnings("ignore:bin_events")
@given(EVENTS, st.integers(1, 4))
def test_bin_events_overflow_is_counted(events, capacity):
    times, ids = np.array(events, np.int64).reshape(-1, 2).T
    full = bin_events(times, ids, 3, 10, duration=25)
    capped = bin_events(times, ids, 3, 10, duration=25, capacity=capacity)
    assert capped.ids.shape == (3, capacity)
    assert np.array_equal(capped.counts, full.counts)
    for row, all_ids in zip(listed(capped), listed(full), strict=True):
        assert row <= all_ids
        assert len(row) == min(capacity, len(all_ids))


def test_bin_events_overflow_favours_no_id():
    # Every id happens in each of 400 steps, a fourth of them are listed.
    times, ids = (grid.ravel() for grid in np.meshgrid(np.arange(400), np.arange(40)))
    lists = bin_events(times, ids, 400, 40, capacity=10, duration=400)
    share = np.bincount(lists.ids.ravel(), minlength=40) / 400
    # Five standard deviations of a mean of 400 draws with probability 1/4.
    assert np.abs(share - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 400)


def test_bin_events_overflow_does_not_depend_on_order():
    random = np.random.default_rng(0)
    ids = random.permutation(100)
    lists = [bin_events(np.zeros(100), chosen, 1, 100, capacity=7, duration=1) for chosen in (ids, ids[::-1])]
    assert np.array_equal(*(each.ids for each in lists))


def test_overflow_of_a_recording_does_not_depend_on_those_before_it():
    random = np.random.default_rng(0)
    recordings = [(random.integers(0, 3, 60), random.integers(0, 40, 60)) for _ in range(5)]
    both = EventDataset.from_events(
        recordings, np.zeros(5, int), 3, 40, duration=3, num_classes=1, capacity=7
    )
    alone = [bin_events(*each, 3, 40, duration=3, capacity=7) for each in recordings]
    np.testing.assert_array_equal(both.ids, np.stack([each.ids for each in alone]))
    assert np.all(both.counts > 7)


def test_bin_events_without_duration_spans_all_events():
    assert bin_events([0, 5, 10], [0, 1, 2], 2, 3).ids.tolist() == [[0, 3], [1, 2]]
    assert bin_events([0.0, 4.9, 10.0], [0, 1, 2], 2, 3).ids.tolist() == [[0, 1], [2, 3]]
    assert bin_events([0, 0], [1, 2], 3, 3).counts.tolist() == [2, 0, 0]


@given(EVENTS, st.integers(1, 7), st.integers(-(2**60), 2**60))
def test_bin_events_without_duration_does_not_depend_on_where_times_count_from(events, num_steps, start):
    times, ids = np.array(events, np.int64).reshape(-1, 2).T
    lists = bin_events(times, ids, num_steps, 10)
    assert set().union(*listed(lists)) == set(ids.tolist())  # no event is lost
    assert np.array_equal(bin_events(times + start, ids, num_steps, 10).ids, lists.ids)


def test_bin_events_without_duration_spans_the_whole_range_of_integers():
    limits = np.iinfo(np.int64)
    assert bin_events([limits.min, 0, limits.max], [0, 1, 2], 2, 3).ids.tolist() == [[0, 3], [1, 2]]


# How programs make the times of steps. Each may be half a unit in the last place off, or one and a half.
TIMES = {
    "divided": lambda steps, rate, dtype: steps / dtype(rate),
    "multiplied": lambda steps, rate, dtype: steps * dtype(1 / rate),
    "cast": lambda steps, rate, dtype: (steps.astype(np.float64) / rate).astype(dtype),
}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("made", TIMES)
@given(st.integers(1, 3000), st.sampled_from([1.0, 3.0, 10.0, 22050.0]), st.integers(1, 4))
def test_bin_events_on_the_borders_of_steps(made, dtype, num_steps, rate, each):
    # Units in the last place that are much shorter than a step, and no step below the least normal number.
    num_steps, rate = (min(num_steps, 200), min(rate, 10.0)) if dtype == np.float16 else (num_steps, rate)
    steps = np.arange(0, num_steps * each, each, dtype=np.int32)
    times = TIMES[made](steps.astype(dtype), rate, dtype)
    lists = bin_events(times, np.zeros(num_steps, int), num_steps, 1, duration=num_steps * each / rate)
    # The last step's beginning is a whole step before the end.
    assert (lists.counts.tolist(), lists.outside) == ([1] * num_steps, 0)
    # Without a duration, from the first to the last border, which is in the last step, wherever times count from.
    centred = TIMES[made]((steps - steps[num_steps // 2]).astype(dtype), rate, dtype)
    for own in (times, centred):
        lists = bin_events(own, np.zeros(num_steps, int), max(1, num_steps - 1), 1)
        assert lists.counts.tolist() == [1] * max(1, num_steps - 1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bin_events_between_the_borders_of_steps(dtype):
    # Two units in the last place, and in float64 two of the product as well, which may be twice as large.
    borders = np.arange(1, 20).astype(dtype)
    lists = bin_events(borders - 8 * np.spacing(borders), np.zeros(19, int), 20, 1, duration=20.0)
    assert lists.counts.tolist() == [1] * 19 + [0]
    lists = bin_events(borders + np.spacing(borders), np.zeros(19, int), 20, 1, duration=20.0)
    assert lists.counts.tolist() == [0] + [1] * 19


@pytest.mark.filterwarnings("ignore:bin_events")
def test_bin_events_keeps_what_is_just_before_the_end():
    for dtype in (np.float16, np.float32, np.float64):
        last = np.nextafter(dtype(1), dtype(0))
        lists = bin_events(np.array([last, 1], dtype), [0, 1], 10, 2, duration=1.0)
        assert (lists.ids[-1].tolist(), lists.outside) == ([0], 1)


def test_bin_events_in_steps_shorter_than_a_unit_moves_no_event_by_more_than_half_a_step():
    times = np.arange(1024, 2048).astype(np.float16)  # one apart
    lists = bin_events(times, np.zeros(1024, int), 20480, 1, duration=2048)
    assert np.flatnonzero(lists.counts).tolist() == [10 * int(time) for time in times]


ONE_STEP = {
    "seconds for microseconds": (
        np.linspace(0, 1.2, 1228),
        1.2e6,
        0,
        "Pass the duration in the unit of times",
    ),
    "a stray event": (
        np.r_[np.linspace(0, 1, 200), 1e6],
        None,
        0,
        "Pass the duration, or remove events far from all others",
    ),
    "one step of a few": (np.full(1000, 0.5), 1.0, None, 9),
    "few events": (np.full(99, 0.5), 1.0, None, 100),
    "nearly all": (np.r_[np.full(990, 0.5), np.zeros(10)], 1.0, None, 100),
}


@pytest.mark.parametrize("case", sorted(ONE_STEP))
def test_bin_events_warns_where_one_step_holds_nearly_all(case):
    times, duration, step, rest = ONE_STEP[case]
    num_steps = 100 if isinstance(rest, str) else rest
    ids = np.arange(times.size)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bin_events(times, ids, num_steps, times.size, duration=duration)
    share = "100" if duration else "99.5"
    text = f"bin_events: {share} % of the events are in step {step} of {num_steps}. {rest}."
    assert [str(each.message) for each in caught] == ([text] if isinstance(rest, str) else [])


def test_bin_events_of_stamps_of_a_clock_without_duration():
    # Seconds since 1970 in float64 have a resolution of 2^-22.
    times = 1.7e9 + np.arange(1001) / 1000
    assert bin_events(times, np.zeros(1001, int), 1000, 1).counts.tolist() == [1] * 1000


@pytest.mark.parametrize("outside, warns", [(5, False), (6, True), (100, True)])
def test_bin_events_counts_and_warns_of_events_outside(outside, warns):
    times = np.where(np.arange(100) < outside, [-0.5, 1.0] * 50, 0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lists = bin_events(times, np.arange(100), 2, 100, duration=1.0)
    assert (lists.outside, lists.counts.sum()) == (outside, 100 - outside)
    text = (
        f"bin_events: {outside} % of the events are outside [0, 1.0) and left out. Count times from the start of the "
        "recording, in the unit of duration, or pass a longer one."
    )
    assert [str(each.message) for each in caught] == [text] * warns
    assert bin_events(times, np.arange(100), 2, 100).outside == 0


def test_bin_events_of_nothing_are_empty():
    lists = bin_events([], [], 3, 70_000)
    assert lists.ids.tolist() == [[70_000]] * 3
    assert lists.ids.dtype == np.int32


def test_bin_events_takes_any_number_type():
    for dtype in (np.uint8, np.int32, np.uint64, np.float16, np.float32):
        assert bin_events(
            np.array([0, 3], dtype), np.array([1, 0], np.uint16), 2, 2, duration=4
        ).ids.tolist() == [
            [1],
            [0],
        ]


def test_bin_events_of_large_times_does_not_wrap():
    # The product with the number of steps would not fit into 64 bits.
    lists = bin_events([0, 2**61, 2**62 - 1], [0, 1, 2], 4, 3, duration=2**62)
    assert lists.ids[:, 0].tolist() == [0, 3, 1, 2]


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (
            ([0], [0, 1], 1, 2),
            {},
            "`ids` must have one id for each time, got shape [2] for times of shape [1]. "
            "Pass two arrays [events].",
        ),
        (([np.nan], [0], 1, 2), {}, "`times` must be finite, got NaN or infinity. Remove such events."),
        ((["a"], [0], 1, 2), {}, "`times` must hold numbers, got str32. Cast them to integers or floats."),
        (([0], [0.5], 1, 2), {}, "`ids` must hold integers, got float64. Cast it with ids.astype(int)."),
        (([0], [2], 1, 2), {}, "`ids` must be between 0 and 1, got 2. Pass a larger num_neurons."),
        (
            ([[0], [0, 1]], [0], 1, 2),
            {},
            "`times` must be one array, got a list of several lengths. Bin one sample at a time.",
        ),
        (([0], [-1], 1, 2), {}, "`ids` must be between 0 and 1, got -1. Number the neurons from 0."),
        (
            ([0], [0], 0, 2),
            {},
            "`num_steps` must be an integer of at least 1, got 0. Pass 1 or more.",
        ),
        (
            ([0], [0], 1, 0),
            {},
            "`num_neurons` must be an integer of at least 1, got 0. Pass 1 or more.",
        ),
        (
            ([0], [0], 1, 2),
            {"capacity": 0},
            "`capacity` must be an integer of at least 1, got 0. Pass 1 or more.",
        ),
        (
            ([0], [0], 1, 2),
            {"duration": 0.0},
            "`duration` must be a positive number, got 0.0. Pass it in the unit of times.",
        ),
        (
            (np.array([2**63], np.uint64), [0], 1, 2),
            {},
            "`times` must be below 2**63, got 9223372036854775808. Count them from the start of the recording.",
        ),
        (
            ([0], [0], 1, 2),
            {"duration": "0.5"},
            "`duration` must be a positive number, got '0.5'. Pass it in the unit of times.",
        ),
        (
            ([0], [0], 1, 2),
            {"duration": np.ones(2)},
            "`duration` must be a positive number, got float64[2]. Pass it in the unit of times.",
        ),
        (
            ([0], [0], 1, 2),
            {"duration": np.inf},
            "`duration` must be a positive number, got inf. Pass it in the unit of times.",
        ),
    ],
)
def test_bin_events_refuses(arguments, options, message):
    with pytest.raises(ValueError) as caught:
        bin_events(*arguments, **options)
    assert str(caught.value) == f"bin_events: {message}"
