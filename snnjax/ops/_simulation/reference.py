"""The jnp reference of `simulate`."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from snnjax._delayed_synapses import DelayedSynapses
from snnjax._plasticity import STDP, ShortTerm, ShortTermState, changed_weights, released, short_term_after
from snnjax._sharding import vary_alike
from snnjax._sparse_spikes import list_ids
from snnjax._types import State, Unchecked, id_dtype, upcast
from snnjax.ops._random import hashed, threefry
from snnjax.ops._tables.simulate import Operands, Results, ShortTermResults, StdpResults

_SIGN = 1 << 31  # random words as signed numbers keep their order


class Static(NamedTuple):
    """The static side of a call."""

    steps: int
    capacity: int
    has_conductances: bool
    poisson_receptor: int


def _poisson_counts(operands: Operands, step: Array) -> Array:
    """How many events each neuron has in a step."""
    words = hashed(jnp.arange(operands.v.shape[0]), threefry(operands.key, step, jnp.zeros_like(step)))
    drawn = jax.lax.bitcast_convert_type(words ^ jnp.uint32(_SIGN), jnp.int32)
    return jnp.sum(drawn[None, :] > operands.poisson_limits, axis=0, dtype=jnp.int32)


def membranes(cells: Unchecked, has_conductances: bool, v: Array, g: Array, current: Array | None) -> Array:
    """The membranes after a step, of neurons that are free; `cells` are `Operands` or a `SynapticLIF`.

    Receptors are on the first axis of `g`; `v` and constants have as many axes as each other.
    """
    pull = jnp.zeros_like(v) if current is None else current
    if not has_conductances:
        pull = pull + cells.leak * v
    for own, effect in zip(g, cells.effect, strict=True):
        pull = pull + effect * own
    if not has_conductances:
        return pull
    total = jnp.ones_like(v)
    for own in g:
        total = total + own
    target = pull / total
    return target + (v - target) * jnp.exp(jnp.minimum(cells.leak * total, 0))


class _Arrivals(NamedTuple):
    """What arrives through each synapse in a step: of which row of the last steps, and of which neuron."""

    rows: Array  # the earliest step is row 0; beyond them for delays out of range
    sources: Array
    targets: Array

    @classmethod
    def of(cls, synapses: DelayedSynapses) -> "_Arrivals":
        """Those of synapses."""
        late = synapses.delays()
        within = (late >= 1) & (late <= synapses.max_delay)
        rows = jnp.where(within, synapses.max_delay - late, synapses.max_delay)
        return cls(rows, synapses.sources(), synapses.targets())

    def at(self, history: Array) -> Array:
        """What a history ``[max_delay, neurons]`` holds of the spike that arrives."""
        return history.at[self.rows, self.sources].get(mode="fill", fill_value=0)


def _bits(sent: Array, neurons: int) -> Array:
    return jnp.unpackbits(sent, axis=-1, count=neurons, bitorder="little").astype(bool)


def _pushed(history: Array, row: Array) -> Array:
    """The history with the row of another step, without its earliest one."""
    return jnp.concatenate([history[1:], row[None].astype(history.dtype)])


def _synapses_of(operands: Operands) -> DelayedSynapses:
    """The synapses of a call."""
    receptors, neurons = operands.received.shape
    stored = operands.words, operands.weights, operands.segments, operands.ends
    return DelayedSynapses(*stored, receptors * neurons, operands.sent.shape[0])


def reference(operands: Operands, static: Static) -> Results:
    """The jnp reference: a scan, each step of which looks at all synapses."""
    receptors, neurons = operands.received.shape
    synapses = _synapses_of(operands)
    arrivals, weights = _Arrivals.of(synapses), upcast(synapses.weights())
    plasticity = _Plasticity.of(operands, arrivals)

    def step(carry: PyTree, current: Array | None) -> tuple[Any, tuple[Array, Array, Any]]:
        (v, received, remaining, sent, counts, number), plastic = carry
        arrives = arrivals.at(sent)
        strength = jnp.where(arrives, plasticity.strength(plastic, weights), 0)
        arrived = jnp.zeros(receptors * neurons, v.dtype).at[arrivals.targets].add(strength, mode="drop")
        arrived = arrived.reshape(received.shape)
        if operands.poisson_limits.shape[0] > 0:
            added = operands.poisson_weights * _poisson_counts(operands, number).astype(v.dtype)
            arrived = arrived.at[static.poisson_receptor].add(added)
        g = received + arrived
        busy = remaining > 0
        v = jnp.where(busy, v, membranes(operands, static.has_conductances, v, g, current))
        spikes = ~busy & (v > operands.threshold)
        v = jnp.where(spikes, operands.reset, v)
        remaining = jnp.where(spikes, operands.refractory, remaining - busy.astype(jnp.int32))
        counts = counts + spikes.astype(jnp.int32)
        listed = list_ids(spikes[None, :], static.capacity)[0].astype(id_dtype(neurons))
        seen = None if operands.recorded is None else _seen(v, operands.recorded)
        plastic = plasticity.after(plastic, sent, arrives, spikes)
        after = v, operands.synaptic_decay * g, remaining, _pushed(sent, spikes), counts, number + 1
        return (after, plastic), (listed, jnp.sum(spikes, dtype=jnp.int32), seen)

    before = operands.v, operands.received, operands.remaining, _bits(operands.sent, neurons)
    start = (*before, jnp.zeros(neurons, jnp.int32), operands.step), plasticity.start
    start = vary_alike((start, operands))[0]
    given = operands.currents if operands.currents.shape[0] > 0 else None
    (last, plastic), (ids, num_spikes, seen) = jax.lax.scan(step, start, given, length=static.steps)
    v, received, remaining, sent, counts, _ = last
    sent = jnp.packbits(sent, axis=-1, bitorder="little")
    return Results(ids, num_spikes, counts, v, received, remaining, sent, seen, *plastic)


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
        None if short is None else ShortTermResults(short.used, short.available, short.released),
    )


def _as_rule(stdp: Unchecked) -> STDP:
    return STDP(tuple(stdp.decay), tuple(stdp.rates), tuple(stdp.bounds), stdp.plastic)


class _Plasticity(NamedTuple):
    """Both kinds of plasticity in the reference; its states are those of the results, or None."""

    start: tuple[StdpResults | None, ShortTermResults | None]
    stdp: PyTree  # the rules
    short_term: PyTree
    arrivals: _Arrivals

    @classmethod
    def of(cls, operands: Operands, arrivals: _Arrivals) -> "_Plasticity":
        """That of a call."""
        stdp, short = operands.stdp, operands.short_term
        return cls(
            _plastic(operands),
            None if stdp is None else _as_rule(stdp),
            None if short is None else ShortTerm(short.use, (short.recovery, short.facilitation)),
            arrivals,
        )

    def strength(self, states: State, weights: Array) -> Array:
        """What a spike that arrives now sends through each synapse."""
        stdp, short = states
        weights = weights if stdp is None else stdp.weights
        return weights if short is None else weights * self.arrivals.at(short.released)

    def after(self, states: State, sent: Array, arrives: Array, spikes: Array) -> State:
        """The states after a step."""
        stdp, short = states
        if stdp is not None:
            decay, neurons = self.stdp.decay, spikes.shape[0]
            after, receivers = decay[1] * stdp.after, self.arrivals.targets % max(neurons, 1)
            found = self.arrivals.at(stdp.before), jnp.take(after, receivers)
            weights = changed_weights(stdp.weights, *found, arrives, jnp.take(spikes, receivers), self.stdp)
            now = decay[0] * (stdp.before[-1] + sent[-1].astype(after.dtype))
            stdp = StdpResults(weights, _pushed(stdp.before, now), after + spikes.astype(after.dtype))
        if short is not None:
            state = ShortTermState(short.used, short.available)
            sends = jnp.where(spikes, released(state, self.short_term), 0)
            state = short_term_after(state, spikes, self.short_term)
            short = ShortTermResults(*state, _pushed(short.released, sends))
        return stdp, short
