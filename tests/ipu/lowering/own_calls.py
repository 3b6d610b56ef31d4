"""The library's own ops in an interpreted plan: the CPU's handlers, called with the attributes that the plan holds."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import _targets
from snnjax.ipu.lowering._types import numpy_dtype


def attribute(text: str) -> tuple[str, Any]:
    """``layers:s64=1,0`` -> ("layers", array([1, 0])); one number is a scalar unless the handler reads an array."""
    name, _, rest = text.partition(":")
    dtype, _, value = rest.partition("=")
    if dtype == "string":
        return name, value
    if dtype == "bool":
        return name, {"true": True, "false": False}[value]
    numbers = np.array([float(n) if dtype.startswith("f") else int(n) for n in value.split(",") if n])
    array = numbers.astype(numpy_dtype(dtype))
    is_array = name in ("layers", "slopes", "needs")
    return name, array if is_array else array[0]


def call(target: str, arrays: list[np.ndarray], types: list[Any], attributes: list[str]) -> list[np.ndarray]:
    """What the CPU's handler yields."""
    assert _targets.missing() is None
    results = [jax.ShapeDtypeStruct(type_.shape, numpy_dtype(type_.dtype)) for type_ in types]
    with jax.default_device(jax.devices("cpu")[0]):
        called = _targets.call(
            target, list(map(jnp.asarray, arrays)), results, **dict(map(attribute, attributes))
        )
    return [np.asarray(array) for array in called]


CALLS = {
    target: (lambda arrays, types, attributes, target=target: call(target, arrays, types, attributes))
    for target in _targets.TARGETS
}
