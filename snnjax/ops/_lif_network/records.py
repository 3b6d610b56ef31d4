"""The records of `lif_network`: the operands and results of its targets.

They are pytrees, and the order of their leaves is the argument order of the kernels, which read the leaves of
`Operands` and `Record` in the order defined here (xla_ext/cpu/lif_network.hpp). A tree of the same structure may hold
shapes, batch axes, cotangents, or flags for what is needed, instead of arrays. ``[1 | neurons]`` means one value for
all neurons or one per neuron.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._types import sum_dtype, wide
from snnjax.ops._connection import Connection
from snnjax.surrogates import Surrogate


class SecondState(NamedTuple):
    r"""The constants of the second state ``w`` of `lif_network`'s neurons; None means absent.

    Each is one value or one per neuron. In the equation of `snnjax.lif_network`, `w_decay` is :math:`\alpha_w`,
    `w_membrane` :math:`a`, `w_gain` :math:`g_w`, `w_jump` :math:`b`, `v_coupling` :math:`c` and `threshold_coupling`
    :math:`\kappa`.
    """

    w_decay: Any
    w_membrane: Any = None
    w_gain: Any = None
    w_jump: Any = None
    v_coupling: Any = None
    threshold_coupling: Any = None


class Linear(NamedTuple):
    """What turns the incoming spikes of a layer into its current."""

    weights: Any  # [inputs, neurons], an array or `Quantised`, or those of a convolution
    bias: Array | None  # [neurons]
    delays: Any = None  # [inputs] in steps, in the accumulation dtype; None without a `max_delay`


class LayerConstants(NamedTuple):
    """A layer's operands besides its input current; in the accumulation dtype except for the recurrent weights."""

    recurrent: Any  # [neurons, neurons], an array or `Quantised`; or None
    decay: Array  # [1 | neurons], like the three below
    threshold: Array
    gain: Array
    second_threshold: Any  # None among cotangents
    second_state: SecondState | None  # each [1 | neurons]


class Readout(NamedTuple):
    """A leaky integrator after the last layer."""

    linear: Linear
    decay: Array  # [1 | outputs]
    gain: Array  # [1 | outputs]


class LayerState(NamedTuple):
    """The state that a layer carries from step to step, ``[batch, neurons]``."""

    v: Array  # in the accumulation dtype
    w: Any  # for layers with a second state, else None
    spikes: Any  # the listed spikes of recurrent layers, else None
    # For layers with delays, else None: the undelayed inputs of the last max_delay + 1 steps, oldest first,
    # ``[rows, batch, inputs]``. No rows stand for rows of zeros.
    pending: Any = None


class Operands(NamedTuple):
    """The operands of the target."""

    inputs: Any  # [time, batch, inputs], or the ids and values of lists [time, batch, capacity]
    linears: tuple[Linear, ...]  # one per layer
    constants: tuple[LayerConstants, ...]
    readout: Readout | None
    first: tuple[LayerState, ...]
    first_readout: Any  # [batch, outputs] in the accumulation dtype, or None
    lengths: Any  # int32 [batch], or None

    @property
    def dtype(self) -> Any:
        """The dtype of the op: of weights, spikes and output."""
        return self.linears[0].weights.dtype


class Results(NamedTuple):
    """The results of the target."""

    output: Array  # [time, batch, outputs]
    counts: tuple[Any, ...]  # [batch, neurons], true spikes, in the accumulation dtype
    dropped: tuple[Array, ...]  # int32 [batch]
    # `SparseSpikes` or dense [time, batch, neurons] of each layer; None unless recorded
    spikes: tuple[Any, ...]
    last: tuple[LayerState, ...]
    last_readout: Any


