"""`Neuron`: a neuron model as pure functions, split so that a network can list the spikes in between."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check, check_float_array, check_shape, check_size, check_switches, shown
from snnjax._types import sum_dtype, wide
from snnjax.ops.spike import spike
from snnjax.surrogates import Surrogate, as_surrogate


class Neuron(NamedTuple):
    """A neuron model: pure functions of its `params` and `state`, both NamedTuples of arrays.

    `step` is ``integrate``, then ``spikes = [membrane > threshold]`` with the surrogate derivative, then ``fire``.
    A network that passes spikes on as lists calls these functions itself, so replacing one (``_replace``) affects both.

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
    # (params, state, inputs[batch, neurons]) -> (membrane, threshold)
    integrate: Callable[..., tuple[Array, Array]]
    fire: Callable[..., Any]  # (params, state, inputs, membrane, spikes[batch, neurons]) -> new state
    threshold: Callable[[Any], Array]  # (params) -> resting threshold [neurons]
    surrogate: Surrogate  # surrogate of the spikes
    rest: float = 0.0  # the membrane at rest without input, in the unit of the threshold
    spikes: bool = True  # else the output is the membrane
    # The surrogate of the spikes that these functions compute from the previous membrane, if they do.
    inner_surrogate: Surrogate | None = None

    def step(self, params: Any, state: Any, inputs: Float[Array, "*batch neurons"]) -> tuple[Any, Array]:
        """The state after one step, and the spikes in it."""
        check_surrogates("Neuron.step", self)
        membrane, threshold = integrated(self, params, state, inputs)
        if not self.spikes:
            after = self.fire(params, state, inputs, membrane, jnp.zeros_like(membrane))
            return after, membrane.astype(inputs.dtype)
        distance = wide(membrane) - align(wide(threshold), membrane)
        spikes = spike(distance, self.surrogate).astype(inputs.dtype)
        return self.fire(params, state, inputs, membrane, spikes), spikes


def own_threshold(params: Any) -> Array:
    """The resting threshold of parameters that hold it under that name."""
    return params.threshold


def assemble(
    name: str,
    surrogate: str | Surrogate,
    init: Callable[..., Any],
    pieces: tuple[Callable[..., Any], ...],
    *,
    threshold: Callable[[Any], Array] = own_threshold,
    takes_spikes: bool = False,
) -> Neuron:
    """Make a `Neuron` from a model's (initial_state, integrate, fire).

    `takes_spikes`: these functions differentiate spikes that they compute from the membrane themselves.
    """
    initial_state, integrate, fire = pieces
    shape = as_surrogate(name, surrogate)
    inner = shape if takes_spikes else None
    return Neuron(name, init, initial_state, integrate, fire, threshold, shape, inner_surrogate=inner)


