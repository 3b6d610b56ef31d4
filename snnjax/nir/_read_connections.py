"""The connections of a graph as blocks, with their parameters in float64, one function for each kind."""

import functools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from snnjax._check import fail
from snnjax.blocks._dense import Dense, dense
from snnjax.blocks.conv import Convolve, conv1d, conv2d
from snnjax.blocks.delay import LONGEST_DELAY, Axonal, DelayParams, axonal
from snnjax.blocks.linear import LinearParams
from snnjax.blocks.pool import Pool, mean_pool, sum_pool
from snnjax.nir._check import MAX_NEURONS, integers, numbers, per_neuron
from snnjax.nir._layout import Layout, Shape, per_channel
from snnjax.nir._metadata import array_of, facts_of
from snnjax.nir._time import raw_of_leak
from snnjax.nir._wiring import Step
from snnjax.ops._convolution import dilated

# Neurons that are scaled without weights before them get those of the identity, whose number is quadratic.
_MAX_IDENTITY = 2**14
# Delays this close to an integer number of steps, or to others, count as equal: they are float32 times, which long ones
# round by more.
_STEP_TOLERANCE, _RELATIVE_TOLERANCE = 1e-4, 2 * float(np.finfo(np.float32).eps)
# Raw delays keep this distance from 0 and from the longest, as a fraction of it.
_DELAY_MARGIN = 1e-7


class Signal(NamedTuple):
    """What a node of the graph passes on."""

    source: str  # the node of the network whose signal it is
    layout: Layout
    factor: np.ndarray | None = None  # by which those who receive it multiply it, one value per neuron


class Weights(NamedTuple):
    """A connection and its parameters."""

    block: Dense | Convolve
    params: LinearParams
    layout: Layout  # of its signal

    def takes(self, values: np.ndarray | None) -> bool:
        """Whether a factor or a constant can be one of its currents; a convolution takes one value a channel."""
        if values is None or not isinstance(self.block, Convolve):
            return True
        return per_channel(values, self.layout.shape) is not None

    def scaled(self, name: str, factor: np.ndarray | None, offset: np.ndarray | None) -> "Weights":
        """The connection with its currents multiplied by a factor plus a constant, each one value per neuron."""
        weights, shape = self.params.weights, self.layout.shape
        bias: Any = self.params.bias
        if isinstance(self.block, Convolve):
            factor, offset = (self._of_channels(name, each) for each in (factor, offset))
        if factor is not None:
            weights, bias = weights * factor, None if bias is None else bias * factor
        if offset is not None:
            bias = offset + (np.zeros(shape[-1]) if bias is None else bias)
        return self._replace(params=LinearParams(weights, bias))

    def _of_channels(self, name: str, values: np.ndarray | None) -> np.ndarray | None:
        if values is None:
            return None
        each = per_channel(values, self.layout.shape)
        if each is None:
            fail(
                f"from_nir: `graph` must scale or shift images before {name} by channels, got pixels that "
                "differ. Use the same for all neurons of a channel, or put a Flatten and an Affine before."
            )
        return each


def weights_of(step: Step, signal: Signal) -> Weights:
    """The connection of a node with weights."""
    return (_dense if step.kind in ("Affine", "Linear") else _convolution)(step, signal)


def _dense(step: Step, signal: Signal) -> Weights:
    layout = signal.layout
    if len(layout.theirs) > 1:
        actual, hint = list(layout.theirs), "Put a Flatten with start_dim=0 before it"
        fail(f"from_nir: `graph` must have one axis before {step.name}, got {actual}. {hint}.")
    given = numbers(step.name, step.node, "weight")
    inputs = math.prod(layout.shape)
    if given.ndim != 2 or given.shape[1] != inputs or given.shape[0] == 0:
        fail(
            f"from_nir: `graph` must have weights [outputs, inputs] = [any, {inputs}] in {step.name}, "
            f"got {list(given.shape)}. Match the shapes of its neighbours."
        )
    weights: Any = np.empty(given.T.shape)
    weights[layout.order] = given.T
    bias: Any = _bias(step, given.shape[0])
    if signal.factor is not None:
        weights = weights * signal.factor[:, None]
    block = dense(given.shape[0], mask=_mask(step, weights))
    return Weights(block, LinearParams(weights, bias), Layout.of((given.shape[0],)))


