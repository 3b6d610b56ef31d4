"""One node of a network over some steps: what it receives, and what it returns."""

import dataclasses
import zlib
from collections.abc import Mapping
from typing import Any

import jax
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Signal, accumulation_dtype
from snnjax.blocks._applied import applied
from snnjax.blocks.block import BlockResult, Context, Shape, rounded, shaped, within
from snnjax.graph.containers import Node


def block_key(key: Array | None, name: str) -> Array | None:
    """The key of a node, which is the same wherever a node of this name stands."""
    return None if key is None else jax.random.fold_in(key, zlib.crc32(name.encode()))


def run_alone(
    node: Node,
    shapes: tuple[Shape, ...],
    dtype: DTypeLike,
    held: tuple[Any, Any, Any],
    signals: Mapping[str, Signal],
    context: Context,
) -> BlockResult:
    """The results of a node, whose params, state and stats are `held`; `dtype` is that of the network's results."""
    # Signals are 0 after the end of a sequence, and in the accumulation dtype of the weights, as is the state.
    received = [signals[source] for source in node.sources]
    valid = context.valid(received[0].shape[0])
    received = [
        rounded(within(_flat_or_shaped(x, own), valid), accumulation_dtype(dtype))
        for x, own in zip(received, shapes, strict=True)
    ]
    context = dataclasses.replace(
        context,
        key=block_key(context.key, node.name),
        second_threshold=context.second_threshold.get(node.name),
        offsets=None if context.offsets is None else context.offsets.get(node.name),
    )
    return applied(node.name, node.block, held, received, shapes, context)


def _flat_or_shaped(x: Signal, shape: Shape) -> Signal:
    return x if isinstance(x, SparseSpikes) else shaped(x, shape)
