"""From StableHLO to the plan of the executor (``xla_ext/executor/README.md``), in one process with JAX.

`_module` reads the program; `_walk` goes through it and inlines calls; each operation is written down by its rule
(`_elementwise`, `_structure`, `_reductions`, `_products`, `_indexing`, `_sorting`, `_control`, `_calls`,
`_collectives`, `_sharding`) through the `_builder`, which knows constants (`_folding`), equal instructions, and what
loops do not change. Then `_cleanup` takes out what nothing needs, `_fusion` puts elementwise chains together, and
`_slots` writes them.
"""

from snnjax.ipu.lowering._callbacks import call_back as call_back
from snnjax.ipu.lowering._errors import Unsupported as Unsupported
from snnjax.ipu.lowering._module import lower as lower
from snnjax.ipu.lowering._rules import lower_counters as lower_counters
from snnjax.ipu.lowering._rules import lower_debug as lower_debug
from snnjax.ipu.lowering._rules import lower_threefry as lower_threefry
from snnjax.ipu.lowering._rules import lower_unknown as lower_unknown
