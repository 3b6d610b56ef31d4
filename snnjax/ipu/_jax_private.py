"""The one module that uses parts of JAX without a promise: a new version of JAX is adapted to here.

``tests/ipu/test_jax_private.py`` holds that they are there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jax._src import debugging, effects, xla_bridge
from jax._src.interpreters import mlir as _mlir
from jax._src.random.prng import iota_2x32_shape_p as iota_2x32_shape_p
from jax.extend import backend as _backend
from jax.extend.core.primitives import threefry2x32_p as threefry2x32_p
from jax.extend.mlir import ir as ir
from jax.extend.mlir.dialects import sdy as sdy
from jax.extend.mlir.dialects import stablehlo as stablehlo
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from jaxlib import xla_client


def is_known_platform(platform: str) -> bool:
    """Whether somebody has registered the platform."""
    return xla_bridge.is_known_platform(platform)


def register_platform(platform: str, make_client: Callable[[], Any]) -> None:
    """Let JAX make the client when it sets up its platforms; behind the CPU, and quietly where that fails."""
    _backend.register_backend_factory(
        platform, make_client, priority=-10, fail_quietly=True, experimental=False
    )
    if platform not in _mlir._platforms_with_donation:
        _mlir._platforms_with_donation.append(platform)


def make_client(platform: str, library: Path, options: Mapping[str, str | int]) -> Any:
    """A client of the plugin in a library, which is loaded once."""
    if not xla_client.pjrt_plugin_loaded(platform):
        xla_client.load_pjrt_plugin_dynamically(platform, str(library))
    if not xla_client.pjrt_plugin_initialized(platform):
        xla_client.initialize_pjrt_plugin(platform)
    return xla_client.make_c_api_client(platform, dict(options), None)


def make_ir_context() -> Any:
    """A context of MLIR that knows all dialects of JAX."""
    return _mlir.make_ir_context()


def compile_options(serialised: bytes) -> Any:
    """An ``xla.CompileOptionsProto``, read."""
    return xla_client.CompileOptions.ParseFromString(serialised)


# `jax.debug.callback` and `jax.debug.print`.
DEBUG_PRIMITIVES = (debugging.debug_callback_p, debugging.debug_print_p)


def is_ordered(effect: Any) -> bool:
    """Whether what has this effect happens in the order of the program, over several programs."""
    return effect is not None and effects.ordered_effects.contains(effect)


def register_lowering(primitive: Any, rule: Callable[..., Any], platform: str) -> None:
    """Let JAX lower a primitive by a rule of its own on a platform that it knows."""
    _mlir.register_lowering(primitive, rule, platform=platform)


def primitives_of_others(platform: str) -> list[Any]:
    """The primitives that other platforms know how to lower, and this one does not."""
    rules = _mlir._platform_specific_lowerings
    known = {*_mlir._lowerings, *rules.get(platform, ())}
    return list({each: None for others in rules.values() for each in others if each not in known})


def lower_function(function: Callable[..., Any], context: Any) -> Any:
    """A function of no arguments in the words of `jax.numpy`, as the results of a rule."""
    return _mlir.lower_fun(function, multiple_results=True)(context)


def device_ids(compile_options: Any) -> list[int]:
    """The devices of a program, by partition; empty where the options do not say."""
    assignment = compile_options.device_assignment
    if assignment is None:
        return []
    # ``DeviceAssignment{replica_count=1, computation_count=2, Computation0{0} Computation1{1}}``
    return [int(device) for device in re.findall(r"Computation\d+\{(\d+)\}", repr(assignment))]


def op_sharding(
    mesh: Sequence[tuple[str, int]],
    axes: Sequence[tuple[str, ...]],
    rank: int,
    unreduced: frozenset[str] = frozenset(),
) -> bytes:
    """An ``xla.OpSharding``: the axes of the mesh over which each dimension is spread; of no mesh, everywhere.

    Over `unreduced` axes the sum is still to be taken.
    """
    if not mesh:
        return xla_client.HloSharding.replicate().to_proto().SerializeToString()
    names, sizes = zip(*mesh, strict=True)
    abstract = AbstractMesh(sizes, names, axis_types=(AxisType.Explicit,) * len(names))
    spec = PartitionSpec(*(each or None for each in axes), unreduced=unreduced)
    sharding = NamedSharding(abstract, spec)
    return sharding._to_xla_hlo_sharding(rank).to_proto().SerializeToString()
