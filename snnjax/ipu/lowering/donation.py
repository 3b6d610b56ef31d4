"""Buffer donation: which parameters give their memory to which results."""

from collections.abc import Sequence
from typing import Any

from snnjax._jax_compat import func, ir
from snnjax.ipu.lowering.types import ArrayType

_ALIASED, _DONATED = "tf.aliasing_output", "jax.buffer_donor"


def attributes_of(function: func.FuncOp, kind: str, count: int) -> list[Any]:
    """The attributes of each argument ("arg_attrs") or result ("res_attrs") of a function, or None."""
    if kind not in function.attributes:
        return [None] * count
    return [ir.DictAttr(each) for each in ir.ArrayAttr(function.attributes[kind])]


def donation(
    function: func.FuncOp, parameters: Sequence[ArrayType], results: Sequence[ArrayType]
) -> tuple[list[tuple[int, int]], list[int]]:
    """Pairs (parameter, result) that share memory, and the parameters whose buffers end with the call.

    JAX names the result for some parameters; the others are matched with remaining results of the same type.
    """
    attributes = attributes_of(function, "arg_attrs", len(parameters))
    aliases = [
        (parameter, ir.IntegerAttr(each[_ALIASED]).value)
        for parameter, each in enumerate(attributes)
        if each is not None and _ALIASED in each
    ]
    taken_away = [parameter for parameter, _ in aliases]
    # one of them may be sharded, and the other one not
    aliases = [each for each in aliases if parameters[each[0]] == results[each[1]]]
    donors = [parameter for parameter, each in enumerate(attributes) if each is not None and _DONATED in each]
    donated = sorted(taken_away + donors)
    taken = {result for _, result in aliases}
    for parameter in donors:
        for result, type_ in enumerate(results):
            if result not in taken and type_ == parameters[parameter]:
                aliases.append((parameter, result))
                taken.add(result)
                break
    return sorted(aliases), donated
