"""Read and lower a program from PJRT: a StableHLO portable artifact and compile options."""

from collections.abc import Sequence
from typing import Any

from snnjax import _jax_compat
from snnjax._jax_compat import CompileOptions, func, ir
from snnjax.ipu.lowering import pairs, partition
from snnjax.ipu.lowering.donation import attributes_of, donation
from snnjax.ipu.lowering.errors import Unsupported
from snnjax.ipu.lowering.locations import name_of
from snnjax.ipu.lowering.passes.cleanup import drop_identities, prune, renumber
from snnjax.ipu.lowering.passes.fusion import fuse
from snnjax.ipu.lowering.passes.slots import write_in_slots
from snnjax.ipu.lowering.plan import Block, Plan, serialise

# Each module registers the rules of its operations.
from snnjax.ipu.lowering.rules import bit_casts as bit_casts
from snnjax.ipu.lowering.rules import calls as calls
from snnjax.ipu.lowering.rules import collectives as collectives
from snnjax.ipu.lowering.rules import control as control
from snnjax.ipu.lowering.rules import convolutions as convolutions
from snnjax.ipu.lowering.rules import elementwise as elementwise
from snnjax.ipu.lowering.rules import indexing as indexing
from snnjax.ipu.lowering.rules import products as products
from snnjax.ipu.lowering.rules import reductions as reductions
from snnjax.ipu.lowering.rules import sorting as sorting
from snnjax.ipu.lowering.rules import structure as structure
from snnjax.ipu.lowering.rules.shard_map import localise, lower_main
from snnjax.ipu.lowering.types import WIDE, ArrayType
from snnjax.ipu.lowering.walk import ModuleWalk

_OPTION_PREFIX = "ipu_"
# What the lowering itself tells the executor and the profile among the options.
_FACTS = ("attempts", "note", "argument", "result")
# The attribute in which JAX names a result.
_RESULT = "jax.result_info"
# Occurs in the first bytes of a portable artifact.
_ARTIFACT, _HEAD = b"StableHLO", 64
_SPARES = "It takes less memory than the form estimated to be the fastest, which does not fit on the tiles"


def lower(program: bytes, options: bytes, attempt: int = 0) -> bytes:
    """The plan of a program, as bytes for the executor (``xla_ext/executor/README.md``).

    After so many attempts with plans that did not fit into the tiles, it is one that takes less (`rules.calls.TIGHT`),
    or no bytes if there is none.

    `program` is a StableHLO portable artifact, `options` a serialised ``xla.CompileOptionsProto``. Raises
    `Unsupported` if an IPU cannot run it, and `ValueError` if it is not a program. It is thread-safe.
    """
    if attempt > 0 and not any(target.encode() in program for target in _others(attempt)):
        return b""
    compile_options = _jax_compat.compile_options(options)
    context = _jax_compat.make_ir_context()
    with context:
        return serialise(lower_module(_read(context, program), compile_options, attempt))


def _others(attempt: int) -> Sequence[str]:
    """What a program has if it has another plan after so many attempts."""
    if attempt >= 2 * calls.PLANS_OF_A_FORM:
        return ()
    return (*calls.TIGHT, calls.NETWORK) if attempt < calls.PLANS_OF_A_FORM else calls.TIGHT[1:]


def _read(context: ir.Context, program: bytes) -> ir.Module:
    """The module in a portable artifact, or in MLIR as bytecode or text."""
    try:
        if _ARTIFACT in program[:_HEAD]:
            return _jax_compat.stablehlo.deserialize_portable_artifact(context, program)
        return ir.Module.parse(program)
    except Exception as error:
        first, *_ = str(error).splitlines()
        raise ValueError(
            f"compile: `program` must be a StableHLO module, got one that MLIR rejects: {first}. Compile with jax.jit."
        ) from error


