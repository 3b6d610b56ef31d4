"""A function on the modelled IPU, compared with the same function on the CPU, and its plan."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

from snnjax.ipu.device import library
from snnjax.ipu.lowering import lower
from snnjax.ipu.lowering.plan import Plan
from tests.ipu.lowering.artifacts import artifact, options
from tests.ipu.lowering.reader import read


def plan_of(function: Callable[..., Any], *arguments, **jit_options) -> Plan:
    """The plan that the executor would read."""
    return read(lower(artifact(function, *arguments, **jit_options), options()))


def flat(tree) -> list[np.ndarray]:
    """The leaves of a tree as arrays, keys by their data."""
    leaves = [
        jax.random.key_data(leaf)
        if jax.dtypes.issubdtype(jax.typeof(leaf).dtype, jax.dtypes.prng_key)
        else leaf
        for leaf in jax.tree.leaves(tree)
    ]
    return [np.asarray(leaf) for leaf in leaves]


def ipus(count: int) -> list[jax.Device]:
    """Some of those that tests/conftest.py sets up; skips where the library is missing."""
    if sentence := library.missing():
        pytest.skip(sentence)
    return jax.devices("ipu")[:count]


def on_ipu(function: Callable[..., Any], *arguments) -> list[np.ndarray]:
    """The leaves of the results on a modelled IPU."""
    with jax.default_device(ipus(1)[0]):
        return flat(jax.jit(function)(*arguments))


def check(function: Callable[..., Any], *arguments, rtol: float = 2e-6, atol: float = 1e-6) -> None:
    """The IPU computes what the CPU does: integers bit for bit, others within the tolerance, NaN and inf alike."""
    equal(on_ipu(function, *arguments), jax.jit(function)(*arguments), rtol, atol)


def equal(results: list[np.ndarray], tree, rtol: float = 2e-6, atol: float = 1e-6) -> None:
    """Results are the leaves of a tree, whose path names those that are not."""
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    for path, result, value in zip(paths, results, flat(tree), strict=True):
        assert (result.dtype, result.shape) == (value.dtype, value.shape), path
        if value.dtype.kind in "iub":
            np.testing.assert_array_equal(result, value, err_msg=path)
        else:
            loose = _LOOSE.get(value.dtype.name, 1.0)
            pair = result.astype(np.float64), value.astype(np.float64)
            np.testing.assert_allclose(*pair, rtol * loose, atol * loose, err_msg=path)


# How much coarser than float32 a dtype is.
_LOOSE = {"float16": 2.0**13, "bfloat16": 2.0**16}
