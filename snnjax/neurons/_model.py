"""A neuron model as a row of a table: its parameters with their bounds, and a function to its constants."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_choice, check_integer, check_switches
from snnjax._types import RESET_TIMES, RESETS, SPIKE_SOURCES, upcast
from snnjax.neurons._constants import check_constant, check_decay, draw, draw_raw_decay, raw_to_decay
from snnjax.neurons._glif import GLIF
from snnjax.neurons._neuron import Neuron
from snnjax.neurons._step import Bound, at_zero
from snnjax.ops._glif_step import GLIFConstants
from snnjax.surrogates import as_surrogate, superspike


class Parameter(NamedTuple):
    """A parameter of a model, whose initial value is the argument of this name."""

    argument: str
    learn: str  # the switch that lets gradients reach it
    is_decay: bool = False  # between 0 and 1, and learned as `decay_to_raw` of it; else any number
    per_neuron: bool = False  # even if the others are one per layer


DECAY = Parameter("decay", "learn_decay", is_decay=True)
THRESHOLD = Parameter("threshold", "learn_threshold", per_neuron=True)


class Model(NamedTuple):
    """A generalised LIF neuron model."""

    name: str
    params: type[Any]  # a NamedTuple with a field for each parameter; the last one has a value per neuron
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
    init = initialiser(op, model.params, model.parameters, given)
    choices = {"reset": model.resets, "reset_time": model.reset_times, "spike_from": SPIKE_SOURCES}
    for name, known in choices.items():
        if name in given:
            check_choice(op, name, given[name], known)
    surrogate = as_surrogate(op, given["surrogate"]) if "surrogate" in given else superspike()
    given |= {"surrogate": surrogate} if "surrogate" in given else {}
    drawn = {parameter.argument for parameter in model.parameters}
    flags = given.keys() - drawn - choices.keys() - {"surrogate"}
    check_switches(op, **{name: given[name] for name in given if name in flags})
    learned = tuple(given[parameter.learn] for parameter in model.parameters)
    switches = {name: given[name] for name in model.switches}
    decays = tuple(parameter.is_decay for parameter in model.parameters)
    constants = Bound(constants_of, function=model.constants, decays=decays, learned=learned, **switches)
    reset = given.get("reset", model.resets[0])
    form = GLIF(constants, reset, **{name: given[name] for name in GLIF._fields[2:] if name in given})
    initial_state = Bound(state_at_zero, kind=model.state)
    return Neuron(op, init, initial_state, surrogate=surrogate, glif=form, arguments=tuple(given.items()))


def initialiser(
    op: str, kind: type[Any], parameters: tuple[Parameter, ...], arguments: Mapping[str, Any]
) -> Callable[..., Any]:
    """`Neuron.init` of parameters with these initial values, after checking them."""
    for parameter in parameters:
        check_initial = check_decay if parameter.is_decay else check_constant
        check_initial(op, parameter.argument, arguments[parameter.argument])
    initial = {parameter.argument: arguments[parameter.argument] for parameter in parameters}
    per_neuron = {name: arguments[name] for name in ("per_neuron",) if name in arguments}
    return Bound(draw_params, kind=kind, parameters=parameters, **initial, **per_neuron)


def draw_params(
    key: Array,
    num_neurons: int,
    dtype: Any = jnp.float32,
    *,
    kind: type[Any],
    parameters: tuple[Parameter, ...],
    per_neuron: bool = True,
    **initial: Any,
) -> Any:
    """Draw the parameters of neurons: each is one value, or drawn per neuron from a range (low, high)."""
    check_integer("Neuron.init", "num_neurons", num_neurons, 0)
    keys = jax.random.split(key, len(parameters)) if len(parameters) > 1 else [key]

    def value(key: Array, parameter: Parameter) -> Array:
        owners = num_neurons if per_neuron or parameter.per_neuron else None
        make = draw_raw_decay if parameter.is_decay else draw
        return make(key, initial[parameter.argument], owners, dtype)

    return kind(*map(value, keys, parameters))


def state_at_zero(params: Any, batch: int, *, kind: type[Any]) -> Any:
    """A state of zeros, in at least float32."""
    return kind(*(at_zero(batch, params[-1]) for _ in kind._fields))


def learned_alone(values: Any, learned: tuple[bool, ...]) -> tuple[Array, ...]:
    """The values, with the gradient of those that are not learned stopped."""
    return tuple(
        value if learns else jax.lax.stop_gradient(value)
        for value, learns in zip(values, learned, strict=True)
    )


def constants_of(
    params: Any,
    *,
    function: Callable[..., GLIFConstants],
    decays: tuple[bool, ...],
    learned: tuple[bool, ...],
    **switches: Any,
) -> GLIFConstants:
    """The constants of the generalised LIF equation: decays are between 0 and 1, in the accumulation dtype."""
    values = zip(learned_alone(params, learned), decays, strict=True)
    physical = (raw_to_decay(upcast(value)) if is_decay else value for value, is_decay in values)
    return function(*physical, **switches)


def gain_of(decay: Array, normalize: bool) -> Array:
    """``1 - decay``, or 1 for inputs that are not normalised."""
    return 1 - decay if normalize else jnp.ones_like(decay)