class LayerRecord(NamedTuple):
    """What the backward pass needs from the forward pass of a layer; masks have one bit per neuron (`packed`)."""

    # [time, batch, neurons], the membranes after each step (`recorded_membranes`); None where `listed_v` replaces them
    v: Any
    # [time, batch, capacity], those of the listed neurons, ascending by id and then 0, if `with_records` requires them
    listed_v: Any
    current: Any  # [time, batch, neurons], in the accumulation dtype, if `with_records` requires it
    spikes: Array  # uint8 [time, batch, ceil(neurons / 8)], the listed spikes
    listed: Any  # the same for all listed neurons; None without capacity


class Record(NamedTuple):
    """What the backward pass needs from the forward pass; dense inputs are recorded as bits, read by a kernel."""

    input_bits: Any  # uint8 [time, batch, ceil(inputs / 8)], the inputs that are not 0; None for lists
    input_is_binary: Any  # bool [time, batch], whether all are 0 or 1; None for lists
    layers: tuple[LayerRecord, ...]


class BackwardArguments(NamedTuple):
    """The arguments of the backward pass."""

    operands: Operands
    results: Results
    record: Record
    g: Results  # cotangents of the results; for `SparseSpikes`, those of their values


class LayerSwitches(NamedTuple):
    """The static switches of a layer."""

    connection: Connection  # of its inputs
    capacity: int | None  # None if every neuron receives its gradient
    surrogate: Surrogate
    reset: str
    detach_reset: bool
    records_spikes: bool = False  # as a result
    rounds_record: bool = (
        False  # of the membranes to bfloat16, whatever the weights are (`recorded_membranes`)
    )
    # What the backward pass needs besides the membranes (see `with_records`): the second states, and the currents.
    needs_w: bool = False
    records_current: bool = False
    # Whether the membranes of the listed neurons may replace the others: forward both are recorded, backward those are
    # all there is.
    records_listed: bool = False


class Switches(NamedTuple):
    """The static switches of the target."""

    layers: tuple[LayerSwitches, ...]
    readout: Connection  # of the read-out's inputs
    implementation: str | None = None
    keeps_record: bool = False  # for the backward pass


@jax.tree_util.register_static
@dataclass(frozen=True)
class Needs:
    """What the backward pass has to compute; XLA drops the rest, and kernels skip it."""

    operands: Operands  # flags
    counts: bool  # whether the counts have a cotangent


def differentiable(tree: Operands, operands: Operands) -> Operands:
    """`tree`, which has the structure of `operands`, without the leaves that have no cotangent."""
    inputs = tree.inputs
    if isinstance(operands.inputs, tuple):
        inputs = (None, inputs[1])
    elif not jnp.issubdtype(operands.inputs.dtype, jnp.floating):
        inputs = None
    constants = tuple(own._replace(second_threshold=None) for own in tree.constants)
    return tree._replace(inputs=inputs, constants=constants, lengths=None)


def with_records(switches: Switches, operands: Operands, needed: Operands) -> Switches:
    """The switches of a forward pass whose backward pass has to compute what is true in `needed`.

    Membranes and listed spikes are always recorded: they determine the slope of the surrogate and the reset. The second
    states are needed if the threshold depends on them, or for the cotangents of the constants that multiply them. They
    are linear in membranes, spikes and currents, and are therefore recomputed instead of recorded. The currents are
    recorded if they reach both states and are needed by these or by the cotangents of the gains; otherwise the
    cotangent of the gain follows from sums over the weights, except for a convolution. The membranes of the listed
    neurons are recorded apart where they may be all that the backward pass reads (`_needs_listed_only`).
    """

    def with_own(layer: LayerSwitches, constants: LayerConstants, need: LayerConstants) -> LayerSwitches:
        second, need_second = constants.second_state, need.second_state
        if second is None or need_second is None:
            # Neurons with different gains may share the weights of a convolution.
            shares = layer.connection.convolution is not None
            return layer._replace(records_current=shares and bool(need.gain))
        w = second.threshold_coupling is not None or need_second.w_decay or bool(need_second.v_coupling)
        current = second.w_gain is not None and bool(w or need.gain or need_second.w_gain)
        current |= layer.connection.convolution is not None and bool(need.gain)
        return layer._replace(needs_w=bool(w), records_current=current)

    layers = []
    each = zip(switches.layers, operands.constants, needed.constants, operands.first, strict=True)
    for layer, constants, need, first in each:
        lists = _needs_listed_only(layer, constants, need, first.v.shape[-1])
        layers.append(with_own(layer, constants, need)._replace(records_listed=lists))
    return switches._replace(layers=tuple(layers), keeps_record=True)


