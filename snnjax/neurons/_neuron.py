"""`Neuron`: a neuron model as pure functions, split so that a network can list the spikes in between."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_choice, fail, plural, short_repr
from snnjax._types import RESET_TIMES, RESETS, SPIKE_SOURCES, upcast
from snnjax.neurons._glif import GLIF, advance
from snnjax.ops._glif_step import align
from snnjax.ops.spike import spike
from snnjax.surrogates import Surrogate, superspike


def threshold_of_params(params: Any) -> Array:
    """The resting threshold of parameters that hold it under that name."""
    return params.threshold


class Neuron(NamedTuple):
    """A neuron model: pure functions of its `params` and `state`, both NamedTuples of arrays.

    A model states its equation as `glif`, which is fast on every device, or as `integrate`. `step` is ``advance``, then
    ``spikes = [membrane > threshold]`` with the surrogate derivative, then ``finish``. A network that passes spikes on
    as lists calls both itself, so an `integrate` or a `fire` set by ``_replace`` takes the place of `glif` in it too.

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
    # (params, state, inputs[batch, neurons]) -> (membrane, threshold, state after the step)
    integrate: Callable[..., tuple[Array, Array, Any]] | None = None
    # (state after the step, spikes[batch, neurons]) -> new state, of neurons whose state depends on these spikes
    fire: Callable[[Any, Array], Any] | None = None
    threshold: Callable[[Any], Array] = threshold_of_params  # (params) -> resting threshold [neurons]
    surrogate: Surrogate = superspike()  # surrogate of the spikes
    rest: float = 0.0  # the membrane at rest without input, in the unit of the threshold
    spikes: bool = True  # else the output is the membrane
    # The surrogate of the spikes that `integrate` computes from the previous membrane, if it does.
    inner_surrogate: Surrogate | None = None
    glif: GLIF | None = None
    # The arguments of the function of this name that made the neuron, by name; none for one's own.
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def fused(self) -> GLIF | None:
        """The equation by which `snnjax.lif_network` computes this neuron, None if it does not."""
        is_replaced = self.integrate is not None or self.fire is not None
        return None if is_replaced or self.glif is None or self.glif.conventions else self.glif

    def advance(self, params: Any, state: Any, inputs: Array) -> tuple[Array, Array, Any]:
        """The membrane after the inputs, its threshold, and the state, which `finish` completes with the spikes."""
        if self.integrate is None:
            if self.glif is None:
                hint = "Pass integrate=... or glif=... to Neuron"
                fail(f"Neuron: `integrate` must be a function unless `glif` is given, got None. {hint}.")
            return advance(f"{self.name}.step", self.glif, self.surrogate, params, state, inputs)
        found: Any = self.integrate(params, state, inputs)
        if not isinstance(found, tuple) or len(found) != 3:
            actual = plural(len(found), "value") if isinstance(found, tuple) else short_repr(found)
            hint = "Return all three, such as (v, params.threshold, state._replace(v=v))"
            fail(f"Neuron: `integrate` must return membrane, threshold and state, got {actual}. {hint}.")
        return found

    def finish(self, state: Any, spikes: Array) -> Any:
        """The state after the step and its spikes, from that of `advance`."""
        return state if self.fire is None else self.fire(state, spikes)

    def step(self, params: Any, state: Any, inputs: Float[Array, "*batch neurons"]) -> tuple[Any, Array]:
        """The state after one step, and the spikes in it."""
        check_surrogates("Neuron.step", self)
        membrane, threshold, after = self.advance(params, state, inputs)
        if not self.spikes:
            return self.finish(after, jnp.zeros_like(membrane)), membrane.astype(inputs.dtype)
        distance = upcast(membrane) - align(upcast(threshold), membrane)
        spikes = spike(distance, self.surrogate).astype(inputs.dtype)
        return self.finish(after, spikes), spikes


def check_spiking(op: str, neuron: Any) -> None:
    """Check that `neuron` is a `Neuron` that spikes."""
    if not isinstance(neuron, Neuron):
        name = getattr(neuron, "__name__", None)
        actual = short_repr(neuron) if name is None else f"the function {name}"
        fail(
            f"{op}: `neuron` must be a Neuron, got {actual}. Call one of snnjax.neurons, as in neurons.lif()."
        )
    if not neuron.spikes:
        hint = "Use it as the read-out, snnjax.leaky_readout, or choose another"
        fail(f"{op}: `neuron` must be a spiking neuron, got {neuron.name}. {hint}.")
    check_surrogates(op, neuron)
    if neuron.glif is not None:
        check_choice(op, "neuron.glif.reset", neuron.glif.reset, RESETS)
        check_choice(op, "neuron.glif.reset_time", neuron.glif.reset_time, RESET_TIMES)
        check_choice(op, "neuron.glif.spike_from", neuron.glif.spike_from, SPIKE_SOURCES)


def check_surrogates(op: str, neuron: Neuron) -> None:
    """Check that a replaced surrogate also applies to the reset."""
    inner = neuron.inner_surrogate
    if inner not in (None, neuron.surrogate):
        fail(
            f"{op}: `neuron.surrogate` must equal that of its reset or adaptation, {inner}, got "
            f"{neuron.surrogate}. Pass surrogate=... to the function that makes the neuron."
        )
