"""`pool_spikes`: windows in an image, of arrays and of lists."""

import dataclasses
import itertools
import re
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, pool_spikes
from snnjax._types import Signal
from tests.numbers import array, assert_close, dyadic
from tests.project.sampling import Values, sampled

# (shape, window, strides, padding): side by side, left over at the edges, overlapping, gaps, one dimension, padded.
WINDOWS = (
    ((6, 4, 3), 2, None, 0),
    ((7, 5, 2), (3, 2), None, 0),
    ((9, 2), 4, None, 0),
    ((7, 6, 2), 3, 2, 0),
    ((5, 6, 1), (2, 3), (3, 1), 0),
    ((8, 2), 3, 1, 0),
    ((5, 5, 1), (1, 5), 4, 0),
    ((6, 6, 2), 3, 2, 1),
    ((5, 4, 2), 2, None, ((1, 0), (0, 1))),
    ((7, 1), 3, 2, ((2, 1),)),
    ((4, 5, 1), (5, 3), 1, (2, 0)),
)
each_window = pytest.mark.parametrize("shape, window, strides, padding", WINDOWS)
JOINS = {"sum": jnp.add, "mean": jnp.add, "max": jnp.maximum}


def by_slices(rows, shape, window, strides, how, padding=0):
    """The definition in plain JAX: every place of a window in turn, for all windows at once."""
    axes = len(shape) - 1
    sides = padding if isinstance(padding, tuple) else (padding,) * axes
    pairs = [side if isinstance(side, tuple) else (side, side) for side in sides]
    window = window if isinstance(window, tuple) else (window,) * axes
    strides = window if strides is None else strides if isinstance(strides, tuple) else (strides,) * axes
    image, found = rows.reshape(-1, *shape), None
    nothing = -jnp.inf if how == "max" else 0
    image = jnp.pad(image, [(0, 0), *pairs, (0, 0)], constant_values=nothing)
    for place in itertools.product(*map(range, window)):
        ends = [
            length - size + k + 1 for length, size, k in zip(image.shape[1:], window, place, strict=False)
        ]
        part = image[:, *map(slice, place, ends, strides), :]
        found = part if found is None else JOINS[how](found, part)
    found = found / np.prod(window).astype(rows.dtype) if how == "mean" else found
    return found.reshape(*rows.shape[:-1], -1)


def distinct(rng: np.random.Generator, *shape: int) -> Any:
    """Numbers without ties, which plain JAX divides a gradient among."""
    return array(rng.permutation(int(np.prod(shape))).reshape(shape) / 8 - 2, jnp.float32)


def test_sum_of_windows_drops_what_is_left_over():
    image = jnp.arange(15.0)  # 3 x 5 pixels of one channel
    assert pool_spikes(image, 2, shape=(3, 5, 1)).tolist() == [0 + 1 + 5 + 6, 2 + 3 + 7 + 8]


def test_mean_of_windows_along_one_axis_keeps_channels_apart():
    sound = jnp.array([1.0, 10.0, 3.0, 30.0])  # two steps of two channels
    assert pool_spikes(sound, 2, shape=(2, 2), how="mean").tolist() == [2.0, 20.0]


def test_lists_stay_lists_whose_entries_name_windows():
    spikes = SparseSpikes.from_ids(jnp.array([[0, 6, 4, 15]]), num_neurons=15)
    pooled = pool_spikes(spikes, 2, shape=(3, 5, 1))
    assert pooled.ids.tolist() == [[0, 0, 2, 2]]  # one window twice; left over, and no neuron at all: none
    assert pooled.num_neurons == 2 and pooled.num_spikes.tolist() == [3]
    assert pooled.num_listed.tolist() == [2]
    assert pool_spikes(spikes, 2, shape=(3, 5, 1), how="max").ids.tolist() == [[0, 2, 2, 2]]  # a window once


def test_an_entry_counts_in_each_of_its_windows():
    spikes = SparseSpikes.from_ids(jnp.array([[2, 0, 5]]), num_neurons=5)
    pooled = pool_spikes(spikes, 3, shape=(5, 1), strides=1)  # windows that begin at 0, 1 and 2
    assert pooled.ids.tolist() == [[2, 1, 0, 0, 3, 3, 3, 3, 3]]
    assert pooled.num_listed.tolist() == [4] and pooled.to_dense().tolist() == [[2, 1, 1]]


def kind_of(case: tuple[Any, ...]) -> Values:
    shape, window, strides, padding, how = case
    widest = max(np.ravel(window))
    step = "window" if strides is None else "less" if min(np.ravel(strides)) < widest else "more"
    return {"axes": len(shape), "step": step, "padding": padding != 0, "how": how}


