"""How JAX lowers some of its primitives for the platform: by `snnjax.ipu.lowering`, imported when it does."""

from typing import Any

from snnjax_jax_plugin import _jax_private as private


def register(platform: str) -> None:
    """Register the rules of a platform that JAX knows."""
    private.register_lowering(private.threefry2x32_p, _lower_threefry, platform)
    private.register_lowering(private.iota_2x32_shape_p, _lower_counters, platform)
    for primitive in private.DEBUG_PRIMITIVES:
        private.register_lowering(primitive, _debug_rule(primitive), platform)
    for primitive, implementation in private.CALLBACK_PRIMITIVES.items():
        private.register_lowering(primitive, _callback_rule(primitive.name, implementation), platform)
    for primitive in private.LINEAR_ALGEBRA_PRIMITIVES:
        private.register_lowering(primitive, _linear_algebra_rule(primitive), platform)
    private.register_lowering(private.select_and_scatter_add_p, _lower_pooling, platform)
    for primitive in private.primitives_of_others(platform):  # eig and its like, to be refused
        rule = _lower_check if primitive.name == "check" else _refusal(primitive)
        private.register_lowering(primitive, rule, platform)


def _lower_threefry(context: Any, *operands: Any) -> Any:
    from snnjax.ipu import lowering

    return lowering.lower_threefry(context, *operands)


def _lower_counters(context: Any, **parameters: Any) -> Any:
    from snnjax.ipu import lowering

    return lowering.lower_counters(context, **parameters)


def _lower_check(context: Any, *_: Any, **parameters: Any) -> list[Any]:
    from snnjax.ipu import lowering

    return lowering.lower_check(**parameters)


def _refusal(primitive: Any) -> Any:
    def lower_unknown(context: Any, *operands: Any, **_: Any) -> Any:
        from snnjax.ipu import lowering

        return lowering.lower_unknown(primitive, context, *operands)

    return lower_unknown


def _lower_pooling(context: Any, *operands: Any, **parameters: Any) -> Any:
    from snnjax.ipu import lowering

    return lowering.lower_pooling(private.select_and_scatter_add_p, context, *operands, **parameters)


def _linear_algebra_rule(primitive: Any) -> Any:
    def lower_linear_algebra(context: Any, *operands: Any, **parameters: Any) -> Any:
        from snnjax.ipu import lowering

        return lowering.lower_linear_algebra(primitive, context, *operands, **parameters)

    return lower_linear_algebra


def _callback_rule(name: str, implementation: Any) -> Any:
    def lower_callback(context: Any, *operands: Any, **parameters: Any) -> list[Any]:
        from snnjax.ipu import lowering

        return lowering.lower_callback(name, implementation, context, *operands, **parameters)

    return lower_callback


def _debug_rule(primitive: Any) -> Any:
    def lower_debug(context: Any, *operands: Any, **parameters: Any) -> list[Any]:
        from snnjax.ipu import lowering

        return lowering.lower_debug(primitive, context, *operands, **parameters)

    return lower_debug
