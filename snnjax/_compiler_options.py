"""Options of XLA's compiler that make programs faster."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from snnjax._arguments import explained
from snnjax._check import fail, short_repr

# glibc maps a block above 32 MiB anew in every call, and the system clears its pages. Smaller ones stay in the process,
# by chance at first, and always once a kernel has written a large result (`keepHeap` in xla_ext/cpu/system.hpp). XLA
# divides the temporaries of a program into blocks of at most this many bytes.
_LARGEST_BLOCK = {"xla_multiheap_size_constraint_per_heap": 24 * 2**20}


@explained
def compiler_options(device: Any = None) -> dict[str, int]:
    """The options that make a program for a device faster, for `jax.jit`; ``{}`` where there are none.

    On the CPU they divide the memory of temporary arrays into blocks that the process keeps from call to call, as soon
    as a kernel has written a large result. Without them a program takes that memory from the system in each call, which
    has to clear it first. Results stay the same, and options that the installed JAX does not know are left out. Give
    them to the outermost `jax.jit`: JAX refuses options of a function that is called by another traced function.
    `train.fit` passes them by itself. For single arrays above 24 MiB XLA logs a warning when it compiles, unless
    ``TF_CPP_MIN_LOG_LEVEL=2`` is in the environment. With arrays of 32 MiB and more, such as the currents of 64
    channels of 32 x 32 pixels in 4 steps of 32 samples, leave the options out: they gain no time there, and temporary
    arrays take up to a third more memory.

    Args:
        device: where the program will run; None is JAX's default device.

    Raises:
        ValueError: if `device` is not a device.

    Example:
        >>> import jax
        >>> import snnjax
        >>> step = jax.jit(lambda x: 2 * x, compiler_options=snnjax.compiler_options())
        >>> float(step(3.0))
        6.0
    """
    if device is not None and not isinstance(device, jax.Device):
        hint = "Pass one of jax.devices(), or None"
        fail(f"compiler_options: `device` must be a device of JAX, got {short_repr(device)}. {hint}.")
    return dict(_LARGEST_BLOCK) if _platform(device) == "cpu" and _is_known() else {}


def _platform(device: Any) -> str:
    if device is not None:
        return device.platform
    with jax.ensure_compile_time_eval():  # also while JAX traces a program
        (default,) = jnp.zeros(()).devices()
    return default.platform


@functools.cache
def _is_known() -> bool:
    """Whether the installed compiler takes the option: it refuses those that it does not know."""
    cpu = jax.local_devices(backend="cpu")[0]
    try:
        with jax.default_device(cpu):
            jax.jit(lambda: 0, compiler_options=_LARGEST_BLOCK).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True
