"""`Neurons`: how the fused op computes neurons, spiking or not."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxtyping import Array

from snnjax.blocks.block import Op
from snnjax.neurons import GLIF
from snnjax.surrogates import Surrogate
from snnjax.synapses import Synapses


@dataclass(frozen=True)
class Neurons(Op):
    """The neurons of a layer of the fused op."""

    form: GLIF
    capacity: int | None
    surrogate: Surrogate
    rounds_record: bool
    spikes: bool  # else it is the readout
    feedback: Any  # the block of the recurrent connection that has its weights, None if there is none
    feedback_delay: int | None  # the longest one of recurrent spikes, None without delays
    # Whether the op holds the membrane before a reset that the state of the block is after.
    is_immediate: bool = False
    is_inclusive: bool = (
        False  # whether a membrane at the threshold spikes: that of the op is one float lower
    )


class NeuronOperands(NamedTuple):
    """The arrays of `Neurons`."""

    constants: Any
    second_threshold: Any
    recurrent: Array | None
    recurrent_delays: Array | None
    recurrent_synapses: Synapses | None = None
    synaptic_delays: Array | None = None