def _mask(step: Step, weights: np.ndarray) -> np.ndarray | None:
    """The mask from the metadata, if the weights still agree with it."""
    kept = array_of(step.node, "mask")
    if kept is None or kept.shape != weights.shape:
        return None
    mask = kept.astype(bool)
    return None if weights[~mask].any() else mask


def _convolution(step: Step, signal: Signal) -> Weights:
    space = int(step.kind[4])
    shape = _image(step, signal, space + 1)
    weights = numbers(step.name, step.node, "weight")
    (groups,) = integers(step.name, step.node, "groups", 1, 1)
    good = weights.ndim == space + 2 and weights.shape[1] * groups == shape[-1]
    good = good and weights.size > 0 and weights.shape[0] % groups == 0
    if not good:
        axes = ", height, width" if space == 2 else ", length"
        fail(
            f"from_nir: `graph` must have weights [outputs, {shape[-1]} / {groups} groups{axes}] in "
            f"{step.name}, got {list(weights.shape)}. Match the shapes of its neighbours."
        )
    strides = integers(step.name, step.node, "stride", space, 1)
    dilation = integers(step.name, step.node, "dilation", space, 1)
    padding = _padding(step, space, strides)
    kernel, channels = weights.shape[2:], weights.shape[0]
    _check_kernel(step, dilated(kernel, dilation), shape, padding)
    options: dict[str, Any] = {"padding": padding, "groups": groups}
    if space == 1:
        block = conv1d(channels, kernel[0], strides=strides[0], dilation=dilation[0], **options)
    else:
        steps: dict[str, Any] = {"strides": strides, "dilation": dilation}
        block = conv2d(channels, (kernel[0], kernel[1]), **steps, **options)
    made = block.out_shape(shape)
    if math.prod(made) > MAX_NEURONS:
        fail(f"from_nir: `graph` must make at most {MAX_NEURONS} neurons, got {math.prod(made)}. Pad less.")
    kernels: Any = np.moveaxis(weights, (0, 1), (-1, -2)) * _factor_of_channels(
        step, signal, groups, channels
    )
    bias: Any = _bias(step, channels)
    bias = None if facts_of(step.name, step.node).get("bias") is False and not np.any(bias) else bias
    return Weights(block, LinearParams(kernels, bias), Layout.of(made))


def _check_kernel(step: Step, kernel: Shape, shape: Shape, padding: Any) -> None:
    pairs = zip(shape, padding, strict=False)
    padded = list(shape[:-1]) if padding == "same" else [length + sum(ends) for length, ends in pairs]
    if any(size > length for size, length in zip(kernel, padded, strict=True)):
        expected = f"have a kernel in {step.name} of at most the padded {padded}"
        fail(f"from_nir: `graph` must {expected}, got {list(kernel)}. Pad more.")