@pytest.mark.parametrize(
    "shape, window, strides, padding, how",
    sampled(
        [(*window, how) for window in WINDOWS for how in ("mean", "max")],
        kind_of,
        lambda case: {"window": case[:-1]},
    ),
)
def test_arrays_and_lists_equal_the_definition_with_their_gradients(
    shape, window, strides, padding, how: str
):
    """Lists of values of both signs, zeros, ids twice and ids out of range; gradients of numbers without ties."""
    rng, size = np.random.default_rng(0), int(np.prod(shape))
    ids = array(rng.integers(-2, size + 2, (2, 25)), jnp.int32)
    listed = jax.jit(SparseSpikes.from_ids, static_argnums=1)(ids, size)
    spikes = dataclasses.replace(listed, values=dyadic(rng, -2, 2, *ids.shape))
    rows = distinct(rng, 2, size)
    full = jax.jit(SparseSpikes.from_ids, static_argnums=1)(array([range(size)] * 2, jnp.int32), size)

    def pool(spikes: Signal) -> Any:
        return pool_spikes(spikes, window, shape=shape, strides=strides, how=how, padding=padding)

    def defined(rows: Any) -> Any:
        return by_slices(rows, shape, window, strides, how, padding)

    def listed(values: Any) -> Any:
        return pool(dataclasses.replace(full, values=values)).to_dense()

    @jax.jit
    def compute(rows: Any, spikes: Signal, g: Any) -> Any:
        each = [jax.vjp(function, rows) for function in (defined, pool, listed)]
        lists = pool(spikes)
        pairs = lists.to_dense(), defined(spikes.to_dense()), (lists.num_spikes, spikes.num_spikes)
        return [(out, pull_back(g)) for out, pull_back in each], pairs

    g = dyadic(rng, -8, 8, *jax.eval_shape(defined, rows).shape)
    (expected, *ours), (lists, dense, counts) = compute(rows, spikes, g)
    for own in ours:
        assert_close(
            own, expected, of_largest=1e-6
        )  # sums of multiples of 2^-5 are exact, but means divide by 6
    assert_close(lists, dense, of_largest=1e-6)
    chex.assert_trees_all_equal(*counts)


def test_the_first_of_equal_entries_is_the_maximum():
    @jax.jit
    @jax.grad
    def gradient(values: Any, ids: Any) -> Any:
        spikes = dataclasses.replace(SparseSpikes.from_ids(ids, 4), values=values)
        return pool_spikes(spikes, 2, shape=(2, 2, 1), how="max").to_dense().sum()

    def of(values: list[float], ids: list[int]) -> list[float]:
        return gradient(jnp.array(values), jnp.array(ids)).tolist()

    assert of([1.0, 1.0, 0.0], [2, 1, 0]) == [0, 1, 0]
    assert of([0.0, 0.0, 5.0], [3, 2, 4]) == [0, 1, 0]  # no spike: a listed neuron that is near to one
    assert of([-1.0, -1.0, 5.0], [3, 2, 4]) == [0, 0, 0]  # the neurons that are not listed are larger
    assert of([1.0, 0.0, 1.0], [3, 0, 1]) == [0, 0, 1]
    image = jnp.array([0.0, 1.0, 1.0, 0.0])
    largest = jax.grad(lambda image: pool_spikes(image, 2, shape=(2, 2, 1), how="max").sum())
    assert largest(image).tolist() == [0, 1, 0, 0] and largest(0 * image).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint8, jnp.bool_, jnp.bfloat16])
def test_dtypes_are_kept(dtype: Any):
    image = jnp.array([0, 1, 1, 0, 0, 0], dtype)
    assert pool_spikes(image, 2, shape=(6, 1), strides=1, how="max").tolist() == [1, 1, 1, 0, 0]
    assert pool_spikes(image, 3, shape=(6, 1), strides=3, how="max").dtype == dtype


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint8, jnp.int16, jnp.bool_, jnp.int32, jnp.uint32])
@pytest.mark.parametrize("strides", [None, 1])
def test_sums_of_small_integers_do_not_overflow(dtype: Any, strides: int | None):
    """As those of `jnp.sum`: 256 spikes of int8 would be 0, and of bool one."""
    found = pool_spikes(jnp.ones((2, 272), dtype), 16, shape=(17, 16, 1), strides=strides)
    assert found.tolist() == [[256] if strides is None else [256, 256]] * 2
    assert found.dtype == (dtype if dtype == jnp.uint32 else jnp.int32)


def test_pools_behind_one_another_are_one():
    image = array(np.random.default_rng(1).integers(0, 5, 11 * 13 * 2), jnp.float32)
    twice = pool_spikes(pool_spikes(image, 2, shape=(11, 13, 2)), (2, 3), shape=(5, 6, 2))
    chex.assert_trees_all_equal(twice, pool_spikes(image, (4, 6), shape=(11, 13, 2)), strict=True)


def test_the_gradient_reaches_every_pixel_of_a_window():
    gradient = jax.grad(lambda image: jnp.sum(pool_spikes(image, 2, shape=(3, 3, 1), how="mean")))(
        jnp.ones(9)
    )
    assert gradient.tolist() == [0.25, 0.25, 0, 0.25, 0.25, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "options, text",
    [
        ({"how": "largest"}, "`how` must be 'sum', 'mean' or 'max', got 'largest'. Choose one of these."),
        (
            {"strides": (1, 2, 3)},
            "`strides` must be an integer or a tuple of a height and a width, got (1, 2, 3). "
            "Pass one length per axis, or one for all.",
        ),
        ({"strides": 0}, "`strides` must be an integer of at least 1, got 0. Pass 1 or more."),
    ],
)
def test_what_is_no_pool_is_refused(options: Any, text: str):
    with pytest.raises(ValueError, match=f"^{re.escape(f'pool_spikes: {text}')}$"):
        pool_spikes(jnp.zeros(16), 2, shape=(4, 4, 1), **options)
