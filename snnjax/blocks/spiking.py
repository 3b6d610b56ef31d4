"""`spiking`: neurons on given currents, and how their spikes are passed on."""

import dataclasses
import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import check_rounding, fail
from snnjax._types import Params, State, Stats, upcast, wide_floats
from snnjax.blocks._listing import checked_capacity, checked_second, warn_if_at_rest, warn_unless_below
from snnjax.blocks._neurons import FusedNeurons
from snnjax.blocks._steps import Cells, Held, Steps, run_steps
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
from snnjax.neurons import Neuron, SynapticLIF, lif
from snnjax.neurons._conversion import Converted, converted
from snnjax.neurons._drive import drive
from snnjax.neurons._neuron import check_spiking, for_each, num_owners
from snnjax.neurons._synaptic_neuron import as_neuron
from snnjax.ops._lif_network.records import LayerConstants
from snnjax.ops._lif_network.switches import LayerSwitches
from snnjax.ops.select_spikes import usual_second_threshold

# One object for all layers, so that they share compiled functions.
_DEFAULT_NEURON = lif()


@dataclass(frozen=True)
class Spiking(Block):
    """Neurons that spike; made by `spiking`."""

    is_spiking = is_counted = True
    neuron: Neuron
    capacity: int | float | None = None
    second_threshold: float | None = None  # None means nine tenths of the way from rest to the threshold
    rounds_record: bool = False  # whether the backward pass reads membranes in bfloat16

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The neuron model."""
        return self.neuron.name

    def fitted(self, *shapes: Shape) -> "Spiking":
        """The neurons, if there are as many as their lists have slots."""
        count, own = math.prod(self.out_shape(*shapes)), self.neuron
        if own.num_receptors > 1 and (len(shapes[0]) != 1 or shapes[0][0] % own.num_receptors):
            got, hint = list(shapes[0]), "Lead to receptors * neurons targets"
            expected = f"lead to {own.num_receptors} receptors of each neuron"
            fail(f"{own.name}: `connection` must {expected}, got targets of the shape {got}. {hint}.")
        if own.num_neurons not in (None, count):
            hint = "Make the neurons for as many"
            fail(
                f"{own.name}: `neurons` must be as many as have constants, {own.num_neurons}, got {count}. {hint}."
            )
        if isinstance(self.capacity, int) and self.capacity > count:
            hint = "Pass a fraction such as 0.1, or None for the full gradient"
            fail(
                f"spiking: `capacity` must be at most {count}, the number of neurons, got {self.capacity}. {hint}."
            )
        return self

    def out_shape(self, *shapes: Shape) -> Shape:
        """The neurons, each of which may receive several currents."""
        return (*shapes[0][:-1], shapes[0][-1] // self.neuron.num_receptors) if shapes[0] else ()

    def slots(self, shape: Shape) -> int | None:
        """The capacity of the spike lists; None for dense spikes."""
        share = self.capacity
        # The decimal fraction that was written: 0.07 of 100 are 7, and more in binary.
        return math.ceil(Fraction(str(share)) * math.prod(shape)) if isinstance(share, float) else share

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> Any:
        """Draw what the neurons learn, None if it is nothing."""
        found = self.neuron.init(_own(key), num_owners(self.neuron, self.out_shape(*shapes)), dtype)
        return found if jax.tree.leaves(found) else None

    def initial_stats(self, key: Array, *shapes: Shape) -> Any:
        """Draw the constants of the neurons that are not learned, None if all are numbers."""
        found = self.neuron.initial_stats(_own(key), num_owners(self.neuron, self.out_shape(*shapes)))
        return found if jax.tree.leaves(found) else None

    def neuron_params(self, params: Params, stats: Stats, shape: Shape) -> Any:
        """The constants of the neurons that are no numbers, one set for each."""
        return for_each(self.neuron, params, stats, shape)

    def initial_state(self, params: Params, stats: Stats, batch: int, *shapes: Shape) -> Any:
        """Neurons at rest."""
        shape = self.out_shape(*shapes)
        return self.neuron.initial_state(self.neuron_params(params, stats, shape), batch, math.prod(shape))

    @property
    def lists_spikes(self) -> bool:
        """With a capacity."""
        return self.capacity is not None

    def check_second_threshold(
        self, op: str, params: Params, stats: Stats, shape: Shape, second: Any
    ) -> None:
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
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """A scan of the neuron's step, or all steps at once; a second signal are offsets, as in `run_steps`."""
        (x, *others), (shape, *_) = signals, shapes
        (offsets,) = others or (None,)
        currents, shape = upcast(flat(dense_signal(x, shape))), self.out_shape(shape)
        end, steps = _run(self, params, stats, state, currents, shape, context, offsets)
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
        if own.sent is not None:
            return f"the times of the spikes of {own.name} have derivatives"
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
        return None

    def op(self, shape: Shape) -> FusedNeurons | None:
        """Neurons of the fused op, if nothing stands against it."""
        found = converted(self.neuron)
        if isinstance(found, str) or self.obstacle is not None:
            return None
        switches = LayerSwitches(
            surrogate=self.neuron.surrogate,
            reset=found.form.reset,
            detach_reset=found.form.detach_reset,
            capacity=self.slots(shape),
            rounds_record=self.rounds_record,
        )
        return FusedNeurons(switches, True, is_immediate=found.is_immediate, is_inclusive=found.is_inclusive)

    def operands(self, params: Params, stats: Stats, shape: Shape) -> LayerConstants:
        """The constants of the equation."""
        neuron, found = self.neuron_params(params, stats, shape), converted(self.neuron)
        assert isinstance(found, Converted)
        return LayerConstants(found.form.constants(neuron), self.second(neuron))


