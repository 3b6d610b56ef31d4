"""Checkpointing over time: only the state between chunks of steps is stored, and the steps are recomputed."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import Signal, State

# (inputs, state, lengths) -> (results per step, results summed over the steps, new state)
Run = Callable[[Any, Any, Array | None], tuple[Any, Any, Any]]


def in_chunks(
    run: Run, inputs: Signal, state: State, lengths: Array | None, chunk: int
) -> tuple[Any, Any, Any]:
    """`run` over chunks of `chunk` steps and a shorter last one; the backward pass runs each chunk again."""
    run = jax.checkpoint(run)
    num_steps = jax.tree.leaves(inputs)[0].shape[0]
    num_chunks = num_steps // chunk
    if num_chunks == 0:
        return run(inputs, state, lengths)

    def remaining(start: Array, steps: int) -> Array | None:
        return None if lengths is None else jnp.clip(lengths - start, 0, steps)

    def step(state: State, xs: tuple[Any, Array]) -> tuple[Any, tuple[Any, Any]]:
        piece, start = xs
        timed, summed, state = run(piece, state, remaining(start, chunk))
        return state, (timed, summed)

    def in_pieces(array: Array) -> Array:
        return array[: num_chunks * chunk].reshape(num_chunks, chunk, *array.shape[1:])

    starts = jnp.arange(num_chunks, dtype=jnp.int32) * chunk
    state, (timed, summed) = jax.lax.scan(step, state, (jax.tree.map(in_pieces, inputs), starts))
    timed = jax.tree.map(lambda array: array.reshape(num_chunks * chunk, *array.shape[2:]), timed)
    summed = jax.tree.map(lambda array: jnp.sum(array, axis=0, dtype=array.dtype), summed)
    rest = num_steps - num_chunks * chunk
    if rest == 0:
        return timed, summed, state
    tail = jax.tree.map(lambda array: array[num_chunks * chunk :], inputs)
    last_timed, last_summed, state = run(tail, state, remaining(jnp.int32(num_chunks * chunk), rest))
    timed = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), timed, last_timed)
    return timed, jax.tree.map(jnp.add, summed, last_summed), state
