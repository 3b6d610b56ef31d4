"""The names that arguments and results of a program have in the user's code, for its profile."""

import re
from typing import Any

from snnjax._jax_compat import ir
from snnjax.ipu.lowering.donation import attributes_of

# A location that is a name alone: ``loc("params['layer_0'].weights")``, while one with a line has more to it.
_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"\)')
_RESULT = "jax.result_info"


def names_of(main: Any) -> list[tuple[str, str]]:
    """Options of a plan: ``("argument", "params['layer_0'].weights")``, ``("result", "result[0]")``; "" is unknown."""
    count = len(main.type.results)
    named = [_NAME.fullmatch(str(argument.location)) for argument in main.arguments]
    results = [
        ir.StringAttr(each[_RESULT]).value if each is not None and _RESULT in each else ""
        for each in attributes_of(main, "res_attrs", count)
    ]
    return [
        *(("argument", found.group(1) if found else "") for found in named),
        *(("result", name) for name in results),
    ]
