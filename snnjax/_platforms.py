"""Which ops platforms other than the CPU support: each platform says so itself; none is named here.

A package adds a platform to JAX with a ``jax_plugins`` entry point named after the platform. If the module of the entry
point has a function `snnjax_obstacle`, that returns an `Obstacle`, and supported targets reach the platform's compiler
as custom calls with the target's name and the operands of the CPU kernel for one group. Ops that a platform does not
support, and all ops on other platforms, run on their references.
"""

import functools
from collections.abc import Callable
from importlib import metadata
from typing import Any

# (target, shapes, static) -> what the platform does not support, for instance "bfloat16 weights", or None. Shapes are
# trees of shapes and dtypes like the reference's operands, each with a leading groups axis.
Obstacle = Callable[[str, Any, Any], str | None]


def takes(platform: str, target: str, shapes: Any, static: Any) -> bool:
    """Whether the platform's compiler supports the target for operands of these shapes."""
    obstacle = _obstacle_of(platform)
    return obstacle is not None and obstacle(target, shapes, static) is None


@functools.cache
def _obstacle_of(platform: str) -> Obstacle | None:
    """The `Obstacle` of the platform's package, looked up when an op is first lowered for it."""
    for entry_point in metadata.entry_points(group="jax_plugins", name=platform):
        say = getattr(entry_point.load(), "snnjax_obstacle", None)
        if say is not None:
            return say()
    return None
