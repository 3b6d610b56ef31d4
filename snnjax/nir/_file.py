"""Read a NIR file safely: a malicious one may crash or hang the HDF5 library, or declare arrays of any size."""

from pathlib import Path
from typing import Any

import numpy as np

from snnjax.data._hdf5 import heap_damage, read_blocks
from snnjax.nir._check import refuse, require

_WAY_OUT = "Write it with nir.write"


def read_graph(path: Path) -> Any:
    """Read the graph in a file."""
    import nir

    require(path.is_file(), "be the path of a .nir file", repr(str(path)), "Correct the path")
    damage = heap_damage(path)
    require(damage is None, "be a valid .nir file", damage, _WAY_OUT)
    try:
        (block,) = read_blocks(path, "arrays")
        content = _nested(block)
    except ValueError as error:
        refuse("be a valid .nir file", str(error), _WAY_OUT)
    try:
        return nir.dict2NIRNode({**content["node"], "type_check": False})
    except Exception as error:  # nir raises AssertionError, KeyError, TypeError and more
        text = f"{type(error).__name__}: {error}"[:200]
        refuse("hold nodes as nir writes them", text, "Write it with nir.write, of version 1.0.8 or newer")


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
