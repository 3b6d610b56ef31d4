"""`simulate`: recurrent networks of neurons with exponential synapses, many time steps at once, without training."""

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, ArrayLike, Float, PyTree

from snnjax._arguments import explained
from snnjax._batching import SHARED
from snnjax._check import (
    check_choice,
    check_float_array,
    check_integer,
    check_shape,
    check_switches,
    fail,
)
from snnjax._delayed_synapses import DelayedSynapses
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._plasticity import STDP, ShortTerm, ShortTermState, STDPTraces, in_dtype
from snnjax._sharding import gathered, vary_alike
from snnjax._sparse_spikes import SparseSpikes, beyond
from snnjax._types import State, Unchecked, as_int32
from snnjax.ops._glif_step import align
from snnjax.ops._kernel_operands import call_by_records
from snnjax.ops._product import shared
from snnjax.ops._random import key_words
from snnjax.ops._simulation.cells import Cells, constants_of
from snnjax.ops._simulation.checks import (
    check_cells,
    check_conductances,
    check_input,
    check_network,
    check_neurons,
    check_plasticity,
    check_record,
    check_state,
    check_synapses,
    traced_faults,
)
from snnjax.ops._simulation.input import PoissonInput, SpikeTrains
from snnjax.ops._simulation.records import (
    Record,
    Recording,
    SimulationOutput,
    SimulationState,
    SynapticLIF,
    constant,
)
from snnjax.ops._simulation.reference import Engine, Static, reference, scanned, tree_of_results
from snnjax.ops._tables import simulate as tables
from snnjax.ops._tables.simulate import Operands, Results, SimulationNumbers

_OP = "simulate"
_MOST_RECEPTORS = 4  # of the kernel
_OF_BITS = 8**-0.5  # one over the standard deviation of how many of 32 random bits are 1


