"""The jnp reference of `simulate`, a scan, which users' own cells share."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PyTree

from snnjax._delayed_synapses import DelayedSynapses
from snnjax._plasticity import (
    STDP,
    ShortTerm,
    ShortTermState,
    changed_weights,
    changes,
    released,
    short_term_after,
)
from snnjax._sharding import vary_alike
from snnjax._sparse_spikes import list_ids
from snnjax._types import State, id_dtype, upcast
from snnjax.ops._glif_step import align
from snnjax.ops._random import hashed, threefry
from snnjax.ops._tables.simulate import Operands, Results, Seen, ShortTermResults, StdpResults

_SIGN = 1 << 31  # random words as signed numbers keep their order
_NOISE = 2**32 - 1  # the use of random words that is not the number of a source
_HALF_OF_WORD = 16  # bits


class Static(NamedTuple):
    """The static side of a call."""

    steps: int
    capacity: int
    has_conductances: bool
    every: int  # so many steps a sample is recorded
    num_columns: int  # of what is recorded
    received: bool  # whether it is recorded


def _words(operands: Operands, number: Array, use: int) -> Array:
    """A random word of each neuron in a step."""
    key = threefry(operands.key, number, jnp.full_like(number, use, jnp.uint32))
    return hashed(jnp.arange(operands.v.shape[0]), key)


def _row(rows: Array, step: Array) -> Array:
    """That of a step, or the only one."""
    return rows[0] if rows.shape[0] == 1 else jax.lax.dynamic_index_in_dim(rows, step, keepdims=False)


def random_input(operands: Operands, arrived: Array, step: Array) -> Array:
    """What neurons receive, with the events of all sources in a step of the call."""
    for use, source in enumerate(operands.poisson):
        words = _words(operands, operands.step + step, use)
        drawn = jax.lax.bitcast_convert_type(words ^ jnp.uint32(_SIGN), jnp.int32)
        counts = jnp.sum(drawn[None, :] > _row(source.limits, step), axis=0, dtype=jnp.int32)
        arrived = arrived.at[source.receptor].add(source.weights * counts.astype(arrived.dtype))
    return arrived


def current_in(operands: Operands, step: Array) -> Array | None:
    """What given currents and noise add to all membranes in a step of the call."""
    current = None
    if operands.currents.shape[0] > 0:
        current = _row(operands.currents, step)
        if operands.shares is not None:
            current = jnp.sum(current[:, None] * operands.shares, axis=0)
    if operands.noise is not None:
        bits = jax.lax.population_count(_words(operands, operands.step + step, _NOISE)).astype(jnp.int32)
        noise = operands.noise * (bits - _HALF_OF_WORD).astype(operands.noise.dtype)
        current = noise if current is None else current + noise
    return current


def given_in(operands: Operands, step: Array) -> Bool[Array, " neurons"] | None:
    """Which neurons are given a spike in a step of the call."""
    if operands.given is None:
        return None
    neurons = operands.v.shape[0]
    ids = operands.given.ids
    now = (operands.given.steps == operands.step + step) & (ids >= 0)
    return jnp.zeros(neurons, bool).at[jnp.where(now, ids, neurons)].set(True, mode="drop")


def membranes(constants: PyTree, has_conductances: bool, v: Array, g: Array, current: Array | None) -> Array:
    """The membranes after a step, of neurons that are free."""
    pull = jnp.zeros_like(v) if current is None else current
    if not has_conductances:
        pull = pull + constants.leak * v
    for own, effect in zip(g, constants.effect, strict=True):
        pull = pull + effect * own
    if not has_conductances:
        return pull
    total = jnp.ones_like(v)
    for own in g:
        total = total + own
    target = pull / total
    return target + (v - target) * jnp.exp(jnp.minimum(constants.leak * total, 0))


class LIFState(NamedTuple):
    """What leaky neurons carry from step to step; potentials are relative to rest."""

    v: Array
    received: Array
    remaining: Array


def leaky_step(
    constants: PyTree,
    has_conductances: bool,
    state: LIFState,
    arrived: Array,
    current: Array | None,
    given: Array | None,
) -> tuple[LIFState, Array]:
    """Leaky neurons in a step, and which spike; `constants` are arrays by the names of `Operands`."""
    v, received, remaining = state
    g = received + arrived
    busy = remaining > 0
    v = jnp.where(busy, v, membranes(constants, has_conductances, v, g, current))
    spikes = ~busy & (v > constants.threshold)
    spikes = spikes if given is None else spikes | given
    v = jnp.where(spikes, constants.reset, v)
    remaining = jnp.where(spikes, constants.refractory, remaining - busy.astype(jnp.int32))
    return LIFState(v, constants.synaptic_decay * g, remaining), spikes


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


def _pushed(history: Array, row: Array) -> Array:
    """The history with the row of another step, without its earliest one."""
    return jnp.concatenate([history[1:], row[None].astype(history.dtype)])


def bits_of(spikes: Array) -> Array:
    """A bit for each neuron."""
    return jnp.packbits(spikes, axis=-1, bitorder="little")


class Engine(NamedTuple):
    """What differs between the reference and users' own cells."""

    # (cells, what arrives [receptors, neurons], current, given spikes) -> cells after the step, which spike
    step: Callable[[Any, Array, Array | None, Array | None], tuple[Any, Array]]
    v: Callable[[Any], Array]  # what is recorded of cells
    received: Callable[[Any], Array]
    # (spikes under way as bits, step of the call) -> what arrives; None: found in jnp, which looks at all synapses
    deliver: Callable[[Array, Array], Array] | None = None


