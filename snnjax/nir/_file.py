"""Read a NIR file safely: a malicious one may crash or hang the HDF5 library, or declare arrays of any size."""

from pathlib import Path
from typing import Any

import numpy as np

from snnjax._check import fail
from snnjax.data._hdf5 import heap_damage, read_blocks
from snnjax.nir._check import NIRNode

_HINT = "Write it with nir.write"


def read_graph(path: Path) -> NIRNode:
    """Read the graph in a file."""
    import nir

    if not path.is_file():
        fail(f"from_nir: `graph` must be the path of a .nir file, got {str(path)!r}. Correct the path.")
    damage = heap_damage(path)
    if damage is not None:
        fail(f"from_nir: `graph` must be a valid .nir file, got {damage}. {_HINT}.")
    try:
        (block,) = read_blocks(path, "arrays")
        content = _nested(block)
    except ValueError as error:
        fail(f"from_nir: `graph` must be a valid .nir file, got {error}. {_HINT}.")
    try:
        return nir.dict2NIRNode({**content["node"], "type_check": False})
    except Exception as error:  # nir raises AssertionError, KeyError, TypeError and more
        text = f"{type(error).__name__}: {error}"[:200].strip(": ")
        fail(
            f"from_nir: `graph` must hold nodes as nir writes them, got {text}. Write it with nir.write, "
            "of version 1.0.8 or newer."
        )


def _nested(block: dict[str, np.ndarray]) -> dict[str, Any]:
    """Nested dictionaries of arrays, from their paths."""
    content: dict[str, Any] = {"node": {}}
    for number, name in enumerate(block["names"].tolist()):
        *folders, last = name.split("/")
        place = content
        for folder in folders:
            place = place.setdefault(folder, {})
        value = block[str(number)]
        place[last] = value if value.ndim else value[()].item() if value.dtype.kind == "U" else value[()]
    return content
