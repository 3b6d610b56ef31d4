"""Which kernels platforms other than the CPU have: each platform says so itself.

GPUs of all vendors are one family, whose kernels are in the tables of the ops, as those of the CPU are.

A package adds a platform to JAX with a ``jax_plugins`` entry point named after the platform. If the module of the entry
point has a function `snnjax_kernel`, that takes a `snnjax._dispatch.Target` and returns its `Kernel` or None. Targets
without a kernel, and all on other platforms, run on their references; `snnjax_reference` returns another form of them.
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


def kernel(platform: str, target: object) -> Any:
    """The platform's kernel of a target, or None."""
    find = _function_of(platform, "snnjax_kernel")
    return None if find is None else find(target)


def reference(platform: str, target: object) -> Any:
    """The platform's own form of the reference of a target, or None."""
    find = _function_of(platform, "snnjax_reference")
    return None if find is None else find(target)


def note() -> str | None:
    """What the package of the default device's platform says of kernels there, or None; it starts no backend."""
    config: Any = jax.config  # its attributes are made when JAX is imported
    device = config.jax_default_device
    name = device if isinstance(device, str) else getattr(device, "platform", None)
    say = _function_of(name or (config.jax_platforms or "cpu").split(",")[0], "snnjax_note")
    return None if say is None else say()


@functools.cache
def _function_of(platform: str, name: str) -> Callable[..., Any] | None:
    """A function of the platform's package, looked up when it is first needed."""
    for entry_point in metadata.entry_points(group="jax_plugins", name=platform):
        found = getattr(entry_point.load(), name, None)
        if found is not None:
            return found
    return None