def reference(operands: Operands, static: Static) -> Results:
    """The jnp reference: a scan, each step of which looks at all synapses."""
    engine = Engine(
        lambda cells, *inputs: leaky_step(operands, static.has_conductances, cells, *inputs),
        lambda cells: cells.v,
        lambda cells: cells.received,
    )
    cells, results = scanned(
        operands, static, LIFState(operands.v, operands.received, operands.remaining), engine
    )
    return results._replace(v=cells.v, received=cells.received, remaining=cells.remaining)


def scanned(operands: Operands, static: Static, cells: State, engine: Engine) -> tuple[State, Results]:
    """The cells after all steps, and the other results."""
    receptors, neurons = operands.received.shape
    stored = operands.words, operands.weights, operands.segments, operands.ends
    synapses = DelayedSynapses(*stored, receptors * neurons, operands.sent.shape[0])
    arrivals = _Arrivals.of(synapses) if engine.deliver is None else None
    weights = upcast(synapses.weights()) if engine.deliver is None else jnp.zeros(0)
    plasticity = _Plasticity.of(operands, arrivals)

    def step(carry: PyTree, number: Array) -> tuple[Any, tuple[Array, Array, Any]]:
        (cells, sent, counts), plastic = carry
        arrives = None
        if engine.deliver is not None:
            arrived = engine.deliver(sent, number)
        else:
            assert arrivals is not None
            arrives = arrivals.at(
                jnp.unpackbits(sent, axis=-1, count=neurons, bitorder="little").astype(bool)
            )
            strength = jnp.where(arrives, plasticity.strength(plastic, weights), 0)
            arrived = (
                jnp.zeros(receptors * neurons, operands.v.dtype)
                .at[arrivals.targets]
                .add(strength, mode="drop")
            )
            arrived = random_input(operands, arrived.reshape(receptors, neurons), number)
        cells, spikes = engine.step(cells, arrived, current_in(operands, number), given_in(operands, number))
        plastic = plasticity.after(plastic, sent, arrives, spikes, number)
        listed = list_ids(spikes[None, :], static.capacity)[0].astype(id_dtype(neurons))
        counts = counts + spikes.astype(jnp.int32)
        seen = _seen(operands, static, cells, engine, plastic[0])
        after = cells, _pushed(sent, bits_of(spikes)), counts
        return (after, plastic), (listed, jnp.sum(spikes, dtype=jnp.int32), seen)

    start = (cells, operands.sent, jnp.zeros(neurons, jnp.int32)), plasticity.start
    start = vary_alike((start, operands))[0]
    ((cells, sent, counts), plastic), (ids, num_spikes, seen) = jax.lax.scan(
        step, start, jnp.arange(static.steps, dtype=jnp.int32)
    )
    seen = jax.tree.map(lambda rows: rows[static.every - 1 :: static.every], seen)
    return cells, Results(ids, num_spikes, counts, None, None, None, sent, seen, *plastic)


def _seen(
    operands: Operands, static: Static, cells: State, engine: Engine, stdp: StdpResults | None
) -> Seen | None:
    """What is recorded in a step, NaN for an id out of range. The first block holds all of it."""
    of = operands.recorded
    if of is None:
        return None
    neurons, blocks = operands.v.shape[0], operands.ends.shape[0]

    def columns(values: Array) -> Array:
        own = jnp.take(
            values, jnp.where(of.ids < 0, neurons, of.ids), axis=-1, mode="fill", fill_value=jnp.nan
        )
        sums = jnp.zeros((*values.shape[:-1], static.num_columns), values.dtype)
        sums = sums.at[..., of.columns].add(align(of.shares, own) * own, mode="drop")
        return jnp.concatenate([sums[None], jnp.zeros((blocks - 1, *sums.shape), sums.dtype)])

    weights = None
    if of.synapses is not None and stdp is not None:
        places = jnp.where(of.synapses < 0, stdp.weights.shape[0], of.synapses)
        weights = jnp.take(stdp.weights, places, mode="fill", fill_value=jnp.nan)
    return Seen(
        columns(engine.v(cells)), columns(engine.received(cells)) if static.received else None, weights
    )


