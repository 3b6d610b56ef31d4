"""The parts of JAX without a promise that make a platform known; `snnjax._jax_compat` has the others.

All are modules that ``import jax`` has loaded: `jax.extend`, which is public, would take as long as the rest of this
package together. ``tests/ipu/device/test_jax_private.py`` holds that they are there.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jax._src import callback, compilation_cache, debugging, xla_bridge
from jax._src.interpreters import mlir as _mlir
from jax._src.lax.windowed_reductions import select_and_scatter_add_p as select_and_scatter_add_p
from jaxlib import xla_client

try:
    from jax._src.random.prng import iota_2x32_shape_p as iota_2x32_shape_p  # pyright: ignore[reportMissingImports]
    from jax._src.random.threefry2x32 import threefry2x32_p as threefry2x32_p  # pyright: ignore[reportMissingImports]
except ModuleNotFoundError:  # before 0.10.2
    from jax._src.prng import iota_2x32_shape_p as iota_2x32_shape_p
    from jax._src.prng import threefry2x32_p as threefry2x32_p

# `jax.debug.callback` and `jax.debug.print`.
DEBUG_PRIMITIVES = (debugging.debug_callback_p, debugging.debug_print_p)
# `jax.pure_callback` and `jax.experimental.io_callback`, and what each does with arrays at hand.
CALLBACK_PRIMITIVES = {
    callback.pure_callback_p: callback.pure_callback_impl,
    callback.io_callback_p: callback.io_callback_impl,
}


def is_known_platform(platform: str) -> bool:
    """Whether the platform is registered."""
    return xla_bridge.is_known_platform(platform)


def register_platform(platform: str, make_client: Callable[[], Any]) -> None:
    """Let JAX make the client when it sets up its platforms, after the CPU; failures are silent."""
    xla_bridge.register_backend_factory(
        platform, make_client, priority=-10, fail_quietly=True, experimental=False
    )
    if platform not in _mlir._platforms_with_donation:
        _mlir._platforms_with_donation.append(platform)


def leave_out_of_cache(platform: str) -> None:
    """Let JAX keep no programs for several devices of a platform in `JAX_COMPILATION_CACHE_DIR`.

    jaxlib ends the process where it stores one whose plugin does not say how its results are laid out. JAX means its
    cache for other platforms, but asks only for the first program of a process.
    """
    put = compilation_cache.put_executable_and_time

    @functools.wraps(put)
    def put_unless_several(
        cache_key: str, module_name: str, executable: Any, backend: Any, compile_time: int
    ) -> None:
        if backend.platform != platform or len(executable.local_devices()) == 1:
            put(cache_key, module_name, executable, backend, compile_time)

    compilation_cache.put_executable_and_time = put_unless_several


def register_lowering(primitive: Any, rule: Callable[..., Any], platform: str) -> None:
    """Register a lowering rule for a primitive on a registered platform."""
    _mlir.register_lowering(primitive, rule, platform=platform)


def primitives_of_others(platform: str) -> list[Any]:
    """The primitives that other platforms can lower and this one cannot."""
    rules = _mlir._platform_specific_lowerings
    known = {*_mlir._lowerings, *rules.get(platform, ())}
    return list({each: None for others in rules.values() for each in others if each not in known})


def make_client(platform: str, library: Path, options: Mapping[str, str | int]) -> Any:
    """A client of the plugin in a library, which is loaded once."""
    if not xla_client.pjrt_plugin_loaded(platform):
        xla_client.load_pjrt_plugin_dynamically(platform, str(library))
    if not xla_client.pjrt_plugin_initialized(platform):
        xla_client.initialize_pjrt_plugin(platform)
    return xla_client.make_c_api_client(platform, dict(options), None)
