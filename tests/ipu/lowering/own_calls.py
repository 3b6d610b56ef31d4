"""The library's own ops in an interpreted plan, called with the attributes that the plan holds.

The CPU's handlers, and the reference of `lif_step`, which has none.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import Surrogate, _targets, lif_step
from snnjax._types import RESET_TIMES, RESETS, SURROGATES
from snnjax.ipu.lowering.types import numpy_dtype
from snnjax.ops._tables.lif_step import StepNumbers


def attribute(text: str) -> tuple[str, Any]:
    """``reset:s64=1,0`` -> ("reset", array([1, 0]))."""
    name, _, rest = text.partition(":")
    dtype, _, value = rest.partition("=")
    if dtype == "string":
        return name, value
    numbers = np.array([float(n) if dtype.startswith("f") else int(n) for n in value.split(",") if n])
    return name, numbers.astype(numpy_dtype(dtype))


def call(target: str, arrays: list[np.ndarray], types: list[Any], attributes: list[str]) -> list[np.ndarray]:
    """What the CPU's handler yields."""
    assert _targets.missing() is None
    results = [jax.ShapeDtypeStruct(type_.shape, numpy_dtype(type_.dtype)) for type_ in types]
    with jax.default_device(jax.devices("cpu")[0]):
        given = dict(attribute(text) for text in attributes)
        called = _targets.call(target, list(map(jnp.asarray, arrays)), results, **given)
    return [np.asarray(array) for array in called]


def step(is_backward: bool, arrays: list[np.ndarray], attributes: list[str]) -> list[np.ndarray]:
    """What `lif_step` yields, or its backward pass: all arrays have a leading groups axis of length 1."""
    given = {name: value for name, value in map(attribute, attributes) if isinstance(value, np.ndarray)}
    (numbers,) = zip(*(given[name].tolist() for name in StepNumbers._fields), strict=True)
    own = StepNumbers(*numbers)
    options = {
        "surrogate": Surrogate(SURROGATES[own.surrogate], own.slope),
        "reset": RESETS[own.reset],
        "detach_reset": bool(own.detach_reset),
        "reset_time": RESET_TIMES[own.reset_time],
        "spike_from": "old" if own.takes_old_spikes else "new",
        "inclusive": bool(own.inclusive),
        "implementation": "reference",
    }
    inputs = [jnp.asarray(array[0]) for array in arrays[:5]]
    with jax.default_device(jax.devices("cpu")[0]):
        results, pull_back = jax.vjp(functools.partial(lif_step, **options), *inputs)
        results = pull_back(tuple(jnp.asarray(array[0]) for array in arrays[5:])) if is_backward else results
    return [np.asarray(result)[None] for result in results]


CALLS = {
    target: (lambda arrays, types, attributes, target=target: call(target, arrays, types, attributes))
    for target in _targets.TARGETS
} | {
    "snnjax_lif_step": lambda arrays, types, attributes: step(False, arrays, attributes),
    "snnjax_lif_step_backward": lambda arrays, types, attributes: step(True, arrays, attributes),
}
