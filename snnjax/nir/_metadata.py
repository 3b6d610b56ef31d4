"""What NIR cannot express about our networks, stored as metadata, so that a network is restored unchanged.

A node holds JSON text under the key `snnjax`, and exact parameters as arrays under separate keys. Another library may
change the node but not the metadata: an array is only used if it still agrees with the node.
"""

import json
from typing import Any

import numpy as np

from snnjax.nir._check import refuse

_KEY = "snnjax"


def written(facts: dict[str, Any], **arrays: Any) -> dict[str, Any]:
    """The metadata of a node, without arrays that are None; numbers become arrays with one element."""
    kept = {key: np.atleast_1d(np.asarray(value)) for key, value in arrays.items() if value is not None}
    return {_KEY: json.dumps(facts), **kept}


def facts_of(name: str, node: Any) -> dict[str, Any]:
    """The facts that `to_nir` wrote about a node, empty if another library wrote it."""
    metadata = node.metadata if isinstance(node.metadata, dict) else {}
    text = metadata.get(_KEY)
    if text is None:
        return {}
    try:
        facts = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        hint = f"Remove metadata[{_KEY!r}] of this node"
        refuse(f"hold what to_nir wrote in the metadata of {name}", repr(text)[:60], hint)
    return facts


def array_of(node: Any, key: str) -> np.ndarray | None:
    """An array in the metadata that `to_nir` wrote; None if it is missing or not finite."""
    value = node.metadata.get(key) if isinstance(node.metadata, dict) else None
    if value is None:
        return None
    array = np.asarray(value)
    return array if array.dtype.kind in "fiub" and np.isfinite(array).all() else None
