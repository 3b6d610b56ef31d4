"""`Neuron`: a neuron model as a few pure functions, in pieces between which a network can put a list of spikes."""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, Float

from snnjax._check import check, check_float_array, check_shape
from snnjax._types import wide
from snnjax.ops.spike import spike
from snnjax.surrogates import Surrogate, as_surrogate


class Neuron(NamedTuple):
    """A neuron model: pure functions over its own `params` and `state`, both NamedTuples of arrays.

    ``step`` is ``integrate``, then ``spikes = [membrane > threshold]`` with the surrogate derivative, then ``fire``.
    A network that passes spikes on as lists calls the pieces itself.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> neuron = neurons.lif(decay=0.5, threshold=1.0, normalize=False)
        >>> params = neuron.init(jax.random.key(0), 2)
        >>> state = neuron.initial_state(params, batch=1)
        >>> state, spikes = neuron.step(params, state, jnp.array([[2.0, 0.5]]))
        >>> spikes
        Array([[1., 0.]], dtype=float32)
    """

    name: str
    init: Callable[..., Any]  # (key, num_neurons, dtype=float32) -> params
    initial_state: Callable[..., Any]  # (params, batch) -> state of arrays [batch, neurons]
    integrate: Callable[
        ..., tuple[Array, Array]
    ]  # (params, state, inputs[batch, neurons]) -> (membrane, threshold)
    fire: Callable[..., Any]  # (params, state, inputs, membrane, spikes[batch, neurons]) -> new state
    step: Callable[..., tuple[Any, Array]]  # (params, state, inputs) -> (new state, spikes)
    threshold: Callable[[Any], Array]  # (params) -> resting threshold [neurons]
    surrogate: Surrogate  # of the spikes, for who takes them from the pieces
    plain_lif: Any = (
        None  # the `LIFConfig` where the fused `lif_network` computes just this neuron, else None
    )


def assemble(
    name: str,
    config: Any,
    surrogate: str | Surrogate,
    init: Callable[..., Any],
    pieces: tuple[Callable[..., Any], ...],
    *,
    threshold: Callable[[Any], Array] = operator.attrgetter("threshold"),
    plain_lif: Any = None,
) -> Neuron:
    """A `Neuron` out of a model's (initial_state, integrate, fire, step), the last three with `config`."""
    initial_state, *rest = pieces
    integrate, fire, step = (functools.partial(piece, config=config) for piece in rest)
    shape = as_surrogate(name, surrogate)
    return Neuron(name, init, initial_state, integrate, fire, step, threshold, shape, plain_lif)


def advance(
    integrate: Callable[..., Any],
    fire: Callable[..., Any],
    surrogate: str | Surrogate,
    params: Any,
    state: Any,
    inputs: Float[Array, "*batch neurons"],
) -> tuple[Any, Float[Array, "*batch neurons"]]:
    """One step out of the pieces: ``spikes = [membrane > threshold]`` between `integrate` and `fire`."""
    membrane, threshold = integrate(params, state, inputs)
    distance = wide(membrane) - align(wide(threshold), membrane)
    spikes = spike(distance, surrogate).astype(membrane.dtype)
    return fire(params, state, inputs, membrane, spikes), spikes


def rounded_once(op: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a piece: its inputs are checked, and results narrower than float32 are rounded only once, at its end.

    The first three arguments are params, state and inputs; a configuration comes by keyword.
    """

    def decorate(piece: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(piece)
        def wrapped(params: Any, state: Any, inputs: Array, *rest: Array, **config: Any) -> Any:
            check_inputs(op, state.v, inputs)
            arguments = jax.tree.map(wide, (params, state, inputs, *rest))
            return jax.tree.map(lambda leaf: leaf.astype(inputs.dtype), piece(*arguments, **config))

        return wrapped

    return decorate


def reset_membrane(v: Array, spikes: Array, threshold: Array, reset: str, detach: bool) -> Array:
    """The membrane after the reset: ``v - threshold * spikes``, ``v * (1 - spikes)`` or ``v``."""
    spikes = jax.lax.stop_gradient(spikes) if detach else spikes
    if reset == "subtract":
        return v - threshold * spikes
    return v * (1 - spikes) if reset == "zero" else v


def align(constant: Array, like: Array) -> Array:
    """A constant ``[]`` or ``[neurons]`` with the rank of `like`, so that it broadcasts by the last axis alone."""
    return (
        constant.reshape((1,) * (like.ndim - constant.ndim) + constant.shape) if constant.ndim else constant
    )


def aligned(constants: Any, like: Array) -> Any:
    """Every array of `constants`, aligned."""
    return jax.tree.map(lambda constant: align(constant, like), constants)


def learned(constant: Array, learn: bool) -> Array:
    """`constant`, with its gradient stopped unless it is to be learned."""
    return constant if learn else jax.lax.stop_gradient(constant)


def check_inputs(op: str, v: Array, inputs: Array) -> None:
    """`inputs` must have the shape and the dtype of the membrane `v`."""
    check_float_array(op, "inputs", inputs)
    check_shape(op, "inputs", inputs, v.shape, "batch, neurons", "Give it the shape of the state")
    way_out = "Cast it, or call init with that dtype"
    check(inputs.dtype == v.dtype, op, "inputs", f"have dtype {v.dtype.name}", inputs.dtype.name, way_out)
