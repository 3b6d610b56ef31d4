"""The jnp reference of `simulate`."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from snnjax._jax_compat import threefry_2x32
from snnjax._plasticity import (
    STDP,
    ShortTerm,
    ShortTermState,
    STDPTraces,
    SynapseEnds,
    changed_synapses,
    decayed,
    released,
    short_term_after,
    with_spikes,
)
from snnjax._quantised import Quantised, dequantise
from snnjax._sharding import vary_alike
from snnjax._sparse_spikes import list_ids
from snnjax._synapses import Synapses, targets_or_beyond
from snnjax._types import State, Unchecked, id_dtype, upcast
from snnjax.ops._tables.simulate import Operands, Results, ShortTermResults, StdpResults

_SIGN = 1 << 31  # random words as signed numbers keep their order


class Static(NamedTuple):
    """The static side of a call."""

    steps: int
    capacity: int
    has_conductances: bool
    poisson_receptor: int


def _poisson_counts(operands: Operands, step: Array) -> Array:
    """How many events each neuron has in a step: two neurons share a block of random bits."""
    neurons = operands.v.shape[0]
    half = (neurons + 1) // 2
    key = jax.lax.bitcast_convert_type(operands.key, jnp.uint32)
    number = jnp.broadcast_to(step.astype(jnp.uint32), (half,))
    words = threefry_2x32((key[0], key[1]), jnp.concatenate([jnp.arange(half, dtype=jnp.uint32), number]))
    drawn = jax.lax.bitcast_convert_type(words[:neurons] ^ jnp.uint32(_SIGN), jnp.int32)
    return jnp.sum(drawn[None, :] > operands.poisson_limits, axis=0, dtype=jnp.int32)


def _membranes(operands: Operands, static: Static, v: Array, g: Array, current: Array | None) -> Array:
    """The membranes after a step, of neurons that are free."""
    pull = jnp.zeros_like(v) if current is None else current
    if not static.has_conductances:
        pull = pull + operands.leak * v
    for own, effect in zip(g, operands.effect, strict=True):
        pull = pull + effect * own
    if not static.has_conductances:
        return pull
    total = jnp.ones_like(v)
    for own in g:
        total = total + own
    target = pull / total
    return target + (v - target) * jnp.exp(jnp.minimum(operands.leak * total, 0))


def reference(operands: Operands, static: Static) -> Results:
    """The jnp reference: a scan, each step of which looks at all synapses."""
    arrivals, receptors, neurons = operands.pending.shape
    synapses = Synapses(operands.ends, operands.targets, receptors * neurons)
    sources, targets = synapses.sources(), targets_or_beyond(synapses)
    rows = jnp.broadcast_to(jnp.clip(operands.delays.astype(jnp.int32), 1, arrivals) - 1, targets.shape)
    weights = upcast(operands.weights)
    if isinstance(weights, Quantised):
        weights = dequantise(weights, synapses)
    plasticity = _Plasticity.of(operands)

    def step(carry: PyTree, current: Array | None) -> tuple[Any, tuple[Array, Array, Any]]:
        (v, received, remaining, pending, counts, number), plastic = carry
        arrived = pending[0]
        if operands.poisson_limits.shape[0] > 0:
            added = operands.poisson_weights * _poisson_counts(operands, number).astype(v.dtype)
            arrived = arrived.at[static.poisson_receptor].add(added)
        g = received + arrived
        busy = remaining > 0
        v = jnp.where(busy, v, _membranes(operands, static, v, g, current))
        spikes = ~busy & (v > operands.threshold)
        v = jnp.where(spikes, operands.reset, v)
        remaining = jnp.where(spikes, operands.refractory, remaining - busy.astype(jnp.int32))
        strength = plasticity.strength(plastic, weights, sources)
        sent = jnp.where(jnp.take(spikes, sources, mode="fill", fill_value=False), strength, 0)
        later = jnp.concatenate([pending[1:], jnp.zeros_like(pending[:1])]).reshape(arrivals, -1)
        pending = later.at[rows, targets].add(sent, mode="drop").reshape(pending.shape)
        counts = counts + spikes.astype(jnp.int32)
        listed = list_ids(spikes[None, :], static.capacity)[0].astype(id_dtype(neurons))
        seen = None if operands.recorded is None else _seen(v, operands.recorded)
        after = v, operands.synaptic_decay * g, remaining, pending, counts, number + 1
        return (after, plasticity.after(plastic, spikes)), (listed, jnp.sum(spikes, dtype=jnp.int32), seen)

    start = (*operands[:4], jnp.zeros(neurons, jnp.int32), operands.step), plasticity.start
    start = vary_alike((start, operands))[0]
    given = operands.currents if operands.currents.shape[0] > 0 else None
    (last, plastic), (ids, num_spikes, seen) = jax.lax.scan(step, start, given, length=static.steps)
    v, received, remaining, pending, counts, _ = last
    return Results(ids, num_spikes, counts, v, received, remaining, pending, seen, *plastic)


def _seen(v: Array, ids: Array) -> Array:
    """The potentials of recorded neurons; of one that is none, not a number."""
    return jnp.take(v, jnp.where(ids < 0, v.shape[0], ids), mode="fill", fill_value=jnp.nan)


def tree_of_results(operands: Operands) -> PyTree:
    """The structure of the results of these operands."""
    stdp, short_term = _plastic(operands)
    recorded = None if operands.recorded is None else 0
    return jax.tree.structure(Results(0, 0, 0, 0, 0, 0, 0, recorded, stdp, short_term))


def _plastic(operands: Operands) -> tuple[StdpResults | None, ShortTermResults | None]:
    """What of both kinds of plasticity changes, before the first step."""
    stdp, short = operands.stdp, operands.short_term
    return (
        None if stdp is None else StdpResults(operands.weights, stdp.before, stdp.after),
        None if short is None else ShortTermResults(short.used, short.available),
    )


def _as_rule(stdp: Unchecked) -> STDP:
    return STDP(tuple(stdp.decay), tuple(stdp.rates), tuple(stdp.bounds), stdp.plastic)


class _Plasticity(NamedTuple):
    """Both kinds of plasticity in the reference; its states are those of the results, or None."""

    start: tuple[StdpResults | None, ShortTermResults | None]
    stdp: PyTree  # the rules
    short_term: PyTree
    ends: SynapseEnds

    @classmethod
    def of(cls, operands: Operands) -> "_Plasticity":
        """That of a call."""
        _, receptors, neurons = operands.pending.shape
        ends = SynapseEnds.of(Synapses(operands.ends, operands.targets, receptors * neurons), neurons)
        stdp, short = operands.stdp, operands.short_term
        return cls(
            _plastic(operands),
            None if stdp is None else _as_rule(stdp),
            None if short is None else ShortTerm(short.use, (short.recovery, short.facilitation)),
            ends,
        )

    def strength(self, states: State, weights: Array, sources: Array) -> Array:
        """What a spike sends through each synapse."""
        stdp, short = states
        weights = weights if stdp is None else stdp.weights
        if short is None:
            return weights
        release = released(ShortTermState(*short), self.short_term)
        return weights * jnp.take(release, sources, mode="fill", fill_value=0)

    def after(self, states: State, spikes: Array) -> State:
        """The states after a step."""
        stdp, short = states
        if stdp is not None:
            traces = decayed(STDPTraces(stdp.before, stdp.after), self.stdp)
            weights = changed_synapses(stdp.weights, traces, spikes, spikes, self.stdp, self.ends)
            stdp = StdpResults(weights, *with_spikes(traces, spikes, spikes))
        if short is not None:
            short = short_term_after(ShortTermState(*short), spikes, self.short_term)
            short = ShortTermResults(*short)
        return stdp, short
