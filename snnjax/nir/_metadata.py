"""What NIR cannot express about our networks, stored as metadata, so that a network is restored unchanged.

A node holds JSON text under the key `snnjax`, and exact parameters as arrays under separate keys. Another library may
change the node but not the metadata: an array is only used if it still agrees with the node.
"""

import json
import re
from typing import Any, NoReturn

import numpy as np

from snnjax._check import fail, short_repr
from snnjax.nir._check import NIRNode

_KEY = "snnjax"
_ERROR = re.compile(r".*`(.+)` must .*, got (.+)", re.DOTALL)


def written(facts: dict[str, Any], **arrays: Any) -> dict[str, Any]:
    """The metadata of a node, without arrays that are None; numbers become arrays with one element."""
    kept = {key: np.atleast_1d(np.asarray(value)) for key, value in arrays.items() if value is not None}
    return {_KEY: json.dumps(facts), **kept}


def facts_of(name: str, node: NIRNode) -> dict[str, Any]:
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
        refuse_metadata(name, short_repr(text))
    return facts


def refuse_metadata(name: str, actual: object) -> NoReturn:
    """Raise the error for metadata of a node that `to_nir` did not write."""
    expected = f"hold what to_nir wrote in the metadata of {name}"
    # Of the error of a function that was called with them, what is wrong: "name = 'none'".
    reason = _ERROR.sub(r"\1 = \2", str(actual).split(". ")[0])
    fail(f"from_nir: `graph` must {expected}, got {reason}. Remove its metadata[{_KEY!r}].")


def array_of(node: NIRNode, key: str) -> np.ndarray | None:
    """An array in the metadata that `to_nir` wrote; None if it is missing or not finite."""
    value = node.metadata.get(key) if isinstance(node.metadata, dict) else None
    if value is None:
        return None
    array = np.asarray(value)
    return array if array.dtype.kind in "fiub" and np.isfinite(array).all() else None
