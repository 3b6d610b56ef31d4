"""`Neuron`: a neuron model as pure functions, split so that a network can list the spikes in between."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree

from snnjax._check import check_array, check_choice, check_shape, fail, plural, short_repr
from snnjax._types import Params, State, Stats, accumulation_dtype, upcast
from snnjax.neurons._glif import GLIF, advance, check_form
from snnjax.ops._glif_step import align
from snnjax.ops.spike import spike
from snnjax.surrogates import Surrogate, superspike

# Which neurons of an image share their constants: those of a channel, none, or all. The first is the default.
OWNERS = ("channel", "neuron", "layer")
_SUPERSPIKE = superspike()


def threshold_of_params(params: Params) -> Array:
    """The resting threshold of parameters that hold it under that name."""
    return params.threshold


def no_stats(key: Array, num_neurons: int) -> None:
    """No constants are drawn that are not learned."""
    del key, num_neurons


@dataclass(frozen=True, kw_only=True)
class _Traits:
    """What few models say of themselves, with what holds for all others."""

    spikes: bool = True  # else the output is the membrane
    # The surrogate of the spikes that `integrate` computes from the previous membrane, if it does.
    inner_surrogate: Surrogate | None = None
    glif: GLIF | None = None
    # (key, num_neurons) -> the constants that are drawn and not learned, in the form of the params; None for none
    initial_stats: Callable[..., Any] = no_stats
    # Whether one set of constants belongs to a "channel" of an image, a "neuron" or the "layer": `init` draws so many.
    per: str = "channel"
    # The arguments of the function of this name that made the neuron, by name; none for one's own.
    arguments: tuple[tuple[str, Any], ...] = ()
    # All steps at once: (params, state, currents[time, batch, neurons], valid[time, batch] or None)
    # -> (membranes[time, batch, neurons], thresholds, state after the last valid step). Other currents are 0.
    sequence: Callable[..., tuple[Array, Array, Any]] | None = None
    num_steps: int | None = None  # of every sequence, of neurons that need all of its steps
    num_neurons: int | None = None  # of every layer, of neurons with constants of their own
    # Of how many kinds the currents of a neuron are: its inputs are ``[batch, receptors * neurons]``.
    num_receptors: int = 1
    # (state of `integrate`, spikes) -> the same spikes with another derivative, as others receive them. Neurons are
    # counted with their surrogate. The spikes of the step before may have a derivative in this one.
    sent: Callable[[Any, Array], Array] | None = None
    # The least and the largest value of a spike. A graded spike is the membrane in units of twice the threshold,
    # rounded and clipped to these values, so that it is not 0 where the membrane is above the threshold.
    levels: tuple[int, int] = (0, 1)


@dataclass(frozen=True)
class Neuron(_Traits):
    """A neuron model: pure functions of its `params` and `state`, both NamedTuples of arrays.

    The params hold what is learned and nothing else. Other constants are numbers, or drawn by `initial_stats`; `merged`
    gives the functions both: ``neuron.merged(params, stats)`` takes the place of `params`.

    A model states its equation as `glif`, which is fast on every device, or as `integrate`. `step` is ``advance``, then
    ``spikes = [membrane > threshold]`` with the surrogate derivative, or graded ones (`levels`), then ``finish``. A
    network that passes spikes on as lists calls both itself, so an `integrate` or a `fire` set by `dataclasses.replace`
    takes the place of `glif` in it too. A model without reset may state `sequence`, which networks call in place of its
    steps.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> neuron = neurons.lif(decay=0.5, threshold=1.0, normalize=False)
        >>> params = neuron.init(jax.random.key(0), 2)
        >>> state = neuron.initial_state(params, 1, 2)
        >>> state, spikes = neuron.step(params, state, jnp.array([[2.0, 0.5]]))
        >>> spikes
        Array([[1., 0.]], dtype=float32)
    """

    name: str
    init: Callable[..., Any]  # (key, num_neurons, dtype=float32) -> params
    # (params, batch, num_neurons, dtype=float32) -> state of arrays [batch, neurons]
    initial_state: Callable[..., Any]
    # (params, state, inputs[batch, neurons]) -> (membrane, threshold, state after the step)
    integrate: Callable[..., tuple[Array, Array, Any]] | None = None
    # (state after the step, spikes[batch, neurons]) -> new state, of neurons whose state depends on these spikes
    fire: Callable[[Any, Array], Any] | None = None
    threshold: Callable[[Any], Array] = threshold_of_params  # (params) -> resting threshold [neurons]
    surrogate: Surrogate = _SUPERSPIKE  # of the spikes
    rest: float = 0.0  # the membrane at rest without input, in the unit of the threshold

    @property
    def is_graded(self) -> bool:
        """Whether spikes have other values than 0 and 1."""
        return self.levels != (0, 1)

    def graded(self, membrane: Array, threshold: Array) -> tuple[Array, Array]:
        """The values of the spikes, and their magnitudes, which count them; each level has the surrogate derivative."""
        return graded_spikes(membrane, threshold, self.levels, self.surrogate)

    @property
    def fused(self) -> GLIF | None:
        """The equation by which `snnjax.lif_network` computes this neuron, None if it does not."""
        is_replaced = (
            any(own is not None for own in (self.integrate, self.fire, self.sequence)) or self.is_graded
        )
        return None if is_replaced or self.glif is None or self.glif.conventions else self.glif

    def merged(self, params: Params, stats: Stats) -> Params:
        """The params with what stats hold in place of None, in the same dtype.

        Example:
            >>> import jax
            >>> from snnjax import neurons
            >>> neuron = neurons.lif(decay=(0.8, 0.95))
            >>> stats = neuron.initial_stats(jax.random.key(0), 3)
            >>> neuron.merged(neuron.init(jax.random.key(0), 3), stats).raw_decay.shape
            (3,)
        """
        if stats is None:
            return params
        leaves = jax.tree.leaves(params)
        if leaves:
            stats = jax.tree.map(lambda leaf: leaf.astype(accumulation_dtype(leaves[0].dtype)), stats)
        return jax.tree.map(
            lambda own, drawn: drawn if own is None else own, params, stats, is_leaf=lambda own: own is None
        )

    def advance(self, params: Params, state: State, inputs: Array) -> tuple[Array, Array, Any]:
        """The membrane after the inputs, its threshold, and the state, which `finish` completes with the spikes."""
        if self.integrate is None:
            if self.glif is None and self.sequence is not None:
                return self._one_of_sequence(params, state, inputs)
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

    def _one_of_sequence(self, params: Params, state: State, inputs: Array) -> tuple[Array, Array, Any]:
        """`advance` as a sequence of one step."""
        assert self.sequence is not None
        if self.num_steps is not None:
            fail(
                f"{self.name}.step: `neuron` must have a step of its own, got one that needs all {self.num_steps} "
                "steps. Call neuron.sequence, or run it in a network."
            )
        check_array(f"{self.name}.step", "inputs", inputs)
        check_shape(f"{self.name}.step", "inputs", inputs, (None, None), "batch, neurons", "Add a batch axis")
        membranes, thresholds, after = self.sequence(params, state, upcast(inputs)[None], None)
        return membranes[0], thresholds, after

    def finish(self, state: State, spikes: Array) -> State:
        """The state after the step and its spikes, from that of `advance`."""
        return state if self.fire is None else self.fire(state, spikes)

    def step(self, params: Params, state: State, inputs: Float[Array, "*batch neurons"]) -> tuple[Any, Array]:
        """The state after one step, and the spikes in it."""
        check_surrogates("Neuron.step", self)
        membrane, threshold, after = self.advance(params, state, inputs)
        if not self.spikes:
            return self.finish(after, jnp.zeros_like(membrane)), membrane.astype(inputs.dtype)
        membrane = upcast(membrane)
        spikes = self.graded(membrane, align(threshold, membrane))[0].astype(inputs.dtype)
        spikes = spikes if self.sent is None else self.sent(after, spikes)
        return self.finish(after, spikes), spikes


def graded_spikes(
    membrane: Array, threshold: Array, levels: tuple[int, int], surrogate: Surrogate
) -> tuple[Array, Array]:
    """The values of spikes as in `Neuron.levels`, and their magnitudes: sums of a spike for each level."""
    least, most = levels

    def reached(membrane: Array, highest: int) -> Array:
        each = (spike(membrane - (2 * level - 1) * threshold, surrogate) for level in range(1, highest + 1))
        return functools.reduce(jnp.add, each)

    if least == 0:
        values = reached(membrane, most)
        return values, values
    positive, negative = reached(membrane, most), reached(-membrane, -least)
    return positive - negative, positive + negative


def num_owners(neuron: Neuron, shape: tuple[int, ...]) -> int:
    """How many sets of constants neurons of this shape have."""
    return {"channel": shape[-1], "neuron": math.prod(shape), "layer": 1}[neuron.per]


def drawn(neuron: Neuron, key: Array, num_neurons: int, dtype: DTypeLike = jnp.float32) -> Params:
    """All constants of a neuron that are no numbers, learned or not."""
    return neuron.merged(neuron.init(key, num_neurons, dtype), neuron.initial_stats(key, num_neurons))


def is_drawn(neuron: Neuron) -> bool:
    """Whether other keys give it other constants."""
    one, other = (drawn(neuron, jax.random.key(seed), _FEW) for seed in (0, 1))
    return not all(jax.tree.leaves(jax.tree.map(np.array_equal, one, other)))


def for_each(neuron: Neuron, params: Params, stats: Stats, shape: tuple[int, ...]) -> PyTree:
    """Params and stats merged, with one set of constants for each neuron of `shape`.

    `params` may be None if nothing is learned.
    """
    if params is None:
        params = _few(neuron)
        if jax.tree.leaves(params):
            fail(f"{neuron.name}: `params` must hold what it learns, got None. Make them with init.")
    own = neuron.merged(params, stats)
    repeats = math.prod(shape) // max(num_owners(neuron, shape), 1)
    if repeats <= 1:
        return own

    def spread(leaf: Array | None, axis: int | None) -> Array | None:
        if leaf is None or axis is None:
            return leaf
        return jnp.tile(leaf, (*(1,) * axis, repeats, *(1,) * (leaf.ndim - axis - 1)))

    return jax.tree.map(spread, own, _axes(neuron), is_leaf=lambda leaf: leaf is None)


# How many neurons the functions of a neuron are asked for, to see which axes of its constants are theirs.
_FEW, _MORE = 2, 3


@functools.cache
def _few(neuron: Neuron) -> PyTree:
    """The params of few neurons, without arrays."""
    return jax.eval_shape(lambda: neuron.init(jax.random.key(0), _FEW))


@functools.cache
def _axes(neuron: Neuron) -> PyTree:
    """The axis of each constant that is as long as there are neurons, None for those without."""
    few, more = (
        jax.eval_shape(lambda count=count: drawn(neuron, jax.random.key(0), count)) for count in (_FEW, _MORE)
    )
    return jax.tree.map(lambda a, b: _axis(neuron.name, a.shape, b.shape), few, more)


def _axis(name: str, few: tuple[int, ...], more: tuple[int, ...]) -> int | None:
    sizes = list(zip(few, more, strict=True))
    found = [axis for axis, (a, b) in enumerate(sizes) if a != b]
    if len(found) > 1 or any(sizes[axis] != (_FEW, _MORE) for axis in found):
        hint = "Make them for each neuron with per='neuron'"
        fail(
            f"Neuron.init: `{name}` must have constants of at most one axis of neurons, "
            f"got {list(few)} for {_FEW} neurons and {list(more)} for {_MORE}. {hint}."
        )
    return found[0] if found else None


def check_spiking(op: str, neuron: object) -> None:
    """Check that `neuron` is a `Neuron` that spikes."""
    if not isinstance(neuron, Neuron):
        name = getattr(neuron, "__name__", None)
        actual = short_repr(neuron) if name is None else f"the function {name}"
        fail(
            f"{op}: `neuron` must be a Neuron, got {actual}. Call one of snnjax.neurons, as in neurons.lif()."
        )
    if not neuron.spikes:
        hint = "Use it as the readout, snnjax.leaky_readout, or choose another"
        fail(f"{op}: `neuron` must be a spiking neuron, got {neuron.name}. {hint}.")
    check_surrogates(op, neuron)
    check_choice(op, "neuron.per", neuron.per, OWNERS)
    if neuron.glif is not None:
        check_form(op, "neuron.glif.", neuron.glif)


def check_surrogates(op: str, neuron: Neuron) -> None:
    """Check that a replaced surrogate also applies to the reset."""
    inner = neuron.inner_surrogate
    if inner not in (None, neuron.surrogate):
        fail(
            f"{op}: `neuron.surrogate` must equal that of its reset or adaptation, {inner}, got "
            f"{neuron.surrogate}. Pass surrogate=... to the function that makes the neuron."
        )
