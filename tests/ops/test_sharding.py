"""Under `shard_map`, with the batch sharded and all else replicated, nothing changes: neither values nor gradients."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from tests.cases import BATCH, CASES, Case
from tests.ops.common import draws, each_case, float_leaves, jit, of_floats
from tests.project.sampling import sampled

# Partial sums of the shards are added in another order: a few ulp of float32 on entries of order 1 to 10.
TOLERANCE = {"rtol": 2e-6, "atol": 2e-6}


def specs(axes):
    """A batch axis as a PartitionSpec over the mesh."""
    return jax.tree.map(
        lambda axis: PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, "data"),
        axes,
        is_leaf=lambda axis: axis is None,
    )


@pytest.fixture(name="mesh")
def four_devices() -> Mesh:
    assert jax.device_count() == BATCH
    return jax.make_mesh((BATCH,), ("data",), axis_types=(AxisType.Auto,))


def with_gradient(function, arguments):
    """The results, and the gradient of their quadratic loss."""
    wrapped, floats = of_floats(function, arguments)

    def loss(leaves):
        results = wrapped(leaves)
        return quadratic(results), results

    (_, results), gradients = jit(jax.value_and_grad(loss, has_aux=True))(floats)
    return results, gradients


def quadratic(results) -> jax.Array:
    """A loss that adds over the batch, so that the shards' losses add to it."""
    leaves = float_leaves(results)
    return sum((jnp.sum(leaf**2 + leaf) for leaf in leaves), jnp.float32(0))


@functools.cache
def on_one_device(case: Case):
    return with_gradient(case.function, draws(case, 1)[0])


@each_case
def test_gradient_through_shard_map_equals_that_on_one_device(case: Case, mesh: Mesh) -> None:
    arguments = draws(case, 1)[0]
    sharded = jax.shard_map(
        case.function, mesh=mesh, in_specs=specs(case.batch_axes), out_specs=specs(case.result_axes)
    )

    ours, gradients = with_gradient(sharded, arguments)
    theirs, expected = on_one_device(case)
    chex.assert_trees_all_equal(ours, theirs, strict=True)
    chex.assert_trees_all_close(gradients, expected, **TOLERANCE, strict=True)


@each_case
def test_gradient_inside_shard_map_is_summed_over_the_shards(case: Case, mesh: Mesh) -> None:
    """Each device differentiates its own loss; the gradients of replicated arguments come out whole."""

    def own_gradient(*arguments):
        wrapped, floats = of_floats(case.function, arguments)
        return jax.grad(lambda leaves: quadratic(wrapped(leaves)))(floats)

    arguments, in_specs = draws(case, 1)[0], specs(case.batch_axes)
    pairs = zip(arguments, in_specs, strict=True)
    out_specs = [spec for argument, spec in pairs for _ in float_leaves(argument)]
    inside = jax.shard_map(own_gradient, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    chex.assert_trees_all_close(jit(inside)(*arguments), on_one_device(case)[1], **TOLERANCE, strict=True)


@pytest.mark.parametrize(
    "case, kind",
    sampled(
        list(itertools.product(CASES, (AxisType.Auto, AxisType.Explicit))),
        lambda row: {"op": row[0].name, "implementation": row[0].implementation, "kind": row[1]},
    ),
    ids=lambda argument: argument.id if isinstance(argument, Case) else argument.name,
)
def test_plain_jit_over_a_sharded_batch_equals_one_device(case: Case, kind: AxisType) -> None:
    """As JAX users write it: `jax.device_put` with a `NamedSharding`, and no more."""
    mesh = jax.make_mesh((BATCH,), ("data",), axis_types=(kind,))
    shardings = tuple(NamedSharding(mesh, spec) for spec in specs(case.batch_axes))
    ours, gradients = with_gradient(case.function, jax.device_put(draws(case, 1)[0], shardings))
    theirs, expected = on_one_device(case)
    chex.assert_trees_all_equal(ours, theirs, strict=True)
    chex.assert_trees_all_close(gradients, expected, **TOLERANCE, strict=True)
