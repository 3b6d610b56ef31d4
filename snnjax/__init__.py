"""snnjax: spiking networks as pure functions in JAX that pay only for the spikes."""

from importlib.metadata import version as _version
from typing import TYPE_CHECKING as _TYPE_CHECKING

from snnjax import blocks as blocks
from snnjax import neurons as neurons
from snnjax._compiler_options import compiler_options as compiler_options
from snnjax._lazy import __dir__ as __dir__
from snnjax._lazy import __getattr__ as __getattr__
from snnjax.blocks import axonal as axonal
from snnjax.blocks import conv1d as conv1d
from snnjax.blocks import conv2d as conv2d
from snnjax.blocks import dense as dense
from snnjax.blocks import flatten as flatten
from snnjax.blocks import max_pool as max_pool
from snnjax.blocks import mean_pool as mean_pool
from snnjax.blocks import sparse as sparse
from snnjax.blocks import sum_pool as sum_pool
from snnjax.blocks import synaptic as synaptic
from snnjax.graph import Network as Network
from snnjax.graph import NetworkOutput as NetworkOutput
from snnjax.graph import layer as layer
from snnjax.graph import leaky_readout as leaky_readout
from snnjax.graph import parallel as parallel
from snnjax.graph import residual as residual
from snnjax.graph import sequential as sequential
from snnjax.graph import spiking_readout as spiking_readout
from snnjax.graph.build import network as network
from snnjax.graph.convert import convert as convert
from snnjax.ops import LeakyReadout as LeakyReadout
from snnjax.ops import LIFLayer as LIFLayer
from snnjax.ops import PoissonInput as PoissonInput
from snnjax.ops import delay_spikes as delay_spikes
from snnjax.ops import delayed_spike_matmul as delayed_spike_matmul
from snnjax.ops import lif_network as lif_network
from snnjax.ops import lif_network_state as lif_network_state
from snnjax.ops import lif_step as lif_step
from snnjax.ops import pool_spikes as pool_spikes
from snnjax.ops import select_spikes as select_spikes
from snnjax.ops import simulate as simulate
from snnjax.ops import simulation_state as simulation_state
from snnjax.ops import spike as spike
from snnjax.ops import spike_conv as spike_conv
from snnjax.ops import spike_matmul as spike_matmul
from snnjax.ops import spike_sparse_matmul as spike_sparse_matmul
from snnjax.rewiring import prune as prune
from snnjax.rewiring import regrow as regrow
from snnjax.sparse_spikes import SparseSpikes as SparseSpikes
from snnjax.surrogates import Surrogate as Surrogate
from snnjax.synapses import Synapses as Synapses

if _TYPE_CHECKING:  # what `__getattr__` imports
    from snnjax import data as data
    from snnjax import encoding as encoding
    from snnjax import event_times as event_times
    from snnjax import ipu as ipu
    from snnjax import losses as losses
    from snnjax import metrics as metrics
    from snnjax import neurobench as neurobench
    from snnjax import nir as nir
    from snnjax import online as online
    from snnjax import plasticity as plasticity
    from snnjax import plot as plot
    from snnjax import quantisation as quantisation
    from snnjax import train as train

__version__ = _version("snnjax")
