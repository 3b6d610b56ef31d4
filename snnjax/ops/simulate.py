"""`simulate`: recurrent networks of neurons with exponential synapses, many time steps at once, without training."""

from collections.abc import Sequence
from typing import NoReturn

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Integer, PyTree

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
from snnjax.ops._kernel_operands import call_by_records
from snnjax.ops._product import shared
from snnjax.ops._random import key_words
from snnjax.ops._simulation.checks import (
    check_conductances,
    check_input,
    check_network,
    check_neurons,
    check_plasticity,
    check_record,
    check_state,
    check_synapses,
    constant,
    traced_faults,
)
from snnjax.ops._simulation.records import PoissonInput, SimulationOutput, SimulationState, SynapticLIF
from snnjax.ops._simulation.reference import Static, reference, tree_of_results
from snnjax.ops._tables import simulate as tables
from snnjax.ops._tables.simulate import Operands, Results, SimulationNumbers

_OP = "simulate"
_MOST_RECEPTORS = 4  # of the kernel


@explained
def simulate(
    neurons: SynapticLIF,
    synapses: DelayedSynapses,
    state: SimulationState,
    key: Array | None = None,
    *,
    steps: int,
    currents: Float[Array, "steps neurons_or_1"] | None = None,
    poisson: PoissonInput | None = None,
    stdp: STDP | None = None,
    short_term: ShortTerm | None = None,
    record: Integer[Array, " recorded"] | None = None,
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
    ``t + delay``, with the weight that the synapse then has. With currents this is the exact solution between events,
    with conductances it is exponential Euler.

    Weights are plastic with `stdp`: behind each step they change as in `snnjax.plasticity.stdp`, by pairs of the spikes
    that arrive in it and those of the neuron that receives. With `short_term`, a spike sends its weights times what
    `snnjax.plasticity.short_term` releases.

    Steps in pieces are the same as all at once: pass the state on, and the same key. Random input depends on the key,
    the number of the step and the neuron alone: Threefry-2x32 makes two words of each step, and a hash with them
    (Wellons' triple32) one of each neuron. A network of several blocks runs on several threads, with the same results
    for any number of them. Under `vmap`, networks run side by side.

    Args:
        neurons: their constants, `snnjax.neurons.cuba_lif` or `snnjax.neurons.coba_lif`; `dt` is one of them.
        synapses: with their weights, in mV (currents) or in units of the leak conductance; an inhibitory current has a
            negative weight, an inhibitory conductance a positive one. Where a traced conductance is negative, the
            potentials are NaN.
        state: `simulation_state`, or that of the piece before.
        key: a PRNG key, for `poisson`.
        steps: how many.
        currents: :math:`I`, given input in mV (current times resistance) for each step, ``[steps, neurons]`` or
            ``[steps, 1]``.
        poisson: random input of every neuron.
        stdp: how weights change, which are float32 or float64 then; `SimulationOutput.weights` are those after the last
            step. The kernel sorts the synapses by receiver in each call, 12 bytes each: let it have thousands of steps.
        short_term: how much of a weight each spike sends.
        record: ids of neurons whose potentials after each step are `SimulationOutput.v`.
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
    check_input(neurons, synapses.num_neurons, steps, currents, poisson, key)
    check_plasticity(synapses, state, stdp, short_term)
    check_conductances(neurons, synapses, poisson, stdp)
    check_record(synapses.num_neurons, record)
    given = gathered((neurons, synapses, state, currents, poisson, record, stdp, short_term))
    operands = _operands(*given, key=key)
    receptor = poisson.receptor if poisson is not None else 0
    static = Static(steps, capacity, neurons.has_conductances, receptor)
    rest = _of(given[0], "rest", synapses.num_neurons, operands.v.dtype)
    return _yielded(_run(vary_alike(operands), static, implementation), operands, static, rest, state)


@explained
def simulation_state(
    neurons: SynapticLIF,
    synapses: DelayedSynapses,
    *,
    v: Float[Array, " neurons"] | None = None,
    stdp: bool = False,
    short_term: bool = False,
) -> SimulationState:
    """The state before the first step of `simulate`: at rest, and nothing on its way.

    Args:
        neurons: their constants.
        synapses: that connect them; the state holds the spikes of as many steps as their longest delay.
        v: initial membrane potentials in mV; None for the resting potential.
        stdp: whether it holds the traces of spike-timing-dependent plasticity, of no spikes so far.
        short_term: whether it holds the state of short-term plasticity: all is available, and none in use.

    Raises:
        ValueError: if the constants or potentials are of another number of neurons, or a number is none.

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
    check_switches(op, stdp=stdp, short_term=short_term)
    if v is None:
        v = jnp.broadcast_to(constant(op, "neurons.rest", neurons.rest, num_neurons), (num_neurons,))
    check_float_array(op, "v", v)
    check_shape(op, "v", v, (num_neurons,), "neurons", "Pass one for each neuron")
    received = jnp.zeros((neurons.num_receptors, num_neurons), dtype)
    none, earlier = jnp.zeros(num_neurons, dtype), jnp.zeros((max_delay, num_neurons), dtype)
    return SimulationState(
        v.astype(dtype),
        received,
        jnp.zeros(num_neurons, jnp.int32),
        jnp.zeros((max_delay, (num_neurons + 7) // 8), jnp.uint8),
        jnp.zeros((), jnp.int32),
        STDPTraces(earlier, none) if stdp else None,
        ShortTermState(none, jnp.ones(num_neurons, dtype)) if short_term else None,
        earlier if short_term else None,
        none,
    )


def _or_nan(v: Array, faults: list[Array]) -> Array:
    """Potentials, not a number if there is any fault: then no neuron spikes."""
    return jnp.where(jnp.any(jnp.stack(faults)), jnp.nan, v) if faults else v


def _operands(
    neurons: SynapticLIF,
    synapses: DelayedSynapses,
    state: SimulationState,
    currents: Array | None,
    poisson: PoissonInput | None,
    record: Array | None,
    stdp: STDP | None,
    short_term: ShortTerm | None,
    *,
    key: Unchecked,
) -> Operands:
    """All arrays, with numbers in the accumulation dtype, and potentials relative to rest."""
    dtype, count = synapses.dtype, synapses.num_neurons
    _, received, remaining, sent, step = state[:5]
    faults = traced_faults(neurons, synapses, poisson, stdp)
    limits = jnp.zeros((0, 1), jnp.int32) if poisson is None else poisson.limits
    events = jnp.zeros(1) if poisson is None else constant(_OP, "poisson.weights", poisson.weights, count)
    words = jnp.zeros(2, jnp.int32) if poisson is None else key_words(key)
    return Operands(
        v=_or_nan(_relative(neurons, state, count, dtype), faults),
        received=received.astype(dtype),
        remaining=as_int32(remaining),
        sent=sent,
        step=jnp.asarray(step, jnp.int32),
        **_constants(neurons, count, dtype, currents),
        words=synapses.words,
        weights=synapses.strengths,
        segments=synapses.segments,
        ends=synapses.ends,
        key=words,
        poisson_limits=constant(_OP, "poisson.limits", limits, count),
        poisson_weights=events.astype(dtype),
        recorded=None if record is None else as_int32(record),
        stdp=_stdp_operands(stdp, state.traces, dtype),
        short_term=_short_term_operands(short_term, state, dtype),
    )


def _relative(neurons: SynapticLIF, state: SimulationState, count: int, dtype: DTypeLike) -> Array:
    """The potentials of a state relative to rest."""
    v = state.v.astype(dtype) - _of(neurons, "rest", count, dtype)
    return v if state.rounded_off is None else v + state.rounded_off.astype(dtype)


def _constants(
    neurons: SynapticLIF, count: int, dtype: DTypeLike, currents: Array | None
) -> dict[str, Array]:
    """Those of the neurons, and what given currents add to the membrane; potentials are relative to rest."""
    given = jnp.zeros((0, 1), dtype)
    if currents is not None:
        given = _of(neurons, "gain", count, dtype)[None] * currents.astype(dtype)
    names = ("leak", "threshold", "reset", "refractory", "synaptic_decay", "effect")
    for name in ("rest", *names):
        constant(_OP, f"neurons.{name}", getattr(neurons, name), count)
    own = neurons.relative(dtype)
    return {"currents": given, **{name: getattr(own, name) for name in names}}


def _of(neurons: SynapticLIF, name: str, count: int, dtype: DTypeLike) -> Array:
    """A constant of the neurons by name."""
    return constant(_OP, f"neurons.{name}", getattr(neurons, name), count).astype(dtype)


def _stdp_operands(rule: STDP | None, traces: State, dtype: DTypeLike) -> PyTree:
    if rule is None:
        return None
    *pairs, plastic = in_dtype(rule, dtype)
    decay, rates, bounds = map(jnp.stack, pairs)
    before, after = (trace.astype(dtype) for trace in traces)
    return tables.Stdp(decay, rates, bounds, before, after, plastic)


def _short_term_operands(rule: ShortTerm | None, state: State, dtype: DTypeLike) -> PyTree:
    if rule is None:
        return None
    use, recovery, facilitation = map(jnp.atleast_1d, jax.tree.leaves(in_dtype(rule, dtype)))
    held = (part.astype(dtype) for part in (*state.short_term, state.released))
    return tables.ShortTerm(use, recovery, facilitation, *held)


def _yielded(
    results: Results, operands: Operands, static: Static, rest: Array, before: SimulationState
) -> tuple[SimulationOutput, SimulationState]:
    """The recorded spikes as lists, the plastic weights, and the state after the last step."""
    count, (changed, *traces) = results.num_spikes, results.stdp or (None,)
    listed = jnp.minimum(count, static.capacity)
    spikes = SparseSpikes(
        results.ids, None, count, listed, beyond(count, static.capacity), operands.v.shape[0]
    )
    v = results.v + rest
    short, released = None, None
    if results.short_term is not None:
        *short, released = results.short_term
    after = SimulationState(
        v,
        results.received,
        results.remaining,
        results.sent,
        operands.step + jnp.int32(static.steps),
        STDPTraces(*traces) if traces else None,
        None if short is None else ShortTermState(*short),
        released,
        None if before.rounded_off is None else results.v - (v - rest),
    )
    seen = results.recorded
    if seen is not None and operands.recorded is not None:
        own = jnp.take(jnp.broadcast_to(rest, v.shape), operands.recorded, mode="clip")
        seen = seen + own[None]
    return SimulationOutput(spikes, results.counts, changed, seen), after


def _call(operands: Operands, static: Static, results: Sequence[jax.ShapeDtypeStruct]) -> list[Array]:
    numbers = SimulationNumbers(static.has_conductances, static.poisson_receptor)
    records = jax.tree.unflatten(tree_of_results(operands), results)
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
def _undifferentiated(operands: Operands) -> Operands:
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
    axes, tree = shared(operands), tree_of_results(operands)
    result_axes = jax.tree.unflatten(tree, [SHARED] * tree.num_leaves)
    return evaluate(
        _TARGET, _undifferentiated(operands), axes, result_axes, static, implementation=implementation
    )
