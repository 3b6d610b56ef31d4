"""Which kernels platforms other than the CPU have: each platform says so itself; none is named here.

A package adds a platform to JAX with a ``jax_plugins`` entry point named after the platform. If the module of the entry
point has a function `snnjax_kernel`, that takes a `snnjax._dispatch.Target` and returns its `Kernel` or None. Targets
without a kernel, and all on other platforms, run on their references.
"""

import functools
from collections.abc import Callable
from importlib import metadata
from typing import Any


def kernel(platform: str, target: Any) -> Any:
    """The platform's kernel of a target, or None."""
    find = _kernels_of(platform)
    return None if find is None else find(target)


@functools.cache
def _kernels_of(platform: str) -> Callable[[Any], Any] | None:
    """What the platform's package says, looked up when an op is first lowered for it."""
    for entry_point in metadata.entry_points(group="jax_plugins", name=platform):
        find = getattr(entry_point.load(), "snnjax_kernel", None)
        if find is not None:
            return find
    return None
