"""`simulate`: recurrent networks of neurons with exponential synapses, many time steps at once, without training."""

from collections.abc import Sequence
from types import NoneType
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from snnjax._batching import SHARED
from snnjax._check import (
    check_choice,
    check_float_array,
    check_integer,
    check_integers,
    check_key,
    check_shape,
    check_switches,
    check_within,
    concrete,
    fail,
    plural,
    short_repr,
    type_words,
)
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._jax_compat import threefry_2x32
from snnjax._quantised import Quantised, check_weights, dequantise
from snnjax._sharding import gathered, vary_alike
from snnjax._types import accumulation_dtype, id_dtype, upcast
from snnjax.ops._kernel_operands import as_kernel_ids, call_by_records, dtype_obstacle
from snnjax.ops._plasticity import (
    STDP,
    ShortTerm,
    ShortTermState,
    STDPTraces,
    SynapseEnds,
    changed_synapses,
    check_short_term,
    check_stdp,
    in_dtype,
    released,
    short_term_after,
    traces_after,
)
from snnjax.ops._simulation import PoissonInput, SimulationOutput, SimulationState, SynapticLIF
from snnjax.ops._tables import simulate as tables
from snnjax.ops._tables.simulate import Operands, Results, SimulationNumbers
from snnjax.ops.spike_matmul import shared
from snnjax.sparse_spikes import SparseSpikes, beyond, list_ids
from snnjax.synapses import Synapses, targets_or_beyond

_OP = "simulate"
_MOST_RECEPTORS = 4  # of the kernel
_SIGN = 1 << 31  # random words as signed numbers keep their order


