"""Under `shard_map`, with the batch sharded and all else replicated, nothing changes: neither values nor gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

from tests.cases import BATCH, Case
from tests.ops.helpers import assert_same, draws, each_case, float_leaves, of_floats

# Partial sums of the shards are added in another order: a few ulp of float32 on entries of order 1 to 10.
TOLERANCE = {"rtol": 2e-6, "atol": 2e-6}


def specs(axes: Any) -> Any:
    """A batch axis as a PartitionSpec over the mesh."""
    return jax.tree.map(
        lambda axis: PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, "data"),
        axes,
        is_leaf=lambda axis: axis is None,
    )


@pytest.fixture(name="mesh")
def four_devices() -> Mesh:
    assert jax.device_count() == BATCH
    return jax.make_mesh((BATCH,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def quadratic(results: Any) -> jax.Array:
    """A loss that adds over the batch, so that the shards' losses add to it."""
    leaves = float_leaves(results)
    return sum((jnp.sum(leaf**2 + leaf) for leaf in leaves), jnp.float32(0))


@each_case
def test_shard_map_equals_one_device(case: Case, mesh: Mesh) -> None:
    """Gradients of replicated arguments are summed over the shards, inside of shard_map and through it."""

    def value_and_gradient(*arguments: Any) -> Any:
        wrapped, floats = of_floats(case.function, arguments)
        return case.function(*arguments), jax.grad(lambda leaves: quadratic(wrapped(leaves)))(floats)

    arguments = draws(case, 1)[0]
    in_specs, out_specs = specs(case.batch_axes), specs(case.result_axes)
    per_leaf = [
        spec
        for argument, spec in zip(arguments, in_specs, strict=True)
        for _ in float_leaves(argument)
    ]
    inside = jax.shard_map(
        value_and_gradient, mesh=mesh, in_specs=in_specs, out_specs=(out_specs, per_leaf)
    )
    sharded = jax.shard_map(case.function, mesh=mesh, in_specs=in_specs, out_specs=out_specs)
    wrapped, floats = of_floats(sharded, arguments)
    through = jax.jit(jax.grad(lambda leaves: quadratic(wrapped(leaves))))(floats)

    values, gradients = jax.jit(value_and_gradient)(*arguments)
    sharded_values, sharded_gradients = jax.jit(inside)(*arguments)
    assert_same(sharded_values, values)
    assert_same(sharded_gradients, gradients, **TOLERANCE)
    assert_same(through, gradients, **TOLERANCE)
    assert all(np.any(g) for g in gradients[:-1])
