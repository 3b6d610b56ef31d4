"""Rules for custom calls and composites: snnjax's own ops, callbacks, and JAX's markers for compilers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from snnjax._jax_compat import ir
from snnjax.ipu.lowering import views
from snnjax.ipu.lowering.operation import Operation, array_of
from snnjax.ipu.lowering.rules import Rule, elementwise, rule
from snnjax.ipu.lowering.rules.callbacks import of_first_partition
from snnjax.ipu.lowering.rules.sorting import top_k
from snnjax.ipu.lowering.types import ArrayType

OWN_PREFIX = "snnjax_"
THREEFRY = "snnjax_ipu_threefry2x32"
CALLBACK = "snnjax_ipu_callback"
KEEP, KEPT = "snnjax_ipu_keep", "snnjax_ipu_kept"
TRANSPOSED = "snnjax_ipu_transposed"
NETWORK = "snnjax_lif_network"
# Whether a plan has to take less of the tiles, as others do not fit. Two of the plans of a form spare memory, the last
# one most: references run few steps a round and in the last one copy no weights, networks on codelets have another
# layout, products a smaller share. After the form estimated to be the fastest comes the slower one.
TIGHT = ("snnjax_ipu_tight_1", "snnjax_ipu_tight_2", "snnjax_ipu_tight_3")
PLANS_OF_A_FORM = 3


def _attributes(operation: Operation) -> dict[str, Any]:
    """The attributes of an XLA FFI call."""
    name = "mhlo.backend_config"
    return (
        {each.name: each.attr for each in ir.DictAttr(operation.attributes[name])}
        if name in operation.attributes
        else {}
    )


def attribute_text(name: str, attribute: ir.Attribute, types: Callable[[Any], Any]) -> str:
    """``name:type=value``, arrays as ``name:type=value,value``, with numbers that round-trip exactly."""
    if isinstance(attribute, ir.BoolAttr):
        return f"{name}:bool={str(attribute.value).lower()}"
    if isinstance(attribute, ir.StringAttr):
        return f"{name}:string={attribute.value}"
    if isinstance(attribute, ir.IntegerAttr):
        return f"{name}:{_scalar(attribute)}={attribute.value}"
    if isinstance(attribute, ir.FloatAttr):
        return f"{name}:{attribute.type}={attribute.value!r}"
    array = array_of(attribute, types(attribute.type)).reshape(-1)
    return f"{name}:{types(attribute.type).dtype}={','.join(map(repr, array.tolist()))}"


def _scalar(attribute: ir.IntegerAttr) -> str:
    text = str(attribute.type)
    return text if text.startswith("ui") else text.replace("i", "s")


@rule("stablehlo.custom_call")
def _lower_custom_call(operation: Operation) -> Sequence[int]:
    target = operation.text("call_target_name")
    known = _TARGETS.get(target)
    if known is not None:
        return known(operation)
    if not target.startswith(OWN_PREFIX):
        raise operation.refuse(f"the IPU has no target {target!r}", "Run this part on the CPU")
    walk = operation.walk
    texts = [attribute_text(name, each, walk.array_type) for name, each in _attributes(operation).items()]
    return operation.builder.add("custom_call", operation.inputs, operation.types, texts=(target, *texts))


def _threefry(operation: Operation) -> Sequence[int]:
    """Keys may be single elements, counts are arrays; operands are broadcast along dimensions of size 1."""
    builder, shape = operation.builder, operation.types[0].shape

    def broadcast(x: int) -> int:
        if builder.types[x].size == 1:
            return views.splat_like(builder, x, shape)
        return views.broadcast(builder, x, shape, range(len(shape)))

    def key(x: int) -> int:
        return views.reshape(builder, x, ()) if builder.types[x].size == 1 else broadcast(x)

    operands = (*map(key, operation.inputs[:2]), *map(broadcast, operation.inputs[2:]))
    return builder.add("threefry", operands, operation.types)


def is_callback(operation: Operation) -> bool:
    """Whether an operation calls the host."""
    is_call = operation.name == "stablehlo.custom_call"
    return is_call and operation.text("call_target_name") == CALLBACK


def _callback(operation: Operation) -> Sequence[int]:
    """A call of the host; results without elements are known before."""
    number = ir.IntegerAttr(_attributes(operation)["number"]).value
    walk, builder, inputs = operation.walk, operation.builder, operation.inputs
    if walk.num_partitions > 1 and not walk.manual:  # what all partitions compute alike happens once
        inputs = [builder.one("partition_id", (), ArrayType("u32", ())), *inputs]
        number = of_first_partition(number)
    types = [type_ for type_ in operation.types if type_.size]
    results = iter(builder.add("callback", inputs, types, ((number,),)))
    return [next(results) if type_.size else views.empty(builder, type_) for type_ in operation.types]


def _top_k(operation: Operation, attributes: str = "") -> Sequence[int]:
    """The `k` largest elements, where `k` is among the attributes of this name, or of the operation itself."""
    within = ir.DictAttr(operation.attributes[attributes]) if attributes else operation.attributes
    values, places = top_k(operation.builder, operation.inputs[0], ir.IntegerAttr(within["k"]).value)
    return [values, elementwise.convert(operation.builder, places, operation.types[1].dtype)]


rule("chlo.top_k")(_top_k)  # in portable artifacts it is a composite


def _named(operation: Operation) -> dict[str, int]:
    """The operands behind the first one, by name."""
    names = ir.StringAttr(_attributes(operation)["names"]).value.split()
    return dict(zip(names, operation.inputs[1:], strict=True))


def _keep(operation: Operation) -> Sequence[int]:
    """An array, for which `_kept` then finds what it was made of."""
    operation.builder.made_of[operation.inputs[0]] = _named(operation)
    return operation.inputs[:1]


def _kept(operation: Operation) -> Sequence[int]:
    """What the first operand was made of, if that is known, else the others."""
    known = operation.builder.made_of.get(operation.inputs[0], {})
    return [known.get(name, value) for name, value in _named(operation).items()]


def _transposed(operation: Operation) -> Sequence[int]:
    """The transpose of a matrix in memory of its own, where that of StableHLO is a view."""
    return operation.builder.add("transposed", operation.inputs, operation.types)


def _is_tight(operation: Operation) -> Sequence[int]:
    attempt = operation.walk.attempt
    plan = attempt % PLANS_OF_A_FORM
    spares, spares_most, is_slower = plan > 0, plan == PLANS_OF_A_FORM - 1, attempt >= PLANS_OF_A_FORM
    each: dict[str, bool] = dict(zip(TIGHT, (spares, spares_most, is_slower), strict=True))
    return [operation.builder.constant(np.asarray(each[operation.text("call_target_name")]))]


_TARGETS: dict[str, Rule] = {
    **dict.fromkeys(TIGHT, _is_tight),
    "Sharding": lambda operation: operation.inputs,
    "mhlo.topk": lambda operation: _top_k(operation, "mhlo.attributes"),
    THREEFRY: _threefry,
    CALLBACK: _callback,
    KEEP: _keep,
    KEPT: _kept,
    TRANSPOSED: _transposed,
}


# Composites that are one elementwise operation.
POINTWISE = frozenset({"chlo.erf", "chlo.tan"})


def is_decomposed(operation: Operation) -> bool:
    """Whether an operation is a composite that is lowered through its decomposition."""
    if operation.name != "stablehlo.composite":
        return False
    return operation.text("name") not in POINTWISE | {"chlo.top_k"}


@rule("stablehlo.composite")
def _lower_composite(operation: Operation) -> Sequence[int]:
    """`chlo.top_k` and functions with an elementwise instruction become one operation; others are decomposed."""
    name = operation.text("name")
    if name == "chlo.top_k":
        return _top_k(operation, "composite_attributes")
    if name in POINTWISE:
        return [elementwise.unary(operation.builder, name.removeprefix("chlo."), operation.inputs[0])]
    return operation.called(operation.text("decomposition"))
