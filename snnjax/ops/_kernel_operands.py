"""What calls of compiled kernels share: arrays and static values by the names of a table, and supported dtypes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from snnjax import _targets
from snnjax._neuron_table import SURROGATES
from snnjax.surrogates import Surrogate


def dtype_obstacle(what: str, array: Any) -> str | None:
    """Why kernels do not support an array, or None: they compute in float32, from float32 or bfloat16."""
    return None if array.dtype in (jnp.float32, jnp.bfloat16) else f"{array.dtype.name} {what}"


def obstacle_of(what: str, array: Any, surrogate: Surrogate) -> str | None:
    """Why a kernel with neurons does not support a dtype or a surrogate, or None."""
    return surrogate.obstacle or dtype_obstacle(what, array)


def call_kernel(
    target: str,
    operands: PyTree,
    results: Mapping[str, Any],
    *static: Sequence[Any],
    aliases: Mapping[str, str] | None = None,
) -> dict[str, Array]:
    """The results of a target by name.

    `operands` is a record of the op's table, `results` are shapes by name. `static` are its records of static values,
    each a sequence with one for each layer, or with only one. `aliases` gives, by operand, the result that may be
    written over it.
    """
    arrays, places = named(operands), {name: place for place, name in enumerate(results)}
    columns = {name: column for rows in static for name, column in _columns(rows).items()}
    called = _targets.call(
        target,
        list(arrays.values()),
        list(results.values()),
        {place: places[aliases[name]] for place, name in enumerate(arrays) if aliases and name in aliases},
        schema=_targets.schema(),
        operand_names=" ".join(arrays),
        result_names=" ".join(results),
        **columns,
    )
    return dict(zip(results, called, strict=True))


def call_by_records(
    target: str,
    operands: PyTree,
    results: PyTree,
    *static: Sequence[Any],
    aliases: Mapping[str, str] | None = None,
) -> list[Array]:
    """The same for results that are a record of shapes, in its order."""
    return list(call_kernel(target, operands, named(results), *static, aliases=aliases).values())


def named(record: PyTree) -> dict[str, Any]:
    """The arrays of a record by their names in the table: ``linears.weights[0]``."""
    paths, _ = jax.tree.flatten_with_path(record)
    return {_name(path): leaf for path, leaf in paths}


def _name(path: Sequence[Any]) -> str:
    fields = [key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey)]
    layers = [f"[{key.idx}]" for key in path if isinstance(key, jax.tree_util.SequenceKey)]
    return ".".join(fields) + "".join(layers)


def _columns(rows: Sequence[Any]) -> dict[str, np.ndarray]:
    """Records of static values by field."""
    kinds = type(rows[0]).__annotations__
    return {
        name: np.array([getattr(row, name) for row in rows], np.float32 if kind is float else np.int64)
        for name, kind in kinds.items()
    }


def surrogate_numbers(surrogate: Surrogate) -> dict[str, Any]:
    """The static values of a surrogate in every table; `reach` is 0 if the derivative does not end."""
    return {
        "surrogate": SURROGATES.index(surrogate.name),
        "slope": surrogate.slope,
        "reach": 0.0 if math.isinf(surrogate.reach) else surrogate.reach,
    }
