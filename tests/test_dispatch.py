"""`_dispatch`: one primitive per target, and its one rule of vmap."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from snnjax import _dispatch
from snnjax._dispatch import SHARED, evaluate

X = jnp.arange(12.0).reshape(4, 3)
W = jnp.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]])


def scaled_product(operands: tuple[Any, Any], scale: float) -> tuple[Any]:
    return (jnp.matmul(*operands) * scale,)


def column_sums(operands: tuple[Any, Any], _: Any) -> dict[str, Any]:
    return {"sums": jnp.sum(operands[0], axis=0), "product": jnp.matmul(*operands)}


def product(x: Any, w: Any) -> Any:
    return evaluate("test_product", scaled_product, (x, w), (0, SHARED), (0,), 2.0)[0]


def sums(x: Any, w: Any) -> Any:
    return evaluate("test_sums", column_sums, (x, w), (0, SHARED), {"sums": SHARED, "product": 0})


def call_shapes(function: Any, *arguments: Any) -> list[list[tuple[int, ...]]]:
    """The shapes of operands and results of each call of a target in the jaxpr."""
    jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
    calls = [e for e in jaxpr.eqns if e.primitive.name.startswith("test_")]
    return [[v.aval.shape for v in (*e.invars, *e.outvars)] for e in calls]


def stacked(array: jax.Array, count: int) -> jax.Array:
    return jnp.stack([array + i for i in range(count)])


def test_target_is_its_reference_eager_and_compiled() -> None:
    for function in (product, jax.jit(product)):
        np.testing.assert_array_equal(function(X, W), 2 * X @ W)
    results = jax.jit(sums)(X, W)
    np.testing.assert_array_equal(results["sums"], X.sum(0))
    np.testing.assert_array_equal(results["product"], X @ W)


def test_target_is_one_primitive_with_a_groups_axis() -> None:
    assert call_shapes(product, X, W) == [[(1, 4, 3), (1, 3, 2), (1, 4, 2)]]


def test_vmap_over_the_batched_operand_folds_into_the_batch() -> None:
    xs = stacked(X, 5)
    assert call_shapes(jax.vmap(product, (0, None)), xs, W) == [[(1, 20, 3), (1, 3, 2), (1, 20, 2)]]
    np.testing.assert_array_equal(jax.vmap(product, (0, None))(xs, W), 2 * xs @ W)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_vmap_over_any_axis_and_into_any_axis(axis: int) -> None:
    xs, ws = stacked(X, 5), stacked(W, 5)
    moved = [jnp.moveaxis(array, 0, axis) for array in (xs, ws)]
    for in_axes, given, expected in (
        ((axis, None), (moved[0], W), 2 * xs @ W),
        ((None, axis), (X, moved[1]), 2 * X @ ws),
        ((axis, axis), moved, 2 * xs @ ws),
    ):
        results = jax.vmap(product, in_axes, out_axes=axis)(*given)
        np.testing.assert_array_equal(jnp.moveaxis(results, axis, 0), expected)


def test_vmap_over_a_shared_operand_makes_groups() -> None:
    """The batched operand stays one group: it is not copied."""
    shapes = [[(1, 4, 3), (5, 3, 2), (5, 4, 2)]]
    assert call_shapes(jax.vmap(product, (None, 0)), X, stacked(W, 5)) == shapes


def test_vmap_with_a_shared_result_makes_groups() -> None:
    """One sum per example, not one over all of them."""
    xs = stacked(X, 5)
    assert call_shapes(jax.vmap(sums, (0, None)), xs, W)[0][0] == (5, 4, 3)
    np.testing.assert_array_equal(jax.vmap(sums, (0, None))(xs, W)["sums"], xs.sum(1))


def test_nested_vmaps_fold_into_batch_and_groups() -> None:
    xs, ws = stacked(X, 5), stacked(W, 3)
    expected = 2 * jnp.einsum("abi,cio->cabo", xs, ws)
    batch_inside = jax.vmap(jax.vmap(product, (0, None)), (None, 0))
    np.testing.assert_array_equal(batch_inside(xs, ws), expected)
    assert call_shapes(batch_inside, xs, ws) == [[(1, 20, 3), (3, 3, 2), (3, 20, 2)]]
    groups_inside = jax.vmap(jax.vmap(product, (None, 0)), (0, None))
    np.testing.assert_array_equal(groups_inside(xs, ws), jnp.swapaxes(expected, 0, 1))
    assert call_shapes(groups_inside, xs, ws) == [[(1, 20, 3), (3, 3, 2), (3, 20, 2)]]


def test_groups_of_groups_are_groups() -> None:
    a, b = stacked(X, 2), stacked(stacked(W, 2), 3)
    nested = jax.vmap(jax.vmap(sums), (None, 0))
    np.testing.assert_array_equal(nested(a, b)["product"], jnp.einsum("gbi,cgio->cgbo", a, b))
    assert call_shapes(nested, a, b)[0][:2] == [(6, 4, 3), (6, 3, 2)]


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)])
def test_vmap_over_no_examples_gives_none(in_axes: tuple[int | None, int | None]) -> None:
    given = [array if axis is None else array[None][:0] for array, axis in zip((X, W), in_axes, strict=True)]
    assert jax.vmap(product, in_axes)(*given).shape == (0, 4, 2)
    assert jax.vmap(sums, in_axes)(*given)["sums"].shape == (0, 3)


def branch(operands: Any, _: Any) -> tuple[Any]:
    (x,) = operands
    large = _dispatch.any_group(x > 10)
    return (jax.lax.cond(large, lambda: jax.lax.fori_loop(0, 3, lambda _, y: y + 1, x), lambda: x),)


def test_condition_of_any_group_stays_a_branch_under_vmap() -> None:
    """A select would pay for both branches; all groups take the branch that one asks for."""

    def function(x: Any) -> Any:
        return evaluate("test_branch", branch, (x,), (SHARED,), (SHARED,))[0]

    xs = jnp.array([[1.0, 2.0], [3.0, 11.0]])
    np.testing.assert_array_equal(jax.vmap(function)(xs), xs + 3)
    np.testing.assert_array_equal(jax.vmap(function)(xs[:, :1]), xs[:, :1])
    lowered = jax.jit(jax.vmap(function)).lower(xs).as_text()
    assert "stablehlo.case" in lowered
    assert "stablehlo.select" not in lowered


def test_vary_alike_does_nothing_outside_of_shard_map() -> None:
    assert [a is b for a, b in zip(_dispatch.vary_alike([X, W]), [X, W], strict=True)] == [True, True]


def test_operands_and_results_vary_over_the_union_of_axes() -> None:
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    varying = []

    def local(x: Any, w: Any) -> Any:
        alike = _dispatch.vary_alike([x, w])
        result = product(x, w)
        varying.extend(jax.typeof(array).manual_axis_type.varying for array in (*alike, result))
        return result

    specs = (PartitionSpec("a"), PartitionSpec(None, "b"))
    out = jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=PartitionSpec("a", "b"))(X, W)
    assert set(varying) == {frozenset({"a", "b"})}
    np.testing.assert_array_equal(out, 2 * X @ W)
