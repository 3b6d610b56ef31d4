"""What platforms beside the CPU take of the ops: each says so itself, and the library names none of them.

A package brings a platform to JAX by the entry point ``jax_plugins`` of the platform's name. Where the module named
there has a function `snnjax_obstacle`, it yields an `Obstacle`, and what that takes arrives at the platform's compiler
as a custom call of the target's name, with the operands of the CPU's kernel for one group. An op that a platform does
not know, and any op on a platform of which nothing is known, runs on its reference there.
"""

import functools
from collections.abc import Callable
from importlib import metadata
from typing import Any

# (target, shapes, static) -> what the platform cannot take, for instance "bfloat16 weights", or None. Shapes are trees
# of shapes and dtypes as the reference takes operands, each with a leading groups axis.
Obstacle = Callable[[str, Any, Any], str | None]


def takes(platform: str, target: str, shapes: Any, static: Any) -> bool:
    """Whether the compiler of the platform knows the target, and can take operands of these shapes."""
    obstacle = _obstacle_of(platform)
    return obstacle is not None and obstacle(target, shapes, static) is None


@functools.cache
def _obstacle_of(platform: str) -> Obstacle | None:
    """What the platform's package says; asked for when an op is first lowered for it."""
    for entry_point in metadata.entry_points(group="jax_plugins", name=platform):
        say = getattr(entry_point.load(), "snnjax_obstacle", None)
        if say is not None:
            return say()
    return None
