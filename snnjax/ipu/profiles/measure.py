"""Profiles of programs that JAX compiled for the IPU."""

from collections.abc import Callable
from typing import Any

import jax

from snnjax._check import fail, type_words
from snnjax.ipu.device import PLATFORM, library
from snnjax.ipu.profiles.profile import Profile


def profile(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Profile:
    """Compile a function for the IPU, run it once, and report what that run would have cost; its result is dropped.

    Arguments are moved to the first IPU, or copied if they are on IPUs already: the run includes their transfer to the
    tiles, and none of them is donated. For one step among many see `read_profile`.

    Args:
        function: anything that `jax.jit` accepts or returns.
        args: positional arguments of the function.
        kwargs: keyword arguments of the function.

    Raises:
        RuntimeError: if there is no IPU, or the program does not fit.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.ipu import profile
        >>> report = profile(lambda x: 2 * x + 1, jnp.arange(8.0))
        >>> report.phases.compute > 0, report.phases.host > 0
        (True, True)
    """
    jitted: Any = function if hasattr(function, "lower") else jax.jit(function)
    args, kwargs = jax.tree.map(_on_ipu, (args, kwargs))
    with jax.default_device(jax.devices(PLATFORM)[0]):
        compiled = jitted.lower(*args, **kwargs).compile()
    read_profile(compiled, reset=True)  # it may have run before
    jax.block_until_ready(compiled(*args, **kwargs))
    return read_profile(compiled)


def read_profile(compiled: Any, *, reset: bool = False) -> Profile:
    """Report the cost of all runs (`Profile.runs`) of a compiled program since it was compiled or last reset.

    JAX compiles once for arguments of the same shapes and dtypes: after some calls of ``step = jax.jit(...)``,
    ``step.lower(...).compile()`` is the program that has run.

    Args:
        compiled: ``jax.jit(function).lower(...).compile()`` for the IPU.
        reset: restart the count from 0 afterwards.

    Raises:
        ValueError: if it is not a compiled program, or one for another platform.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax.ipu import read_profile
        >>> x = jax.device_put(jnp.arange(8.0), jax.devices("ipu")[0])
        >>> double = jax.jit(lambda x: 2 * x).lower(x).compile()
        >>> double(x).tolist()[:3]
        [0.0, 2.0, 4.0]
        >>> read_profile(double, reset=True).cycles > 0, read_profile(double).cycles
        (True, 0)
    """
    if not hasattr(compiled, "runtime_executable"):
        hint = "Pass jax.jit(function).lower(...).compile()"
        fail(f"read_profile: `compiled` must be a compiled program, got {type_words(compiled)}. {hint}.")
    executable = compiled.runtime_executable()
    platform = executable.local_devices()[0].platform
    if platform != PLATFORM:
        hint = 'Place its arguments on jax.devices("ipu")'
        fail(f"read_profile: `compiled` must be a program for the IPU, got one for {platform}. {hint}.")
    fingerprint = executable.fingerprint
    name = fingerprint.decode() if isinstance(fingerprint, bytes) else fingerprint
    return Profile(library.profile_of(name, reset=reset))


def _on_ipu(leaf: Any) -> Any:
    """A copy that can be donated."""
    if not isinstance(leaf, jax.Array):
        return leaf
    if any(device.platform != PLATFORM for device in leaf.devices()):
        return jax.device_put(leaf, jax.devices(PLATFORM)[0])
    return leaf.copy()
