"""A function lowered and interpreted, beside the same function on the CPU."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from snnjax.ipu.lowering import lower
from snnjax.ipu.lowering._plan import Plan
from tests.ipu.lowering.artifacts import artifact, options
from tests.ipu.lowering.interpreter import Interpreter
from tests.ipu.lowering.own_calls import CALLS
from tests.ipu.lowering.reader import read


def plan_of(function: Callable[..., Any], *arguments: Any, **jit_options: Any) -> Plan:
    """The plan that the executor would read."""
    return read(lower(artifact(function, *arguments, **jit_options), options()))


def flat(tree: Any) -> list[np.ndarray]:
    """The leaves of a tree as arrays, keys by their data."""
    leaves = [
        jax.random.key_data(leaf) if jax.dtypes.issubdtype(jax.typeof(leaf).dtype, jax.dtypes.prng_key) else leaf
        for leaf in jax.tree.leaves(tree)
    ]
    return [np.asarray(leaf) for leaf in leaves]


def interpreted(function: Callable[..., Any], *arguments: Any) -> list[np.ndarray]:
    """The leaves of the results, from the plan; arguments that the program does not use are dropped by JAX."""
    plan = plan_of(function, *arguments, keep_unused=True)
    return Interpreter(plan, CALLS).run([flat(arguments)])[0]


def check(function: Callable[..., Any], *arguments: Any, rtol: float = 2e-6, atol: float = 1e-6) -> None:
    """The plan computes what the CPU does: integers to the bit, others within the tolerance, NaN and inf alike."""
    results = interpreted(function, *arguments)
    expected = flat(jax.jit(function)(*arguments))
    for position, (result, value) in enumerate(zip(results, expected, strict=True)):
        assert (result.dtype, result.shape) == (value.dtype, value.shape), position
        if value.dtype.kind in "iub":
            np.testing.assert_array_equal(result, value, err_msg=f"result {position}")
        else:
            loose = {2: 100.0}.get(value.dtype.itemsize, 1.0) if rtol else 1.0
            loose *= 8.0 if value.dtype.name == "bfloat16" else 1.0
            np.testing.assert_allclose(
                result.astype(np.float64), value.astype(np.float64), rtol * loose * 10 if loose > 1 else rtol,
                atol * loose, err_msg=f"result {position}",
            )  # fmt: skip
