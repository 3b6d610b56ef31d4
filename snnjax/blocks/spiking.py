"""`spiking`: neurons on given currents, with their recurrent connection, and how their spikes are passed on."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import check_rounding, fail, short_repr
from snnjax._types import upcast
from snnjax.blocks._feedback import Cells, Held, SpikingState, Steps
from snnjax.blocks._listing import checked_capacity, checked_second, warn_if_at_rest, warn_unless_below
from snnjax.blocks._neurons import NeuronOperands, Neurons
from snnjax.blocks._steps import run_steps
from snnjax.blocks.block import (
    Block,
    BlockResult,
    Context,
    Shape,
    Signal,
    dense_signal,
    flat,
    overflow,
    shaped,
)
from snnjax.blocks.dense import Dense
from snnjax.blocks.synaptic import Synaptic
from snnjax.neurons import Neuron, lif
from snnjax.neurons._conversion import Converted, converted
from snnjax.neurons._drive import drive
from snnjax.neurons._neuron import check_spiking, for_each, num_owners
from snnjax.ops.select_spikes import usual_second_threshold

# Recurrent weights start at this fraction of the scale at which they would drive a layer as strongly as its input.
RECURRENT_SHARE = 0.5
# One object for all layers, so that they share compiled functions.
_DEFAULT_NEURON = lif()


class SpikingParams(NamedTuple):
    """The params of `spiking`."""

    neuron: Any  # the neuron's parameters
    recurrent: tuple[Any, ...] | None = None  # of each block of the recurrent connection


class SpikingStats(NamedTuple):
    """The stats of `spiking`: constants that are drawn and not learned."""

    neuron: Any = None  # of the neurons
    recurrent: tuple[Any, ...] | None = None  # of each block of the recurrent connection


@dataclass(frozen=True)
class Spiking(Block):
    """Neurons that spike; made by `spiking`."""

    is_spiking = is_counted = True
    neuron: Neuron
    capacity: int | float | None = None
    second_threshold: float | None = None  # None means nine tenths of the way from rest to the threshold
    rounds_record: bool = False  # whether the backward pass reads membranes in bfloat16
    recurrent: tuple[Block, ...] | bool = ()  # True until it is fitted to its neurons

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The neuron model."""
        return self.neuron.name

    def fitted(self, *shapes: Shape) -> "Spiking":
        """With the dense weights that ``recurrent=True`` stands for."""
        (shape,) = shapes
        count = math.prod(shape)
        if isinstance(self.capacity, int) and self.capacity > count:
            hint = "Pass a fraction such as 0.1, or None for the full gradient"
            fail(
                f"spiking: `capacity` must be at most {count}, the number of neurons, got {self.capacity}. {hint}."
            )
        if self.recurrent is True and len(shape) > 1:
            fail(
                f"spiking: `recurrent` must be a connection for neurons of the shape {shape}, got True. "
                f"Write recurrent=conv2d({shape[-1]}, 3), or dense({math.prod(shape)}) for all pairs."
            )
        given = (Dense(math.prod(shape), bias=False),) if self.recurrent is True else self.feedback
        feedback = []
        for block in given:
            if block.needs_all_steps(True) or block.num_signals != 1:
                fail(
                    f"spiking: `recurrent` must hold blocks of one signal that run step by step, got {block.kind}. "
                    "Put it before or behind the neurons, or return False from its needs_all_steps."
                )
            feedback.append(block.fitted(shape))
            shape = block.out_shape(shape)
        return dataclasses.replace(self, recurrent=tuple(feedback))

    @property
    def feedback(self) -> tuple[Block, ...]:
        """The blocks of the recurrent connection, in order."""
        assert not isinstance(self.recurrent, bool)
        return self.recurrent

    @property
    def lead(self) -> tuple[int, tuple[Block, ...]]:
        """How many steps early the recurrent currents are known, and blocks that return them so many steps earlier.

        Currents under way are a state that is the fused op's as it is.
        """
        if self.obstacle is None and any(isinstance(block, Synaptic) for block in self.feedback):
            return 0, self.feedback
        found = [block.ahead() for block in self.feedback]
        known = [each for each in found if each is not None]
        steps = sum(lead for lead, _ in known)
        return (steps, tuple(block for _, block in known)) if len(known) == len(found) else (0, self.feedback)

    def slots(self, shape: Shape) -> int | None:
        """The capacity of the spike lists; None for dense spikes."""
        share = self.capacity
        # The decimal fraction that was written: 0.07 of 100 are 7, and more in binary.
        return math.ceil(Fraction(str(share)) * math.prod(shape)) if isinstance(share, float) else share

    def out_shape(self, *shapes: Shape) -> Shape:
        """That of the currents."""
        (shape,) = shapes
        fed_back = _shape_through(self.feedback, shape)
        if fed_back not in (shape, (math.prod(shape),)):
            fail(
                f"spiking: `recurrent` must lead back to the {list(shape)} neurons, got {list(fed_back)}. "
                f"Feed back as many channels, {shape[-1]}."
            )
        return shape

    def init(self, key: Array, *shapes: Shape, dtype: Any) -> SpikingParams | None:
        """Draw what the neurons learn, and the weights of the recurrent connection; None if there is neither."""
        (shape,) = shapes
        neuron_key, recurrent_key = jax.random.split(key)
        neuron = self.neuron.init(neuron_key, num_owners(self.neuron, shape), dtype)
        params, place = [], shape
        for index, block in enumerate(self.feedback):
            own = block.init(jax.random.fold_in(recurrent_key, index), place, dtype=dtype)
            smaller = None if own is None else block.scaled(own, jnp.float32(RECURRENT_SHARE))
            params.append(own if smaller is None else smaller)
            place = block.out_shape(place)
        found = SpikingParams(neuron, tuple(params) if self.feedback else None)
        return found if jax.tree.leaves(found) else None

    def initial_stats(self, key: Array, *shapes: Shape) -> SpikingStats | None:
        """Draw the constants that are not learned, None if all are numbers."""
        (place,), stats = shapes, []
        neuron_key, recurrent_key = jax.random.split(key)
        neuron = self.neuron.init_stats(neuron_key, num_owners(self.neuron, place))
        for index, block in enumerate(self.feedback):
            stats.append(block.initial_stats(jax.random.fold_in(recurrent_key, index), place))
            place = block.out_shape(place)
        found = SpikingStats(neuron, tuple(stats) if jax.tree.leaves(stats) else None)
        return found if jax.tree.leaves(found) else None

    def scaled_feedback(self, params: SpikingParams, factor: Array) -> SpikingParams:
        """The params with recurrent weights times `factor`."""
        if params.recurrent is None:
            return params
        pairs = zip(self.feedback, params.recurrent, strict=True)
        scaled = ((block.scaled(own, factor) if own is not None else None, own) for block, own in pairs)
        return params._replace(recurrent=tuple(own if new is None else new for new, own in scaled))

    def neuron_params(self, params: SpikingParams | None, stats: Any, shape: Shape) -> Any:
        """The constants of the neurons that are no numbers, one set for each."""
        learned, drawn = (None if held is None else held.neuron for held in (params, stats))
        return for_each(self.neuron, learned, drawn, shape)

    def initial_state(self, params: Any, stats: Any, batch: int, *shapes: Shape) -> SpikingState:
        """Neurons at rest that have not spiked."""
        (shape,) = shapes
        count = math.prod(shape)
        neuron = self.neuron.initial_state(self.neuron_params(params, stats, shape), batch, count)
        if not self.feedback:
            return SpikingState(neuron)
        (lead, feedback), states, place = self.lead, [], shape
        held = (_recurrent(self, own) for own in (params, stats))
        for block, *own in zip(feedback, *held, strict=True):
            states.append(block.initial_state(*own, batch, place))
            place = block.out_shape(place)
        none = jnp.zeros((batch, count), jax.tree.leaves(neuron)[0].dtype)
        waiting = none if lead == 0 else jnp.tile(none, (lead + 1, 1, 1))
        return SpikingState(neuron, waiting, tuple(states))

    @property
    def lists_spikes(self) -> bool:
        """With a capacity."""
        return self.capacity is not None

    def check_second_threshold(self, op: str, params: Any, stats: Any, shape: Shape, second: Any) -> None:
        """Warn about one that is not below the threshold."""
        threshold = self.neuron.threshold(self.neuron_params(params, stats, shape))
        warn_unless_below(op, second, self.neuron, threshold)

    def without_capacity(self) -> "Spiking":
        """The same neurons with all spikes passed on."""
        return dataclasses.replace(self, capacity=None)

    def drive(self) -> float:
        """The deviation of the currents at which the neurons spike at the expected rate."""
        return drive(self.neuron)

    def second(self, neuron: Any) -> Any:
        """The second threshold, None if nothing is listed; `neuron` are the `neuron_params`."""
        if self.capacity is None or self.second_threshold is not None:
            return self.second_threshold
        return usual_second_threshold(self.neuron.threshold(neuron), self.neuron.rest)

    def apply(
        self,
        params: Any,
        state: Any,
        stats: Any,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """A scan of the neuron's step, or all steps at once."""
        (x,), (shape,) = signals, shapes
        currents = upcast(flat(dense_signal(x, shape)))
        end, steps = _run(self, params, stats, state, currents, shape, context)
        counts = jnp.sum(upcast(steps.counted), axis=0)
        membranes = None if steps.membranes is None else shaped(steps.membranes, shape)
        return BlockResult(shaped(steps.listed, shape), end, None, counts, overflow(steps.listed), membranes)

    def needs_all_steps(self, train: bool) -> bool:
        """Of neurons that mix all steps."""
        del train
        return self.neuron.num_steps is not None

    @property
    def obstacle(self) -> str | None:
        """What the fused op does not compute of these neurons, None if it does."""
        own, form = self.neuron, self.neuron.glif
        if own.sequence is not None:
            return f"{own.name} computes all steps at once"
        if own.is_graded:
            return f"the spikes of {own.name} are graded"
        found = converted(own)
        if isinstance(found, str):
            if form is None or own.integrate is not None or not form.conventions:
                return f"{own.name} is not a generalised LIF neuron"
            switches = " and ".join(f"{name}={value!r}" for name, value in form.conventions.items())
            return f"{own.name} with {switches}: {found}"
        if own.surrogate.obstacle is not None:
            return own.surrogate.obstacle
        kinds = [block.kind for block in self.feedback]
        is_known = kinds[-1:] in (["dense"], ["sparse"]) and kinds[:-1] in ([], ["axonal"])
        is_known = is_known or kinds == ["synaptic"]
        if not kinds or (is_known and not getattr(self.feedback[-1], "bias", True)):
            return None
        return "its recurrent connection is not dense or sparse without bias, with delays of one kind at most"

    def op(self, shape: Shape) -> Neurons | None:
        """Neurons of the fused op, if nothing stands against it."""
        found = converted(self.neuron)
        if isinstance(found, str) or self.obstacle is not None:
            return None
        *delays, feedback = self.feedback or (None,)
        delayed: Any = [own.op(shape) for own in delays]
        longest = delayed[0].max_delay if delayed else getattr(feedback, "max_delay", None)
        options = self.slots(shape), self.neuron.surrogate, self.rounds_record, True
        return Neurons(found.form, *options, feedback, longest, *found[1:])

    def operands(self, params: Any, stats: Any, shape: Shape) -> NeuronOperands:
        """The constants of the equation."""
        neuron, found = self.neuron_params(params, stats, shape), converted(self.neuron)
        assert isinstance(found, Converted)
        constants = found.form.constants(neuron), self.second(neuron)
        if not self.feedback:
            return NeuronOperands(*constants, None, None)
        held = (_recurrent(self, own) for own in (params, stats))
        each: Any = zip(self.feedback, *held, strict=True)
        *first, (block, *own) = each
        if isinstance(block, Synaptic):
            weights, synapses, late = block.operands(own[0], own[1], shape)
            return NeuronOperands(*constants, weights, None, synapses, late)
        delays = next((early.operands(*held, shape) for early, *held in first), None)
        return NeuronOperands(*constants, block.operands(*own, shape).weights, delays, own[1])


# A scan of a new function is a new program: without `jit`, each call outside of one would compile it again.
@functools.partial(jax.jit, static_argnames=("block", "shape"))
def _run(
    block: Spiking,
    params: SpikingParams | None,
    stats: Any,
    state: SpikingState,
    currents: Array,
    shape: Shape,
    context: Context,
) -> tuple[SpikingState, Steps]:
    params = jax.tree.map(_wide_floats, params)
    own = block.neuron_params(params, stats, shape)
    second = block.second(own) if context.second_threshold is None else context.second_threshold
    lead, feedback = block.lead
    cells = Cells(block.neuron, block.slots(shape), feedback, shape, lead)
    held = Held(own, second, tuple(_recurrent(block, params)), tuple(_recurrent(block, stats)))
    return run_steps(cells, held, state, currents, context)


def _recurrent(block: Spiking, arrays: Any) -> Sequence[Any]:
    """The params or stats of each block of the recurrent connection, which may have none."""
    held = None if arrays is None else arrays.recurrent
    return [None] * len(block.feedback) if held is None else held


def _wide_floats(leaf: Any) -> Any:
    return upcast(leaf) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf


def _shape_through(blocks: Sequence[Block], shape: Shape) -> Shape:
    for block in blocks:
        shape = block.out_shape(shape)
    return shape


@explained
def spiking(
    neuron: Neuron | None = None,
    *,
    capacity: int | float | np.integer[Any] | np.floating[Any] | None = None,
    second_threshold: float | None = None,
    recurrent: Any = False,
    record_dtype: Any = None,
    name: str | None = None,
    source: str | None = None,
) -> Spiking:
    """Make neurons on given currents: the part of a `layer` behind its connection.

    Args:
        neuron: a neuron of `snnjax.neurons`; `lif()` by default.
        capacity: slots of its spike lists, an integer, or a float below 1 for a fraction of the layer's width; None
            passes all spikes on, with the full surrogate gradient.
        second_threshold: membranes between it and the threshold are listed for their gradient, in the unit of the
            membrane. None means nine tenths of the way from rest to each neuron's threshold: 0.9 for a threshold of 1.
            If it is not below the threshold, neurons that do not spike have no gradient, and a warning is issued: also
            if it is None and the threshold is the membrane at rest.
        recurrent: the connection by which the spikes of the previous step are fed back: a block, or several in
            order; True for dense weights without bias.
        record_dtype: ``jnp.bfloat16`` halves the memory of the membranes recorded for the backward pass, as in
            `lif_network`: of neurons without a second state that `lif_network` runs; others ignore it.
        name: names the block in a network.
        source: the name of the block or input that it receives; None for the one before it.

    Raises:
        ValueError: if the capacity, a switch or the dtype is invalid, or `neuron` is not a spiking neuron; in a
            network, if the capacity is above the number of neurons.

    Example:
        >>> from snnjax import blocks, neurons
        >>> blocks.spiking(neurons.lif(), capacity=0.1).slots((512,))
        52

    Reference:
        Finkbeiner et al. 2024, arXiv:2311.04386, for capacity and second threshold.
    """
    options: Any = {"capacity": capacity, "second_threshold": second_threshold, "recurrent": recurrent}
    own = spiking_of("spiking", neuron, **options, record_dtype=record_dtype)
    return dataclasses.replace(own, name=name, source=source)


def spiking_of(
    op: str,
    neuron: Any,
    *,
    capacity: Any = None,
    second_threshold: float | None = None,
    recurrent: Any = False,
    record_dtype: Any = None,
) -> Spiking:
    """`spiking`, whose errors name `op`."""
    neuron = _DEFAULT_NEURON if neuron is None else neuron
    check_spiking(op, neuron)
    if neuron.sequence is not None and recurrent is not False:
        fail(
            f"{op}: `recurrent` must be False for neurons that compute all steps at once, {neuron.name}, "
            f"got {short_repr(recurrent)}. Choose neurons with a step, such as lif()."
        )
    share, second_threshold = checked_capacity(op, capacity), checked_second(op, second_threshold)
    if share is not None and second_threshold is None:
        warn_if_at_rest(op, neuron)
    elif share is not None:
        warn_unless_below(op, second_threshold, neuron)
    rounds = check_rounding(op, "record_dtype", record_dtype)
    return Spiking(neuron, share, second_threshold, rounds, _as_recurrent(op, recurrent))


def _as_recurrent(op: str, recurrent: Any) -> tuple[Block, ...] | bool:
    """The blocks of a recurrent connection, or True for dense weights."""
    if isinstance(recurrent, bool | np.bool_):
        return True if recurrent else ()
    blocks = tuple(recurrent) if isinstance(recurrent, list | tuple) else (recurrent,)
    for block in blocks or (None,):
        if not isinstance(block, Block) or isinstance(block, Spiking):
            fail(
                f"{op}: `recurrent` must be a connection, or True for dense weights, "
                f"got {short_repr(recurrent)}. Write recurrent=dense(...) or conv2d(...)."
            )
    return blocks