class Bound(functools.partial[Any]):
    """A `functools.partial` that equals any other of the same function and arguments.

    Networks made by equal calls are thereby equal, in another process too, and JAX compiles for one static argument
    what it has compiled for the other.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bound):
            return NotImplemented
        return (self.func, self.args, self.keywords) == (other.func, other.args, other.keywords)

    def __hash__(self) -> int:
        return hash((self.func, len(self.args), *sorted(self.keywords)))


def configured(config: Any, *pieces: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """Bind the configuration of a model to its functions."""
    return tuple(Bound(piece, config=config) for piece in pieces)


def config_of(neuron: Neuron, integrate: Callable[..., Any], fire: Callable[..., Any]) -> Any:
    """The configuration of a neuron whose functions `configured` made from these two, None for any other neuron."""
    own = neuron.integrate, neuron.fire
    functions = tuple(piece.func for piece in own if isinstance(piece, Bound))
    if functions != (integrate, fire):
        return None
    configs = [piece.keywords["config"] for piece in own if isinstance(piece, Bound)]
    return configs[0] if configs[0] == configs[1] else None


def computed_wide(op: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a neuron function: check its inputs, and compute membranes and states in at least float32.

    The first three arguments are params, state and inputs; the configuration is a keyword argument.
    """

    def decorate(piece: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(piece)
        def wrapped(params: Any, state: Any, inputs: Array, *rest: Array, **config: Any) -> Any:
            check_inputs(op, params, state.v, inputs)
            return piece(*jax.tree.map(wide, (params, state, inputs, *rest)), **config)

        return wrapped

    return decorate


def reset_membrane(v: Array, spikes: Array, threshold: Array, reset: str, detach: bool) -> Array:
    """The membrane after the reset: ``v - threshold * spikes``, ``v * (1 - spikes)`` or ``v``."""
    spikes = jax.lax.stop_gradient(spikes) if detach else spikes
    if reset == "subtract":
        return v - threshold * spikes
    return v * (1 - spikes) if reset == "zero" else v


def align(constant: Array, like: Array) -> Array:
    """A constant ``[]`` or ``[neurons]`` with the rank of `like`, so that it broadcasts along the last axis."""
    return (
        constant.reshape((1,) * (like.ndim - constant.ndim) + constant.shape) if constant.ndim else constant
    )


def aligned(constants: Any, like: Array) -> Any:
    """Every array of `constants`, aligned."""
    return jax.tree.map(lambda constant: align(constant, like), constants)


def learned(constant: Array, learn: bool) -> Array:
    """`constant`, with its gradient stopped unless it is to be learned."""
    return constant if learn else jax.lax.stop_gradient(constant)


def check_flags(op: str, config: Any, **others: Any) -> None:
    """Check that the switches of a configuration that are True or False, and `others`, are one of them."""
    flags = {
        name: getattr(config, name) for name, kind in type(config).__annotations__.items() if kind is bool
    }
    check_switches(op, **flags, **others)


def integrated(neuron: Neuron, params: Any, state: Any, inputs: Array) -> tuple[Array, Array]:
    """The membrane and the threshold of a neuron, which may be a user's own."""
    found: Any = neuron.integrate(params, state, inputs)
    good = isinstance(found, tuple) and len(found) == 2
    actual = f"{len(found)} values" if isinstance(found, tuple) else shown(found)
    op, way_out = f"{neuron.name}.integrate", "Return both, such as (membrane, params.threshold)"
    check(good, op, "membrane, threshold", "be what it returns", actual, way_out)
    return found


def check_spiking(op: str, neuron: Any) -> None:
    """Check that `neuron` is a `Neuron` that spikes."""
    actual = f"the function {neuron.__name__}" if hasattr(neuron, "__name__") else repr(neuron)
    expected, way_out = "be a Neuron", "Call one of snnjax.neurons, as in neurons.lif()"
    check(isinstance(neuron, Neuron), op, "neuron", expected, actual, way_out)
    way_out = "Use it as the read-out, snnjax.leaky_readout, or choose another"
    check(neuron.spikes, op, "neuron", "be a spiking neuron", neuron.name, way_out)
    check_surrogates(op, neuron)


def check_surrogates(op: str, neuron: Neuron) -> None:
    """Check that a replaced surrogate also applies to the reset."""
    inner = neuron.inner_surrogate
    expected = f"equal that of its reset or adaptation, {inner}"
    way_out = "Pass surrogate=... to the function that makes the neuron"
    check(inner in (None, neuron.surrogate), op, "neuron.surrogate", expected, neuron.surrogate, way_out)


def at_zero(batch: int, like: Array) -> Array:
    """A state ``[batch, neurons]`` of zeros for the neurons of `like`, in the accumulation dtype.

    Each part of a state needs its own: JAX does not donate one buffer twice.
    """
    check_size("Neuron.initial_state", "batch", batch)
    return jnp.zeros((batch, *like.shape), sum_dtype(like.dtype))


def check_inputs(op: str, params: Any, v: Array, inputs: Array) -> None:
    """Check that `inputs` have the shape of the membrane `v` and the dtype of `params`, or the accumulation dtype."""
    check_float_array(op, "inputs", inputs)
    check_shape(op, "inputs", inputs, v.shape, "batch, neurons", "Give it the shape of the state")
    way_out = "Cast it, or call init with that dtype"
    dtype = jax.tree.leaves(params)[0].dtype
    fits = inputs.dtype in (dtype, sum_dtype(dtype))
    check(fits, op, "inputs", f"have dtype {dtype.name}", inputs.dtype.name, way_out)
