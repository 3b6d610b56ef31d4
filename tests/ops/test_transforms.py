"""Every op composes with JAX: one trace under jit, vmap and scan equal loops, checkpoint changes nothing."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.cases import BATCH, CASES, Case
from tests.ops.helpers import assert_same, draws, each_case, gradient, pick, stack, weighted_sum

GRADIENTS = {case.name: jax.jit(gradient(case.function)) for case in CASES}
FUNCTIONS = {case.name: jax.jit(case.function) for case in CASES}
# Sums of gradients run in another order: a few ulp of float32 on entries of order 1 to 10.
TOLERANCE = {"rtol": 2e-6, "atol": 2e-6}
# vmap over one argument alone, and over all together.
MAPPED = [
    pytest.param(case, mapped, id=f"{case.name}-{'all' if mapped is None else mapped}")
    for case in CASES
    for mapped in (None, *range(len(case.batch_axes)))
    if len(case.batch_axes) > 1 or mapped is None
]


def primitives(jaxpr: Any) -> Counter[str]:
    """How often each primitive occurs in a jaxpr and all within it."""
    found: Counter[str] = Counter()
    for equation in jaxpr.eqns:
        found[equation.primitive.name] += 1
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                found += primitives(inner)
    return found


def own(counts: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name.startswith("snnjax_")}


def in_axes(case: Case, mapped: int | None) -> tuple[int | None, ...]:
    return tuple(0 if mapped in (None, place) else None for place in range(len(case.batch_axes)))


@each_case
def test_jit_traces_once_for_new_values(case: Case) -> None:
    traces = []

    def counted(*arguments: Any) -> Any:
        traces.append(1)
        return gradient(case.function)(*arguments)

    compiled = jax.jit(counted)
    results = [compiled(*arguments) for arguments in draws(case, 3)]
    assert len(traces) == 1
    assert any(np.any(a != b) for a, b in zip(*results[:2], strict=True))


@pytest.mark.parametrize("case, mapped", MAPPED)
def test_vmap_equals_a_loop(case: Case, mapped: int | None) -> None:
    """Values to the bit (their sums are exact), gradients up to the order of sums."""
    sets, axes = draws(case, 3), in_axes(case, mapped)
    each = [tuple(s[i] if axis == 0 else sets[0][i] for i, axis in enumerate(axes)) for s in sets]
    stacked = tuple(
        stack([e[i] for e in each]) if axis == 0 else each[0][i] for i, axis in enumerate(axes)
    )

    def both(*arguments: Any) -> Any:
        return case.function(*arguments), gradient(case.function)(*arguments)

    values, gradients = jax.jit(jax.vmap(both, axes))(*stacked)
    for index, arguments in enumerate(each):
        assert_same(pick(values, index), FUNCTIONS[case.name](*arguments))
        assert_same(pick(gradients, index), GRADIENTS[case.name](*arguments), **TOLERANCE)


@pytest.mark.parametrize("case, mapped", MAPPED)
def test_vmap_adds_no_loop(case: Case, mapped: int | None) -> None:
    """As many calls of each target as without vmap, no loop in the jaxpr, none in what it is lowered to."""
    arguments, axes = draws(case, 1)[0], in_axes(case, mapped)
    stacked = tuple(a if axis is None else stack([a, a]) for a, axis in zip(arguments, axes, strict=True))
    for function in (case.function, gradient(case.function)):
        before, after = jax.jit(function).trace(*arguments), jax.jit(jax.vmap(function, axes)).trace(*stacked)
        ours, theirs = (primitives(traced.jaxpr.jaxpr) for traced in (after, before))
        assert own(ours) == own(theirs)
        assert not {"scan", "while"} & ours.keys()
        loops = [traced.lower().as_text().count("stablehlo.while") for traced in (after, before)]
        assert loops[0] == loops[1]
    assert own(ours) or case.name == "spike"


@each_case
def test_vmap_over_the_batched_arguments_folds_into_the_batch(case: Case) -> None:
    """One call of the target on one group whose batch is the product: shared arguments are not copied."""
    arguments = draws(case, 1)[0]
    axes = tuple(None if axis is None else 0 for axis in case.batch_axes)
    stacked = tuple(a if axis is None else stack([a, a]) for a, axis in zip(arguments, axes, strict=True))
    jaxpr = jax.make_jaxpr(jax.vmap(case.function, axes))(*stacked).jaxpr
    calls = [e for e in _equations(jaxpr) if e.primitive.name.startswith("snnjax_")]
    assert len(calls) == (case.name != "spike")
    for call in calls:
        shapes = [variable.aval.shape for variable in (*call.invars, *call.outvars)]
        assert all(shape[0] == 1 for shape in shapes)
        assert all(2 * BATCH in shape for shape in (v.aval.shape for v in call.outvars))


def _equations(jaxpr: Any) -> Any:
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from _equations(inner)


@each_case
def test_scan_equals_a_loop(case: Case) -> None:
    sets = draws(case, 2)

    def step(total: Any, arguments: Any) -> Any:
        loss, gradients = weighted_sum(case.function(*arguments)), gradient(case.function)(*arguments)
        return total + loss, (case.function(*arguments), gradients)

    total, (values, gradients) = jax.jit(lambda xs: jax.lax.scan(step, jnp.float32(0), xs))(stack(sets))
    expected = sum(float(weighted_sum(FUNCTIONS[case.name](*arguments))) for arguments in sets)
    np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-5)
    for index, arguments in enumerate(sets):
        assert_same(pick(values, index), FUNCTIONS[case.name](*arguments))
        assert_same(pick(gradients, index), GRADIENTS[case.name](*arguments), **TOLERANCE)


@each_case
def test_checkpoint_changes_nothing(case: Case) -> None:
    arguments = draws(case, 1)[0]
    again = jax.jit(gradient(jax.checkpoint(case.function)))(*arguments)
    assert_same(again, GRADIENTS[case.name](*arguments), **TOLERANCE)


@each_case
def test_nested_vmap_equals_loops(case: Case) -> None:
    """Batched arguments mapped inside, all others outside."""
    if None not in case.batch_axes:
        pytest.fail("spike has no shared argument") if case.name != "spike" else None
        return
    inner = tuple(None if axis is None else 0 for axis in case.batch_axes)
    outer = tuple(0 if axis is None else None for axis in case.batch_axes)
    a, b = draws(case, 2)
    arguments = tuple(stack([x, y]) for x, y in zip(a, b, strict=True))
    values = jax.jit(jax.vmap(jax.vmap(case.function, inner), outer))(*arguments)
    for i in range(2):
        for j in range(2):
            single = tuple(
                pick(x, i if axis is None else j) for x, axis in zip(arguments, case.batch_axes, strict=True)
            )
            assert_same(pick(pick(values, i), j), FUNCTIONS[case.name](*single))
