"""`FusedNeurons`: how the fused op computes neurons, spiking or not."""

from dataclasses import dataclass

from snnjax.blocks.block import Op
from snnjax.ops._lif_network.switches import LayerSwitches


@dataclass(frozen=True)
class FusedNeurons(Op):
    """The neurons of a layer of the fused op; their `operands` are `LayerConstants`."""

    switches: LayerSwitches  # but for the connections and what is recorded
    spikes: bool  # else it is the readout
    # Whether the op holds the membrane before a reset that the state of the block is after.
    is_immediate: bool = False
    # Whether a membrane at the threshold spikes: that of the op is one float lower.
    is_inclusive: bool = False