def _needs_listed_only(
    layer: LayerSwitches, constants: LayerConstants, need: LayerConstants, num_neurons: int
) -> bool:
    """Whether the membranes of the listed neurons determine all cotangents but that of the counts.

    Elsewhere the slope has no effect. A reset to zero, a reset that is not detached, the cotangents of decay and
    threshold, and second states depend on all membranes. Lists of more than half of the neurons save too little.
    """
    if layer.capacity is None or 2 * layer.capacity > num_neurons or constants.second_state is not None:
        return False
    if need.decay or need.threshold:
        return False
    return layer.reset == "none" or (layer.reset == "subtract" and layer.detach_reset)


def as_read(switches: Switches, record: Record, needs_counts: bool) -> tuple[Switches, Record]:
    """The switches and the record of a backward pass: each layer's membranes once."""
    layers, records = [], []
    for layer, own in zip(switches.layers, record.layers, strict=True):
        if layer.records_listed and needs_counts:
            layers.append(layer._replace(records_listed=False))
            records.append(own._replace(listed_v=None))
        else:
            layers.append(layer)
            records.append(own._replace(v=None) if layer.records_listed else own)
    return switches._replace(layers=tuple(layers)), record._replace(layers=tuple(records))


def recorded_dtype(constants: LayerConstants, dtype: Any, rounds: bool = False) -> Any:
    """The dtype of the membranes recorded for the backward pass of a network of `dtype` (`recorded_membranes`)."""
    sums = sum_dtype(dtype)
    rounded = dtype == jnp.bfloat16 or (rounds and sums == jnp.float32)
    return jnp.dtype(jnp.bfloat16) if rounded and constants.second_state is None else sums


def recorded_membranes(v: Array, constants: LayerConstants, dtype: Any, rounds: bool = False) -> Array:
    """The membranes as recorded for the backward pass of a network of this dtype.

    A bfloat16 network, or a layer that `rounds` them, records their distance to the threshold in bfloat16, half the
    memory of float32 membranes. Rounding the membrane itself could move it across the threshold, and so change resets
    and spikes. The rounded distance keeps its sign, and the surrogate and the second threshold see it to 8 bits. If a
    second state may move the threshold, or in a float64 network, membranes are recorded unchanged.
    """
    kept = recorded_dtype(constants, dtype, rounds)
    return (v - _origin(constants.threshold, v)).astype(kept) if kept == jnp.bfloat16 else v


def membranes_of(record: Array, threshold: Array) -> Array:
    """The membranes from their record; they are above the threshold if and only if the original ones were."""
    return wide(record) + _origin(threshold, record) if record.dtype == jnp.bfloat16 else record


def _origin(threshold: Array, like: Array) -> Array:
    """The origin of the distances: from an infinite threshold all would be the same."""
    return jnp.where(jnp.isfinite(threshold), threshold, 0).reshape((1,) * (like.ndim - 1) + (-1,))


def packed(marks: Array) -> Array:
    """Bool ``[..., neurons]`` as bits, the first neuron lowest: uint8 ``[..., ceil(neurons / 8)]``."""
    if marks.size == 0:  # which jnp does not accept
        return jnp.zeros((*marks.shape[:-1], -(-marks.shape[-1] // 8)), jnp.uint8)
    return jnp.packbits(marks, axis=-1, bitorder="little")


def unpacked(bits: Array, num_neurons: int) -> Array:
    """Undo `packed`."""
    if bits.size == 0:
        return jnp.zeros((*bits.shape[:-1], num_neurons), bool)
    return jnp.unpackbits(bits, axis=-1, count=num_neurons, bitorder="little").astype(bool)
