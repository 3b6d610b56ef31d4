"""Programs as PJRT hands them over, without a device."""

from collections.abc import Callable
from typing import Any

import jax
from jax._src.lib import _jax
from jax.extend import backend
from jax.interpreters import mlir
from jaxlib import xla_client

from snnjax.ipu import _jax_private as private
from snnjax.ipu.lowering import register_rules

# What the plugin asks for.
VERSION = "1.13.0"


def _no_client() -> Any:
    raise RuntimeError("only lowered for")


def ensure_platform() -> None:
    """Lets JAX lower for platform ipu, without a client where nobody has registered one."""
    if not private.is_known_platform("ipu"):
        backend.register_backend_factory("ipu", _no_client, priority=-100, fail_quietly=True)
    register_rules()


def artifact(function: Callable[..., Any], *arguments: Any, **jit_options: Any) -> bytes:
    """The StableHLO portable artifact of a jitted function."""
    ensure_platform()
    traced = jax.jit(function, **jit_options).trace(*arguments)
    module = traced.lower(lowering_platforms=("ipu",)).compiler_ir("stablehlo")
    return _jax.mlir.serialize_portable_artifact(mlir.module_to_bytecode(module), VERSION)


def options(overrides: dict[str, str] | None = None) -> bytes:
    """Compile options as JAX serialises them."""
    compile_options = xla_client.CompileOptions()
    compile_options.env_option_overrides = list((overrides or {}).items())
    return compile_options.SerializeAsString()
