"""`axonal`: delays of spikes, one for each sending neuron; spikes in transit are the state."""

import dataclasses
import math
import numbers
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from snnjax._arguments import explained
from snnjax._check import check_choice, check_integer, check_switches, fail
from snnjax._types import Params, Signal, State, Stats, Unchecked, accumulation_dtype, upcast
from snnjax.blocks.block import BlockResult, Context, Op, Shape, Stepwise, flat, given, shaped
from snnjax.neurons import decay_to_raw, raw_to_decay
from snnjax.ops.delay_spikes import delay_spikes

# Initial delays keep this distance (as a fraction of the longest) from 0 and the longest, where raw is infinite; at
# most a quarter of a step, so that they round to what was asked for.
_MARGIN, _MARGIN_STEPS = 1e-3, 0.25
# Up to this delay float32 computes ``max_delay * sigmoid(raw)`` to a quarter of a step (all integers were tried).
LONGEST_DELAY = 2**22
_OWNERS = ("neuron", "channel", "layer")


class DelayParams(NamedTuple):
    """The params of `axonal`, or its stats if not learned.

    ``delay = min_delay + (max_delay - min_delay) * sigmoid(raw_delay)`` steps.
    """

    raw_delay: Float[Array, " neurons"]  # or one per channel, or one


class DelayState(NamedTuple):
    """The state of `axonal`: spikes that have not arrived, in the accumulation dtype."""

    pending: Float[
        Array, "rows batch neurons"
    ]  # of the last max_delay + 1 steps, oldest first; no rows stand for 0


def without_rows(state: dict[str, Any]) -> dict[str, Any]:
    """A state by block whose delays have no rows, which stand for rows of zeros."""
    return {
        name: DelayState(own.pending[:0]) if isinstance(own, DelayState) else own
        for name, own in state.items()
    }


def drawn_delays(
    key: Array, shape: Shape, initial: tuple[float, float], min_delay: int, max_delay: int
) -> Array:
    """Delays that are drawn uniformly from a range, as ``raw_delay``."""
    span = max_delay - min_delay
    return raw_of((jax.random.uniform(key, shape, jnp.float32, *initial) - min_delay) / span, span)


def raw_of(share: Array, span: int) -> Array:
    """``raw_delay`` for a share of the range of so many steps, at a distance from its ends."""
    margin = min(_MARGIN, _MARGIN_STEPS / span)
    return decay_to_raw(jnp.clip(share, margin, 1 - margin))


def delays_of(raw_delay: Array, min_delay: int, max_delay: int, learn: bool) -> Array:
    """Delays in steps, in the accumulation dtype; integers if they are not learned."""
    delays = min_delay + (max_delay - min_delay) * raw_to_decay(upcast(raw_delay))
    return delays if learn else jnp.round(delays)


class HasDelays:
    """What blocks with delays have in common."""

    max_delay: int
    initial: tuple[float, float]
    learn: bool
    min_delay: int

    @property
    def is_drawn(self) -> bool:
        """Whether the delays are neither learned nor one number."""
        return not self.learn and self.initial[0] < self.initial[1]

    def earlier(self) -> Any:
        """The block without the steps that all delays have."""
        return self.later(-self.min_delay)

    def later(self, steps: int) -> Any:
        """The block with `steps` more in all delays."""
        low, high = self.initial
        options: dict[str, Any] = {"max_delay": self.max_delay + steps, "min_delay": self.min_delay + steps}
        return dataclasses.replace(cast(Any, self), initial=(low + steps, high + steps), **options)


def checked_delays(
    op: str, min_delay: Unchecked, max_delay: Unchecked, initial: Unchecked, learn: Unchecked
) -> tuple[float, float]:
    """The range from which delays are drawn."""
    max_delay = check_integer(op, "max_delay", max_delay, 1)
    if max_delay > LONGEST_DELAY:
        fail(
            f"{op}: `max_delay` must be at most {LONGEST_DELAY}, up to which float32 is exact, "
            f"got {max_delay}. Use longer steps."
        )
    min_delay = check_integer(op, "min_delay", min_delay, 0)
    if min_delay >= max_delay:
        fail(
            f"{op}: `min_delay` must be below max_delay, {max_delay}, got {min_delay}. Leave a range of delays."
        )
    check_switches(op, learn=learn)
    initial = (float(min_delay), float(max_delay)) if initial is None else initial
    ends = initial if isinstance(initial, tuple) else (initial, initial)
    low, high = ends if len(ends) == 2 and all(isinstance(end, numbers.Real) for end in ends) else (1, 0)
    if not min_delay <= low <= high <= max_delay:
        fail(
            f"{op}: `initial` must be a number or a range (low, high) from {min_delay} to {max_delay}, got {initial}. "
            "Pass delays in steps, or a longer max_delay."
        )
    return float(low), float(high)


@dataclass(frozen=True)
class Delayed(Op):
    """Delays of the inputs of a layer."""

    max_delay: int


