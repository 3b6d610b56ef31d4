"""Which kernels platforms other than the CPU have: each platform says so itself.

GPUs of all vendors are one family, whose kernels are in the tables of the ops, as those of the CPU are.

A package adds a platform to JAX with a ``jax_plugins`` entry point named after the platform. If the module of the entry
point has a function `snnjax_kernel`, that takes a `snnjax._dispatch.Target` and returns its `Kernel` or None. Targets
without a kernel, and all on other platforms, run on their references.
"""

import functools
from collections.abc import Callable
from importlib import metadata
from typing import Any

import jax

_GPUS = ("cuda", "rocm")


def family(platform: str) -> str:
    """The name under which the tables of the ops have what is for a platform: "gpu", or its own."""
    return "gpu" if platform in _GPUS else platform


def is_hopper(platform: str) -> bool:
    """Whether the machine has devices of the platform, and all are GPUs of compute capability 9.0."""
    if platform != "cuda":
        return False
    try:
        devices = jax.devices(platform)
    except RuntimeError:  # a program for other machines
        return False
    return all(getattr(device, "compute_capability", None) == "9.0" for device in devices)


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
