"""Recomputation of `lif_network` in pieces: only the state at the borders of the pieces is stored."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax.ops._lif_network_reference import Operands, Results


def in_chunks(run: Callable[[Operands], Results], operands: Operands, chunk: int) -> Results:
    """`run` over pieces of `chunk` steps and a shorter last one; backward, each piece is run again."""
    run = jax.checkpoint(run)
    num_steps = jax.tree.leaves(operands.inputs)[0].shape[0]
    whole = num_steps // chunk
    if whole == 0:
        return run(operands)

    def step(carry: tuple[Any, Any], xs: tuple[Any, Array]) -> tuple[tuple[Any, Any], Results]:
        inputs, start = xs
        results = run(_piece(operands, inputs, carry, start))
        carry = (results.last, results.last_readout)
        return carry, results._replace(last=(), last_readout=None)

    pieces = jax.tree.map(lambda x: x[: whole * chunk].reshape(whole, chunk, *x.shape[1:]), operands.inputs)
    starts = jnp.arange(whole, dtype=jnp.int32) * chunk
    carry, stacked = jax.lax.scan(step, (operands.first, operands.first_readout), (pieces, starts))
    results = _join(stacked)._replace(last=carry[0], last_readout=carry[1])
    if whole * chunk == num_steps:
        return results
    rest = jax.tree.map(lambda x: x[whole * chunk :], operands.inputs)
    return _append(results, run(_piece(operands, rest, carry, jnp.int32(whole * chunk))))


def _piece(operands: Operands, inputs: Any, carry: tuple[Any, Any], start: Array) -> Operands:
    """The operands of the piece that begins at step `start`."""
    lengths = operands.lengths
    if lengths is not None:
        lengths = jnp.clip(lengths - start, 0, jax.tree.leaves(inputs)[0].shape[0])
    return operands._replace(inputs=inputs, first=carry[0], first_readout=carry[1], lengths=lengths)


def _join(stacked: Results) -> Results:
    """Results of all pieces ``[pieces, ...]`` as those of one run."""

    def in_time(array: Array) -> Array:
        return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])

    return stacked._replace(
        output=in_time(stacked.output),
        counts=tuple(jnp.sum(count, axis=0) for count in stacked.counts),
        dropped=tuple(jnp.sum(count, axis=0, dtype=jnp.int32) for count in stacked.dropped),
        spikes=jax.tree.map(in_time, stacked.spikes),
    )


def _append(results: Results, rest: Results) -> Results:
    """The results of two consecutive pieces as those of one run."""
    return Results(
        jnp.concatenate([results.output, rest.output]),
        tuple(a + b for a, b in zip(results.counts, rest.counts, strict=True)),
        tuple(a + b for a, b in zip(results.dropped, rest.dropped, strict=True)),
        jax.tree.map(lambda a, b: jnp.concatenate([a, b]), results.spikes, rest.spikes),
        rest.last,
        rest.last_readout,
    )