# A scan of a new function is a new program: without `jit`, each call outside of one would compile it again.
@functools.partial(jax.jit, static_argnames=("block", "shape"))
def _run(
    block: Spiking,
    params: Params,
    stats: Stats,
    state: State,
    currents: Array,
    shape: Shape,
    context: Context,
    offsets: Array | None,
) -> tuple[Any, Steps]:
    params = jax.tree.map(wide_floats, params)
    own = block.neuron_params(params, stats, shape)
    second = block.second(own) if context.second_threshold is None else context.second_threshold
    cells = Cells(block.neuron, block.slots(shape))
    return run_steps(cells, Held(own, second), state, currents, context, offsets)


def _own(key: Array) -> Array:
    """The key from which neurons draw: that of the runs in docs/runs."""
    return jax.random.split(key)[0]


@explained
def spiking(
    neuron: Neuron | SynapticLIF | None = None,
    *,
    capacity: int | float | np.integer[Any] | np.floating[Any] | None = None,
    second_threshold: float | None = None,
    record_dtype: Any = None,
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
        record_dtype: ``jnp.bfloat16`` halves the memory of the membranes recorded for the backward pass, as in
            `lif_network`: of neurons without a second state that `lif_network` runs; others ignore it.

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
    options: Any = {"capacity": capacity, "second_threshold": second_threshold, "record_dtype": record_dtype}
    return spiking_of("spiking", neuron, **options)


def spiking_of(
    op: str,
    neuron: Any,
    *,
    capacity: Any = None,
    second_threshold: float | None = None,
    record_dtype: Any = None,
) -> Spiking:
    """`spiking`, whose errors name `op`."""
    neuron = _DEFAULT_NEURON if neuron is None else as_neuron(op, neuron)
    check_spiking(op, neuron)
    share, second_threshold = checked_capacity(op, capacity), checked_second(op, second_threshold)
    if share is not None and neuron.sent is not None:
        fail(
            f"{op}: `capacity` must be None for spikes whose times have derivatives, got {share}: lists forget "
            "the spikes of the step before. Leave it out, or pass gradient='surrogate' to the neuron."
        )
    if share is not None and second_threshold is None:
        warn_if_at_rest(op, neuron)
    elif share is not None:
        warn_unless_below(op, second_threshold, neuron)
    rounds = check_rounding(op, "record_dtype", record_dtype)
    return Spiking(neuron, share, second_threshold, rounds)