@explained
def simulate(
    neurons: SynapticLIF | Cells,
    synapses: DelayedSynapses,
    state: SimulationState,
    key: Array | None = None,
    *,
    steps: int,
    currents: Array | tuple[Array, Array] | None = None,
    noise: Float[ArrayLike, "..."] | None = None,
    poisson: PoissonInput | Sequence[PoissonInput] = (),
    spikes: SpikeTrains | None = None,
    stdp: STDP | None = None,
    modulation: Float[ArrayLike, "..."] | None = None,
    short_term: ShortTerm | None = None,
    record: Record | None = None,
    capacity: int = 0,
    implementation: str | None = None,
) -> tuple[SimulationOutput, SimulationState]:
    r"""Run a recurrent network for some time steps, all of them in one call of the compiled kernel; it is not trained.

    Neuron j has receptors r, each of which receives :math:`a_{rj}` in a step: the weights of synapses whose spikes
    arrive, and random input. In each step, with `decay` :math:`\delta` and `effect` :math:`e`:

    .. math::

        g_{rj} &= g'_{rj} + a_{rj} \\
        v_j &= \lambda v'_j + (1 - \lambda) (E + I_j) + \sum_r e_r g_{rj} \quad \text{(currents)} \\
        v_j &= v^\infty_j + (v'_j - v^\infty_j) \exp\Bigl(-\tfrac{dt}{\tau} \bigl(1 + \sum_r g_{rj}\bigr)\Bigr),
        \quad v^\infty_j = \frac{E + I_j + \sum_r e_r g_{rj}}{1 + \sum_r g_{rj}} \quad \text{(conductances)} \\
        s_j &= [v_j > \text{threshold}]

    then :math:`g_{rj}` is multiplied by :math:`\delta_r`, and a neuron that spikes is set to the potential `reset`,
    which it keeps for `refractory` steps: in these it receives, but its potential stays and it does not spike. A spike
    at step t arrives at step ``t + delay``, with the weight that the synapse then has. With currents this is the exact
    solution between events, with conductances it is exponential Euler.

    Weights are plastic with `stdp`: after each step they change as in `snnjax.plasticity.stdp`, by pairs of the spikes
    that arrive in it and those of the receiving neuron. With `short_term`, a spike sends the weights times what
    `snnjax.plasticity.short_term` releases.

    A simulation in pieces gives the same results as one call: pass the state on, and the same key. Random input depends
    only on the key, the number of the step and the neuron: Threefry-2x32 makes two words for each step, and a hash with
    them (Wellons' triple32) makes one for each neuron. A network of several blocks runs on several threads, with the
    same results for any number of them. Under `vmap`, networks run side by side.

    Args:
        neurons: their constants, from `snnjax.neurons.cuba_lif` or `snnjax.neurons.coba_lif`; `dt` is one of them. Or
            `snnjax.circuits.Populations.cells` of several models, which may be your own; their steps are in
            `jax.numpy`, between calls of the kernel that delivers spikes.
        synapses: with their weights, in mV (currents) or in units of the leak conductance; an inhibitory current has a
            negative weight, an inhibitory conductance a positive one. Where a traced conductance is negative, the
            potentials are NaN.
        state: `simulation_state`, or the state after the piece before.
        key: a PRNG key, for `poisson` and `noise`.
        steps: how many.
        currents: :math:`I`, given input in mV (current times resistance) for each step, ``[steps, neurons]`` or
            ``[steps, 1]``. Or a pair: time courses ``[steps, courses]``, and how much of each course every neuron
            receives, ``[courses, neurons]`` or ``[courses, 1]``.
        noise: the standard deviation in mV, one number or ``[neurons]``, of a current of independent random numbers
            with a mean of 0, one for each neuron and step. Each is made from 32 random bits, nearly normal, and at most
            5.7 standard deviations from 0.
        poisson: random input, of one source or several.
        spikes: given spikes: a neuron spikes in these steps in addition to its own spikes, even while it is refractory.
            A neuron whose threshold is out of reach is a mere source.
        stdp: how weights change, which must be float32 or float64; `SimulationOutput.weights` are those after the last
            step. The kernel sorts the synapses by receiver in each call, 12 bytes each, so give a call thousands of
            steps.
        modulation: the third factor, by which all changes of weights are multiplied: one number, or ``[steps]``. With
            `STDP.eligibility` :math:`k`, what pairs change is the eligibility of a synapse,
            :math:`e = k e' + \Delta`, and in each step its weight changes by the modulation times :math:`e`.
        short_term: how much of a weight each spike sends.
        record: which potentials, currents or conductances, and weights are `SimulationOutput.recorded`, and how often.
        capacity: how many spikes of a step are listed, those of the lowest ids; their number is counted in any case.
        implementation: None chooses automatically; "reference" forces the jnp reference; "cpu" forces the compiled
            kernel or raises.

    Raises:
        ValueError: if shapes do not match, dtypes are wrong, a key is missing, something is differentiated, or the
            implementation is unknown or unavailable.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import DelayedSynapses, Synapses, neurons, simulate, simulation_state
        >>> cells = neurons.cuba_lif(
        ...     tau=20.0, synaptic_taus=(5.0,), rest=-49.0, threshold=-50.0, reset=-60.0, refractory=5.0, dt=0.1
        ... )
        >>> drawn = Synapses.fixed_fan_out(jax.random.key(0), 100, 100, fan_out=10)
        >>> synapses = DelayedSynapses.of(drawn, jnp.full(1000, -1.0), delays=15)
        >>> out, state = simulate(cells, synapses, simulation_state(cells, synapses), steps=1000, capacity=100)
        >>> out.spikes.shape, int(out.counts.sum()) == int(out.spikes.num_spikes.sum())
        ((1000, 100), True)

    Reference:
        Brette et al. 2007, doi:10.1007/s10827-007-0038-6; Rotter and Diesmann 1999, doi:10.1007/s004220050570.
    """
    check_choice(_OP, "implementation", implementation, (None, "reference", "cpu"))
    steps = check_integer(_OP, "steps", steps, 0)
    capacity = check_integer(_OP, "capacity", capacity, 0)
    check_network(neurons, synapses)
    check_state(neurons, synapses, state)
    sources = _as_tuple(poisson)
    given = _Input(currents, None if noise is None else jnp.asarray(noise), sources, spikes)
    check_input(neurons, synapses.num_neurons, steps, given, key)
    check_plasticity(synapses, state, stdp, short_term, modulation, steps)
    check_conductances(neurons, synapses, sources, stdp)
    check_record(neurons, synapses, record, stdp)
    rules = _Rules(stdp, None if modulation is None else jnp.asarray(modulation), short_term)
    parts = gathered((neurons, synapses, state, given, record, rules))
    operands = vary_alike(_operands(*parts, key=key))
    recorded = (1, 0, False) if record is None else (record.every, record.num_columns, record.received)
    static = Static(steps, capacity, neurons.has_conductances, *recorded)
    if isinstance(neurons, Cells):
        cells, results = _run_cells(operands, static, parts[0], parts[2].cells, implementation)
        return _yielded(results, operands, static, None, state._replace(cells=cells))
    rest = constants_of(parts[0], synapses.num_neurons, operands.v.dtype).rest
    return _yielded(_run(operands, static, implementation), operands, static, rest, state)


