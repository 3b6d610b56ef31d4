"""Sums of bfloat16 and float16 are computed in float32 and rounded once, in the reference as in the kernels.

All numbers have few digits, so every sum is exact in float32, and a result is that of float32, rounded. Lists name
neurons so often that their sums have more digits than bfloat16.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import (
    Connection,
    LayerState,
    LIFLayer,
    LIFNetworkState,
    SparseSpikes,
    _targets,
    lif_network,
    pool_spikes,
    spike_conv,
    spike_matmul,
)
from snnjax._types import Signal
from snnjax.ops.pool_spikes import Pooling
from tests.numbers import array, dyadic
from tests.ops.common import jit

HAS_KERNELS = _targets.missing() is None
PIXELS = (5, 6, 2)


class Sum(NamedTuple):
    """An op, and random arrays for it: ids, and floats in which it is differentiated."""

    function: Callable[..., Any]  # (implementation, ids, *floats)
    shapes: tuple[tuple[int, ...], ...]  # of the ids and of the floats
    named: int  # neurons in the lists
    neurons: int
    has_kernel: bool = True

    def arrays(self, rng: np.random.Generator) -> tuple[jax.Array, ...]:
        """The ids, of a few neurons and of none, and the floats."""
        ids = rng.choice([*range(self.named), -1, self.neurons], self.shapes[0])
        return array(ids, jnp.int32), *(dyadic(rng, 0, 127, *shape) for shape in self.shapes[1:])


def lists_of(ids: jax.Array, values: jax.Array, neurons: int) -> SparseSpikes:
    counts = jnp.zeros(ids.shape[:-1], jnp.int32)
    return SparseSpikes(ids, values, counts, counts, 0 * counts, neurons)


def dense(_: str, ids: jax.Array, values: jax.Array) -> jax.Array:
    return lists_of(ids, values, 6).to_dense()


def multiply(by: str, ids: jax.Array, values: jax.Array, weights: jax.Array) -> jax.Array:
    return spike_matmul(lists_of(ids, values, weights.shape[0]), weights, implementation=by)


def convolve(by: str, ids: jax.Array, values: jax.Array, weights: jax.Array) -> jax.Array:
    spikes = lists_of(ids, values, int(np.prod(PIXELS)))
    return spike_conv(spikes, weights, shape=PIXELS, implementation=by)


def means(_: str, ids: jax.Array, rows: jax.Array):
    return pool_spikes(rows, 4, shape=(8, 8, 1), how="mean")


SUMS = {
    "dense form of lists": Sum(dense, ((3, 90), (3, 90)), 2, 6, has_kernel=False),
    "product of a few lists": Sum(multiply, ((2, 45), (2, 45), (900, 70)), 1, 900),
    "product of many lists": Sum(multiply, ((9, 90), (9, 90), (12, 70)), 2, 12),
    "convolution of lists": Sum(convolve, ((3, 90), (3, 90), (3, 3, 2, 9)), 3, 60),
    "means of windows": Sum(means, ((0, 1), (3, 64)), 1, 64, has_kernel=False),
}
EACH = [
    (name, dtype, by)
    for name, case in SUMS.items()
    for dtype in ("bfloat16", "float16")
    for by in ("reference", "composed", "cpu")
    if by != "cpu" or (case.has_kernel and HAS_KERNELS and dtype == "bfloat16")
]


@functools.cache
def with_cotangents(name: str, by: str) -> Callable[..., tuple[jax.Array, ...]]:
    """From a cotangent, ids and floats to the result and the cotangents of the floats."""

    def run(cotangent: jax.Array, ids: jax.Array, *floats: jax.Array) -> tuple[jax.Array, ...]:
        value, pull_back = jax.vjp(functools.partial(SUMS[name].function, by, ids), *floats)
        return value, *pull_back(cotangent)

    return jit(run)


@pytest.mark.parametrize("name, dtype, by", EACH, ids=lambda part: part)
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=5)  # each of dozens of sums
def test_sums_and_their_gradients_are_those_of_float32_rounded_once(
    name: str, dtype: str, by: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ids, *floats = SUMS[name].arrays(rng)
    shape = jax.eval_shape(functools.partial(SUMS[name].function, "reference"), ids, *floats).shape
    given = [dyadic(rng, -8, 8, *shape), *floats]
    exact = with_cotangents(name, "reference")(given[0], ids, *floats)
    cotangent, *floats = (each.astype(dtype) for each in given)
    ours = with_cotangents(name, by)(cotangent, ids, *floats)
    assert [each.dtype for each in ours] == [jnp.dtype(dtype)] * len(ours)
    chex.assert_trees_all_equal(ours, tuple(each.astype(dtype) for each in exact), strict=True)


class Net(NamedTuple):
    """A network of one layer: its inputs are added up in lists, in delays of a fraction of a step, and in windows."""

    lists: bool
    connection: Connection

    @property
    def num_inputs(self) -> int:
        return self.connection.num_inputs((4, 9))

    def run(self, by: str, inputs: Signal, layer: LIFLayer, pending):
        state = None
        if pending is not None:
            state = LIFNetworkState((LayerState(jnp.zeros((3, 9)), None, None, pending),), None)
        inputs = lists_of(inputs[0], inputs[1], self.num_inputs) if self.lists else inputs
        out, last = lif_network(inputs, [layer], state=state, record_spikes=True, implementation=by)
        return out.output, out.activity, last.layers[0].v, last.layers[0].pending

    def arrays(self, rng: np.random.Generator, dtype: str) -> tuple[Any, ...]:
        """Inputs, a layer and the spikes under way, the same in every dtype."""
        most, inputs = self.connection.max_delay, dyadic(rng, 0, 127, 5, 3, self.num_inputs).astype(dtype)
        if self.lists:
            ids = array(rng.integers(-1, 3, (5, 3, 90)), jnp.int32)
            inputs = ids, dyadic(rng, 0, 127, *ids.shape).astype(dtype)
        layer = LIFLayer(
            dyadic(rng, -31, 31, 4, 9).astype(dtype),
            decay=0.5,
            threshold=4.0,
            gain=1.0,
            connection=self.connection,
            delays=None
            if most is None
            else array(rng.integers(0, 8 * most, self.num_inputs) / 8, jnp.float32),
        )
        if most is None:
            return inputs, layer, None
        return inputs, layer, dyadic(rng, 0, 127, most + 1, 3, self.num_inputs).astype(dtype)


WINDOWS = Pooling((4, 4, 1), (2, 2), (2, 2), "mean", ((0, 0), (0, 0)))
NETS = {
    "lists": Net(True, Connection()),
    "means": Net(False, Connection(pooling=WINDOWS)),
    "delays": Net(False, Connection(max_delay=3)),
    "delays and means of lists": Net(True, Connection(pooling=WINDOWS, max_delay=3)),
}


@functools.cache
def network_of(name: str, by: str):
    return jit(functools.partial(NETS[name].run, by))


@pytest.mark.parametrize("by", ["reference", "composed", *(["cpu"] if HAS_KERNELS else [])])
@pytest.mark.parametrize("name", NETS)
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=5)  # each of dozens of sums
def test_a_network_in_bfloat16_is_that_of_float32_with_rounded_results(name: str, by: str, seed: int) -> None:
    """Nothing that reaches the weights is rounded after it was added up."""
    exact = network_of(name, "reference")(*NETS[name].arrays(np.random.default_rng(seed), "float32"))
    ours = network_of(name, by)(*NETS[name].arrays(np.random.default_rng(seed), "bfloat16"))
    chex.assert_trees_all_equal(
        ours, jax.tree.map(lambda full, own: full.astype(own.dtype), exact, ours), strict=True
    )
