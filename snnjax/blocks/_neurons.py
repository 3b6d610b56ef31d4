"""`FusedNeurons`: how the fused op computes neurons, spiking or not."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from snnjax.blocks.block import Op
from snnjax.neurons import GLIF
from snnjax.surrogates import Surrogate


@dataclass(frozen=True)
class FusedNeurons(Op):
    """The neurons of a layer of the fused op."""

    form: GLIF
    capacity: int | None
    surrogate: Surrogate
    rounds_record: bool
    spikes: bool  # else it is the readout
    # Whether the op holds the membrane before a reset that the state of the block is after.
    is_immediate: bool = False
    is_inclusive: bool = (
        False  # whether a membrane at the threshold spikes: that of the op is one float lower
    )


class NeuronOperands(NamedTuple):
    """The arrays of `FusedNeurons`."""

    constants: Any
    second_threshold: Any
