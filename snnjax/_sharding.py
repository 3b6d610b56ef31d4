"""What ops do with arrays of several devices before a target takes them."""

from typing import Any

import jax
from jax.sharding import PartitionSpec
from jaxtyping import PyTree


def vary_alike(arrays: PyTree) -> PyTree:
    """Cast a tree of arrays to the union of the `shard_map` axes over which they vary (a no-op outside `shard_map`)."""
    leaves, tree = jax.tree.flatten(arrays)
    varying = [jax.typeof(leaf).manual_axis_type.varying for leaf in leaves]
    union = frozenset().union(*varying)
    cast = [
        jax.lax.pcast(leaf, tuple(sorted(union - axes)), to="varying") if union - axes else leaf
        for leaf, axes in zip(leaves, varying, strict=True)
    ]
    return jax.tree.unflatten(tree, cast)


def gathered(tree: PyTree) -> PyTree:
    """The arrays whole on every device: a target takes no array that is sharded over explicit axes of a mesh."""

    def replicated(leaf: Any) -> object:
        sharding = getattr(jax.typeof(leaf), "sharding", None) if isinstance(leaf, jax.Array) else None
        if sharding is None or not any(sharding.spec):
            return leaf
        return jax.sharding.reshard(leaf, sharding.update(spec=PartitionSpec(*(None,) * leaf.ndim)))

    return jax.tree.map(replicated, tree)