@dataclass(frozen=True)
class Axonal(HasDelays, Stepwise):
    """Axonal delays; made by `axonal`."""

    kind = "axonal"
    max_delay: int
    initial: tuple[float, float]
    learn: bool
    per: str
    min_delay: int = 0

    def count(self, shape: Shape) -> int:
        """The number of delays."""
        return {"neuron": math.prod(shape), "channel": shape[-1], "layer": 1}[self.per]

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> DelayParams | None:
        """Draw learned delays in the accumulation dtype: in bfloat16 or float16 long ones would be off by steps."""
        return (
            DelayParams(self._raw(key, shapes[0]).astype(accumulation_dtype(dtype))) if self.learn else None
        )

    def initial_stats(self, key: Array, *shapes: Shape) -> DelayParams | None:
        """Draw delays that are not learned."""
        return DelayParams(self._raw(key, shapes[0])) if self.is_drawn else None

    def _raw(self, key: Array, shape: Shape) -> Array:
        return drawn_delays(key, (self.count(shape),), self.initial, self.min_delay, self.max_delay)

    def delays(self, held: DelayParams | None, shape: Shape) -> Float[Array, " neurons"]:
        """The delay of each neuron in steps, in the accumulation dtype; integers if they are not learned.

        `held` are its params, or its stats; None if the delay is a number that is not learned.
        """
        if not self.learn and not self.is_drawn:
            return jnp.full(math.prod(shape), round(self.initial[0]), jnp.float32)
        raw = given(self.kind, "params" if self.learn else "stats", None if held is None else held.raw_delay)
        delays = delays_of(raw, self.min_delay, self.max_delay, self.learn)
        return jnp.tile(delays, math.prod(shape) // delays.shape[0])

    def ahead(self) -> tuple[int, "Axonal"]:
        """As many steps as all delays have."""
        return self.min_delay, self.earlier()

    def initial_state(self, params: Params, stats: Stats, batch: int, *shapes: Shape) -> DelayState:
        """Nothing in transit."""
        rows = (self.max_delay + 1, batch, math.prod(shapes[0]))
        held = jax.tree.leaves((params, stats))
        dtype = accumulation_dtype(held[0].dtype) if held else jnp.dtype(jnp.float32)
        return DelayState(jnp.zeros(rows, dtype))

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """The spikes that arrive in each step, dense: a share of a spike is no spike."""
        (x,), (shape,) = signals, shapes
        options: dict[str, Any] = {"lengths": context.lengths, "implementation": context.implementation}
        before = state.pending if state.pending.shape[0] else None
        arriving, pending = delay_spikes(
            flat(x), self.operands(params, stats, shape), before, max_delay=self.max_delay, **options
        )
        return BlockResult(shaped(arriving, shape), DelayState(pending))

    def op(self, shape: Shape) -> Delayed:
        """Delays of the fused op."""
        del shape
        return Delayed(self.max_delay)

    def operands(self, params: Params, stats: Stats, shape: Shape) -> Array:
        """The delays in steps."""
        return self.delays(params if self.learn else stats, shape)


@explained
def axonal(
    max_delay: int,
    *,
    min_delay: int = 0,
    initial: float | tuple[float, float] | None = None,
    learn: bool = True,
    per: str = "neuron",
) -> Axonal:
    """Delay the spikes of each neuron: a spike of neuron i at t arrives at ``t + delay[i]``.

    ``delay = min_delay + (max_delay - min_delay) * sigmoid(raw_delay)``. A delay that is not an integer splits a spike
    between two steps (`snnjax.delay_spikes`), and its gradient is that of the split. As part of a recurrent connection
    it delays in addition to the one step that recurrent spikes always take; before dense weights without a bias, such
    a layer is part of the fused op.

    Args:
        max_delay: the longest delay, in steps; at most 4,194,304.
        min_delay: the shortest delay, in steps.
        initial: initial delays: a number, or a range (low, high) from which each is drawn; None is the range
            ``(min_delay, max_delay)``. Learned delays start at least ``min((max_delay - min_delay) / 1000, 1 / 4)``
            steps from both ends.
        learn: whether the delays are learned. Otherwise they are rounded to integers: one number, or, if they are drawn
            from a range, stats of the network. Learned delays become such stats, for inference or for further
            training: ``stats[name] = params.pop(name)`` for a network with the range ``(min_delay, max_delay)``
            and False.
        per: whether there is one delay per "neuron", per "channel" of an image, or per "layer".

    Raises:
        ValueError: if a delay is outside ``[min_delay, max_delay]``, or `max_delay` too long.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import axonal
        >>> block = axonal(max_delay=10, initial=(2, 5))
        >>> params = block.init(jax.random.key(0), (3,), dtype=jnp.float32)
        >>> delays = block.delays(params, (3,))
        >>> delays.shape, bool((delays >= 2).all() and (delays <= 5).all())
        ((3,), True)

    Reference:
        Hammouamri, Khalfaoui-Hassani and Masquelier 2024, arXiv:2306.17670.
    """
    initial = checked_delays("axonal", min_delay, max_delay, initial, learn)
    check_choice("axonal", "per", per, _OWNERS)
    return Axonal(max_delay, initial, learn, per, min_delay)
