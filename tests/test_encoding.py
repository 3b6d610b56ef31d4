"""Encoders: their equations, dtypes, and exact error messages."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnjax.encoding import delta_encode, latency_encode, latency_spikes, rate_encode
from tests.errors.refusals import refusals

jit_latency_encode = jax.jit(latency_encode, static_argnums=1, static_argnames="form")
jit_latency_spikes = jax.jit(latency_spikes, static_argnums=(1, 2), static_argnames="form")
jit_delta_encode = jax.jit(delta_encode, static_argnums=1)

DTYPES = (jnp.float32, jnp.bfloat16, jnp.float16)


def test_rate_encode_mean_is_value():
    values = jnp.array([[0.0, 0.1, 0.5, 1.0], [2.0, -1.0, jnp.nan, 0.01]])
    spikes = jax.jit(rate_encode, static_argnums=2)(jax.random.key(3), values, 4000)
    expected = np.array([[0.0, 0.1, 0.5, 1.0], [1.0, 0.0, 0.0, 0.01]])
    # Five standard deviations of the mean of 4000 draws, 0 where the outcome is certain.
    tolerance = 5 * np.sqrt(expected * (1 - expected) / 4000)
    assert np.all(np.abs(np.asarray(spikes).mean(0) - expected) <= tolerance)
    assert set(np.unique(spikes)) == {0.0, 1.0}


@pytest.mark.parametrize("dtype", DTYPES)
def test_encoders_keep_dtype(dtype):
    values = jnp.array([[0.25, 0.75]], dtype)
    key = jax.random.PRNGKey(0)
    assert rate_encode(key, values, 2).dtype == dtype
    assert latency_encode(values, 2).dtype == dtype
    assert delta_encode(values[None], 0.5).dtype == dtype


def test_rate_encode_keeps_small_rates_in_bfloat16():
    # Drawn in bfloat16, 2^-8 could not be told from 0 or 2^-7.
    spikes = rate_encode(jax.random.key(0), jnp.full((1, 64), 2.0**-8, jnp.bfloat16), 4096)
    # 1024 spikes expected, five standard deviations of 32.
    assert abs(int(spikes.astype(jnp.float32).sum()) - 1024) < 160


ENCODERS = {
    "rate_encode": (lambda values: rate_encode(jax.random.key(0), values, 3), "spike in every step"),
    "latency_encode": (lambda values: latency_encode(values, 3), "spike in the first step"),
    "latency_spikes": (lambda values: latency_spikes(values, 3, 2), "spike in the first step"),
}


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_pixels_up_to_255_are_warned_of(name):
    encode, effect = ENCODERS[name]
    text = (
        f"{name}: 50 % of `values` are above 1, up to 255, and {effect}. "
        "Scale them to numbers from 0 to 1, for instance pixels / 255."
    )
    with pytest.warns(RuntimeWarning, match=f"^{re.escape(text)}$"):
        encode(jnp.array([[0.0, 255.0], [jnp.nan, 18.0]]))
    encode(jnp.array([[0.0, 2.0], [jnp.nan, -300.0]]))
    jax.jit(encode)(jnp.array([[0.0, 255.0]]))


def test_rate_encode_repeats_with_key():
    values = jnp.full((2, 3), 0.5)
    first, again = (rate_encode(jax.random.key(1), values, 20) for _ in range(2))
    other = rate_encode(jax.random.key(2), values, 20)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_latency_encode_linear_by_head():
    spikes = latency_encode(jnp.array([[1.0, 0.75, 0.5, 0.0, -1.0, 2.0, jnp.nan]]), 5)
    assert spikes.shape == (5, 1, 7)
    step, neuron = np.nonzero(np.asarray(spikes)[:, 0])
    assert sorted(zip(neuron.tolist(), step.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 2), (5, 0)]


def test_latency_encode_log_is_charging_time():
    # An RC integrator v' = (value - v) / 4 from 0, stepped finely, crosses 0.2 in these steps.
    values = np.array([0.9, 0.5, 0.3, 0.22, 0.2, 0.1, 0.0])
    v, crossing = np.zeros_like(values), np.full(values.shape, -1.0)
    for tick in range(20_000):
        v += (values - v) / 4 * 0.001
        crossing = np.where((crossing < 0) & (v > 0.2), tick * 0.001, crossing)
    expected = np.where(crossing >= 0, np.floor(crossing), -1)
    spikes = latency_encode(
        jnp.asarray(values[None], jnp.float32), 20, form="log", threshold=0.2, time_constant=4.0
    )
    actual = np.where(np.asarray(spikes).any(0), np.asarray(spikes).argmax(0), -1)[0]
    assert actual.tolist() == expected.tolist()


def test_latency_encode_log_default_reaches_last_step():
    values = jnp.array([[100.0, 0.101, 0.1005]])
    spikes = latency_encode(values, 12, form="log")
    assert np.asarray(spikes).sum(0).tolist() == [[1, 1, 0]]
    assert np.asarray(spikes).argmax(0).tolist() == [[0, 11, 0]]


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=8), st.sampled_from(["linear", "log"]))
def test_latency_is_monotonic_and_spikes_at_most_once(values, form):
    ordered = sorted(values, reverse=True) + [0.0] * (8 - len(values))
    spikes = np.asarray(jit_latency_encode(np.array([ordered], np.float32), 9, form=form))[:, 0]
    assert (spikes.sum(0) <= 1).all()
    times = np.where(spikes.any(0), spikes.argmax(0), 9)
    assert (np.diff(times) >= 0).all()
    assert (times[np.asarray(ordered) == 0] == 9).all()


@given(st.lists(st.floats(-0.5, 1.5, width=16), min_size=18, max_size=18), st.sampled_from(["linear", "log"]))
def test_latency_spikes_equals_latency_encode(values, form):
    values = np.array(values, np.float32).reshape(3, 6)
    dense = jit_latency_encode(values, 4, form=form)
    spikes = jit_latency_spikes(values, 4, 6, form=form)
    assert np.array_equal(spikes.to_dense(), dense)
    assert np.array_equal(spikes.num_spikes, np.asarray(dense).sum(-1))
    assert np.array_equal(spikes.num_listed, spikes.num_spikes)
    assert (np.diff(np.asarray(spikes.ids).astype(int), axis=-1) >= 0).all()


def test_latency_spikes_overflow_lists_largest_values():
    values = jnp.array([[0.8, 0.95, 0.9, 1.0, 0.0]])
    spikes = jit_latency_spikes(values, 2, 2)
    assert np.asarray(spikes.ids).tolist() == [[[1, 3]], [[5, 5]]]
    assert np.asarray(spikes.num_spikes).tolist() == [[4], [0]]
    assert np.asarray(spikes.num_listed).tolist() == [[2], [0]]
    assert np.asarray(spikes.num_dropped).tolist() == [[2], [0]]


def test_latency_spikes_overflow_ties_are_spread():
    ids = np.asarray(jit_latency_spikes(jnp.ones((1, 1000)), 1, 100).ids)[0, 0]
    # 100 ids spread over 1000 have a mean near 500; the lowest 100 would have 50.
    assert 400 < ids.mean() < 600
    assert len(set(ids.tolist())) == 100


def test_delta_encode_by_head():
    ramp = jnp.array([0.0, 1.0, 2.5, 2.4, 0.9])
    series = jnp.stack([ramp, -2 * ramp], axis=-1)[:, None, :]
    spikes = delta_encode(series, jnp.array([1.0, 2.0]))
    # The second channel is the first mirrored and doubled, and so is its threshold.
    assert np.asarray(spikes[:, 0]).tolist() == [
        [0, 0, 0, 0],
        [1, 0, 0, 1],
        [1, 0, 0, 1],
        [0, 0, 0, 0],
        [0, 1, 1, 0],
    ]


@given(st.lists(st.integers(-40, 40), min_size=5, max_size=5))
def test_delta_encode_reference_stays_within_threshold(levels):
    series = np.array(levels, np.float32) / 8  # dyadic: sums are exact
    spikes = np.asarray(jit_delta_encode(series[:, None, None], 0.25))[:, 0]
    reference = series[0]
    for value, (on, off) in zip(series, spikes, strict=True):
        moved = np.trunc((value - reference) / 0.25)
        assert (on, off) == (moved >= 1, moved <= -1)
        reference += 0.25 * moved
        assert abs(value - reference) < 0.25


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("start", [0.0, -0.7, 3.0])
@pytest.mark.parametrize("slope", [0.1, -0.3])
def test_delta_encode_finds_every_level_of_a_ramp(dtype, start, slope):
    # As many levels as the dtype tells apart: each is at least eight units in the last place.
    steps = 200 if dtype == jnp.float32 else 40 if dtype == jnp.float16 else 4
    ramp = (start + slope * np.arange(steps)).astype(dtype)
    spikes = np.asarray(delta_encode(jnp.asarray(ramp)[:, None, None], abs(slope)))[:, 0]
    found, other = (spikes[:, 0], spikes[:, 1]) if slope > 0 else (spikes[:, 1], spikes[:, 0])
    assert found.astype(int).tolist() == [0] + [1] * (steps - 1)
    assert not other.any()


def test_delta_encode_of_values_that_stay_does_not_repeat():
    # Where the rounding of large values is longer than the threshold, a level is crossed once and not back.
    series = jnp.asarray([1000.0, *[1008.0] * 9], jnp.bfloat16)[:, None, None]  # the next number after 1000
    spikes = np.asarray(delta_encode(series, 16 / 3))
    assert spikes.sum(axis=0).tolist() == [[1, 0]]


def test_delta_encode_does_not_cross_levels_that_are_not_reached():
    spikes = delta_encode(jnp.array([0.0, 0.0999, 0.1998, 0.2997, 0.2001])[:, None, None], 0.1)
    assert np.asarray(spikes)[:, 0, 0].tolist() == [0, 0, 1, 1, 0]


def test_encoders_allow_no_steps_and_no_batch():
    assert rate_encode(jax.random.key(0), jnp.zeros((2, 3)), 0).shape == (0, 2, 3)
    assert latency_encode(jnp.zeros((0, 3)), 4).shape == (4, 0, 3)
    assert jit_latency_spikes(jnp.zeros((2, 3)), 0, 2).ids.shape == (0, 2, 2)
    assert jit_latency_spikes(jnp.zeros((2, 0)), 3, 0).ids.shape == (3, 2, 0)
    assert delta_encode(jnp.zeros((0, 2, 3)), 1.0).shape == (0, 2, 6)


def test_encoders_map_over_examples():
    values = jnp.linspace(0.0, 1.0, 12).reshape(2, 2, 3)
    mapped = jax.jit(jax.vmap(lambda x: latency_spikes(x, 4, 2)))(values)
    assert np.array_equal(mapped.ids[1], jit_latency_spikes(values[1], 4, 2).ids)
    series = jnp.linspace(0.0, 1.0, 24).reshape(2, 4, 1, 3)
    assert np.array_equal(
        jax.vmap(lambda x: delta_encode(x, 0.1))(series)[1], jit_delta_encode(series[1], 0.1)
    )


VALUES = jnp.zeros((1, 2))
SERIES = jnp.zeros((1, 1, 2))


REFUSED = {
    "rate_encode: `num_steps` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: rate_encode(
        jax.random.key(0), VALUES, -1
    ),
    "latency_encode: `form` must be 'linear' or 'log', got 'cubic'. Choose one of these.": lambda: (
        latency_encode(VALUES, 3, form="cubic")
    ),
    "latency_encode: `threshold` must be positive and finite, got 0.0. Leave it out for its default.": lambda: (
        latency_encode(VALUES, 3, threshold=0.0)
    ),
    "latency_encode: `time_constant` must be positive and finite, got -1.0. "
    "Leave it out for its default.": lambda: latency_encode(VALUES, 3, time_constant=-1.0),
    "latency_encode: `threshold` must be None with the form 'linear', got 0.5. "
    'Pass form="log", or set small values to 0.': lambda: latency_encode(VALUES, 3, threshold=0.5),
    "latency_spikes: `time_constant` must be None with the form 'linear', got 2.0. "
    'Pass form="log", or set small values to 0.': lambda: latency_spikes(VALUES, 3, 2, time_constant=2.0),
    "delta_encode: `series` must be finite, got NaN or infinity in step 0. Fill what is missing: "
    "a channel would be silent from there on.": lambda: delta_encode(SERIES.at[0, 0, 1].set(jnp.nan), 1.0),
    "latency_spikes: `capacity` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: (
        latency_spikes(VALUES, 3, -1)
    ),
    "latency_encode: `time_constant` must be positive and finite, got inf. "
    "Leave it out for its default.": lambda: latency_encode(
        VALUES, 3, form="log", time_constant=float("inf")
    ),
    "delta_encode: `threshold` must be positive and finite, got 0. Pass one in the unit of the series.": lambda: (
        delta_encode(SERIES, jnp.array([1.0, 0.0]))
    ),
    "delta_encode: `threshold` must be positive and finite, got inf. "  # no level would ever be crossed
    "Pass one in the unit of the series.": lambda: delta_encode(SERIES, float("inf")),
    "delta_encode: `threshold` must be a number or have shape [channels] = [2], got shape [3]. "
    "Pass one, or one for each channel.": lambda: delta_encode(SERIES, jnp.ones(3)),
}
test_encoders_refuse = refusals(REFUSED)


REFUSED_ARRAYS = {
    "rate_encode: `values` must have shape [batch, inputs], got [2]. Flatten the inputs, "
    "for instance values.reshape(batch, -1).": lambda: rate_encode(jax.random.key(0), jnp.zeros(2), 1),
    "latency_encode: `values` must have a floating-point dtype, got int32. "
    "Cast it with values.astype(jnp.float32).": lambda: latency_encode(jnp.zeros((1, 2), jnp.int32), 1),
    "delta_encode: `series` must have shape [time, batch, channels], got [1, 2]. "
    "Pass series with time first, for instance series.swapaxes(0, 1).": lambda: delta_encode(VALUES, 1.0),
}
test_encoders_refuse_wrong_arrays = refusals(REFUSED_ARRAYS)
