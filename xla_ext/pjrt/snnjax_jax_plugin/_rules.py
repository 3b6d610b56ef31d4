"""How JAX lowers some of its primitives for the platform: by rules of snnjax, imported when the first is lowered."""

import functools
from typing import Any

from snnjax_jax_plugin import _jax_private as private


def register(platform: str) -> None:
    """Register the rules of a platform that JAX knows."""
    rules = {
        private.threefry2x32_p: "lower_threefry",
        private.iota_2x32_shape_p: "lower_counters",
        private.select_and_scatter_add_p: "lower_pooling",
        **dict.fromkeys(private.DEBUG_PRIMITIVES, "lower_debug"),
    }
    for primitive, name in rules.items():
        private.register_lowering(primitive, functools.partial(_lower, name, primitive), platform)
    for primitive, implementation in private.CALLBACK_PRIMITIVES.items():
        rule = functools.partial(_lower, "lower_callback", primitive, implementation=implementation)
        private.register_lowering(primitive, rule, platform)
    for primitive in private.primitives_of_others(platform):  # eig and its like, to be refused
        name = "lower_check" if primitive.name == "check" else "lower_unknown"
        private.register_lowering(primitive, functools.partial(_lower, name, primitive), platform)


def _lower(name: str, primitive: Any, context: Any, *operands: Any, **parameters: Any) -> Any:
    from snnjax.ipu.lowering.rules import primitives

    return getattr(primitives, name)(primitive, context, *operands, **parameters)
