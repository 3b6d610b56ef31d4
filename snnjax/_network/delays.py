"""Axonal delays of a layer's inputs: their parameters, and the spikes still in transit."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from snnjax._check import check_choice, check_integer, check_switches, fail
from snnjax._types import accumulation_dtype, upcast
from snnjax.neurons import decay_to_raw, raw_to_decay
from snnjax.ops.delay_spikes import delay_spikes

# Initial delays keep this distance (as a fraction of the longest) from 0 and the longest, where raw is infinite; at
# most a quarter of a step, so that they round to what was asked for.
_MARGIN, _MARGIN_STEPS = 1e-3, 0.25
# Up to this delay float32 computes ``max_delay * sigmoid(raw)`` to a quarter of a step (all integers were tried).
LONGEST_DELAY = 2**22
_OWNERS = ("neuron", "channel", "layer")


@dataclass(frozen=True)
class Axonal:
    """Axonal delays; made by `axonal`."""

    max_delay: int
    initial: float | tuple[float, float]
    learn: bool
    per: str

    def init(self, key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        """Draw the raw parameters of the delays of neurons of `shape`, in the accumulation dtype of `dtype`.

        In bfloat16 or float16 long delays would be off by steps.
        """
        count = {"neuron": math.prod(shape), "channel": shape[-1], "layer": 1}[self.per]
        low, high = self.initial if isinstance(self.initial, tuple) else (self.initial, self.initial)
        share = jax.random.uniform(key, (count,), jnp.float32, low, max(high, low)) / self.max_delay
        margin = min(_MARGIN, _MARGIN_STEPS / self.max_delay)
        return decay_to_raw(jnp.clip(share, margin, 1 - margin)).astype(accumulation_dtype(dtype))

    def steps(self, raw: Array, shape: tuple[int, ...]) -> Array:
        """The delays of neurons of `shape` in steps, ``max_delay * sigmoid(raw)``, in the accumulation dtype."""
        delays = self.max_delay * raw_to_decay(upcast(raw))
        delays = delays if self.learn else jnp.round(jax.lax.stop_gradient(delays))
        return jnp.tile(delays, math.prod(shape) // delays.shape[0])


class Delays(NamedTuple):
    """The raw parameters of the delays of a layer: ``delay = max_delay * sigmoid(raw)`` steps."""

    inputs: Float[Array, " inputs"]  # or one per channel, or one
    recurrent: Float[Array, " neurons"] | None  # of the layer's recurrent spikes


class Pending(NamedTuple):
    """Spikes sent to a layer that have not arrived: rows of the last ``max_delay + 1`` steps, oldest first."""

    inputs: Float[Array, "rows batch inputs"]  # no rows stand for rows of zeros
    recurrent: Float[Array, "rows batch neurons"] | None


def axonal(
    max_delay: int,
    *,
    initial: float | tuple[float, float] | None = None,
    learn: bool = True,
    per: str = "neuron",
) -> Axonal:
    """Specify axonal delays of a layer's inputs: a spike of neuron i at t arrives at ``t + delay[i]``.

    ``delay = max_delay * sigmoid(raw)``. A delay that is not an integer splits a spike between two steps
    (`snnjax.delay_spikes`), and its gradient is that of the split. In a recurrent layer the recurrent spikes are
    delayed too, in addition to the one step that they always take; such a layer is scanned.

    Args:
        max_delay: the longest delay, in steps; at most 4,194,304.
        initial: initial delays: a number, or a range (low, high) from which each is drawn; None is the range ``(0,
            max_delay)``. Learned delays start at least ``min(max_delay / 1000, 1 / 4)`` steps from both ends.
        learn: whether the delays are learned; otherwise they are rounded to integers, and integers asked for are
            exact. A network of the same layers with False accepts the parameters of one with True, and rounds its
            delays: for inference, or for further training.
        per: whether there is one delay per "neuron", per "channel" of an image, or per "layer".

    Raises:
        ValueError: if a delay is outside ``[0, max_delay]``, or `max_delay` too long.

    Example:
        >>> import jax
        >>> import snnjax
        >>> spec = snnjax.layer(4, delays=snnjax.axonal(max_delay=10, initial=(2, 5)))
        >>> net = snnjax.network(3, [spec], snnjax.leaky_readout(2))
        >>> delays = net.delays(net.init(jax.random.key(0)))[0].inputs
        >>> delays.shape, bool((delays >= 2).all() and (delays <= 5).all())
        ((3,), True)

    Reference:
        Hammouamri, Khalfaoui-Hassani and Masquelier 2024, arXiv:2306.17670.
    """
    check_integer("axonal", "max_delay", max_delay, 1)
    if max_delay > LONGEST_DELAY:
        fail(
            f"axonal: `max_delay` must be at most {LONGEST_DELAY}, up to which float32 is exact, got {max_delay}. "
            "Use longer steps."
        )
    check_choice("axonal", "per", per, _OWNERS)
    check_switches("axonal", learn=learn)
    initial = (0.0, float(max_delay)) if initial is None else initial
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    if not 0 <= low <= high <= max_delay:
        fail(
            f"axonal: `initial` must be a number or a range (low, high) from 0 to {max_delay}, got {initial}. "
            "Pass delays in steps, or a longer max_delay."
        )
    return Axonal(max_delay, initial, learn, per)


def init_delays(
    spec: Axonal, key: Array, inputs: tuple[int, ...], neurons: tuple[int, ...] | None, dtype: Any
) -> Delays:
    """Draw the delay parameters of inputs of a shape and, in a recurrent layer, of its neurons."""
    input_key, recurrent_key = jax.random.split(key)
    recurrent = None if neurons is None else spec.init(recurrent_key, neurons, dtype)
    return Delays(spec.init(input_key, inputs, dtype), recurrent)


def no_pending(spec: Axonal, batch: int, inputs: int, neurons: int | None, dtype: Any) -> Pending:
    """A state without spikes in transit."""

    def rows(width: int) -> Array:
        return jnp.zeros((spec.max_delay + 1, batch, width), dtype)

    return Pending(rows(inputs), None if neurons is None else rows(neurons))


def delayed(
    spec: Axonal, delays: Array, x: Any, pending: Array, lengths: Array | None, implementation: str | None
) -> tuple[Array, Array]:
    """The spikes that arrive in each step, ``[time, batch, neurons]``, and those then in transit.

    All are in the accumulation dtype: a share of a spike has more digits than the spike.
    """
    before = pending if pending.shape[0] else None
    return delay_spikes(
        x, delays, before, max_delay=spec.max_delay, lengths=lengths, implementation=implementation
    )
