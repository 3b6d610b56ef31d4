"""Every op composes with JAX: one trace under jit, vmap and scan equal loops, checkpoint changes nothing."""

import functools
import itertools
from collections import Counter

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.cases import BATCH, CASES, Case
from tests.ops.common import (
    compiled,
    draws,
    each_case,
    equations,
    float_leaves,
    jit,
    pick,
    stack,
    weighted_sum,
    with_gradient,
)
from tests.project.sampling import sampled

# Sums of gradients run in another order: a few ulp of float32 on entries of order 1 to 10.
TOLERANCE = {"rtol": 2e-6, "atol": 2e-6}
# vmap over one argument alone, and over all together: each op so, and in each implementation.
MAPPED = sampled(
    [
        (case, mapped)
        for case in CASES
        for mapped in (None, *range(len(case.batch_axes)))
        if len(case.batch_axes) > 1 or mapped is None
    ],
    lambda row: {"op": row[0].name, "mapped": row[1], "implementation": row[0].implementation},
)

# Ops that are plain JAX, without a target.
PLAIN = ("spike", "pool_spikes")


def primitives(jaxpr) -> Counter[str]:
    """How often each primitive occurs in a jaxpr and all within it."""
    return Counter(equation.primitive.name for equation in equations(jaxpr))


def name_of(argument: Case | int | None) -> str:
    return argument.id if isinstance(argument, Case) else "all" if argument is None else str(argument)


def in_axes(case: Case, mapped: int | None) -> tuple[int | None, ...]:
    return tuple(0 if mapped in (None, place) else None for place in range(len(case.batch_axes)))


@each_case
def test_jit_traces_once_for_new_values(case: Case) -> None:
    chex.clear_trace_counter()
    traced = jit(chex.assert_max_traces(with_gradient(case.function), n=1))
    for arguments in draws(case, 3):
        traced.trace(*arguments)
    results = [jax.tree.leaves(compiled(case)(*arguments)) for arguments in draws(case, 2)]
    assert any(np.any(a != b) for a, b in zip(*results, strict=True))


def assert_same_values_and_gradients(actual, expected) -> None:
    """Values bit for bit (their sums are exact), gradients up to the order of sums."""
    chex.assert_trees_all_equal(actual[0], expected[0], strict=True)
    chex.assert_trees_all_close(actual[1], expected[1], **TOLERANCE, strict=True)


def kept(traced) -> dict[str, int]:
    """The calls of own targets and the loops in a jaxpr."""
    counts = primitives(traced.jaxpr.jaxpr)
    return {name: n for name, n in counts.items() if name.startswith("snnjax_") or name in ("scan", "while")}


def loops(lowered) -> int:
    """The loops in what it is lowered to."""
    return lowered.as_text().count("stablehlo.while")


@functools.cache
def without_vmap(case: Case) -> tuple[dict[str, int], int]:
    traced = jit(with_gradient(case.function)).trace(*draws(case, 1)[0])
    return kept(traced), loops(traced.lower())


@pytest.mark.parametrize("case, mapped", MAPPED, ids=name_of)
def test_vmap_equals_a_loop_and_adds_none(case: Case, mapped: int | None) -> None:
    """Values and gradients, from as many calls of each target as without `vmap`."""
    sets, axes = draws(case, 3), in_axes(case, mapped)
    each = [tuple(s[i] if axis == 0 else sets[0][i] for i, axis in enumerate(axes)) for s in sets]
    stacked = [stack([e[i] for e in each]) if axis == 0 else each[0][i] for i, axis in enumerate(axes)]
    traced = jit(jax.vmap(with_gradient(case.function), axes)).trace(*stacked)
    lowered = traced.lower()
    calls = kept(traced)
    assert (calls, loops(lowered)) == without_vmap(case)
    assert not {"scan", "while"} & calls.keys()
    assert bool(calls) == (case.name not in PLAIN)
    results = lowered.compile()(*stacked)
    for index, arguments in enumerate(each):
        assert_same_values_and_gradients(pick(results, index), compiled(case)(*arguments))


@each_case
def test_vmap_over_the_batched_arguments_folds_into_the_batch(case: Case) -> None:
    """One call of the target on one group whose batch is the product: shared arguments are not copied."""
    arguments = draws(case, 1)[0]
    axes = tuple(None if axis is None else 0 for axis in case.batch_axes)
    stacked = tuple(a if axis is None else stack([a, a]) for a, axis in zip(arguments, axes, strict=True))
    jaxpr = jax.make_jaxpr(jax.vmap(case.function, axes))(*stacked).jaxpr
    calls = [e for e in equations(jaxpr) if e.primitive.name.startswith("snnjax_")]
    assert len(calls) == (case.name not in PLAIN)
    for call in calls:
        shapes = [variable.aval.shape for variable in (*call.invars, *call.outvars)]
        assert all(shape[0] == 1 for shape in shapes)
        assert all(2 * BATCH in shape for shape in (v.aval.shape for v in call.outvars))


@each_case
def test_scan_equals_a_loop(case: Case) -> None:
    sets = draws(case, 2)

    def step(total, arguments):
        values, gradients = with_gradient(case.function)(*arguments)
        return total + weighted_sum(values), (values, gradients)

    total, results = jit(lambda xs: jax.lax.scan(step, jnp.float32(0), xs))(stack(sets))
    expected = [compiled(case)(*arguments) for arguments in sets]
    for index in range(2):
        assert_same_values_and_gradients(pick(results, index), expected[index])
    losses = [float(weighted_sum(values)) for values, _ in expected]
    np.testing.assert_allclose(total, sum(losses), rtol=1e-5, atol=1e-5)  # float32 sums of up to 300 terms


@each_case
def test_checkpoint_changes_nothing(case: Case) -> None:
    arguments = draws(case, 1)[0]
    again = jit(with_gradient(jax.checkpoint(case.function)))(*arguments)
    assert_same_values_and_gradients(again, compiled(case)(*arguments))


@each_case
def test_disabled_jit_changes_nothing(case: Case) -> None:
    """As for a debugger: step by step, though each kernel is still one call."""
    arguments = draws(case, 1)[0]
    with jax.disable_jit():
        values = case.function(*arguments)
    chex.assert_trees_all_equal(float_leaves(values), compiled(case)(*arguments)[0], strict=True)


@pytest.mark.parametrize(
    "case", [case for case in CASES if None in case.batch_axes], ids=lambda case: case.id
)
def test_nested_vmap_equals_loops(case: Case) -> None:
    """Batched arguments mapped inside, shared ones outside: groups of a batch."""
    inner = tuple(None if axis is None else 0 for axis in case.batch_axes)
    outer = tuple(0 if axis is None else None for axis in case.batch_axes)
    arguments = tuple(stack(list(pair)) for pair in zip(*draws(case, 2), strict=True))
    values = jit(jax.vmap(jax.vmap(case.function, inner), outer))(*arguments)
    for i, j in itertools.product(range(2), repeat=2):
        places = [i if axis is None else j for axis in case.batch_axes]
        single = [pick(argument, place) for argument, place in zip(arguments, places, strict=True)]
        chex.assert_trees_all_equal(
            float_leaves(pick(pick(values, i), j)), compiled(case)(*single)[0], strict=True
        )
