"""`applied`: a block is run, and what it returns is checked, as a block of a user's own may return anything."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax._check import check_real_array, check_shape, fail, type_words
from snnjax._compare import Fits, check_like, dtype_of, same_array, same_shape
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Signal, upcast
from snnjax.blocks.block import (
    Block,
    BlockResult,
    Context,
    Shape,
    dense_signal,
    flat,
    overflow,
    shaped,
    within,
)


def applied(
    name: str,
    block: Block,
    held: tuple[Any, Any, Any],
    signals: list[Signal],
    shapes: tuple[Shape, ...],
    context: Context,
) -> BlockResult:
    """The result of a block that holds params, state and stats, with its signal in its shape; errors say its `name`."""
    result = block.apply(*held, *signals, shapes=shapes, context=context)
    if not isinstance(result, BlockResult):
        fail(
            f"network: `{name}.apply` must return a BlockResult, got {type_words(result)}. "
            "Write blocks.BlockResult(signal)."
        )
    time, batch = signals[0].shape[:2]
    shape = block.out_shape(*shapes)
    signal = _signal(f"{name}.signal", result.signal, (time, batch), shape)
    if result.membranes is not None:
        _signal(f"{name}.membranes", result.membranes, (time, batch), shape)
    for argument, size, axes in (
        ("counts", (batch, math.prod(shape)), "batch, neurons"),
        ("dropped", (batch,), "batch"),
    ):
        if getattr(result, argument) is not None:
            hint = "Leave it out: the network counts spikes itself"
            check_shape("network", f"{name}.{argument}", getattr(result, argument), size, axes, hint)
    _check_kept(name, "state", held[1], result.state, _same_state)
    if result.stats is not None:
        fits = same_shape if block.needs_all_steps(context.train) else same_array
        _check_kept(name, "stats", held[2], result.stats, fits)
    return _with_counts(block, result._replace(signal=signal), shape, context.valid(time))


def _signal(argument: str, signal: Signal, sizes: tuple[Any, Any], shape: Shape) -> Signal:
    """A signal ``[time, batch, *shape]``, or with flat neurons, in its shape."""
    hint = f"State it in out_shape; it says {list(shape)}"
    if not isinstance(signal, SparseSpikes):
        check_real_array("network", argument, signal)
    if len(signal.shape) == 3:
        check_shape("network", argument, signal, (*sizes, math.prod(shape)), "time, batch, neurons", hint)
    else:
        check_shape("network", argument, signal, (*sizes, *shape), "time, batch, *shape", hint)
    return signal if isinstance(signal, SparseSpikes) else shaped(jnp.asarray(signal), shape)


def _check_kept(name: str, argument: str, before: Any, after: Any, fits: Fits) -> None:
    """Check that what a block carries has the same form after a run as before it."""
    if before is None:
        if after is not None:
            fail(
                f"network: `{name}.{argument}` must be None, got {type_words(after)}. "
                f"Give the block initial ones, by initial_{argument}."
            )
        return
    like = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), dtype_of(leaf)), before)
    hint = f"Return the new one in the BlockResult, in the form of initial_{argument}"
    check_like("network", f"{name}.{argument}", after, like, fits, hint)


def _same_state(like: jax.ShapeDtypeStruct, array: Any) -> bool:
    """No rows stand for rows of zeros, which there are after a run."""
    return same_array(like, array) or (0 in like.shape and dtype_of(array) == like.dtype)


def _with_counts(block: Block, result: BlockResult, shape: Shape, valid: Array | None) -> BlockResult:
    """The result of a spiking block of one's own that leaves the counting of its spikes to the network."""
    if not block.is_spiking or result.counts is not None:
        return result
    spikes = upcast(flat(dense_signal(within(result.signal, valid), shape)))
    # Not `abs`, whose gradient at 0 is 0: neurons that do not spike have one, by their surrogate.
    counts = jnp.sum(jnp.where(spikes < 0, -spikes, spikes), axis=0)
    return result._replace(counts=counts, dropped=overflow(result.signal))
