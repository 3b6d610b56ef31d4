"""The nodes between two layers of a graph as one connection: pooling, then weights or a convolution."""

import functools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from snnjax._check import fail
from snnjax._network.connections import (
    Convolve,
    Dense,
    Flatten,
    Pool,
    conv1d,
    conv2d,
    dense,
    flatten,
    mean_pool,
    sum_pool,
)
from snnjax._network.delays import LONGEST_DELAY, Axonal, axonal
from snnjax.nir._chain import Step
from snnjax.nir._check import MAX_NEURONS, integers, numbers, per_neuron
from snnjax.nir._layout import (
    Shape,
    channels_first,
    per_channel,
    rows_from_channels_first,
)
from snnjax.nir._metadata import array_of, facts_of
from snnjax.nir._time import raw_of_leak

# Neurons without weights get identity weights, whose number is quadratic.
_MAX_IDENTITY = 2**14
# Delays this close to an integer number of steps, or to others, count as equal: they are float32 times, which long ones
# round by more.
_STEP_TOLERANCE, _RELATIVE_TOLERANCE = 1e-4, 2 * float(np.finfo(np.float32).eps)
# Raw delays keep this distance from 0 and from the longest, as a fraction of it.
_DELAY_MARGIN = 1e-7


class Signal(NamedTuple):
    """The shape of the signal between nodes."""

    shape: Shape  # ours
    is_flat: bool = False  # in the graph it is flattened already, in NIR's order


class Front(NamedTuple):
    """A connection of the network, its parameters in float64, and its output signal."""

    items: tuple[Pool | Flatten, ...]
    connection: Dense | Convolve
    weights: np.ndarray
    bias: np.ndarray | None  # one per neuron, or per channel of a convolution
    signal: Signal
    delays: Axonal | None = None
    raw_delays: np.ndarray | None = None

    def scaled(self, name: str, factor: np.ndarray | None, offset: np.ndarray | None) -> "Front":
        """The connection with its current multiplied by a factor plus a constant, each one value per neuron."""
        bias, weights, shape = self.bias, self.weights, self.signal.shape
        if isinstance(self.connection, Convolve):
            factor, offset = (self._of_channels(name, each) for each in (factor, offset))
        if factor is not None:
            weights, bias = weights * factor, None if bias is None else bias * factor
        if offset is not None:
            bias = offset + (np.zeros(shape[-1]) if bias is None else bias)
        return self._replace(weights=weights, bias=bias)

    def _of_channels(self, name: str, values: np.ndarray | None) -> np.ndarray | None:
        if values is None:
            return None
        each = per_channel(values, self.signal.shape)
        if each is None:
            fail(
                f"from_nir: `graph` must scale or shift {name} after a convolution by channels, got "
                "neurons that differ. Use the same for all neurons of a channel, or put a Flatten and an "
                "Affine before."
            )
        return each


