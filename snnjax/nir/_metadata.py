"""What networks here know and NIR does not say: kept beside it, so that a network comes back as it was.

A node holds it under the key `snnjax`, a text in JSON, and exact parameters as arrays under keys of their own. Another
library may change the node and leave the metadata: an array counts only where it still gives what the node says.
"""

import json
from typing import Any

import numpy as np

from snnjax.nir._check import refuse

_KEY = "snnjax"


def written(facts: dict[str, Any], **arrays: Any) -> dict[str, Any]:
    """The metadata of a node; arrays that are None are left out, and numbers become arrays of one."""
    kept = {key: np.atleast_1d(np.asarray(value)) for key, value in arrays.items() if value is not None}
    return {_KEY: json.dumps(facts), **kept}


def facts_of(name: str, node: Any) -> dict[str, Any]:
    """What `to_nir` wrote of a node, nothing if another library did."""
    metadata = node.metadata if isinstance(node.metadata, dict) else {}
    text = metadata.get(_KEY)
    if text is None:
        return {}
    try:
        facts = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        way_out = f"Remove metadata[{_KEY!r}] of this node"
        refuse(f"hold what to_nir wrote in the metadata of {name}", repr(text)[:60], way_out)
    return facts


def array_of(node: Any, key: str) -> np.ndarray | None:
    """An array that `to_nir` wrote beside a node; None where there is none, or not of finite numbers."""
    value = node.metadata.get(key) if isinstance(node.metadata, dict) else None
    if value is None:
        return None
    array = np.asarray(value)
    return array if array.dtype.kind in "fiub" and np.isfinite(array).all() else None
