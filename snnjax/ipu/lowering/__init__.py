"""From StableHLO to the plan of the executor: calls inlined, constants folded, elementwise chains fused."""

from snnjax.ipu.lowering._callbacks import call_back as call_back
from snnjax.ipu.lowering._errors import Unsupported as Unsupported
from snnjax.ipu.lowering._module import lower as lower
from snnjax.ipu.lowering._rules import register_rules as register_rules