def simulate(
    neurons: SynapticLIF,
    synapses: Synapses,
    weights: Float[Array, " synapses"] | Quantised,
    state: SimulationState,
    key: Array | None = None,
    *,
    steps: int,
    delays: Integer[Array, "*synapses"] | int = 1,
    currents: Float[Array, "steps neurons_or_1"] | None = None,
    poisson: PoissonInput | None = None,
    stdp: STDP | None = None,
    short_term: ShortTerm | None = None,
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

    then :math:`g_{rj}` is multiplied by :math:`\delta_r`, and a neuron that spikes has the potential `reset`, which it
    keeps for `refractory` steps: in these it receives, but neither moves nor spikes. A spike at step t arrives at step
    ``t + delay``. With currents this is the exact solution between events, with conductances it is exponential Euler.

    Weights are plastic with `stdp`: after the spikes of a step are sent, they change as in `snnjax.plasticity.stdp`, by
    pairs of the spikes themselves, whatever their delays. With `short_term`, a spike sends its weights times what
    `snnjax.plasticity.short_term` releases.

    Steps in pieces are the same as all at once: pass the state on, and the same key. Random input depends on the key,
    the number of the step and the neuron alone. Under `vmap`, networks run side by side.

    Args:
        neurons: their constants, `snnjax.neurons.cuba_lif` or `snnjax.neurons.coba_lif`; `dt` is one of them.
        synapses: from neuron i to target ``r * neurons + j``, receptor r of neuron j; with one receptor simply j.
        weights: one for each synapse, in mV (currents) or in units of the leak conductance; an inhibitory current has a
            negative weight, an inhibitory conductance a positive one. bfloat16 halves their memory, int8 halves it
            again (`quantisation.Quantised`, with a scale for each target).
        state: `simulation_state`, or that of the piece before.
        key: a PRNG key, for `poisson`.
        steps: how many.
        delays: in steps, one for all synapses or ``[synapses]`` (uint16 takes least memory), from 1 to
            the `max_delay` of the state; where a traced one is out of that range, the potentials are NaN.
        currents: :math:`I`, given input in mV (current times resistance) for each step, ``[steps, neurons]`` or
            ``[steps, 1]``.
        poisson: random input of every neuron.
        stdp: how weights change, which are float32 or float64 then; `SimulationOutput.weights` are those after the last
            step. The kernel sorts the synapses by receiver in each call: let it have thousands of steps.
        short_term: how much of a weight each spike sends.
        capacity: how many spikes of a step are listed, those of the lowest ids; their number is counted in any case.
        implementation: None chooses automatically; "reference" forces the jnp reference; "cpu" forces the compiled
            kernel or raises.

    Raises:
        ValueError: if shapes do not match, dtypes are wrong, a key is missing, something is differentiated, or the
            implementation is unknown or unavailable.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import Synapses, neurons, simulate, simulation_state
        >>> cells = neurons.cuba_lif(
        ...     tau=20.0, synaptic_taus=(5.0,), rest=-49.0, threshold=-50.0, reset=-60.0, refractory=5.0, dt=0.1
        ... )
        >>> synapses = Synapses.fixed_fan_out(jax.random.key(0), 100, 100, fan_out=10)
        >>> out, state = simulate(
        ...     cells, synapses, jnp.full(1000, -1.0), simulation_state(cells, 100), steps=1000, capacity=100
        ... )
        >>> out.spikes.shape, int(out.counts.sum()) == int(out.spikes.num_spikes.sum())
        ((1000, 100), True)

    Reference:
        Brette et al. 2007, doi:10.1007/s10827-007-0038-6; Rotter and Diesmann 1999, doi:10.1007/s004220050570.
    """
    check_choice(_OP, "implementation", implementation, (None, "reference", "cpu"))
    check_integer(_OP, "steps", steps, 0)
    check_integer(_OP, "capacity", capacity, 0)
    _check_network(neurons, synapses, weights)
    _check_state(neurons, synapses.num_neurons, state)
    _check_input(neurons, synapses.num_neurons, int(steps), currents, poisson, key)
    _check_plasticity(synapses.num_neurons, weights, state, stdp, short_term)
    given = gathered(
        (
            neurons,
            synapses,
            weights,
            state,
            _delays(delays, synapses, state.pending.shape[0]),
            currents,
            poisson,
            stdp,
            short_term,
        )
    )
    operands = _operands(*given, key=key)
    static = _Static(
        int(steps), int(capacity), neurons.has_conductances, poisson.receptor if poisson is not None else 0
    )
    results = _run(vary_alike(operands), static, implementation)
    changed, traces = None, None
    if results.stdp is not None:
        changed, *traces = results.stdp
        traces = STDPTraces(*traces)
    after = SimulationState(
        results.v,
        results.received,
        results.remaining,
        results.pending,
        operands.step + jnp.int32(steps),
        traces,
        None if results.short_term is None else ShortTermState(*results.short_term),
    )
    return SimulationOutput(_listed(results, synapses.num_neurons), results.counts, changed), after


def simulation_state(
    neurons: SynapticLIF,
    num_neurons: int,
    *,
    max_delay: int = 1,
    v: Float[Array, " neurons"] | None = None,
    stdp: bool = False,
    short_term: bool = False,
    dtype: Any = jnp.float32,
) -> SimulationState:
    """The state before the first step of `simulate`: at rest, and nothing on its way.

    Args:
        neurons: their constants.
        num_neurons: how many there are.
        max_delay: the longest delay in steps; the state holds what arrives in as many.
        v: initial membrane potentials in mV; None for the resting potential.
        stdp: whether it holds the traces of spike-timing-dependent plasticity, of no spikes so far.
        short_term: whether it holds the state of short-term plasticity: all is available, and none in use.
        dtype: float32, or float64 for weights in float64.

    Raises:
        ValueError: if the constants or potentials are of another number of neurons, or a number is none.

    Example:
        >>> import jax
        >>> from snnjax import neurons, simulation_state
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
        >>> state = simulation_state(
        ...     cells, 4000, v=jax.random.uniform(jax.random.key(0), 4000, minval=-60, maxval=-50)
        ... )
        >>> state.received.shape
        (2, 4000)
    """
    op = "simulation_state"
    _check_neurons(op, neurons)
    check_integer(op, "num_neurons", num_neurons, 0)
    check_integer(op, "max_delay", max_delay, 1)
    check_switches(op, stdp=stdp, short_term=short_term)
    if v is None:
        v = jnp.broadcast_to(_constant(op, "neurons.rest", neurons.rest, num_neurons), (num_neurons,))
    check_float_array(op, "v", v)
    check_shape(op, "v", v, (num_neurons,), "neurons", "Pass one for each neuron")
    received = jnp.zeros((neurons.num_receptors, num_neurons), dtype)
    pending, none = jnp.zeros((max_delay, *received.shape), dtype), jnp.zeros(num_neurons, dtype)
    return SimulationState(
        v.astype(dtype),
        received,
        jnp.zeros(num_neurons, jnp.int32),
        pending,
        jnp.zeros((), jnp.int32),
        STDPTraces(none, none) if stdp else None,
        ShortTermState(none, jnp.ones(num_neurons, dtype)) if short_term else None,
    )


class _Static(NamedTuple):
    """The static side of a call."""

    steps: int
    capacity: int
    has_conductances: bool
    poisson_receptor: int


def _check_neurons(op: str, neurons: Any) -> None:
    if not isinstance(neurons, SynapticLIF):
        hint = "Make them with snnjax.neurons.cuba_lif or coba_lif"
        fail(f"{op}: `neurons` must be a SynapticLIF, got {type_words(neurons)}. {hint}.")


def _check_network(neurons: Any, synapses: Any, weights: Any) -> None:
    _check_neurons(_OP, neurons)
    if not isinstance(synapses, Synapses):
        hint = "Make them with Synapses.with_probability, for instance"
        fail(f"{_OP}: `synapses` must be Synapses, got {short_repr(synapses)}. {hint}.")
    check_weights(_OP, "weights", weights, synapses.num_targets)
    check_shape(_OP, "weights", weights, (synapses.num_synapses,), "synapses", "Pass one for each synapse")
    targets = neurons.num_receptors * synapses.num_neurons
    if synapses.num_targets != targets:
        fail(
            f"{_OP}: `synapses` must lead to {plural(neurons.num_receptors, 'receptor')} of "
            f"{synapses.num_neurons} neurons, {targets} targets, got {synapses.num_targets}. "
            "Synapses.from_blocks joins those of each receptor."
        )


def _check_state(neurons: SynapticLIF, num_neurons: int, state: Any) -> None:
    if not isinstance(state, SimulationState):
        fail(f"{_OP}: `state` must be a SimulationState, got {short_repr(state)}. Call simulation_state.")
    each = (neurons.num_receptors, num_neurons)
    hint = "Call simulation_state with these neurons"
    check_shape(_OP, "state.v", state.v, (num_neurons,), "neurons", hint)
    check_shape(_OP, "state.received", state.received, each, "receptors, neurons", hint)
    check_shape(_OP, "state.remaining", state.remaining, (num_neurons,), "neurons", hint)
    check_shape(_OP, "state.pending", state.pending, (None, *each), "max_delay, receptors, neurons", hint)
    if state.pending.shape[0] == 0:
        fail(f"{_OP}: `state.pending` must have at least 1 row, got 0. {hint}.")


def _check_input(
    neurons: SynapticLIF, num_neurons: int, steps: int, currents: Any, poisson: Any, key: Any
) -> None:
    if currents is not None:
        check_float_array(_OP, "currents", currents)
        width = 1 if currents.ndim == 2 and currents.shape[1] == 1 else num_neurons
        hint = "Pass a row for each step"
        check_shape(_OP, "currents", currents, (steps, width), "steps, neurons", hint)
    if poisson is None:
        return
    if not isinstance(poisson, PoissonInput):
        fail(f"{_OP}: `poisson` must be a PoissonInput, got {short_repr(poisson)}. Call PoissonInput.of.")
    if poisson.receptor >= neurons.num_receptors:
        fail(
            f"{_OP}: `poisson.receptor` must be below {neurons.num_receptors}, the number of receptors, "
            f"got {poisson.receptor}. Choose one of them."
        )
    check_key(_OP, key)


def _check_plasticity(neurons: int, weights: Any, state: SimulationState, stdp: Any, short_term: Any) -> None:
    """Check the rules of plasticity, and that the state has what they carry."""
    each = (("stdp", stdp, "traces", STDPTraces), ("short_term", short_term, "short_term", ShortTermState))
    for name, rule, field, kind in each:
        held = getattr(state, field)
        if not isinstance(held, NoneType if rule is None else kind):
            expected = f"be None without `{name}`" if rule is None else f"be given with `{name}`"
            hint = f"Call simulation_state with {name}={rule is not None}"
            fail(f"{_OP}: `state.{field}` must {expected}, got {type_words(held)}. {hint}.")
        for part in () if held is None else held._fields:
            hint = "Call simulation_state with these neurons"
            check_shape(_OP, f"state.{field}.{part}", getattr(held, part), (neurons,), "neurons", hint)
    if short_term is not None:
        check_short_term(_OP, "short_term", short_term, neurons)
    if stdp is None:
        return
    if isinstance(weights, Quantised) or weights.dtype != accumulation_dtype(weights.dtype):
        given = "int8" if isinstance(weights, Quantised) else weights.dtype.name
        fail(
            f"{_OP}: `weights` must be float32 or float64 with `stdp`, got {given}: small changes would be lost. "
            "Cast them."
        )
    check_stdp(_OP, "stdp", stdp, weights)


def _delays(delays: Any, synapses: Synapses, longest: int) -> Array:
    """Delays ``[synapses]`` or ``[1]``."""
    is_number = isinstance(delays, int)
    if is_number:
        check_integer(_OP, "delays", delays, 1)
    else:
        check_integers(_OP, "delays", delays)
    check_within(_OP, "delays", delays, longest, "Pass the longest as max_delay of simulation_state", 1)
    if is_number:
        return jnp.full(1, delays, jnp.int32)
    if delays.ndim == 0:
        return delays[None]
    check_shape(_OP, "delays", delays, (synapses.num_synapses,), "synapses", "Pass one for each synapse")
    return delays


def _or_nan(v: Array, delays: Array, longest: int) -> Array:
    """Potentials, not a number if a delay is out of range that could not be checked: then no neuron spikes."""
    if concrete(delays) is not None:
        return v
    return jnp.where(jnp.all((delays >= 1) & (delays <= longest)), v, jnp.nan)


def _constant(op: str, name: str, value: Array, num_neurons: int) -> Array:
    """A constant of neurons ``[..., neurons or 1]``, checked."""
    if value.shape[-1] not in (1, num_neurons):
        fail(
            f"{op}: `{name}` must have one number, or one for each of {num_neurons} neurons, "
            f"got {value.shape[-1]}. Make them for as many neurons."
        )
    return value


def _operands(
    neurons: SynapticLIF,
    synapses: Synapses,
    weights: Array | Quantised,
    state: SimulationState,
    delays: Array,
    currents: Array | None,
    poisson: PoissonInput | None,
    stdp: STDP | None,
    short_term: ShortTerm | None,
    *,
    key: Any,
) -> Operands:
    """All arrays, with numbers in the accumulation dtype."""
    dtype, count = accumulation_dtype(weights.dtype), synapses.num_neurons

    def of(name: str, value: Array) -> Array:
        return _constant(_OP, name, value, count).astype(dtype)

    gain = of("neurons.gain", neurons.gain)
    given = jnp.zeros((0, 1), dtype) if currents is None else gain[None, :] * currents.astype(dtype)
    limits = jnp.zeros((0, 1), jnp.int32) if poisson is None else poisson.limits
    words = jnp.zeros(2, jnp.uint32) if poisson is None else jax.random.bits(key, (2,), jnp.uint32)
    return Operands(
        v=_or_nan(state.v.astype(dtype), delays, state.pending.shape[0]),
        received=state.received.astype(dtype),
        remaining=state.remaining.astype(jnp.int32),
        pending=state.pending.astype(dtype),
        step=jnp.asarray(state.step, jnp.int32),
        leak=of("neurons.leak", neurons.leak),
        drive=gain * of("neurons.rest", neurons.rest),
        threshold=of("neurons.threshold", neurons.threshold),
        reset=of("neurons.reset", neurons.reset),
        refractory=_constant(_OP, "neurons.refractory", neurons.refractory, count).astype(jnp.int32),
        synaptic_decay=of("neurons.synaptic_decay", neurons.synaptic_decay),
        effect=of("neurons.effect", neurons.effect),
        weights=weights,
        ends=synapses.ends,
        targets=synapses.targets,
        delays=delays,
        currents=given,
        key=jax.lax.bitcast_convert_type(words, jnp.int32),
        poisson_limits=_constant(_OP, "poisson.limits", limits, count),
        poisson_weights=jnp.zeros(1, dtype) if poisson is None else of("poisson.weights", poisson.weights),
        stdp=_stdp_operands(stdp, state.traces, dtype),
        short_term=_short_term_operands(short_term, state.short_term, dtype),
    )


def _stdp_operands(rule: STDP | None, traces: Any, dtype: Any) -> Any:
    if rule is None:
        return None
    rule = in_dtype(rule, dtype)
    pairs = (jnp.stack(pair) for pair in rule[:3])
    return tables.Stdp(*pairs, *(trace.astype(dtype) for trace in traces), rule.plastic)


def _short_term_operands(rule: ShortTerm | None, state: Any, dtype: Any) -> Any:
    if rule is None:
        return None
    rule = in_dtype(rule, dtype)
    numbers = (jnp.atleast_1d(number) for number in (rule.use, *rule.decay))
    return tables.ShortTerm(*numbers, *(part.astype(dtype) for part in state))


def _listed(results: Results, num_neurons: int) -> SparseSpikes:
    """The recorded spikes as lists."""
    capacity, count = results.ids.shape[-1], results.num_spikes
    listed = jnp.minimum(count, capacity)
    return SparseSpikes(results.ids, None, count, listed, beyond(count, capacity), num_neurons)


def _poisson_counts(operands: Operands, step: Array) -> Array:
    """How many events each neuron has in a step: two neurons share a block of random bits."""
    neurons = operands.v.shape[0]
    half = (neurons + 1) // 2
    key = jax.lax.bitcast_convert_type(operands.key, jnp.uint32)
    number = jnp.broadcast_to(step.astype(jnp.uint32), (half,))
    words = threefry_2x32((key[0], key[1]), jnp.concatenate([jnp.arange(half, dtype=jnp.uint32), number]))
    drawn = jax.lax.bitcast_convert_type(words[:neurons] ^ jnp.uint32(_SIGN), jnp.int32)
    return jnp.sum(drawn[None, :] >= operands.poisson_limits, axis=0, dtype=jnp.int32)


def _membranes(operands: Operands, static: _Static, v: Array, g: Array, current: Array | None) -> Array:
    """The membranes after a step, of neurons that are free."""
    pull = operands.drive if current is None else operands.drive + current
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


def _reference(operands: Operands, static: _Static) -> Results:
    """The jnp reference: a scan, each step of which looks at all synapses."""
    arrivals, receptors, neurons = operands.pending.shape
    synapses = Synapses(operands.ends, operands.targets, receptors * neurons)
    sources, targets = synapses.sources(), targets_or_beyond(synapses)
    rows = jnp.broadcast_to(jnp.clip(operands.delays.astype(jnp.int32), 1, arrivals) - 1, targets.shape)
    weights = upcast(operands.weights)
    if isinstance(weights, Quantised):
        weights = dequantise(weights, synapses)
    plasticity = _Plasticity.of(operands)

    def step(carry: Any, current: Array | None) -> tuple[Any, tuple[Array, Array]]:
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
        after = v, operands.synaptic_decay * g, remaining, pending, counts, number + 1
        return (after, plasticity.after(plastic, spikes)), (listed, jnp.sum(spikes, dtype=jnp.int32))

    start = (*operands[:4], jnp.zeros(neurons, jnp.int32), operands.step), plasticity.start
    start = vary_alike((start, operands))[0]
    given = operands.currents if operands.currents.shape[0] > 0 else None
    ((*state, counts, _), plastic), (ids, num_spikes) = jax.lax.scan(step, start, given, length=static.steps)
    return Results(ids, num_spikes, counts, *state, *plastic)


def _before(operands: Operands) -> tuple[tables.StdpResults | None, tables.ShortTermResults | None]:
    """What of the plastic operands is in the results, too."""
    stdp, short = operands.stdp, operands.short_term
    return (
        None if stdp is None else tables.StdpResults(operands.weights, stdp.before, stdp.after),
        None if short is None else tables.ShortTermResults(short.used, short.available),
    )


def _like_results(operands: Operands, leaves: Sequence[Any]) -> Results:
    """The leaves of results of these operands as their record."""
    return jax.tree.unflatten(jax.tree.structure(Results(*[0] * 7, *_before(operands))), leaves)


class _Plasticity(NamedTuple):
    """Both kinds of plasticity in the reference; its states are those of the results, or None."""

    start: tuple[tables.StdpResults | None, tables.ShortTermResults | None]
    stdp: Any  # the rules
    short_term: Any
    ends: SynapseEnds

    @classmethod
    def of(cls, operands: Operands) -> "_Plasticity":
        """That of a call."""
        _, receptors, neurons = operands.pending.shape
        ends = SynapseEnds.of(Synapses(operands.ends, operands.targets, receptors * neurons), neurons)
        stdp, short = operands.stdp, operands.short_term
        return cls(
            _before(operands),
            None if stdp is None else STDP(*map(tuple, stdp[:3]), stdp.plastic),
            None if short is None else ShortTerm(short.use, (short.recovery, short.facilitation)),
            ends,
        )

    def strength(self, states: Any, weights: Array, sources: Array) -> Array:
        """What a spike sends through each synapse."""
        stdp, short = states
        weights = weights if stdp is None else stdp.weights
        if short is None:
            return weights
        release = released(ShortTermState(*short), self.short_term)
        return weights * jnp.take(release, sources, mode="fill", fill_value=0)

    def after(self, states: Any, spikes: Array) -> Any:
        """The states after a step."""
        stdp, short = states
        if stdp is not None:
            traces = STDPTraces(stdp.before, stdp.after)
            weights = changed_synapses(stdp.weights, traces, spikes, spikes, self.stdp, self.ends)
            stdp = tables.StdpResults(weights, *traces_after(traces, spikes, spikes, self.stdp))
        if short is not None:
            short = short_term_after(ShortTermState(*short), spikes, self.short_term)
            short = tables.ShortTermResults(*short)
        return stdp, short


def _call(operands: Operands, static: _Static, results: Any) -> list[Array]:
    read = operands._replace(
        targets=as_kernel_ids(operands.targets, operands.pending.shape[-2] * operands.pending.shape[-1]),
        delays=operands.delays
        if operands.delays.dtype == jnp.uint16
        else jnp.clip(operands.delays, 1, operands.pending.shape[1]).astype(jnp.int32),
    )
    numbers = SimulationNumbers(static.has_conductances, static.poisson_receptor)
    return call_by_records("snnjax_simulate", read, _like_results(operands, results), [numbers])


def _obstacle(shapes: Operands, _: Any) -> str | None:
    receptors = shapes.received.shape[-2]
    if not 1 <= receptors <= _MOST_RECEPTORS:
        return f"{receptors} receptors"
    return dtype_obstacle("weights", shapes.weights)


_TARGET = Target(
    "snnjax_simulate",
    _OP,
    _reference,
    {"cpu": Kernel(_call, _obstacle)},
)


@jax.custom_jvp
def _undifferentiated(operands: Operands) -> Operands:
    """The operands; a derivative would be that of no surrogate."""
    return operands


@_undifferentiated.defjvp
def _refuse(primals: Any, tangents: Any) -> NoReturn:
    del primals, tangents
    fail(
        f"{_OP}: `weights` must not be differentiated, nor the other arguments, got a tangent. "
        "Train with snnjax.network, or pass jax.lax.stop_gradient of them."
    )


def _run(operands: Operands, static: _Static, implementation: str | None) -> Results:
    axes = shared(operands)
    result_axes = _like_results(operands, [SHARED] * (7 + len(jax.tree.leaves(_before(operands)))))
    return evaluate(
        _TARGET, _undifferentiated(operands), axes, result_axes, static, implementation=implementation
    )
