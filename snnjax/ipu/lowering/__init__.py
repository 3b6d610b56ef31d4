"""From StableHLO to the plan of the executor (``xla_ext/executor/README.md``), in one process with JAX.

`module` reads the program; `walk` goes through it and inlines calls; each operation is written down by its rule in
`rules` through the `builder`, which knows constants (`folding`), equal instructions, and what loops do not change.
Complex numbers are two values each (`pairs`), and their operations those of real ones (`rules.complex_numbers`).
Then the `passes` take out what nothing needs (`cleanup`), put elementwise chains together (`fusion`) and write them
(`slots`).
"""

from snnjax.ipu.lowering.errors import Unsupported as Unsupported
from snnjax.ipu.lowering.module import lower as lower
from snnjax.ipu.lowering.rules.callbacks import call_back as call_back
from snnjax.ipu.lowering.rules.primitives import lower_check as lower_check
from snnjax.ipu.lowering.rules.primitives import lower_counters as lower_counters
from snnjax.ipu.lowering.rules.primitives import lower_debug as lower_debug
from snnjax.ipu.lowering.rules.primitives import lower_threefry as lower_threefry
from snnjax.ipu.lowering.rules.primitives import lower_unknown as lower_unknown