def lower_module(module: ir.Module, compile_options: CompileOptions, attempt: int = 0) -> Plan:
    """The plan of a module, after so many attempts."""
    if compile_options.num_partitions > 1:
        partition.add_rules(module)
    walk = ModuleWalk(module, attempt)
    main = walk.functions["main"]
    builder = walk.builder
    layout = localise(walk, main, compile_options)
    _check_width("argument", layout.parameters)
    results: list[ArrayType] = []

    def body(parameters: list[int]) -> list[int]:
        values = pairs.from_host(builder, layout.parameters, parameters)
        values = lower_main(walk, main, layout, values)
        results.extend(builder.types[value] for value in values)
        return pairs.to_host(builder, values)

    block = builder.block(pairs.host_types(layout.parameters), body)
    block.instructions = builder.finish() + block.instructions
    _check_width("result", results)
    aliases, donated = donation(main, layout.parameters, results)
    finish(block, builder.types)
    types, constants = renumber(block, builder.types, builder.constants)
    return Plan(
        name=_name(module),
        num_partitions=layout.num_partitions,
        options=[
            *_options(compile_options),
            *_of_attempt(attempt),
            *_names(main),
            *(("note", note) for note in builder.notes),
        ],
        types=types,
        constants=constants,
        main=block,
        aliases=aliases,
        donated=donated,
        devices=layout.devices,
        parameter_shardings=layout.parameter_shardings,
        result_shardings=layout.result_shardings,
        complex_parameters=pairs.complex_places(layout.parameters),
        complex_results=pairs.complex_places(results),
    )


def _check_width(what: str, types: Sequence[ArrayType]) -> None:
    for position, type_ in enumerate(types):
        if type_.dtype in WIDE:
            raise Unsupported(
                f"compile: `{what} {position}` must have elements of at most 32 bits, got {type_}. "
                "Leave jax_enable_x64 off, or convert it."
            )


def finish(block: Block, types: Sequence[Any]) -> None:
    """Remove dead instructions, fuse elementwise ones, and allocate their slots."""
    drop_identities(block, {})
    prune(block, set(block.results))
    fuse(block, types)
    _write(block, types)


def _write(block: Block, types: Sequence[Any]) -> None:
    for instruction in block.instructions:
        if instruction.op == "elementwise":
            write_in_slots(instruction, types)
        for inner in instruction.blocks:
            _write(inner, types)


def _name(module: ir.Module) -> str:
    attributes = module.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else "main"


def _names(main: func.FuncOp) -> list[tuple[str, str]]:
    """Of all arguments and results in the user's code, for the profile; "" where it is not known."""
    results = attributes_of(main, "res_attrs", len(main.type.results))
    return [
        *(("argument", name_of(argument.location)) for argument in main.arguments),
        *(
            ("result", ir.StringAttr(each[_RESULT]).value if each and _RESULT in each else "")
            for each in results
        ),
    ]


def _of_attempt(attempt: int) -> list[tuple[str, str]]:
    """What the executor and the profile are told after so many attempts."""
    spared = attempt % calls.PLANS_OF_A_FORM
    return [*([("attempts", str(spared))] if spared else []), *([("note", _SPARES)] if attempt else [])]


def _options(compile_options: CompileOptions) -> list[tuple[str, str]]:
    """The options meant for the IPU, without their prefix; the executor knows their names and values."""
    options = [
        (key, str(value).lower() if isinstance(value, bool) else str(value))
        for key, value in compile_options.env_option_overrides
    ]
    for key, _ in options:
        wrong = f"compile: `compiler_options` must begin with {_OPTION_PREFIX!r}, got {key!r}. Leave it out on an IPU"
        if key.startswith("xla_"):
            raise Unsupported(f"{wrong}.")
        if not key.startswith(_OPTION_PREFIX):
            # In parentheses are XLA's words, which programs look for.
            raise ValueError(f"{wrong} (No such compile option: {key!r}).")
        if key.removeprefix(_OPTION_PREFIX) in _FACTS:
            raise ValueError(
                "compile: `compiler_options` must be among ipu_version, ipu_tiles, ipu_ipus and "
                f"ipu_half_partials, got {key}. Leave it out."
            )
    return sorted((key.removeprefix(_OPTION_PREFIX), value) for key, value in options)
