"""A neuron model as a row of a table: its constants with their bounds, and a function to those of the equation."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, PyTree

from snnjax._check import check_choice, check_integer, check_switches, fail
from snnjax._neuron_table import RESETS, GLIFConstants
from snnjax._types import RESET_TIMES, SPIKE_SOURCES, Params, Stats, Unchecked, accumulation_dtype, upcast
from snnjax.neurons._constants import check_constant, check_decay, draw, draw_raw_decay, raw_to_decay
from snnjax.neurons._glif import GLIF, check_form
from snnjax.neurons._neuron import OWNERS, Neuron, no_stats
from snnjax.neurons._step import Bound, at_zero
from snnjax.surrogates import as_surrogate, superspike


class Parameter(NamedTuple):
    """A constant of a model, given by the argument of this name: a number, or a range from which it is drawn."""

    argument: str
    learn: str  # the switch by which it is learned, and thereby one of the params
    is_decay: bool = False  # between 0 and 1, and learned as `decay_to_raw` of it; else any number


DECAY = Parameter("decay", "learn_decay", is_decay=True)
THRESHOLD = Parameter("threshold", "learn_threshold")
# Decays, and the switches by which the gain is 1 - decay.
_NORMALIZED = {"decay": "normalize", "synapse_decay": "normalize_synapse"}


class Given(NamedTuple):
    """The constants of a neuron, as they were given to the function that makes it."""

    op: str
    kind: type[Any]  # a NamedTuple with a field for each of them, None for those that it does not hold
    parameters: tuple[Parameter, ...]
    values: tuple[Any, ...]
    learned: tuple[bool, ...]
    per: str

    @property
    def drawn(self) -> tuple[bool, ...]:
        """Which constants are drawn and not learned, and thereby part of the stats."""
        pairs = zip(self.values, self.learned, strict=True)
        return tuple(isinstance(value, tuple) and not learned for value, learned in pairs)


class Model(NamedTuple):
    """A generalised LIF neuron model."""

    name: str
    params: type[Any]  # a NamedTuple with a field for each parameter
    state: type[Any]  # a NamedTuple of one or two fields
    parameters: tuple[Parameter, ...]
    # (physical values of the parameters, **switches) -> constants; decays come in the accumulation dtype
    constants: Callable[..., GLIFConstants]
    switches: tuple[str, ...] = ()  # those arguments that `constants` takes
    resets: tuple[str, ...] = RESETS  # the first one if it has no argument for it
    reset_times: tuple[str, ...] = RESET_TIMES


def glif_neuron(model: Model, arguments: Mapping[str, Any]) -> Neuron:
    """Make the neuron of a model from all arguments of the function of its name, after checking them."""
    given, op = dict(arguments), model.name
    own = given_of(op, model.params, model.parameters, given)
    choices = {"reset": model.resets, "reset_time": model.reset_times, "spike_from": SPIKE_SOURCES}
    for name, known in choices.items():
        if name in given:
            check_choice(op, name, given[name], known)
    surrogate = as_surrogate(op, given["surrogate"]) if "surrogate" in given else superspike()
    given |= {"surrogate": surrogate} if "surrogate" in given else {}
    others = {parameter.argument for parameter in model.parameters} | choices.keys()
    others |= {"surrogate", "per", "gradient", "min_rise"}
    check_switches(op, **{name: given[name] for name in given if name not in others})
    for name, switch in _NORMALIZED.items():
        if given.get(switch) and given[name] == 1:
            fail(f"{op}: `{name}` must be below 1 for a gain of 1 - {name}, got 1. Pass {switch}=False.")
    switches = {name: given[name] for name in model.switches}
    constants = Bound(constants_of, given=own, function=model.constants, **switches)
    reset = given.get("reset", model.resets[0])
    form = GLIF(constants, reset, **{name: given[name] for name in GLIF._fields[2:] if name in given})
    check_form(op, "", form)
    return Neuron(
        op,
        **draws_of(own),
        initial_state=Bound(state_at_zero, kind=model.state),
        threshold=Bound(threshold_of, constants=constants),
        surrogate=surrogate,
        glif=form,
        arguments=tuple(given.items()),
    )


def given_of(
    op: str, kind: type[Any], parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]
) -> Given:
    """The constants of a neuron, after checking them."""
    names, switches = zip(*(parameter[:2] for parameter in parameters), strict=True)
    check_switches(op, **{switch: arguments[switch] for switch in switches})
    own = Given(
        op,
        kind,
        parameters,
        tuple(arguments[name] for name in names),
        tuple(bool(arguments[switch]) for switch in switches),
        arguments["per"],
    )
    for parameter, value, learned in zip(parameters, own.values, own.learned, strict=True):
        if parameter.is_decay:
            check_decay(op, parameter.argument, value, is_fixed=not learned)
        else:
            check_constant(op, parameter.argument, value)
    check_choice(op, "per", own.per, OWNERS)
    if own.per != OWNERS[0] and not any(own.learned + own.drawn):
        hint = f"Pass {switches[0]}=True, or a range (low, high)"
        fail(f"{op}: `per` must be left out if no constant is learned or drawn, got {own.per!r}. {hint}.")
    return own


def draws_of(own: Given) -> dict[str, Any]:
    """The fields of a `Neuron` by which its constants are drawn."""
    stats = Bound(draw_stats, given=own) if any(own.drawn) else no_stats
    return {"init": Bound(draw_params, given=own), "initial_stats": stats, "per": own.per}


def draw_params(key: Array, num_neurons: int, dtype: DTypeLike = jnp.float32, *, given: Given) -> Params:
    """The constants that are learned: each is one value, or drawn for each neuron from a range (low, high)."""
    return _drawn(key, num_neurons, dtype, given, given.learned)


def draw_stats(key: Array, num_neurons: int, *, given: Given) -> Stats:
    """The constants that are drawn and not learned."""
    return _drawn(key, num_neurons, jnp.float32, given, given.drawn)


def _drawn(key: Array, num_neurons: int, dtype: DTypeLike, given: Given, wanted: tuple[bool, ...]) -> PyTree:
    num_neurons = check_integer("Neuron.init", "num_neurons", num_neurons, 0)
    parameters, owners = given.parameters, None if given.per == "layer" else num_neurons
    keys = jax.random.split(key, len(parameters)) if len(parameters) > 1 else [key]

    def value(key: Array, parameter: Parameter, initial: Unchecked, is_wanted: bool) -> Array | None:
        make = draw_raw_decay if parameter.is_decay else draw
        return make(key, initial, owners, dtype) if is_wanted else None

    return given.kind(*map(value, keys, parameters, given.values, wanted))


def state_at_zero(
    params: Params, batch: int, num_neurons: int, dtype: DTypeLike = jnp.float32, *, kind: type[Any]
) -> Params:
    """A state of zeros, in at least float32."""
    del params
    return kind(*(at_zero(batch, num_neurons, dtype) for _ in kind._fields))


def values_of(params: Params, given: Given) -> tuple[Array, ...]:
    """The physical values of all constants: numbers, and what params hold; decays in the accumulation dtype."""
    dtype = next((accumulation_dtype(leaf.dtype) for leaf in jax.tree.leaves(params)), jnp.result_type(float))

    def value(own: Array | None, parameter: Parameter, initial: Unchecked, is_held: bool) -> Array:
        if own is not None:
            return raw_to_decay(upcast(own)) if parameter.is_decay else own
        if is_held:
            hint = "Use neuron.init, and neuron.merged(params, stats) with what neuron.initial_stats draws"
            fail(f"{given.op}: `params` must hold the {parameter.argument} of each neuron, got None. {hint}.")
        return jnp.asarray(initial, dtype)

    held = map(any, zip(given.learned, given.drawn, strict=True))
    return tuple(map(value, params, given.parameters, given.values, held))


def constants_of(
    params: Params, *, given: Given, function: Callable[..., GLIFConstants], **switches: object
) -> GLIFConstants:
    """The constants of the generalised LIF equation."""
    return function(*values_of(params, given), **switches)


def threshold_of(params: Params, *, constants: Callable[[Any], GLIFConstants]) -> Array:
    """The threshold at rest."""
    return constants(params).threshold


def gain_of(decay: Array, normalize: bool) -> Array:
    """``1 - decay``, or 1 for inputs that are not normalised."""
    return 1 - decay if normalize else jnp.ones_like(decay)