class _Builder:
    """A connection under construction, node by node."""

    def __init__(self, signal: Signal, dt: float) -> None:
        self.signal, self.dt = signal, dt
        self.items: list[Pool | Flatten] = []
        self.factor: np.ndarray | None = None  # scale of the inputs of the weights
        self.front: Front | None = None
        self.delays: Axonal | None = None
        self.raw_delays: np.ndarray | None = None

    def take(self, step: Step) -> None:
        """Append a node."""
        takers = {
            "Delay": self._delay,
            "Scale": self._scale,
            "Flatten": self._flatten,
            "SumPool2d": self._pool,
            "AvgPool2d": self._pool,
            "Affine": self._dense,
            "Linear": self._dense,
            "Conv1d": self._convolve,
            "Conv2d": self._convolve,
        }
        takers[step.kind](step)

    def done(self, name: str) -> Front:
        """The connection before neurons: the identity if there are no weights."""
        front = self.front if self.front is not None else self._identity(name)
        raw = None if self.raw_delays is None else self.raw_delays
        return front._replace(delays=self.delays, raw_delays=raw)

    def _delay(self, step: Step) -> None:
        if self.items or any(part is not None for part in (self.front, self.factor, self.delays)):
            hint = "Put it directly after the neurons whose spikes it delays"
            fail(
                f"from_nir: `graph` must have {step.name} before weights and pools, got it after them. {hint}."
            )
        self.delays, self.raw_delays = delays_of(step, self.signal.shape, self.dt)

    def _scale(self, step: Step) -> None:
        factor = per_neuron(step.name, step.node, "scale", self.signal.shape)
        if self.front is not None:
            self.front = self.front.scaled(step.name, factor, None)
            return
        self.factor = factor if self.factor is None else self.factor * factor

    def _flatten(self, step: Step) -> None:
        axes = 1 if self.signal.is_flat else len(self.signal.shape)
        (start,), (end,) = (
            integers(step.name, step.node, field, 1, -axes) for field in ("start_dim", "end_dim")
        )
        if axes > 1 and (start % axes > 0 or end not in (-1, axes - 1)):
            fail(
                f"from_nir: `graph` must flatten all {axes} axes in {step.name}, got start_dim={start}, "
                f"end_dim={end}. NIR counts axes without the batch: write start_dim=0, end_dim=-1."
            )
        self.signal = self.signal._replace(is_flat=True)

    def _pool(self, step: Step) -> None:
        shape = self._image(step, 3)
        window, strides = (_pair(step, field) for field in ("kernel_size", "stride"))
        padding = integers(step.name, step.node, "padding", 2, 0)
        if window != strides or padding != (0, 0):
            fail(
                f"from_nir: `graph` must pool windows that neither overlap nor are padded in {step.name}, "
                f"got kernel_size={window}, stride={strides}, padding={padding}. Pool adjacent windows, or "
                "write a convolution."
            )
        if any(size > length for size, length in zip(window, shape, strict=False)):
            expected = f"have windows in {step.name} of at most {shape[:2]}"
            fail(f"from_nir: `graph` must {expected}, got {window}. Pool less.")
        self.signal = Signal((shape[0] // window[0], shape[1] // window[1], shape[2]))
        if self.factor is not None:
            self.factor = self._pooled_factor(step, shape)
        self.items.append(mean_pool(window) if step.kind == "AvgPool2d" else sum_pool(window))

    def _pooled_factor(self, step: Step, shape: Shape) -> np.ndarray:
        assert self.factor is not None
        each = per_channel(self.factor, shape)
        if each is None:
            actual = "pixels that differ"
            fail(
                f"from_nir: `graph` must scale by channels before {step.name}, got {actual}. Scale after it."
            )
        return np.resize(each, math.prod(self.signal.shape))

    def _dense(self, step: Step) -> None:
        shape, is_flat = self.signal
        if len(shape) > 1 and not is_flat:
            actual, hint = list(channels_first(shape)), "Put a Flatten with start_dim=0 before it"
            fail(f"from_nir: `graph` must have one axis before {step.name}, got {actual}. {hint}.")
        given = numbers(step.name, step.node, "weight")
        inputs = math.prod(shape)
        if given.ndim != 2 or given.shape[1] != inputs or given.shape[0] == 0:
            fail(
                f"from_nir: `graph` must have weights [outputs, inputs] = [any, {inputs}] in {step.name}, "
                f"got {list(given.shape)}. Match the shapes of its neighbours."
            )
        weights, bias = rows_from_channels_first(given.T, shape), _bias(step, given.shape[0])
        signal = Signal((given.shape[0],))
        if self.front is not None:
            self._compose(step, weights, bias, signal)
            return
        if self.factor is not None:
            weights, self.factor = weights * self.factor[:, None], None
        mask = array_of(step.node, "mask")
        fits = mask is not None and mask.shape == weights.shape
        connection = dense(given.shape[0], mask=mask.astype(bool) if fits and mask is not None else None)
        self.front = Front(tuple(self.items), connection, weights, bias, signal)

    def _compose(self, step: Step, weights: np.ndarray, bias: np.ndarray | None, signal: Signal) -> None:
        """Consecutive weights are multiplied."""
        assert self.front is not None
        if not isinstance(self.front.connection, Dense):
            hint = "Put neurons between them"
            fail(f"from_nir: `graph` must have neurons before {step.name}, got a convolution. {hint}.")
        before = self.front.bias
        total = None if before is None and bias is None else np.zeros(signal.shape)
        total = total if total is None or before is None else total + before @ weights
        total = total if total is None or bias is None else total + bias
        self.front = Front(
            self.front.items, dense(signal.shape[0]), self.front.weights @ weights, total, signal
        )

    def _convolve(self, step: Step) -> None:
        space = int(step.kind[4])
        shape = self._image(step, space + 1)
        if self.front is not None:
            hint = "Put neurons between them"
            fail(f"from_nir: `graph` must have neurons before {step.name}, got weights. {hint}.")
        weights = numbers(step.name, step.node, "weight")
        (groups,) = integers(step.name, step.node, "groups", 1, 1)
        good = weights.ndim == space + 2 and weights.shape[1] * groups == shape[-1]
        good = good and weights.size > 0 and weights.shape[0] % groups == 0
        axes = ", height, width" if space == 2 else ", length"
        if not good:
            fail(
                f"from_nir: `graph` must have weights [outputs, {shape[-1]} / {groups} groups{axes}] in "
                f"{step.name}, got {list(weights.shape)}. Match the shapes of its neighbours."
            )
        strides = integers(step.name, step.node, "stride", space, 1)
        dilation = integers(step.name, step.node, "dilation", space, 1)
        if any(number != 1 for number in dilation):
            hint = "Write zeros between the weights"
            fail(f"from_nir: `graph` must have a dilation of 1 in {step.name}, got {dilation}. {hint}.")
        padding = _padding(step, space, strides)
        kernel, channels = weights.shape[2:], weights.shape[0]
        padded = (
            shape[:-1] if padding == "same" else [n + sum(p) for n, p in zip(shape, padding, strict=False)]
        )
        if any(size > length for size, length in zip(kernel, padded, strict=True)):
            expected = f"have a kernel in {step.name} of at most the padded {list(padded)}"
            fail(f"from_nir: `graph` must {expected}, got {list(kernel)}. Pad more.")
        lengths = (
            shape[:-1]
            if padding == "same"
            else tuple((n - k) // s + 1 for n, k, s in zip(padded, kernel, strides, strict=True))
        )
        self._set_convolution(step, weights, (kernel, strides, padding, groups), (*lengths, channels))

    def _set_convolution(self, step: Step, weights: np.ndarray, geometry: Any, shape: Shape) -> None:
        (kernel, strides, padding, groups), channels = geometry, shape[-1]
        if math.prod(shape) > MAX_NEURONS:
            fail(
                f"from_nir: `graph` must make at most {MAX_NEURONS} neurons, got {math.prod(shape)}. Pad less."
            )
        kernels = np.moveaxis(weights, (0, 1), (-1, -2))
        if self.factor is not None:
            each = per_channel(self.factor, self.signal.shape)
            if each is None or groups > 1:
                actual = "another Scale"
                fail(
                    f"from_nir: `graph` must scale by channels before {step.name}, got {actual}. Scale after it."
                )
            kernels, self.factor = kernels * each[:, None], None
        options = {"padding": padding, "groups": groups}
        if len(kernel) == 1:
            connection = conv1d(channels, kernel[0], strides=strides[0], **options)
        else:
            connection = conv2d(channels, (kernel[0], kernel[1]), strides=(strides[0], strides[1]), **options)
        bias = _bias(step, channels)
        kept = None if facts_of(step.name, step.node).get("bias") is False and not np.any(bias) else bias
        self.front = Front(tuple(self.items), connection, kernels, kept, Signal(shape))

    def _image(self, step: Step, axes: int) -> Shape:
        """The shape before a node that needs pixels."""
        shape, is_flat = self.signal
        if len(shape) != axes or is_flat or self.front is not None:
            expected = "channels, height, width" if axes == 3 else "channels, length"
            actual = [math.prod(shape)] if is_flat else list(channels_first(shape))
            actual = actual if self.front is None else "weights"
            hint = "Set it in the Input, and put neurons after other weights"
            fail(f"from_nir: `graph` must have axes [{expected}] before {step.name}, got {actual}. {hint}.")
        return shape

    def _identity(self, name: str) -> Front:
        shape = self.signal.shape
        factor = np.ones(math.prod(shape)) if self.factor is None else self.factor
        each = per_channel(factor, shape)
        if len(shape) > 1 and each is not None:
            # Each channel separately: a convolution with a kernel of one pixel.
            space = len(shape) - 1
            make = conv1d if space == 1 else conv2d
            connection = make(shape[-1], 1, groups=shape[-1])
            weights = each.reshape((1,) * space + (1, shape[-1]))
            return Front(tuple(self.items), connection, weights, None, self.signal)
        hint = "Put an Affine or a convolution before it"
        if factor.size > _MAX_IDENTITY:
            expected = f"have weights before {name}, or at most {_MAX_IDENTITY} neurons"
            fail(f"from_nir: `graph` must {expected}, got {factor.size}. {hint}.")
        connection = dense(factor.size, mask=np.eye(factor.size, dtype=bool))
        items = (*self.items, flatten()) if len(shape) > 1 else tuple(self.items)
        if len(shape) != 1:
            fail(f"from_nir: `graph` must scale by channels before {name}, got pixels that differ. {hint}.")
        return Front(items, connection, np.diag(factor), None, self.signal)


def front_of(steps: tuple[Step, ...], name: str, signal: Signal, dt: float) -> Front:
    """The connection that the nodes before some neurons form."""
    builder = _Builder(signal, dt)
    for step in steps:
        builder.take(step)
    return builder.done(name)


def delays_of(step: Step, shape: Shape, dt: float) -> tuple[Axonal, np.ndarray]:
    """The axonal delays of a node, and their raw parameters: as `to_nir` wrote them, else one per neuron."""
    steps = per_neuron(step.name, step.node, "delay", shape) / dt
    if not (steps >= 0).all():
        actual, hint = float(np.min(steps)), "Write times after which spikes arrive"
        fail(f"from_nir: `graph` must have delays of at least 0 in {step.name}, got {actual}. {hint}.")
    close = functools.partial(np.isclose, rtol=_RELATIVE_TOLERANCE, atol=_STEP_TOLERANCE)
    is_whole = bool(close(steps, steps.round()).all())
    last = float(np.max(steps))
    longest = max(round(last) if close(last, round(last)) else math.ceil(last), 1)
    if longest > LONGEST_DELAY:
        expected = f"have delays of at most {LONGEST_DELAY} steps in {step.name}"
        fail(f"from_nir: `graph` must {expected}, got {longest}. Choose a longer dt.")
    facts, kept = facts_of(step.name, step.node), array_of(step.node, "raw_delay")
    stored = _axonal(facts)
    if stored is not None and kept is not None and kept.size in (1, shape[-1], steps.size):
        there = np.asarray(stored.steps(jnp.asarray(kept, jnp.float32), shape), np.float64)
        if close(there, steps).all():
            return stored, kept
    share = np.clip((steps.round() if is_whole else steps) / longest, _DELAY_MARGIN, 1 - _DELAY_MARGIN)
    # Integer delays stay fixed integers: learnable delays are never exactly 0.
    return axonal(longest, learn=not is_whole), raw_of_leak(1 - share)


def _axonal(facts: dict[str, Any]) -> Axonal | None:
    given = facts.get("delays")
    if not isinstance(given, dict):
        return None
    try:
        options: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
        return axonal(**options)
    except (TypeError, ValueError):
        return None


def _pair(step: Step, field: str) -> tuple[int, int]:
    first, second = integers(step.name, step.node, field, 2, 1)
    return first, second


def _bias(step: Step, outputs: int) -> np.ndarray | None:
    if getattr(step.node, "bias", None) is None:
        return None
    bias = numbers(step.name, step.node, "bias")
    if bias.shape != (outputs,):
        expected, actual = (
            f"have values of shape [outputs] = [{outputs}] in {step.name}.bias",
            list(bias.shape),
        )
        fail(f"from_nir: `graph` must {expected}, got {actual}. Write one value per output.")
    return bias


def _padding(step: Step, space: int, strides: tuple[int, ...]) -> Any:
    given = step.node.padding
    given = given.decode() if isinstance(given, bytes) else given
    if not isinstance(given, str):
        each = integers(step.name, step.node, "padding", space, 0)
        return tuple((number, number) for number in each)
    if given != "valid" and (given != "same" or any(number != 1 for number in strides)):
        expected = f"pad by numbers, 'valid', or 'same' without strides in {step.name}"
        hint = "Write the number of zeros that pad each axis"
        fail(f"from_nir: `graph` must {expected}, got {given!r} with strides {strides}. {hint}.")
    return "same" if given == "same" else ((0, 0),) * space
