"""Array files (`.npz`) that hold many recordings in a row."""

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from snnjax.data._files import PathLike, read_bytes, refuse

_DAMAGED = (ValueError, TypeError, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error)


def read_arrays(
    op: str, path: PathLike, fields: Mapping[str, str], each: Sequence[str], hint: str
) -> dict[str, np.ndarray]:
    """The arrays named in `fields`, each with one axis and of a kind such as "iu" (integers), and `offsets`.

    Recording i is ``offsets[i]:offsets[i + 1]`` of the arrays that are not in `each`, which hold one value a recording.
    """
    content = io.BytesIO(read_bytes(op, path, hint))
    try:
        with zipfile.ZipFile(content) as file:
            arrays = {name: _array(op, path, file, name) for name in (*fields, "offsets")}
    except _DAMAGED as error:
        if str(error).startswith(f"{op}: "):
            raise
        actual = " ".join(f"{type(error).__name__} ({error})".split())
        refuse(op, path, "be an array file (.npz) of NumPy", actual)
    for name, kinds in (*fields.items(), ("offsets", "iu")):
        array = arrays[name]
        if array.ndim != 1 or array.dtype.kind not in kinds:
            refuse(
                op,
                path,
                f"have one axis of whole numbers in {name}",
                f"{array.dtype.name}{list(array.shape)}",
            )
    _check_sizes(op, path, arrays, each)
    return arrays


def _array(op: str, path: PathLike, file: zipfile.ZipFile, name: str) -> np.ndarray:
    if f"{name}.npy" not in file.namelist():
        refuse(op, path, f"hold an array {name}", "none")
    # Read whole, so that its checksum is verified before its header is believed.
    return np.lib.format.read_array(io.BytesIO(file.read(f"{name}.npy")), allow_pickle=False)


def _check_sizes(op: str, path: PathLike, arrays: dict[str, np.ndarray], each: Sequence[str]) -> None:
    offsets = arrays["offsets"]
    if len(offsets) == 0 or offsets[0] != 0 or np.any(offsets[1:] < offsets[:-1]):
        refuse(op, path, "have offsets that begin with 0 and never decrease", "others")
    for name, array in arrays.items():
        expected = len(offsets) - 1 if name in each else int(offsets[-1])
        if name != "offsets" and len(array) != expected:
            refuse(op, path, f"hold {expected} values of {name}, as its offsets say", len(array))
    arrays["offsets"] = offsets.astype(np.int64)
