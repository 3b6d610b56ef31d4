"""Networks of any shape for `lif_network`: the compiled form (`Form`), and random arrays for it.

Values are dyadic as in `tests/cases.py`: currents are exact sums, so no order of additions can make a neuron fire.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import (
    Connection,
    LayerState,
    LIFLayer,
    LIFNetworkState,
    LIFReadout,
    SparseSpikes,
    Synapses,
    lif_network,
)
from snnjax._neuron_table import RESETS, SURROGATES
from snnjax._types import accumulation_dtype, id_dtype
from snnjax.neurons import SecondState
from snnjax.surrogates import as_surrogate
from tests.numbers import array, dyadic, dyadic_spikes, halves, picker

# Which constants of a second state are present besides its decay: w_membrane, w_gain, w_jump, v_coupling and
# threshold_coupling; those of adLIF, of adaptive thresholds, of a synaptic current, of resonance, and all.
ADLIF = (True, False, True, True, False)
ADAPTIVE = (False, False, True, False, True)
SYNAPSE = (False, True, False, True, False)
RESONANCE = (True, True, False, True, False)
ALL = (True,) * 5
# The longest delay, that of large arrays, and the size that makes one large. And the share of delays beyond the bounds.
_LONG_DELAY, _MIDDLE_DELAY, _MOST_ENTRIES, _BEYOND = 1000, 40, 300, 0.05
DENSE_INPUTS = ("float32", "uint8", "bool", "int32", "bfloat16")
LIST_INPUTS = ("uint16 lists", "int32 lists")
# Of ids, targets and lengths, where they are not of the usual dtype: numbers that it does not hold wrap.
SMALL_INTEGERS = ("uint8", "int8", "int16", "uint16")


class Form(NamedTuple):
    """The static configuration of a network."""

    steps: int
    batch: int
    inputs: int
    widths: tuple[int, ...]  # of the layers
    outputs: int | None = 2  # of the readout; None: the last layer's spikes are the output
    recurrent: bool = False  # the first layer
    bias: bool = True
    capacity: Any = None  # one value or one per layer
    given: str = "float32"  # the inputs: one of DENSE_INPUTS, "float16", or LIST_INPUTS
    slots: int = 8  # of lists given as inputs
    lengths: bool = True
    surrogate: str = "superspike"
    cutoff: float = 0.0  # of the surrogate
    reset: str = "subtract"
    detach_reset: bool = True
    record_spikes: bool = True
    dtype: str = "float32"  # of the weights
    per_neuron: bool = True  # constants: one per neuron, or one per layer
    # Of each layer, None or which constants of a second state are there besides its decay; () is None for all.
    second_states: tuple[tuple[bool, ...] | None, ...] = ()
    rounds_record: tuple[bool, ...] = ()  # of each layer; () is False for all
    max_delays: tuple[int | None, ...] = ()  # of each layer, None without delays; () is None for all
    has_pending: bool = True  # whether spikes are in transit in the beginning
    currents: bool = False  # the inputs are the currents of the first layer, which has no weights
    recurrent_delay: int | None = None  # the longest one, None without delays
    connected: float | None = (
        None  # the share of recurrent synapses that exist; None for weights of all pairs
    )
    synaptic: bool = False  # whether recurrent delays are those of synapses, not of neurons
    integers: str | None = None  # one of `SMALL_INTEGERS`
    refractory: tuple[
        bool, ...
    ] = ()  # whether neurons of each layer have a refractory period; () is False for all

    def max_delay(self, layer: int) -> int | None:
        return self.max_delays[layer] if self.max_delays else None

    def second_state(self, layer: int) -> tuple[bool, ...] | None:
        return self.second_states[layer] if self.second_states else None


def random_form(rng: np.random.Generator) -> Form:
    """Any form; sizes are around those at which kernels change strategy: 16 samples, 8 steps, words of 64 neurons."""
    pick = picker(rng)
    widths = tuple(pick(0, 1, 5, 17, 63, 64, 65, 100, 130, 200) for _ in range(pick(1, 1, 2, 3)))
    form = Form(
        steps=pick(0, 1, 3, 6, 19),
        batch=pick(0, 1, 2, 15, 16, 17, 20, 33),
        inputs=pick(0, 1, 7, 40, 65, 200),
        widths=widths,
        outputs=pick(None, 0, 1, 3, 20),
        recurrent=pick(True, False),
        bias=pick(True, False),
        capacity=tuple(pick(None, 0, 3, width // 2, width + 5) for width in widths),
        given=pick(*DENSE_INPUTS, *LIST_INPUTS),
        slots=pick(0, 1, 8, 90),
        lengths=pick(True, False),
        surrogate=pick(*SURROGATES),
        cutoff=pick(0.0, 0.0, 0.25, 0.75),
        reset=pick(*RESETS),
        detach_reset=pick(True, False),
        record_spikes=pick(True, False),
        dtype=pick("float32", "float32", "bfloat16"),
        per_neuron=pick(True, False),
        second_states=tuple(pick(None, None, ADLIF, ADAPTIVE, SYNAPSE, RESONANCE, ALL) for _ in widths),
        rounds_record=tuple(pick(False, False, True) for _ in widths),
    )
    # Drawn last, so that the rest of a form of a number stays what it was.
    most = [pick(None, None, None, 0, 1, 3, 12, 40, _LONG_DELAY) for _ in widths]
    sizes = [form.batch * inputs for inputs in (form.inputs, *widths)]
    form = form._replace(
        max_delays=tuple(_shorter(own, size) for own, size in zip(most, sizes, strict=False)),
        has_pending=pick(True, False),
        given="float16" if form.given == "bfloat16" and pick(True, False) else form.given,
        recurrent_delay=pick(None, None, 0, 1, 3, 12) if form.recurrent else None,
    )
    if form.recurrent:
        form = form._replace(connected=pick(None, None, 0.0, 0.1, 0.7))
    form = of_currents(form) if pick(True, False, False) else form
    is_synaptic = form.recurrent_delay is not None and pick(True, False)
    # From 64 samples on blocks of such layers are larger.
    form = form._replace(synaptic=True, batch=pick(form.batch, 65)) if is_synaptic else form
    form = form._replace(integers=pick(None, None, None, *SMALL_INTEGERS))
    return form._replace(refractory=tuple(pick(False, False, True) for _ in widths))


def _shorter(longest: int | None, entries: int) -> int | None:
    """The longest delay of an array of so many entries, of which large ones have no long ones."""
    return _MIDDLE_DELAY if longest == _LONG_DELAY and entries > _MOST_ENTRIES else longest


def of_currents(form: Form) -> Form:
    """The form with currents as inputs."""
    delays = (None, *form.max_delays[1:]) if form.max_delays else ()
    return form._replace(currents=True, inputs=form.widths[0], given=form.dtype, max_delays=delays)


def arguments(form: Form, rng: np.random.Generator) -> tuple[Any, ...]:
    """Arrays for `run`: inputs, layers, readout, state, lengths and second thresholds."""
    pairs = list(zip((form.inputs, *form.widths), form.widths, strict=False))
    layers = tuple(_layer(form, *pair, index, rng) for index, pair in enumerate(pairs))
    readout = None
    if form.outputs is not None:
        constants = [_constant(form, halves(rng, form.outputs)) for _ in range(2)]
        bias = dyadic(rng, -4, 4, form.outputs) if form.bias else None
        readout = LIFReadout(dyadic(rng, -16, 16, form.widths[-1], form.outputs), *constants, bias)
    spikes = [None for _ in form.widths]
    if form.recurrent:
        spikes[0] = dyadic_spikes(rng, -8, 16, form.batch, form.widths[0])
    membranes = tuple(dyadic(rng, -16, 32, form.batch, width) for width in form.widths)
    last = None if readout is None else dyadic(rng, -8, 8, form.batch, form.outputs)
    second = tuple(
        None if form.second_state(index) is None else dyadic(rng, -8, 8, form.batch, width)
        for index, width in enumerate(form.widths)
    )
    pending = _pending(form, [form.max_delay(index) for index in range(len(pairs))], pairs, rng)
    back = _pending(form, _recurrent_delays(form), [(width, width) for width in form.widths], rng)
    nothing = (None,) * len(back)
    earlier = nothing if form.synaptic else back
    layers, readout, spikes, pending, earlier = jax.tree.map(
        lambda leaf: array(leaf, form.dtype), (layers, readout, tuple(spikes), pending, earlier)
    )
    # Delays keep their digits: exact ones are to be computed from the same.
    layers = tuple(_with_delays(form, index, own, rng) for index, own in enumerate(layers))
    if form.connected is not None:
        layers = (_with_synapses(form, layers[0], rng), *layers[1:])
    layers = tuple(_with_period(form, index, own, rng) for index, own in enumerate(layers))
    # Currents that are under way for one step less.
    arriving = [None if rows is None else rows[1:] for rows in back] if form.synaptic else nothing
    remaining = [_remaining(form, index, width, rng) for index, width in enumerate(form.widths)]
    states = zip(membranes, second, spikes, pending, earlier, arriving, remaining, strict=True)
    parameters = layers, readout, LIFNetworkState(tuple(LayerState(*each) for each in states), last)
    ends = rng.integers(0, form.steps + 1, form.batch) if form.lengths else None
    lengths = None if ends is None else array(ends, form.integers or np.int32)
    second = [float(rng.choice([-np.inf, 0.0, 0.25, 0.5, np.inf])) for _ in form.widths]
    return (_inputs(form, rng), *parameters, lengths, array(second, form.dtype))


def _layer(form: Form, inputs: int, neurons: int, index: int, rng: np.random.Generator) -> LIFLayer:
    level = int(rng.integers(-20, 12))  # from silent layers to layers in which all neurons fire
    second_state = None
    if (there := form.second_state(index)) is not None:
        couplings = (_constant(form, _coupling(rng, neurons)) if is_there else None for is_there in there)
        second_state = SecondState(_constant(form, halves(rng, neurons)), *couplings)
    weights = dyadic(rng, -16 + level, 16 + level, inputs, neurons)
    return LIFLayer(
        weights=None if form.currents and index == 0 else weights,
        decay=_constant(form, halves(rng, neurons)),
        threshold=_constant(form, dyadic(rng, 4, 16, neurons)),
        gain=_constant(form, halves(rng, neurons)),
        bias=dyadic(rng, -8, 16, neurons) if form.bias else None,
        recurrent=dyadic(rng, -16, 12, neurons, neurons) if form.recurrent and index == 0 else None,
        second_state=second_state,
        connection=Connection(max_delay=form.max_delay(index)),
        recurrent_connection=Connection(max_delay=_recurrent_delays(form)[index]),
    )


def _is_refractory(form: Form, index: int) -> bool:
    return bool(form.refractory) and form.refractory[index]


def _with_period(form: Form, index: int, layer: LIFLayer, rng: np.random.Generator) -> LIFLayer:
    if not _is_refractory(form, index):
        return layer
    steps = rng.integers(0, 4, _owners(form, form.widths[index]))
    return layer._replace(refractory=array(steps, jnp.int32))


def _remaining(form: Form, index: int, width: int, rng: np.random.Generator) -> jax.Array | None:
    """What is left of the refractory periods: nothing, or more than they are long."""
    if not _is_refractory(form, index):
        return None
    return array(rng.choice([0, 0, 1, 5], (form.batch, width)), jnp.float32)


def _recurrent_delays(form: Form) -> list[int | None]:
    """The longest one of each layer."""
    return [
        form.recurrent_delay if form.recurrent and index == 0 else None for index in range(len(form.widths))
    ]


def _with_delays(form: Form, index: int, layer: LIFLayer, rng: np.random.Generator) -> LIFLayer:
    most, recurrent = form.max_delay(index), _recurrent_delays(form)[index]
    if most is not None:
        layer = layer._replace(delays=_delays(form, most, _owners(form, layer.weights.shape[0]), rng))
    if recurrent is not None and form.synaptic:
        return layer._replace(synaptic_delays=_delays(form, recurrent, layer.recurrent.shape, rng))
    if recurrent is not None:
        layer = layer._replace(
            recurrent_delays=_delays(form, recurrent, _owners(form, form.widths[index]), rng)
        )
    return layer


def _owners(form: Form, senders: int) -> tuple[int, ...]:
    """The shape of delays: one per sender, or one for all."""
    return (senders,) if form.per_neuron else ()


def _with_synapses(form: Form, layer: LIFLayer, rng: np.random.Generator) -> LIFLayer:
    """With recurrent weights of some pairs in no order, of some twice, and a few to targets out of range."""
    weights = layer.recurrent
    neurons = weights.shape[0]
    count = round(
        (form.connected or 0) * neurons**2
    )  # that of the form: another shape would be compiled again
    sources, targets = np.sort(rng.integers(0, max(neurons, 1), count)), rng.integers(0, neurons + 1, count)
    ends = np.cumsum(np.bincount(sources, minlength=neurons))
    given = array(targets, form.integers or id_dtype(neurons))
    synapses = Synapses(array(ends, jnp.int32), given, neurons)
    place = sources, targets % max(neurons, 1)
    delays = None if layer.synaptic_delays is None else layer.synaptic_delays[place]
    return layer._replace(recurrent=weights[place], recurrent_synapses=synapses, synaptic_delays=delays)


def _delays(form: Form, most: int, shape: tuple[int, ...], rng: np.random.Generator) -> jax.Array:
    """Whole steps, eighths of steps, and a few beyond the bounds."""
    steps = rng.integers(0, 8 * most + 1, shape) / 8
    steps = np.where(rng.random(shape) < rng.choice([0.0, 0.5, 1.0]), np.floor(steps), steps)
    steps = np.where(rng.random(shape) < _BEYOND, rng.choice([-1.0, most + 1.5], shape), steps)
    return array(steps, accumulation_dtype(jnp.dtype(form.dtype)))


def _pending(
    form: Form, longest: list[int | None], pairs: list[tuple[int, int]], rng: np.random.Generator
) -> tuple[Any, ...]:
    """The spikes in transit to each layer, from so many senders."""
    rows: list[Any] = [None for _ in pairs]
    for index, (most, (width, _)) in enumerate(zip(longest, pairs, strict=True)):
        if most is not None:
            shape = (most + 1 if form.has_pending else 0, form.batch, width)
            rows[index] = dyadic_spikes(rng, -8, 16, *shape)
    return tuple(rows)


def _coupling(rng: np.random.Generator, neurons: int) -> jax.Array:
    """Powers of two: a state keeps its digits through them, however many steps it takes."""
    return array(rng.choice([-1.0, -0.5, 0.5, 1.0], neurons), jnp.float32)


def _constant(form: Form, values: jax.Array) -> jax.Array:
    """One per neuron, or the first for all (1/2 if there is no neuron)."""
    if form.per_neuron:
        return values
    return values[0] if values.size else jnp.float32(0.5)


def _inputs(form: Form, rng: np.random.Generator) -> Any:
    axes = (form.steps, form.batch)
    if form.given in LIST_INPUTS:
        dtype = jnp.uint16 if form.given == "uint16 lists" else jnp.int32
        low = 0 if dtype == jnp.uint16 else -2
        numbers = rng.integers(low, form.inputs + 2, (*axes, form.slots))
        ids = array(numbers, form.integers or dtype)
        counts = array(np.zeros(axes), jnp.int32)  # which the op does not trust
        values = array(dyadic_spikes(rng, -16, 16, *ids.shape), form.dtype)
        return SparseSpikes(ids, values, counts, counts, counts, form.inputs)
    dense = dyadic_spikes(rng, -16, 16, *axes, form.inputs)
    if form.given in ("float32", "bfloat16", "float16"):
        return array(dense, form.given)
    return array(np.abs(dense) * 16, form.given)  # integers, beyond 1 for other dtypes than bool


def run(form: Form, implementation: str, *given):
    """`lif_network` on `arguments`: output, activity, dropped, spikes and state."""
    inputs, layers, readout, state, lengths, second_threshold = given
    out, last = lif_network(
        inputs,
        layers,
        readout,
        state,
        lengths=lengths,
        capacity=form.capacity,
        second_threshold=tuple(second_threshold),
        surrogate=dataclasses.replace(as_surrogate("lif_network", form.surrogate), cutoff=form.cutoff),
        reset=form.reset,
        detach_reset=form.detach_reset,
        record_spikes=form.record_spikes,
        record_dtype=[jnp.bfloat16 if own else None for own in form.rounds_record] or None,
        implementation=implementation,
    )
    return out.output, out.activity, out.dropped, out.spikes, tuple(last)


def runner(form: Form, implementation: str):
    """`run` of a form as a function of arrays only."""
    return functools.partial(run, form, implementation)