def _factor_of_channels(step: Step, signal: Signal, groups: int, channels: int) -> Any:
    """The factor of its inputs for each of the weights ``[channels / groups, channels]`` of a kernel."""
    if signal.factor is None:
        return 1
    each = per_channel(signal.factor, signal.layout.shape)
    if each is None:
        actual, hint = "pixels that differ", "Scale after it"
        fail(f"from_nir: `graph` must scale by channels before {step.name}, got {actual}. {hint}.")
    return np.repeat(each.reshape(groups, -1).T, channels // groups, axis=1)


def pool_of(step: Step, signal: Signal) -> tuple[Pool, Layout, np.ndarray | None]:
    """A pool, its layout and the factor of what it passes on."""
    shape = _image(step, signal, 3)
    window, strides = (_pair(step, field) for field in ("kernel_size", "stride"))
    padding = integers(step.name, step.node, "padding", 2, 0)
    if any(number >= size for number, size in zip(padding, window, strict=True)):
        expected = f"pad windows in {step.name} by less than their size, {window}"
        fail(f"from_nir: `graph` must {expected}, got {padding}. Pad less.")
    padded = tuple(length + 2 * number for length, number in zip(shape, padding, strict=False))
    if any(size > length for size, length in zip(window, padded, strict=True)):
        expected = f"have windows in {step.name} of at most {padded}"
        fail(f"from_nir: `graph` must {expected}, got {window}. Pool less.")
    make = mean_pool if step.kind == "AvgPool2d" else sum_pool
    block = make(
        window, strides=None if strides == window else strides, padding=padding if any(padding) else 0
    )
    made = block.out_shape(shape)
    if signal.factor is None:
        return block, Layout.of(made), None
    return block, Layout.of(made), np.resize(_factor_of_channels(step, signal, 1, 1)[:, 0], math.prod(made))


def check_flatten(step: Step, signal: Signal) -> None:
    """Check that a Flatten flattens all axes."""
    axes = len(signal.layout.theirs)
    (start,), (end,) = (integers(step.name, step.node, field, 1, -axes) for field in ("start_dim", "end_dim"))
    if axes > 1 and (start % axes > 0 or end not in (-1, axes - 1)):
        fail(
            f"from_nir: `graph` must flatten all {axes} axes in {step.name}, got start_dim={start}, "
            f"end_dim={end}. NIR counts axes without the batch: write start_dim=0, end_dim=-1."
        )


def _image(step: Step, signal: Signal, axes: int) -> Shape:
    """The shape before a node that needs pixels."""
    layout = signal.layout
    if len(layout.theirs) != axes:
        expected = "[channels, height, width]" if axes == 3 else "[channels, length]"
        hint = "Set it in the Input, and flatten only before dense weights"
        fail(f"from_nir: `graph` must have {expected} before {step.name}, got {list(layout.theirs)}. {hint}.")
    return layout.shape


def identity_of(name: str, layout: Layout) -> Weights:
    """Weights that pass on each neuron, to scale it."""
    shape, hint = layout.shape, "Put an Affine or a convolution before it"
    if len(shape) > 1:  # each channel separately: a convolution with a kernel of one pixel
        block = (conv1d if len(shape) == 2 else conv2d)(shape[-1], 1, groups=shape[-1])
        weights: Any = np.ones(block.weights_shape(shape))
        return Weights(block, LinearParams(weights, None), layout)
    count = math.prod(shape)
    if count > _MAX_IDENTITY:
        expected = f"have weights before {name}, or at most {_MAX_IDENTITY} neurons"
        fail(f"from_nir: `graph` must {expected}, got {count}. {hint}.")
    weights = np.eye(count)
    return Weights(dense(count, mask=weights == 1), LinearParams(weights, None), layout)


def delays_of(step: Step, layout: Layout, dt: float) -> tuple[Axonal, DelayParams | None]:
    """The axonal delays of a node, and what they hold: as `to_nir` wrote them, else a number or one per neuron."""
    steps, shape = per_neuron(step.name, step.node, "delay", layout) / dt, layout.shape
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
    if stored is not None and (kept is not None) == (stored.learn or stored.is_drawn):
        held = None if kept is None else DelayParams(jnp.asarray(kept, jnp.float32))
        fits = kept is None or kept.size == stored.count(shape)
        if fits and close(np.asarray(stored.delays(held, shape), np.float64), steps).all():
            return stored, None if kept is None else _delay_params(kept)
    if is_whole and (steps.round() == round(last)).all():
        return axonal(longest, initial=float(round(last)), learn=False), None
    share = np.clip((steps.round() if is_whole else steps) / longest, _DELAY_MARGIN, 1 - _DELAY_MARGIN)
    # Integer delays stay fixed integers: learnable delays are never exactly 0.
    return axonal(longest, learn=not is_whole), _delay_params(raw_of_leak(1 - share))


def _delay_params(raw: Any) -> DelayParams:
    return DelayParams(raw)  # cast at the end, with all parameters


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
