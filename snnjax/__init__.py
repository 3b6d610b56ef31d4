"""snnjax: spiking networks as pure functions in JAX that pay only for the spikes."""

from importlib.metadata import version as _version

from snnjax import neurons as neurons
from snnjax._compiler_options import compiler_options as compiler_options
from snnjax._network import Network as Network
from snnjax._network import network as network
from snnjax._network.connections import conv1d as conv1d
from snnjax._network.connections import conv2d as conv2d
from snnjax._network.connections import dense as dense
from snnjax._network.connections import flatten as flatten
from snnjax._network.connections import mean_pool as mean_pool
from snnjax._network.connections import sum_pool as sum_pool
from snnjax._network.delays import axonal as axonal
from snnjax._network.specs import LayerSpec as LayerSpec
from snnjax._network.specs import NetworkOutput as NetworkOutput
from snnjax._network.specs import NetworkParams as NetworkParams
from snnjax._network.specs import NetworkState as NetworkState
from snnjax._network.specs import ReadoutSpec as ReadoutSpec
from snnjax._network.specs import layer as layer
from snnjax._network.specs import leaky_readout as leaky_readout
from snnjax._network.specs import spiking_readout as spiking_readout
from snnjax.ops import LeakyReadout as LeakyReadout
from snnjax.ops import LIFLayer as LIFLayer
from snnjax.ops import delay_spikes as delay_spikes
from snnjax.ops import lif_network as lif_network
from snnjax.ops import lif_network_state as lif_network_state
from snnjax.ops import lif_step as lif_step
from snnjax.ops import pool_spikes as pool_spikes
from snnjax.ops import select_spikes as select_spikes
from snnjax.ops import spike as spike
from snnjax.ops import spike_conv as spike_conv
from snnjax.ops import spike_matmul as spike_matmul
from snnjax.sparse_spikes import SparseSpikes as SparseSpikes
from snnjax.surrogates import Surrogate as Surrogate

__version__ = _version("snnjax")
