"""`spike_sparse_matmul`: what reaches whom, in both implementations, whatever the numbers."""

from typing import Any

import chex
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import Synapses, _targets, spike_sparse_matmul
from snnjax._types import Signal
from tests.errors.refusals import refusals
from tests.numbers import array
from tests.ops.common import jit

NEURONS, TARGETS, SYNAPSES = 4, 5, 9
IMPLEMENTATIONS = ("reference", "cpu") if _targets.missing() is None else ("reference",)
each_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
EXTREMES = [-(2**31), -70000, -1, TARGETS, TARGETS + 1, 65536, 2**31 - 1]
# Of neurons, targets, synapses of a neuron, rows.
SIZES = [(0, 3, 0, 2), (3, 0, 0, 2), (3, 2, 2, 0), (300, 200, 40, 70)]
eighths = st.integers(-16, 16).map(lambda n: n / 8)


def value_and_gradients(implementation: str, spikes: Signal, weights: Any, synapses: Synapses, g: Any) -> Any:
    run = lambda *given: spike_sparse_matmul(*given, synapses, implementation=implementation)  # noqa: E731
    out, pull_back = jax.vjp(run, spikes, weights)
    return out, *pull_back(g)


compiled = jit(value_and_gradients, static_argnums=0)


@each_implementation
@hypothesis.given(
    spikes=hnp.arrays(np.float32, (2, NEURONS), elements=eighths | st.just(0.0)),
    counts=st.lists(st.integers(0, 3), min_size=NEURONS, max_size=NEURONS),
    targets=hnp.arrays(np.int32, SYNAPSES, elements=st.integers(0, TARGETS - 1) | st.sampled_from(EXTREMES)),
)
def test_equals_the_product_with_the_matrix(
    implementation: str, spikes: np.ndarray, counts: list[int], targets: np.ndarray
) -> None:
    """To the bit, sums being exact: synapses to the same target add up, targets out of range receive nothing."""
    synapses = Synapses(
        array(np.minimum(np.cumsum(counts), SYNAPSES), jnp.int32), jnp.asarray(targets), TARGETS
    )
    weights = jnp.arange(-4, 5, dtype=jnp.float32) / 4
    g = jnp.arange(2 * TARGETS, dtype=jnp.float32).reshape(2, TARGETS) / 2 - 2
    matrix = lambda own: synapses.to_dense(own)  # noqa: E731
    expected, pull_back = jax.vjp(lambda x, w: x @ matrix(w), jnp.asarray(spikes), weights)
    got = compiled(implementation, jnp.asarray(spikes), weights, synapses, g)
    chex.assert_trees_all_equal(got, (expected, *pull_back(g)), strict=True)


@pytest.mark.skipif(_targets.missing() is not None, reason="without the compiled kernels")
@pytest.mark.parametrize("ends", [[9, 3, 20, -5], [-7, -7, 100, 2**31 - 1], [5, 5, 5, 0]])
def test_ends_in_any_order_reach_no_other_memory(ends: list[int]) -> None:
    """Nothing is promised about the numbers, but that all of them are finite and that nobody else's are read."""
    synapses = Synapses(array(ends, jnp.int32), jnp.zeros(SYNAPSES, jnp.uint16), TARGETS)
    given = jnp.ones((2, NEURONS)), jnp.ones(SYNAPSES), synapses, jnp.ones((2, TARGETS))
    for result in compiled("cpu", *given):
        assert bool(jnp.all(jnp.abs(result) <= 2 * NEURONS * SYNAPSES))


@each_implementation
@pytest.mark.parametrize(
    "neurons, targets, fan_out, rows", [(0, 3, 0, 2), (3, 0, 0, 2), (3, 2, 2, 0), (300, 200, 40, 70)]
)
def test_any_size(implementation: str, neurons: int, targets: int, fan_out: int, rows: int) -> None:
    """Nothing at all, and enough for several threads; rounding of sums of up to 40 numbers."""
    synapses = Synapses.fixed_fan_out(jax.random.key(0), neurons, targets, fan_out)
    rng = np.random.default_rng(0)
    weights = array(rng.normal(size=synapses.num_synapses), jnp.float32)
    spikes = array(rng.random((rows, neurons)) < 0.1, jnp.float32)
    g = array(rng.normal(size=(rows, targets)), jnp.float32)
    expected, pull_back = jax.vjp(lambda x, w: x @ synapses.to_dense(w), spikes, weights)
    got = compiled(implementation, spikes, weights, synapses, g)
    chex.assert_trees_all_close(got, (expected, *pull_back(g)), rtol=1e-5, atol=1e-4)


ROWS, LISTED = jnp.zeros((2, 3)), Synapses.from_mask(np.ones((3, 2), bool))
REFUSED = {
    "spike_sparse_matmul: `weights` must have a floating-point dtype, got int32. Cast it "
    "with weights.astype(jnp.float32).": lambda: spike_sparse_matmul(ROWS, jnp.zeros(6).astype(int), LISTED),
    "spike_sparse_matmul: `weights` must have shape [synapses] = [6], got [5]. "
    "Pass one for each synapse.": lambda: spike_sparse_matmul(ROWS, jnp.zeros(6)[1:], LISTED),
    "spike_sparse_matmul: `synapses.ends` must have shape [neurons] = [4], got [3]. "
    "Make synapses of 4 neurons.": lambda: spike_sparse_matmul(jnp.zeros((2, 4)), jnp.zeros(6), LISTED),
    "spike_sparse_matmul: `synapses` must be Synapses, got bool[3, 2]. Make them with Synapses.from_mask, "
    "for instance.": lambda: spike_sparse_matmul(ROWS, jnp.zeros(6), np.ones((3, 2), bool)),
    "spike_sparse_matmul: `implementation` must be None, 'reference', 'cpu', 'gpu' or 'composed', got 'tpu'. "
    "Choose one of these.": lambda: spike_sparse_matmul(ROWS, jnp.zeros(6), LISTED, implementation="tpu"),
}
test_what_does_not_fit_is_refused = refusals(REFUSED)
