"""Programs as PJRT hands them over, without a device."""

from collections.abc import Callable
from typing import Any

import jax
from jax._src.lib import _jax
from jax.interpreters import mlir
from jaxlib import xla_client

import snnjax.ipu  # noqa: F401  (JAX lowers for the platform once it knows it)

# What the plugin asks for.
VERSION = "1.13.0"


def artifact(function: Callable[..., Any], *arguments, **jit_options) -> bytes:
    """The StableHLO portable artifact of a jitted function."""
    traced = jax.jit(function, **jit_options).trace(*arguments)
    module = traced.lower(lowering_platforms=("ipu",)).compiler_ir("stablehlo")
    return _jax.mlir.serialize_portable_artifact(mlir.module_to_bytecode(module), VERSION)


def options(overrides: dict[str, Any] | None = None) -> bytes:
    """Compile options as JAX serialises them."""
    compile_options = xla_client.CompileOptions()
    compile_options.env_option_overrides = list((overrides or {}).items())
    return compile_options.SerializeAsString()
