"""The kernels of `select_spikes` equal the reference, at sizes and with thresholds of all forms."""

import functools
from typing import NamedTuple

import chex
import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import select_spikes
from snnjax._neuron_table import SURROGATES
from snnjax.surrogates import Surrogate
from tests.numbers import assert_close
from tests.ops.common import jit
from tests.ops.kernel_checks import needs_kernels

pytestmark = needs_kernels


class Membranes(NamedTuple):
    """The sizes of a selection; thresholds are one, one per neuron, or of the shape of the membranes."""

    rows: int
    neurons: int
    capacity: int
    threshold: str = "one"
    second: str = "one"
    dtype: str = "float32"


SELECTIONS = (
    Membranes(3, 200, 30),
    Membranes(70, 65, 5, "neurons", "rows"),
    Membranes(2, 64, 64, "rows", "neurons"),
    Membranes(600, 130, 140, "neurons"),
    Membranes(5, 200, 20, "rows", "rows", "bfloat16"),
    Membranes(1, 70000, 300, dtype="bfloat16"),  # ids are int32
    Membranes(0, 5, 3, "neurons"),
    Membranes(3, 0, 2),
    Membranes(3, 7, 0, "rows"),
)


@functools.cache
def selection_and_gradients(capacity: int, surrogate: str, implementation: str):
    def of(v, threshold, second, g):
        def function(v, threshold):
            options = {"capacity": capacity, "surrogate": surrogate, "implementation": implementation}
            spikes = select_spikes(v, threshold, second, **options)
            return spikes.values, spikes

        _, pull_back, spikes = jax.vjp(function, v, threshold, has_aux=True)
        return spikes, pull_back(g)

    return jit(of)


@pytest.mark.parametrize("sizes", SELECTIONS, ids=lambda s: "-".join(map(str, s)))
@hypothesis.given(seed=st.integers(0, 2**32 - 1), lowest=st.sampled_from([-np.inf, -0.5, 0.5]))
@hypothesis.settings(max_examples=4)
def test_selection_equals_the_reference(sizes: Membranes, seed: int, lowest: float) -> None:
    """Lists bit for bit, ties and numbers that are not finite included."""
    rng, m = np.random.default_rng(seed), sizes
    surrogate = SURROGATES[SELECTIONS.index(sizes) % len(SURROGATES)]
    shapes = {"one": (), "neurons": (m.neurons,), "rows": (m.rows, m.neurons)}
    v = np.round(rng.normal(size=shapes["rows"]) * 4) / 4
    v = np.where(rng.random(v.shape) < 0.05, rng.choice([np.nan, np.inf, -np.inf], v.shape), v)
    threshold = np.round(rng.uniform(0.2, 1.2, shapes[m.threshold]) * 4) / 4
    second = rng.uniform(-0.2, 0.2, shapes[m.second]) + lowest
    given = [jnp.asarray(a, m.dtype) for a in (v, threshold, second, rng.normal(size=(m.rows, m.capacity)))]
    (ours, ours_g), (theirs, theirs_g) = (
        selection_and_gradients(m.capacity, surrogate, implementation)(*given)
        for implementation in ("cpu", "reference")
    )
    chex.assert_trees_all_equal(ours, theirs, strict=True)
    assert_close(ours_g, theirs_g, of_largest={"float32": 1e-5, "bfloat16": 0.02}[m.dtype])


def test_smooth_spikes_are_refused() -> None:
    surrogate = Surrogate("arctan", 2.0, smooth=True)
    with pytest.raises(ValueError, match="'reference' for a smooth surrogate, got 'cpu'"):
        select_spikes(jnp.ones(1), 1.0, 0.5, capacity=1, surrogate=surrogate, implementation="cpu")
