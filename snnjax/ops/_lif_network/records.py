"""The records of `lif_network`: what goes into its targets, and what comes out of them.

They are trees, and the order of their leaves is the order on the wire: the kernels read the leaves of `Operands` and
`Record` as they stand here (xla_ext/cpu/lif_network.hpp). A tree of the same form may hold in the place of its arrays
their shapes, batch axes, cotangents, or marks which of them are needed. ``[1 | neurons]`` is one value for all neurons
or one each.
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
    """The constants of the second state of `lif_network`'s neurons, ``w``; those that are None are absent.

    One value or one per neuron each::

        w = w_decay w' + w_membrane v' + w_gain current + w_jump s'
        v = decay reset(v', s') + gain current + v_coupling w
        s = [v > threshold + threshold_coupling w]
    """

    w_decay: Any
    w_membrane: Any = None
    w_gain: Any = None
    w_jump: Any = None
    v_coupling: Any = None
    threshold_coupling: Any = None


class Linear(NamedTuple):
    """What makes a current of the spikes in front of a layer."""

    weights: Any  # [inputs, neurons], an array or `Quantised`, or those of a convolution
    bias: Array | None  # [neurons]
    delays: Any = None  # [inputs] in steps, in the accumulation dtype; None without a `max_delay`


class LayerConstants(NamedTuple):
    """What a layer computes with besides its input current; in the accumulation dtype but for the recurrent weights."""

    recurrent: Any  # [neurons, neurons], an array or `Quantised`; or None
    decay: Array  # [1 | neurons], as the three below
    threshold: Array
    gain: Array
    second_threshold: Any  # None among cotangents
    second_state: SecondState | None  # of [1 | neurons] each


class Readout(NamedTuple):
    """A leaky integrator after the last layer."""

    linear: Linear
    decay: Array  # [1 | outputs]
    gain: Array  # [1 | outputs]


class LayerState(NamedTuple):
    """What a layer carries from step to step, ``[batch, neurons]``."""

    v: Array  # in the accumulation dtype
    w: Any  # of layers with a second state, else None
    spikes: Any  # of recurrent layers, else None: the listed spikes
    # Of layers behind delays, else None: what was sent in the last max_delay + 1 steps, oldest first, ``[rows, batch,
    # inputs]``. No rows stand for rows of zeros.
    pending: Any = None


class Operands(NamedTuple):
    """What the target computes with."""

    inputs: Any  # [time, batch, inputs], or the ids and values of lists [time, batch, capacity]
    linears: tuple[Linear, ...]  # one per layer
    constants: tuple[LayerConstants, ...]
    readout: Readout | None
    first: tuple[LayerState, ...]
    first_readout: Any  # [batch, outputs] in the accumulation dtype, or None
    lengths: Any  # int32 [batch], or None

    @property
    def dtype(self) -> Any:
        """That of the op: of weights, of spikes and of the output."""
        return self.linears[0].weights.dtype


class Results(NamedTuple):
    """What the target yields."""

    output: Array  # [time, batch, outputs]
    counts: tuple[Any, ...]  # [batch, neurons], true spikes, in the accumulation dtype
    dropped: tuple[Array, ...]  # int32 [batch]
    spikes: tuple[
        Any, ...
    ]  # `SparseSpikes` or dense [time, batch, neurons] of each layer; None unless recorded
    last: tuple[LayerState, ...]
    last_readout: Any


class LayerRecord(NamedTuple):
    """What the backward pass needs of the forward pass of a layer, marks as one bit per neuron (`packed`)."""

    v: Array  # [time, batch, neurons], the membranes after each step (`recorded_membranes`)
    current: Any  # [time, batch, neurons], in the accumulation dtype, where `with_records` asks for it
    spikes: Array  # uint8 [time, batch, ceil(neurons / 8)], the listed spikes
    listed: Any  # likewise, all listed neurons; None without capacity


class Record(NamedTuple):
    """What the backward pass needs of the forward pass; of dense inputs their spikes, which a kernel reads as bits."""

    input_bits: Any  # uint8 [time, batch, ceil(inputs / 8)], the inputs that are not 0; None of lists
    input_is_binary: Any  # bool [time, batch], where all are 0 or 1; None of lists
    layers: tuple[LayerRecord, ...]


class BackwardArguments(NamedTuple):
    """What the backward pass computes with."""

    operands: Operands
    results: Results
    record: Record
    g: Results  # cotangents of the results; in the place of `SparseSpikes` stand those of their values


class LayerSwitches(NamedTuple):
    """What is static about a layer."""

    connection: Connection  # in front of it
    capacity: int | None  # None: every neuron receives its gradient
    surrogate: Surrogate
    reset: str
    detach_reset: bool
    records_spikes: bool = False  # as a result
    # What the backward pass needs beside the membranes (see `with_records`): the second states, and the currents.
    needs_w: bool = False
    records_current: bool = False


class Switches(NamedTuple):
    """What is static about the target."""

    layers: tuple[LayerSwitches, ...]
    readout: Connection  # in front of the read-out
    implementation: str | None = None
    keeps_record: bool = False  # for the backward pass


@jax.tree_util.register_static
@dataclass(frozen=True)
class Needs:
    """What the backward pass has to yield; the rest is left to XLA to drop, and kernels leave it out."""

    operands: Operands  # of marks
    counts: bool  # whether the counts have a cotangent


def differentiable(tree: Operands, operands: Operands) -> Operands:
    """`tree`, which is of the form of `operands`, without the leaves that have no cotangent."""
    inputs = tree.inputs
    if isinstance(operands.inputs, tuple):
        inputs = (None, inputs[1])
    elif not jnp.issubdtype(operands.inputs.dtype, jnp.floating):
        inputs = None
    constants = tuple(own._replace(second_threshold=None) for own in tree.constants)
    return tree._replace(inputs=inputs, constants=constants, lengths=None)


def with_records(switches: Switches, operands: Operands, needed: Operands) -> Switches:
    """The switches of a forward pass whose backward pass has to yield what is true in `needed`.

    Membranes and listed spikes are always recorded: they give the slope of the surrogate and the reset. The second
    states are needed where the threshold follows them, or for the cotangents of the constants that they are multiplied
    with. They are linear in membranes, spikes and currents, and so are computed again in place of being recorded. The
    currents are recorded where they reach both states and either these or the cotangents of the gains need them:
    elsewhere the sums over the weights give the cotangent of the gain, but for those of a convolution.
    """

    def with_own(layer: LayerSwitches, constants: LayerConstants, need: LayerConstants) -> LayerSwitches:
        second, need_second = constants.second_state, need.second_state
        if second is None or need_second is None:
            # The weights of a convolution belong to many neurons, whose gains may differ.
            shares = layer.connection.convolution is not None
            return layer._replace(records_current=shares and bool(need.gain))
        w = second.threshold_coupling is not None or need_second.w_decay or bool(need_second.v_coupling)
        current = second.w_gain is not None and bool(w or need.gain or need_second.w_gain)
        current |= layer.connection.convolution is not None and bool(need.gain)
        return layer._replace(needs_w=bool(w), records_current=current)

    each = zip(switches.layers, operands.constants, needed.constants, strict=True)
    return switches._replace(layers=tuple(with_own(*own) for own in each), keeps_record=True)


def recorded_dtype(constants: LayerConstants, dtype: Any) -> Any:
    """The dtype of what the backward pass of a network of `dtype` keeps of membranes (`recorded_membranes`)."""
    return dtype if dtype == jnp.bfloat16 and constants.second_state is None else sum_dtype(dtype)


def recorded_membranes(v: Array, constants: LayerConstants, dtype: Any) -> Array:
    """What the backward pass of a network of this dtype keeps of membranes.

    Of a bfloat16 network their distance to the threshold, in bfloat16: half the memory of membranes in float32. The
    membrane itself, so rounded, would change sides of the threshold, and with it resets and spikes. Its distance keeps
    its sign, and the surrogate and the second threshold see it to 8 bits. Where a second state may move the threshold,
    membranes are kept as they are.
    """
    kept = recorded_dtype(constants, dtype)
    return (v - _origin(constants.threshold, v)).astype(kept) if kept == jnp.bfloat16 else v


def membranes_of(record: Array, threshold: Array) -> Array:
    """The membranes that `recorded_membranes` recorded: above the threshold if and only if they were."""
    return wide(record) + _origin(threshold, record) if record.dtype == jnp.bfloat16 else record


def _origin(threshold: Array, like: Array) -> Array:
    """What distances are taken from: from an infinite threshold all would be the same."""
    return jnp.where(jnp.isfinite(threshold), threshold, 0).reshape((1,) * (like.ndim - 1) + (-1,))


def packed(marks: Array) -> Array:
    """Bool ``[..., neurons]`` as bits, the first neuron in the lowest: uint8 ``[..., ceil(neurons / 8)]``."""
    if marks.size == 0:  # which jnp refuses
        return jnp.zeros((*marks.shape[:-1], -(-marks.shape[-1] // 8)), jnp.uint8)
    return jnp.packbits(marks, axis=-1, bitorder="little")


def unpacked(bits: Array, num_neurons: int) -> Array:
    """The marks that `packed` packed."""
    if bits.size == 0:
        return jnp.zeros((*bits.shape[:-1], num_neurons), bool)
    return jnp.unpackbits(bits, axis=-1, count=num_neurons, bitorder="little").astype(bool)
