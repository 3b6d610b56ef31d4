"""The ops, one per file, each with its equation, reference, derivative and targets."""

from snnjax.ops._connection import Connection as Connection
from snnjax.ops._lif_network.records import LayerState as LayerState
from snnjax.ops._simulation.records import PoissonInput as PoissonInput
from snnjax.ops._simulation.records import SimulationOutput as SimulationOutput
from snnjax.ops._simulation.records import SimulationState as SimulationState
from snnjax.ops.delay_spikes import delay_spikes as delay_spikes
from snnjax.ops.delayed_spike_matmul import delayed_spike_matmul as delayed_spike_matmul
from snnjax.ops.lif_network import LeakyReadout as LeakyReadout
from snnjax.ops.lif_network import LIFLayer as LIFLayer
from snnjax.ops.lif_network import LIFNetworkOutput as LIFNetworkOutput
from snnjax.ops.lif_network import LIFNetworkState as LIFNetworkState
from snnjax.ops.lif_network import lif_network as lif_network
from snnjax.ops.lif_network import lif_network_state as lif_network_state
from snnjax.ops.lif_step import lif_step as lif_step
from snnjax.ops.pool_spikes import pool_spikes as pool_spikes
from snnjax.ops.select_spikes import select_spikes as select_spikes
from snnjax.ops.simulate import simulate as simulate
from snnjax.ops.simulate import simulation_state as simulation_state
from snnjax.ops.spike import spike as spike
from snnjax.ops.spike_conv import spike_conv as spike_conv
from snnjax.ops.spike_matmul import spike_matmul as spike_matmul
from snnjax.ops.spike_sparse_matmul import spike_sparse_matmul as spike_sparse_matmul
