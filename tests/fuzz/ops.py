"""The ops themselves on hostile numbers: ids that name no neuron, lengths that are none, infinities and NaNs."""

import functools
from collections import Counter
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np

from snnjax import SparseSpikes, lif_step, select_spikes, spike_matmul
from tests.fuzz import values
from tests.ops.common import jit, with_gradient
from tests.ops.random_networks import Form, arguments, random_form, runner


def strategy(num_networks: int) -> st.SearchStrategy[Any]:
    """The number of a network, a seed for its arrays, what is spoilt with which kind of numbers."""
    return st.tuples(
        st.integers(0, num_networks - 1), st.integers(0, 2**32 - 1), st.integers(0, 5), st.sampled_from(values.KINDS)
    )


@functools.cache
def _form(number: int) -> Form:
    form = random_form(np.random.default_rng(number))
    return form._replace(lengths=True, capacity=(2**31 - 1, *form.capacity[1:]) if number % 4 == 3 and not form.record_spikes else form.capacity)


@functools.cache
def _compiled(form: Form, implementation: str) -> Any:
    return jit(runner(form, implementation))


@functools.cache
def _gradient(form: Form) -> Any:
    return jit(with_gradient(runner(form, "cpu")))


def check(example: Any, counted: Counter[str]) -> None:
    number, seed, place, kind = example
    form, rng = _form(number), np.random.default_rng(seed)
    given = list(arguments(form, rng))
    given[place] = jax.tree.map(functools.partial(spoil, rng, kind), given[place])
    ours = _compiled(form, "cpu")(*given)
    theirs = _compiled(form, "reference")(*given)
    counted["calls of ops"] += 1
    same = [np.allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), equal_nan=True, rtol=1e-5, atol=1e-5) for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)]
    if not all(same): counted["unequal", number, form.reset, place, kind] += 1
    jax.block_until_ready(_gradient(form)(*given))


def spoil(rng: np.random.Generator, kind: str, leaf: Any) -> Any:
    """Some entries of an array replaced by those of a kind."""
    if rng.random() < 0.5:
        return leaf
    return jnp.where(rng.random(leaf.shape) < 0.3, values.array(rng, kind, leaf.shape, leaf.dtype), leaf)