def tree_of_results(operands: Operands, static: Static) -> PyTree:
    """The structure of the results of these operands."""
    stdp, short_term = _plastic(operands)
    of = operands.recorded
    seen = None if of is None else Seen(0, 0 if static.received else None, None if of.synapses is None else 0)
    return jax.tree.structure(Results(0, 0, 0, 0, 0, 0, 0, seen, stdp, short_term))


def _plastic(operands: Operands) -> tuple[StdpResults | None, ShortTermResults | None]:
    """What both kinds of plasticity change, before the first step."""
    stdp, short = operands.stdp, operands.short_term
    return (
        None if stdp is None else StdpResults(operands.weights, stdp.before, stdp.after, stdp.eligibility),
        None if short is None else ShortTermResults(short.used, short.available, short.released),
    )


class _Plasticity(NamedTuple):
    """Both kinds of plasticity in the reference; its states are those of the results, or None."""

    start: tuple[StdpResults | None, ShortTermResults | None]
    stdp: PyTree  # the rules
    short_term: PyTree
    modulation: Array | None
    arrivals: _Arrivals | None

    @classmethod
    def of(cls, operands: Operands, arrivals: _Arrivals | None) -> "_Plasticity":
        """That of a call."""
        stdp, short = operands.stdp, operands.short_term
        rule = stdp and STDP(
            tuple(stdp.decay), tuple(stdp.rates), tuple(stdp.bounds), stdp.plastic, stdp.keep
        )
        return cls(
            _plastic(operands),
            rule,
            None if short is None else ShortTerm(short.use, (short.recovery, short.facilitation)),
            stdp and stdp.modulation,
            arrivals,
        )

    def strength(self, states: State, weights: Array) -> Array:
        """What a spike that arrives now sends through each synapse."""
        stdp, short = states
        assert self.arrivals is not None
        weights = weights if stdp is None else stdp.weights
        return weights if short is None else weights * self.arrivals.at(short.released)

    def after(self, states: State, sent: Array, arrives: Array | None, spikes: Array, number: Array) -> State:
        """The states after a step."""
        stdp, short = states
        if stdp is not None:
            assert self.arrivals is not None and arrives is not None
            decay, neurons = self.stdp.decay, spikes.shape[0]
            after, receivers = decay[1] * stdp.after, self.arrivals.targets % max(neurons, 1)
            found = self.arrivals.at(stdp.before), jnp.take(after, receivers)
            gain, moves = changes(*found, arrives, jnp.take(spikes, receivers), self.stdp)
            weights, eligibility = self._modulated(stdp, gain, moves, number)
            last = jnp.unpackbits(sent[-1], count=neurons, bitorder="little")
            now = decay[0] * (stdp.before[-1] + last.astype(after.dtype))
            after = after + spikes.astype(after.dtype)
            stdp = StdpResults(weights, _pushed(stdp.before, now), after, eligibility)
        if short is not None:
            state = ShortTermState(short.used, short.available)
            sends = jnp.where(spikes, released(state, self.short_term), 0)
            state = short_term_after(state, spikes, self.short_term)
            short = ShortTermResults(*state, _pushed(short.released, sends))
        return stdp, short

    def _modulated(
        self, stdp: StdpResults, gain: Array, moves: Array, number: Array
    ) -> tuple[Array, Array | None]:
        """Weights and their eligibility after a step in which pairs have given them a gain."""
        factor = 1 if self.modulation is None else _row(self.modulation, number)
        if stdp.eligibility is None:
            return changed_weights(stdp.weights, factor * gain, moves, self.stdp), None
        was = (
            stdp.eligibility
            if self.stdp.plastic is None
            else jnp.where(self.stdp.plastic, stdp.eligibility, 0)
        )
        now = self.stdp.eligibility * was + gain
        weights = changed_weights(stdp.weights, factor * now, moves | (was != 0), self.stdp)
        if self.stdp.plastic is not None:
            now = jnp.where(self.stdp.plastic, now, stdp.eligibility)
        return weights, now