def _as_tuple(poisson: Unchecked) -> tuple[Any, ...]:
    return tuple(poisson) if isinstance(poisson, list | tuple) else (poisson,)


@explained
def simulation_state(
    neurons: SynapticLIF | Cells,
    synapses: DelayedSynapses,
    *,
    v: Float[Array, " neurons"] | None = None,
    stdp: bool = False,
    eligibility: bool = False,
    short_term: bool = False,
) -> SimulationState:
    """The state before the first step of `simulate`: at rest, with no spikes under way.

    Args:
        neurons: their constants.
        synapses: that connect them; the state holds the spikes of as many steps as their longest delay.
        v: initial membrane potentials in mV; None for the resting potential. Those of `Cells` are as their models say.
        stdp: whether it holds the traces of spike-timing-dependent plasticity, which start at 0.
        eligibility: whether it holds the eligibility of all synapses, which starts at 0, for `STDP.eligibility`.
        short_term: whether it holds the state of short-term plasticity: all is available, and none in use.

    Raises:
        ValueError: if an argument has the wrong type, the constants or potentials are for another number of neurons, or
            `v` is not floating-point, or given with `Cells`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import DelayedSynapses, Synapses, neurons, simulation_state
        >>> cells = neurons.coba_lif(
        ...     tau=20.0,
        ...     synaptic_taus=(5.0, 10.0),
        ...     reversals=(0.0, -80.0),
        ...     rest=-60.0,
        ...     threshold=-50.0,
        ...     reset=-60.0,
        ...     refractory=5.0,
        ...     dt=0.1,
        ... )
        >>> drawn = Synapses.with_probability(jax.random.key(0), 400, 800, 0.02)
        >>> synapses = DelayedSynapses.of(drawn, jnp.full(drawn.num_synapses, 0.6), delays=10)
        >>> v = jax.random.uniform(jax.random.key(1), 400, minval=-60, maxval=-50)
        >>> state = simulation_state(cells, synapses, v=v)
        >>> state.received.shape, state.sent.shape
        ((2, 400), (10, 50))
    """
    op = "simulation_state"
    check_neurons(op, neurons)
    check_synapses(op, neurons, synapses)
    num_neurons, max_delay, dtype = synapses.num_neurons, synapses.max_delay, synapses.dtype
    check_switches(op, stdp=stdp, eligibility=eligibility, short_term=short_term)
    none, earlier = jnp.zeros(num_neurons, dtype), jnp.zeros((max_delay, num_neurons), dtype)
    eligible = jnp.zeros(synapses.num_synapses, dtype) if eligibility else None
    state = SimulationState(
        None,
        None,
        None,
        jnp.zeros((max_delay, (num_neurons + 7) // 8), jnp.uint8),
        jnp.zeros((), jnp.int32),
        STDPTraces(earlier, none, eligible) if stdp else None,
        ShortTermState(none, jnp.ones(num_neurons, dtype)) if short_term else None,
        earlier if short_term else None,
    )
    if isinstance(neurons, Cells):
        check_cells(op, neurons, v)
        return state._replace(cells=neurons.initial(dtype))
    if v is None:
        v = jnp.broadcast_to(constant(op, "neurons.rest", neurons.rest, num_neurons), (num_neurons,))
    check_float_array(op, "v", v)
    check_shape(op, "v", v, (num_neurons,), "neurons", "Pass one for each neuron")
    return state._replace(
        v=v.astype(dtype),
        received=jnp.zeros((neurons.num_receptors, num_neurons), dtype),
        remaining=jnp.zeros(num_neurons, jnp.int32),
        rounded_off=none,
    )


def _or_nan(v: Array, faults: list[Array]) -> Array:
    """Potentials, not a number if there is any fault: then no neuron spikes."""
    return jnp.where(jnp.any(jnp.stack(faults)), jnp.nan, v) if faults else v


class _Input(NamedTuple):
    """What neurons are given."""

    currents: Any
    noise: Array | None
    poisson: tuple[PoissonInput, ...]
    spikes: SpikeTrains | None


class _Rules(NamedTuple):
    """How synapses change."""

    stdp: STDP | None
    modulation: Array | None
    short_term: ShortTerm | None


def _operands(
    neurons: SynapticLIF | Cells,
    synapses: DelayedSynapses,
    state: SimulationState,
    given: _Input,
    record: Record | None,
    rules: _Rules,
    *,
    key: Unchecked,
) -> Operands:
    """All arrays, with numbers in the accumulation dtype, and potentials relative to rest."""
    dtype, count = synapses.dtype, synapses.num_neurons
    faults = traced_faults(neurons, synapses, given.poisson, rules.stdp)
    own, gain = _collecting(neurons, count, dtype), jnp.ones(1, dtype)
    if isinstance(neurons, SynapticLIF):
        of = constants_of(neurons, count, dtype)
        assert state.received is not None and state.remaining is not None
        lif = _relative(state, of.rest, dtype), state.received.astype(dtype), as_int32(state.remaining)
        own = dict(zip(("v", "received", "remaining"), lif, strict=True)) | of._asdict()
        gain, _ = own.pop("gain"), own.pop("rest")
    own["v"] = _or_nan(own["v"], faults)
    is_random = given.poisson or given.noise is not None
    return Operands(
        **own,
        sent=state.sent,
        step=jnp.asarray(state.step, jnp.int32),
        words=synapses.words,
        weights=synapses.strengths,
        segments=synapses.segments,
        ends=synapses.ends,
        **_currents(given, gain, count),
        key=key_words(key) if is_random else jnp.zeros(2, jnp.int32),
        poisson=_sources(given.poisson, count, dtype),
        given=given.spikes and tables.Given(as_int32(given.spikes.steps), as_int32(given.spikes.ids)),
        recorded=record
        and tables.Recorded(record.ids, record.columns, record.shares.astype(dtype), record.synapses),
        stdp=_stdp_operands(rules, state.traces, dtype),
        short_term=_short_term_operands(rules.short_term, state, dtype),
    )


def _collecting(neurons: SynapticLIF | Cells, count: int, dtype: DTypeLike) -> dict[str, Array]:
    """Leaky neurons that do nothing but keep what arrives, from which cells take it."""
    receptors, none = (neurons.num_receptors, count), jnp.zeros(1, dtype)
    return {
        "v": jnp.zeros(count, dtype),
        "received": jnp.zeros(receptors, dtype),
        "remaining": jnp.zeros(count, jnp.int32),
        "leak": none,
        "threshold": none + jnp.inf,
        "reset": none,
        "refractory": jnp.zeros(1, jnp.int32),
        "synaptic_decay": jnp.ones((receptors[0], 1), dtype),
        "effect": jnp.zeros((receptors[0], 1), dtype),
    }


def _relative(state: SimulationState, rest: Array, dtype: DTypeLike) -> Array:
    """The potentials of a state relative to rest."""
    assert state.v is not None
    v = state.v.astype(dtype) - rest
    return v if state.rounded_off is None else v + state.rounded_off.astype(dtype)


def _currents(given: _Input, gain: Array, count: int) -> dict[str, Array | None]:
    """Given currents and noise, as they move membranes in a step."""
    noise = given.noise
    if noise is not None:
        noise = constant(_OP, "noise", jnp.atleast_1d(noise), count).astype(gain.dtype)
        noise = gain * noise * gain.dtype.type(_OF_BITS)
    if isinstance(given.currents, tuple):
        courses, shares = (part.astype(gain.dtype) for part in given.currents)
        return {"currents": courses, "shares": gain[None] * shares, "noise": noise}
    own = given.currents
    own = jnp.zeros((0, 1), gain.dtype) if own is None else gain[None] * own.astype(gain.dtype)
    return {"currents": own, "shares": None, "noise": noise}


def _sources(poisson: tuple[PoissonInput, ...], count: int, dtype: DTypeLike) -> tuple[tables.Poisson, ...]:
    """Random input, with as many levels of all: a limit that no word exceeds adds nothing."""
    levels = max([source.limits.shape[1] for source in poisson], default=0)
    never = jnp.iinfo(jnp.int32).max
    found = []
    for source in poisson:
        limits = constant(_OP, "poisson.limits", source.limits, count)
        missing = ((0, 0), (0, levels - limits.shape[1]), (0, 0))
        weights = constant(_OP, "poisson.weights", source.weights, count).astype(dtype)
        receptor = jnp.asarray(source.receptor, jnp.int32)
        found.append(tables.Poisson(jnp.pad(limits, missing, constant_values=never), weights, receptor))
    return tuple(found)


def _stdp_operands(rules: _Rules, traces: State, dtype: DTypeLike) -> PyTree:
    if rules.stdp is None:
        return None
    *pairs, plastic, keep = in_dtype(rules.stdp, dtype)
    decay, rates, bounds = map(jnp.stack, pairs)
    before, after, eligibility = (trace if trace is None else trace.astype(dtype) for trace in traces)
    factor = rules.modulation
    factor = None if factor is None else jnp.atleast_1d(factor).astype(dtype)
    keep = None if keep is None else jnp.reshape(keep, ())
    return tables.Stdp(decay, rates, bounds, before, after, plastic, factor, keep, eligibility)


def _short_term_operands(rule: ShortTerm | None, state: State, dtype: DTypeLike) -> PyTree:
    if rule is None:
        return None
    use, recovery, facilitation = map(jnp.atleast_1d, jax.tree.leaves(in_dtype(rule, dtype)))
    held = (part.astype(dtype) for part in (*state.short_term, state.released))
    return tables.ShortTerm(use, recovery, facilitation, *held)


def _yielded(
    results: Results, operands: Operands, static: Static, rest: Array | None, before: SimulationState
) -> tuple[SimulationOutput, SimulationState]:
    """The recorded spikes as lists, the plastic weights, and the state after the last step."""
    count, (changed, *traces) = results.num_spikes, results.stdp or (None,)
    listed = jnp.minimum(count, static.capacity)
    spikes = SparseSpikes(
        results.ids, None, count, listed, beyond(count, static.capacity), operands.v.shape[0]
    )
    short, released = None, None
    if results.short_term is not None:
        *short, released = results.short_term
    after = before._replace(
        sent=results.sent,
        step=operands.step + jnp.int32(static.steps),
        traces=STDPTraces(*traces) if traces else None,
        short_term=None if short is None else ShortTermState(*short),
        released=released,
    )
    if rest is not None:
        v = results.v + rest
        off = None if before.rounded_off is None else results.v - (v - rest)
        after = after._replace(v=v, received=results.received, remaining=results.remaining, rounded_off=off)
    return SimulationOutput(
        spikes, results.counts, changed, _recording(results, operands, static, rest)
    ), after


def _recording(results: Results, operands: Operands, static: Static, rest: Array | None) -> Recording | None:
    """What was recorded, of all blocks, and potentials no longer relative to rest."""
    seen, of = results.recorded, operands.recorded
    if seen is None or of is None:
        return None
    v = jnp.sum(seen.v, axis=1)
    if rest is not None:
        own = jnp.take(jnp.broadcast_to(rest, operands.v.shape), of.ids, mode="clip")
        v = v.at[:, of.columns].add(align(of.shares * own, v), mode="drop")
    received = None if seen.received is None else jnp.sum(seen.received, axis=1)
    return Recording(v, received, seen.weights)


def _call(operands: Operands, static: Static, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    numbers = SimulationNumbers(static.has_conductances, len(operands.poisson), static.every)
    records = jax.tree.unflatten(tree_of_results(operands, static), results)
    return call_by_records("snnjax_simulate", operands, records, [numbers])


def _obstacle(shapes: Operands, _: object) -> str | None:
    receptors = shapes.received.shape[-2]
    if not 1 <= receptors <= _MOST_RECEPTORS:
        return f"{receptors} receptors"
    return None if shapes.v.dtype == jnp.float32 else f"{shapes.v.dtype.name} weights"


_TARGET = Target(
    "snnjax_simulate",
    _OP,
    reference,
    {"cpu": Kernel(_call, _obstacle)},
)


@jax.custom_jvp
def _undifferentiated(operands: PyTree) -> PyTree:
    """The operands; a derivative would be that of no surrogate."""
    return operands


@_undifferentiated.defjvp
def _refuse(primals: object, tangents: object) -> NoReturn:
    del primals, tangents
    fail(
        f"{_OP}: `weights` must not be differentiated, nor the other arguments, got a tangent. "
        "Train with snnjax.network, or pass jax.lax.stop_gradient of them."
    )


def _run(operands: Operands, static: Static, implementation: str | None) -> Results:
    axes, tree = shared(operands), tree_of_results(operands, static)
    result_axes = jax.tree.unflatten(tree, [SHARED] * tree.num_leaves)
    return evaluate(
        _TARGET, _undifferentiated(operands), axes, result_axes, static, implementation=implementation
    )


def _run_cells(
    operands: Operands, static: Static, cells: Cells, states: State, implementation: str | None
) -> tuple[State, Results]:
    """Steps of models in `jax.numpy`, each behind a call of the kernel for one step of neurons that collect input."""
    operands, cells, states = _undifferentiated((operands, cells, states))
    none = jnp.zeros((0, 1), operands.currents.dtype)
    alone = operands._replace(currents=none, shares=None, noise=None, given=None, recorded=None)

    def deliver(sent: Array, number: Array) -> Array:
        poisson = tuple(
            source._replace(limits=jax.lax.dynamic_slice_in_dim(source.limits, number, 1))
            if source.limits.shape[0] > 1
            else source
            for source in operands.poisson
        )
        now = alone._replace(sent=sent, step=operands.step + number, poisson=poisson)
        return _run(now, Static(1, 0, False, 1, 0, False), implementation).received

    is_plastic = operands.stdp is not None or operands.short_term is not None
    engine = Engine(cells.step, cells.v, lambda states: states, None if is_plastic else deliver)
    return scanned(operands, static, states, engine)
