"""The products of spikes with weights, alike: each is that with a matrix, whatever the form of the spikes."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import SparseSpikes, Synapses, _targets, spike_conv, spike_matmul, spike_sparse_matmul
from tests.numbers import array
from tests.ops.common import jit
from tests.project.sampling import each_meeting

IMPLEMENTATIONS = (None, "reference", "composed", *(["cpu"] if _targets.missing() is None else []))
ROWS, SLOTS, NEURONS = 2, 4, 8
EXTREMES = [-(2**31), -NEURONS, -1, NEURONS, NEURONS + 1, 2**31 - 1]
SYNAPSES = Synapses.from_mask(np.arange(NEURONS * 3).reshape(NEURONS, 3) % 4 != 1)
eighths = st.integers(-16, 16).map(lambda n: n / 8)
ids_of_lists = hnp.arrays(
    np.int32, (ROWS, SLOTS), elements=st.integers(0, NEURONS - 1) | st.sampled_from(EXTREMES)
)
values_of_lists = hnp.arrays(np.float32, (ROWS, SLOTS), elements=eighths | st.just(0.0))


class Product(NamedTuple):
    """One of the ops, for so many neurons."""

    run: Callable[..., Any]  # (spikes, weights)
    shape: tuple[int, ...]  # of the weights

    @property
    def places(self) -> np.ndarray:
        """Which weight, from 1 on, each entry of the matrix is; 0 for none."""
        numbers = jnp.asarray(1 + np.arange(np.prod(self.shape)), jnp.float32).reshape(self.shape)
        return np.asarray(self.run(jnp.eye(NEURONS), numbers)).astype(int)

    def matrix(self, weights: Any) -> Any:
        """The weights as a matrix."""
        return jnp.concatenate([jnp.zeros(1), weights.reshape(-1)])[self.places]


PRODUCTS = {
    "spike_matmul": Product(spike_matmul, (NEURONS, 3)),
    "spike_sparse_matmul": Product(
        functools.partial(spike_sparse_matmul, synapses=SYNAPSES), (SYNAPSES.num_synapses,)
    ),
    "spike_conv": Product(functools.partial(spike_conv, shape=(2, 2, 2)), (2, 1, 2, 3)),
}
each_product = pytest.mark.parametrize("op", PRODUCTS)
each_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)


def lists(ids: Any, values: Any) -> SparseSpikes:
    count = jnp.zeros(np.shape(ids)[:-1], jnp.int32)
    return SparseSpikes(jnp.asarray(ids), jnp.asarray(values), count, count, count, NEURONS)


def weights_of(product: Product) -> jax.Array:
    return array(np.arange(np.prod(product.shape)) % 7 / 2 - 1.5, jnp.float32).reshape(product.shape)


@functools.cache
def value_and_gradients(op: str, form: str, implementation: str | None) -> Any:
    """Compiled: of spikes in this form."""

    def of(ids: Any, sent: Any, weights: Any, g: Any) -> Any:
        def run(sent: Any, weights: Any) -> Any:
            spikes = lists(ids, sent) if form == "lists" else sent
            return PRODUCTS[op].run(spikes, weights, implementation=implementation)

        out, pull_back = jax.vjp(run, sent, weights)
        return out, *pull_back(g)

    return jit(of)


@functools.cache
def of_matrix(op: str) -> Any:
    def of(rows: Any, weights: Any, g: Any) -> Any:
        out, pull_back = jax.vjp(lambda x, w: x @ PRODUCTS[op].matrix(w), rows, weights)
        return out, *pull_back(g)

    return of


@each_product
@each_implementation
@hypothesis.given(ids=ids_of_lists, values=values_of_lists)
@hypothesis.settings(max_examples=10)
def test_value_and_gradients_are_those_of_the_matrix(
    op: str, implementation: str | None, ids: np.ndarray, values: np.ndarray
) -> None:
    """To the bit, sums being exact: duplicates add, ids out of range do nothing, an entry of 0 has a gradient."""
    weights, rows = weights_of(PRODUCTS[op]), np.zeros((ROWS, NEURONS), np.float32)
    used = (ids >= 0) & (ids < NEURONS)
    np.add.at(rows, (np.nonzero(used)[0], ids[used]), values[used])
    outputs = PRODUCTS[op].places.shape[1]
    g = np.arange(ROWS * outputs, dtype=np.float32).reshape(ROWS, outputs) / 2 - 2
    out, g_rows, g_weights = of_matrix(op)(jnp.asarray(rows), weights, g)
    g_values = np.where(used, np.take_along_axis(np.asarray(g_rows), np.where(used, ids, 0), 1), 0)
    for form, sent, g_sent in (("lists", values, g_values), ("rows", rows, g_rows)):
        got = value_and_gradients(op, form, implementation)(ids, sent, weights, g)
        chex.assert_trees_all_equal(got, (out, g_sent, g_weights), strict=True)


@each_meeting(op=PRODUCTS, implementation=IMPLEMENTATIONS, hole=[np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_reach_their_spikes_alone(
    op: str, implementation: str | None, hole: float
) -> None:
    """Entries of value 0, zeros of a padding and unused slots are not multiplied by them."""
    product = PRODUCTS[op]
    weights = weights_of(product).reshape(-1).at[1].set(hole).reshape(product.shape)
    rows = jnp.eye(NEURONS)
    ids = np.stack([np.arange(NEURONS), np.arange(NEURONS)[::-1], np.full(NEURONS, -1)], axis=1).astype(
        np.int32
    )
    values = np.tile(np.float32([1, 0, 1]), (NEURONS, 1))
    for spikes in (rows, lists(ids, values)):
        out = product.run(spikes, weights, implementation=implementation)
        np.testing.assert_array_equal(out, product.matrix(weights))


@each_product
def test_leading_axes_are_kept(op: str) -> None:
    product, rows = PRODUCTS[op], jnp.eye(NEURONS)[:6].reshape(3, 1, 2, NEURONS)
    weights = weights_of(product)
    expected = product.matrix(weights)[:6].reshape(3, 1, 2, -1)
    for spikes in (rows, SparseSpikes.from_dense(rows, 2)):
        chex.assert_trees_all_equal(product.run(spikes, weights), expected, strict=True)
        np.testing.assert_array_equal(product.run(spikes[1, 0, 1], weights), expected[1, 0, 1])
        assert product.run(spikes[:0], weights).shape == (0, *expected.shape[1:])


@each_product
@pytest.mark.skipif(_targets.missing() is not None, reason="without the compiled kernels")
def test_float64_weights_are_refused(op: str) -> None:
    product = PRODUCTS[op]
    with jax.enable_x64(True), pytest.raises(ValueError) as refused:
        product.run(jnp.ones((1, NEURONS)), jnp.ones(product.shape, jnp.float64), implementation="cpu")
    expected = f"{op}: `implementation` must be None or 'reference' for float64 weights, got 'cpu'."
    assert str(refused.value) == f"{expected} Leave it None for an automatic choice."
