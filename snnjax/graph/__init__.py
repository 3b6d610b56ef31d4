"""Networks as graphs of blocks; `snnjax.network` is in the module `build`, `snnjax.convert` in `convert`."""

from snnjax.graph.containers import Node as Node
from snnjax.graph.containers import layer as layer
from snnjax.graph.containers import leaky_readout as leaky_readout
from snnjax.graph.containers import parallel as parallel
from snnjax.graph.containers import residual as residual
from snnjax.graph.containers import sequential as sequential
from snnjax.graph.containers import spiking_readout as spiking_readout
from snnjax.graph.network import Network as Network
from snnjax.graph.network import NetworkOutput as NetworkOutput
