"""`DelayedSynapses`: synapses with their delays and weights, in the order in which `simulate` reads them."""

import functools
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float, Int, Integer, UInt16

from snnjax._arguments import explained
from snnjax._check import (
    check_integer,
    check_integers,
    check_shape,
    check_within,
    concrete,
    fail,
    short_repr,
)
from snnjax._quantised import Quantised, check_weights
from snnjax._synapses import Synapses
from snnjax._types import Unchecked, accumulation_dtype, upcast

_PLACES = 2**16  # that a word of 16 bits names
# Targets of a block: numbers that are received in a step then stay in a second-level cache of 256 KiB.
_MOST_PLACES = 40 * 1024
_MOST_DELAY = 2**16 - 1


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class DelayedSynapses:
    """Synapses with their weights and delays, as `snnjax.simulate` runs them.

    Neurons are divided into blocks, of which each thread steps one: neuron j is the ``j // blocks``-th of block
    ``j % blocks``. The synapses lie by block of the neurons that receive, then by the neuron that sends, then by delay:
    a segment are those with one delay. `sources`, `targets`, `delays` and `weights` say of each synapse what it is, in
    this order.

    Made by `DelayedSynapses.of` or `snnjax.circuits`. With weights in bfloat16 a synapse takes 4 bytes, with those of 8
    bits 3, and with float32 6; a segment takes 4.
    """

    # Of a target its place in the block, ``receptor * ceil(neurons / blocks) + neuron``: uint16, or the lower half of
    # int32, of which the upper half is the weight in bfloat16.
    words: Integer[Array, " synapses"]
    strengths: Float[Array, " synapses"] | Quantised | None  # the weights, if not in the words
    segments: UInt16[Array, "segments 2"]  # the delay in steps, and the number of synapses
    ends: Int[Array, "blocks neurons 2"]  # int32: behind the last segment and the last synapse of each sender
    num_targets: int = field(metadata={"static": True})  # receptors times neurons
    max_delay: int = field(metadata={"static": True})  # the longest in steps

    @property
    def num_neurons(self) -> int:
        """The number of neurons, which send and receive."""
        return self.ends.shape[1]

    @property
    def num_synapses(self) -> int:
        """The number of synapses."""
        return self.words.shape[0]

    @property
    def dtype(self) -> DTypeLike:
        """That in which neurons receive, float64 for weights in float64, else float32."""
        return jnp.float32 if self.strengths is None else accumulation_dtype(self.strengths.dtype)

    def sources(self) -> Int[Array, " synapses"]:
        """The neuron that sends through each synapse, int32."""
        return _sources(self)

    def targets(self) -> Int[Array, " synapses"]:
        """The target of each synapse, ``receptor * neurons + neuron``, int32; `num_targets` if there is none."""
        return _targets(self)

    def delays(self) -> Int[Array, " synapses"]:
        """The delay of each synapse in steps, int32."""
        return _delays(self)

    def weights(self) -> Float[Array, " synapses"]:
        """The weight of each synapse."""
        if isinstance(self.strengths, Quantised):
            scale = jnp.take(self.strengths.scale, self.targets(), mode="fill", fill_value=0)
            return scale * self.strengths.values.astype(scale.dtype)
        if self.strengths is not None:
            return self.strengths
        return jax.lax.bitcast_convert_type((self.words >> 16).astype(jnp.uint16), jnp.bfloat16)

    def with_weights(self, weights: Float[Array, " synapses"] | Quantised) -> "DelayedSynapses":
        """The same synapses with other weights, in their order: `SimulationOutput.weights`, for instance."""
        op = "DelayedSynapses.with_weights"
        check_weights(op, "weights", weights, self.num_targets)
        check_shape(op, "weights", weights, (self.num_synapses,), "synapses", "Pass one for each synapse")
        return replace(self, **_stored(self.words, weights))

    @classmethod
    @explained
    def of(
        cls,
        synapses: Synapses,
        weights: Float[Any, " synapses"] | Quantised,
        delays: Integer[Any, "*synapses"] | int = 1,
        *,
        max_delay: int | None = None,
        blocks: int | None = None,
    ) -> "DelayedSynapses":
        """Sort synapses, which are known values; those whose target is out of range are left out.

        Args:
            synapses: from neuron i to target ``r * neurons + j``, receptor r of neuron j; with one receptor simply j.
            weights: one for each synapse: float32, bfloat16, or 8 bits (`quantisation.Quantised`, with a scale for
                each target), or float64, which only the reference takes.
            delays: in steps, at least 1: one for all synapses, or ``[synapses]``.
            max_delay: the longest that states are made for; None for that of the synapses.
            blocks: into how many the neurons are divided; None for as many as keep what a block receives in a cache.
                The spikes do not depend on it.

        Raises:
            ValueError: if shapes or dtypes do not match, a delay is out of range, or something is traced.

        Example:
            >>> import jax.numpy as jnp
            >>> from snnjax import DelayedSynapses, Synapses
            >>> chain = Synapses.from_mask(jnp.eye(4, k=1, dtype=bool))  # each neuron leads to the next one
            >>> synapses = DelayedSynapses.of(chain, jnp.ones(3), jnp.array([1, 3, 2]))
            >>> synapses.sources(), synapses.delays()
            (Array([0, 1, 2], dtype=int32), Array([1, 3, 2], dtype=int32))
        """
        op = "DelayedSynapses.of"
        if not isinstance(synapses, Synapses):
            hint = "Make them with Synapses.with_probability, for instance"
            fail(f"{op}: `synapses` must be Synapses, got {short_repr(synapses)}. {hint}.")
        check_weights(op, "weights", weights, synapses.num_targets)
        check_shape(op, "weights", weights, (synapses.num_synapses,), "synapses", "Pass one for each synapse")
        late = _known_delays(op, delays, synapses)
        longest = int(late.max(initial=1))
        if max_delay is not None:
            longest = check_integer(op, "max_delay", max_delay, longest)
        blocks = blocks_for(op, blocks, synapses.num_neurons, synapses.num_targets)
        sources, targets = _known(op, synapses)
        kept = np.flatnonzero((targets >= 0) & (targets < synapses.num_targets))
        sources, targets = sources[kept], targets[kept]
        late = late[kept] if late.ndim else np.broadcast_to(late, kept.shape)
        receptor, neuron = np.divmod(targets, max(synapses.num_neurons, 1))
        row = neuron % blocks * synapses.num_neurons + sources
        order = np.lexsort((late, row))
        places = (receptor * -(-synapses.num_neurons // blocks) + neuron // blocks)[order]
        segments, ends = _segments(row[order], late[order], blocks * synapses.num_neurons)
        return cls(
            **_stored(places.astype(np.uint16), weights, kept[order]),
            segments=jax.device_put(segments.astype(np.uint16)),
            ends=jax.device_put(ends.reshape(blocks, synapses.num_neurons, 2).astype(np.int32)),
            num_targets=synapses.num_targets,
            max_delay=longest,
        )


def _known(op: str, synapses: Synapses) -> tuple[np.ndarray, np.ndarray]:
    """The sources and targets of synapses."""
    ends, targets = concrete(synapses.ends), concrete(synapses.targets)
    if ends is None or targets is None:
        fail(f"{op}: `synapses` must be of known values, got a tracer. Sort them outside of jit.")
    counts = np.diff(np.sort(np.clip(ends.astype(np.int64), 0, len(targets))), prepend=0)
    sources = np.repeat(np.arange(synapses.num_neurons), counts)
    return sources, targets[: len(sources)].astype(np.int64)


def _known_delays(op: str, delays: Unchecked, synapses: Synapses) -> np.ndarray:
    """Known delays, one or one for each synapse."""
    if isinstance(delays, int):
        delays = np.asarray(check_integer(op, "delays", delays, 1))
    check_integers(op, "delays", delays)
    if delays.ndim > 0:
        check_shape(op, "delays", delays, (synapses.num_synapses,), "synapses", "Pass one for each synapse")
    late = concrete(delays)
    if late is None:
        fail(f"{op}: `delays` must be of known values, got a tracer. Sort them outside of jit.")
    check_within(op, "delays", late, _MOST_DELAY, "Delays are in steps", 1)
    return late.astype(np.int64)


def blocks_for(op: str, blocks: Unchecked, num_neurons: int, num_targets: int) -> int:
    """Into how many blocks neurons are divided, a power of two if nobody says it."""
    if blocks is None:
        blocks = 1
        while -(-num_neurons // blocks) * (num_targets // max(num_neurons, 1)) > _MOST_PLACES:
            blocks *= 2
        return blocks
    blocks = check_integer(op, "blocks", blocks, 1)
    places = -(-num_neurons // blocks) * (num_targets // max(num_neurons, 1))
    if places > _PLACES:
        fail(f"{op}: `blocks` must make at most {_PLACES} targets each, got {places}. Pass more.")
    return blocks


def _segments(row: np.ndarray, late: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Delays and lengths of segments ``[segments, 2]`` of sorted synapses, and the ends of each row ``[rows, 2]``."""
    first = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(late, prepend=-1) != 0))
    counts = np.diff(first, append=len(row))
    pieces = -(-counts // _MOST_DELAY)  # a length has 16 bits, too
    place = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    lengths = np.minimum(np.repeat(counts, pieces) - place * _MOST_DELAY, _MOST_DELAY)
    segments = np.stack([np.repeat(late[first], pieces), lengths], axis=1)
    each = np.bincount(np.repeat(row[first], pieces), minlength=rows)
    return segments, np.stack([np.cumsum(each), np.cumsum(np.bincount(row, minlength=rows))], axis=1)


# Outside of `jax.jit`, these compile one program for each size, not one for each operation.
@functools.partial(jax.jit, inline=True)
def _sources(synapses: DelayedSynapses) -> Int[Array, " synapses"]:
    return _row(synapses) % max(synapses.num_neurons, 1)


@functools.partial(jax.jit, inline=True)
def _targets(synapses: DelayedSynapses) -> Int[Array, " synapses"]:
    blocks, neurons = synapses.ends.shape[:2]
    width = max(-(-neurons // blocks), 1)
    places = synapses.words.astype(jnp.int32) & 0xFFFF
    receptor, neuron = places // width, places % width * blocks + _row(synapses) // max(neurons, 1)
    targets = receptor * neurons + neuron
    return jnp.where((neuron < neurons) & (targets < synapses.num_targets), targets, synapses.num_targets)


@functools.partial(jax.jit, inline=True)
def _delays(synapses: DelayedSynapses) -> Int[Array, " synapses"]:
    delays, counts = synapses.segments.astype(jnp.int32).T
    return jnp.repeat(delays, counts, total_repeat_length=synapses.num_synapses)


def _row(synapses: DelayedSynapses) -> Int[Array, " synapses"]:
    """Of each synapse the row of `ends`, which is of a block and a neuron that sends."""
    count = synapses.num_synapses
    ends = jnp.clip(synapses.ends[..., 1].reshape(-1), 0, count)
    return jnp.cumsum(jnp.zeros(count, jnp.int32).at[ends].add(1, mode="drop"), dtype=jnp.int32)


@functools.partial(jax.jit, inline=True)
def _stored(places: ArrayLike, weights: Array | Quantised, order: ArrayLike | None = None) -> dict[str, Any]:
    """The arrays of places, which are the lower 16 bits, and of weights, which may stand in another order."""
    places = jnp.asarray(places).astype(jnp.uint16)
    if isinstance(weights, Quantised):
        values = weights.values if order is None else weights.values[order]
        return {"words": places, "strengths": weights._replace(values=values)}
    weights = weights if order is None else weights[order]
    if weights.dtype != jnp.bfloat16:
        return {"words": places, "strengths": upcast(weights)}
    upper = jax.lax.bitcast_convert_type(weights, jnp.uint16).astype(jnp.int32)
    return {"words": upper << 16 | places.astype(jnp.int32), "strengths": None}
