"""From StableHLO to the plan of the executor (``xla_ext/executor/README.md``), in one process with JAX.

`module` reads the program; `walk` traverses it and inlines calls. Each operation is lowered by its rule in `rules`
through the `builder`, which folds constants (`folding`), shares equal instructions, and hoists loop invariants. Complex
numbers become pairs of real values (`pairs`), and their operations become real ones (`rules.complex_numbers`). Some
primitives of JAX become functions of others even before that (`rules.primitives`, `rules.pooling`). Then the `passes`
remove dead code (`cleanup`), fuse elementwise chains (`fusion`) and allocate their slots (`slots`).
"""

from snnjax.ipu.lowering.errors import Unsupported as Unsupported
from snnjax.ipu.lowering.module import lower as lower
from snnjax.ipu.lowering.rules.callbacks import call_back as call_back
