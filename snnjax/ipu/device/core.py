"""What the IPU takes of the rest of the library: nothing else in `snnjax.ipu` imports more than its bottom layer.

* of `lif_network`: its records (operands, results, what tiles keep), the switches of a layer, the shapes of results,
  the call of a kernel, and the equation of a layer in plain JAX (`chain`, `layer`), by which the record of a forward
  pass that other devices read is made of what the tiles keep, and back;
* of every op: the table of its kernels (`Target`, `Kernel`), and its arrays by name (`named`);
* lists of spikes, the geometry of weights (`Connection`), and surrogates.
"""

from snnjax._dispatch import Kernel as Kernel
from snnjax._dispatch import Target as Target
from snnjax._neuron_table import LIST_HEADER as LIST_HEADER
from snnjax._sparse_spikes import SparseSpikes as SparseSpikes
from snnjax._sparse_spikes import in_range as in_range
from snnjax._types import id_dtype as id_dtype
from snnjax.ops._connection import Connection as Connection
from snnjax.ops._kernel_operands import named as named
from snnjax.ops._lif_network.chain import LayerOverTime as LayerOverTime
from snnjax.ops._lif_network.chain import as_dense as as_dense
from snnjax.ops._lif_network.chain import backward as backward
from snnjax.ops._lif_network.chain import current_of as current_of
from snnjax.ops._lif_network.chain import delayed_inputs as delayed_inputs
from snnjax.ops._lif_network.chain import dense_inputs as dense_inputs
from snnjax.ops._lif_network.chain import forward as forward
from snnjax.ops._lif_network.chain import neurons_of as neurons_of
from snnjax.ops._lif_network.chain import record_of as record_of
from snnjax.ops._lif_network.chain import run_of as run_of
from snnjax.ops._lif_network.chain import valid_steps as valid_steps
from snnjax.ops._lif_network.kernel import as_kernel_reads as as_kernel_reads
from snnjax.ops._lif_network.kernel import call_for_cotangents as call_for_cotangents
from snnjax.ops._lif_network.kernel import call_forward as call_forward
from snnjax.ops._lif_network.layer import LayerRun as LayerRun
from snnjax.ops._lif_network.layer import Neurons as Neurons
from snnjax.ops._lif_network.recorded import unpacked as unpacked
from snnjax.ops._lif_network.records import BackwardArguments as BackwardArguments
from snnjax.ops._lif_network.records import BackwardOnTiles as BackwardOnTiles
from snnjax.ops._lif_network.records import Cotangents as Cotangents
from snnjax.ops._lif_network.records import ForwardOnTiles as ForwardOnTiles
from snnjax.ops._lif_network.records import LayerConstants as LayerConstants
from snnjax.ops._lif_network.records import LayerOnTiles as LayerOnTiles
from snnjax.ops._lif_network.records import LayerRecord as LayerRecord
from snnjax.ops._lif_network.records import LayerState as LayerState
from snnjax.ops._lif_network.records import Operands as Operands
from snnjax.ops._lif_network.records import Record as Record
from snnjax.ops._lif_network.records import RecordOnTiles as RecordOnTiles
from snnjax.ops._lif_network.records import Weighted as Weighted
from snnjax.ops._lif_network.shapes import result_shapes as result_shapes
from snnjax.ops._lif_network.switches import Needs as Needs
from snnjax.ops._lif_network.switches import Switches as Switches
from snnjax.ops._lif_network.switches import differentiable as differentiable
from snnjax.ops._product import Sizes as Sizes
from snnjax.ops._time_scan import IN_ROUNDS as IN_ROUNDS
from snnjax.ops._time_scan import MOST_WITHOUT_LOOP as MOST_WITHOUT_LOOP
from snnjax.ops._time_scan import WITHOUT_LOOP as WITHOUT_LOOP
from snnjax.surrogates import Surrogate as Surrogate
