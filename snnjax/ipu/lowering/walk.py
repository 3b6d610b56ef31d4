"""Lower the operations of a StableHLO module to instructions: functions are inlined, operations use their rules."""

from collections.abc import Sequence

from snnjax._jax_compat import Value, func, ir
from snnjax.ipu.lowering import pairs, partition
from snnjax.ipu.lowering.builder import Builder
from snnjax.ipu.lowering.errors import Unsupported, refusal
from snnjax.ipu.lowering.folding import fold
from snnjax.ipu.lowering.locations import is_in_op, reference_in, user_line
from snnjax.ipu.lowering.operation import Operation, Walk
from snnjax.ipu.lowering.rules import RULES, complex_formulas, complex_numbers, elementwise
from snnjax.ipu.lowering.rules.calls import is_callback
from snnjax.ipu.lowering.sharding import Sharding
from snnjax.ipu.lowering.types import WIDE, ArrayType, of_mlir

_RETURNS = frozenset({"func.return", "stablehlo.return", "sdy.return"})
# Their regions are executed, whatever they yield.
_WITH_BLOCKS = frozenset({"stablehlo.while", "stablehlo.case", "stablehlo.if"})
# Operations that a function of elements may consist of.
_ELEMENTWISE = frozenset(
    {f"stablehlo.{name}" for name in elementwise.NAMES | complex_formulas.FORMULAS.keys()}
    | {f"stablehlo.{name}" for name in ("constant", "broadcast_in_dim", "reshape", "composite")}
    | {"func.call", "stablehlo.optimization_barrier"}
    | _WITH_BLOCKS
)


class ModuleWalk(Walk):
    """The traversal of one module."""

    def __init__(self, module: ir.Module, attempt: int) -> None:
        self.attempt = attempt
        self.builder = Builder()
        self.functions: dict[str, func.FuncOp] = {}
        self.meshes: dict[str, ir.Attribute] = {}
        self.num_partitions = 1
        self.shardings: dict[int, Sharding] = {}  # of values that are sharded over IPUs
        self.manual: frozenset[str] = frozenset()  # the mesh axes of the `shard_map` around
        self.is_manual = False  # inside one over all axes
        self.shape: tuple[int, ...] | None = None  # of the arrays to which a block of scalars is applied
        self.mask: int | None = None  # their elements that a branch or loop is for, if not all
        self._values: dict[Value, int] = {}
        self._called_from = ""  # the location in an op's scope, of either form, of the outermost call there
        self._types: dict[ir.Type, ArrayType] = {}
        for operation in module.body.operations:
            symbol = ir.StringAttr(operation.attributes["sym_name"]).value
            if isinstance(operation, func.FuncOp):
                self.functions[symbol] = operation
            elif operation.operation.name == "sdy.mesh":
                self.meshes[symbol] = operation.attributes["mesh"]

    def array_type(self, type_: ir.Type) -> ArrayType:
        """The type of a value of the module."""
        known = self._types.get(type_)
        if known is not None:
            return known
        text = str(type_)
        if text == "!stablehlo.token":  # the program's order is that of its callbacks: a token holds nothing
            return ArrayType("bool", (0,))
        try:
            ranked = ir.RankedTensorType(type_)
        except ValueError:
            raise self._refuse_type(text, "is not an array", "Use arrays alone") from None
        if not ranked.has_static_shape:
            raise self._refuse_type(text, "has no fixed shape", "Give every dimension a fixed size")
        dtype = of_mlir(str(ranked.element_type))
        if dtype is None:
            raise self._refuse_type(
                text, "is not a type of the IPU", "Use float32, float16, bfloat16, complex64, or integers"
            )
        self._types[type_] = ArrayType(dtype, tuple(ranked.shape))
        return self._types[type_]

    def _refuse_type(self, text: str, what: str, hint: str) -> Unsupported:
        return refusal(self.builder.op, (), f"{text} {what}", hint, self.builder.where)

    def block(self, block: ir.Block, inputs: Sequence[int]) -> list[int]:
        """The results of a block of the module, whose operations are added at the builder's current position."""
        for argument, value in zip(block.arguments, inputs, strict=True):
            self._values[argument] = value
        for view in block.operations:
            source = view.operation
            if source.name in _RETURNS:
                return [self._values[operand] for operand in source.operands]
            location = str(source.location)
            with self.builder.at(source.name.removeprefix("stablehlo."), user_line(location)):
                if op := reference_in(self._called_from or location):
                    self.builder.notes[f"{op} runs on its reference: {self.builder.where}"] = None
                called_from = self._called_from
                if source.name == "func.call" and is_in_op(location):
                    self._called_from = called_from or location
                for result, value in zip(source.results, self._lower(source), strict=True):
                    self._values[result] = value
                self._called_from = called_from
        return []

    def _elements(
        self, source: ir.Operation, inputs: Sequence[int], types: Sequence[ArrayType]
    ) -> list[ArrayType]:
        """The types of a scalar operation that is done for all elements of arrays."""
        if source.name not in _ELEMENTWISE or any(type_.shape for type_ in types):
            hint = "Combine elements by elementwise operations, branches and loops"
            raise self.builder.refuse(inputs, "in a function of elements it is not elementwise", hint)
        return [type_._replace(shape=self.shape) for type_ in types]

    def _lower(self, source: ir.Operation) -> Sequence[int]:
        inputs = [self._values[operand] for operand in source.operands]
        if source.name not in RULES:
            raise self.builder.refuse(inputs, "the IPU has no such operation", "Run this part on the CPU")
        # The operations of a called block have their own types.
        results = () if source.name == "func.call" else source.results
        types = [self.array_type(result.type) for result in results]
        if self.shape is not None:
            types = self._elements(source, inputs, types)
        operation = Operation(self, source.name, inputs, types, source)
        if self.num_partitions == 1 or self.is_manual or self.shape is not None:
            return self.lower(operation)
        return partition.lower(self, operation)

    def lower(self, operation: Operation) -> Sequence[int]:
        """The results of an operation, given the values of its operands."""
        is_complex = complex_numbers.is_complex(operation)
        if operation.name.startswith("stablehlo."):
            folded = None if is_complex else fold(operation)
            if folded is not None:
                return folded
            types = operation.types
            happens = operation.name in _WITH_BLOCKS or is_callback(operation)
            if types and not happens and all(type_.size == 0 for type_ in types):
                return [pairs.empty(self.builder, type_) for type_ in types]
        known = complex_numbers.rule_of(operation) if is_complex else RULES[operation.name]
        results = known(operation)
        _check_width(operation, results)
        return results


def _check_width(operation: Operation, results: Sequence[int]) -> None:
    """Refuse types that the IPU has no registers for, unless the values are constants."""
    builder = operation.builder
    for value in (*operation.inputs, *results):
        dtype = builder.types[value].dtype
        if dtype in WIDE and value not in builder.constants:
            hint = "Leave jax_enable_x64 off, or convert to 32 bits first"
            raise operation.refuse(f"the IPU has no {dtype}", hint)
