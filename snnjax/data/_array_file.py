"""Array files (`.npz`) that hold many recordings in a row."""

import zipfile
import zlib

import numpy as np

from snnjax._check import fail
from snnjax.data._files import PathLike, refuse


def read_arrays(
    op: str, path: PathLike, fields: dict[str, str], each: tuple[str, ...], hint: str
) -> dict[str, np.ndarray]:
    """The arrays named in `fields`, each with one axis and of a kind such as "iu" (integers), and `offsets`.

    Recording i is ``offsets[i]:offsets[i + 1]`` of the arrays that are not in `each`, which hold one value a recording.
    """
    arrays = _arrays(op, path, {**fields, "offsets": "iu"}, hint)
    offsets = arrays["offsets"] = arrays["offsets"].astype(np.int64)
    for name in fields:
        expected = len(offsets) - 1 if name in each else int(offsets[-1]) if len(offsets) else 0
        if len(arrays[name]) != expected:
            refuse(op, path, f"hold {expected} values of {name} to match its offsets", len(arrays[name]))
    if offsets[0] != 0 or np.any(np.diff(offsets) < 0):
        refuse(op, path, "have offsets that begin at 0 and never decrease", "others")
    return arrays


def _arrays(op: str, path: PathLike, fields: dict[str, str], hint: str) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    try:
        with np.load(path, allow_pickle=False) as file:
            for name in fields:
                arrays[name] = file[name]
    except OSError as error:
        reason = getattr(error, "strerror", None) or str(error)
        fail(f"{op}: `path` must be a readable file, got {str(path)!r} ({reason}). {hint}.")
    except KeyError:
        missing = ", ".join(name for name in fields if name not in arrays)
        refuse(op, path, f"hold the arrays {', '.join(fields)}", f"no {missing.split(', ')[0]}")
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        refuse(op, path, "be an array file (.npz) of NumPy", f"{type(error).__name__} ({error})".rstrip("."))
    for name, kinds in fields.items():
        array = arrays[name]
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in kinds:
            refuse(op, path, f"have one axis of whole numbers in {name}", _form(array))
    return arrays


def _form(array: object) -> str:
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    return f"{array.dtype.name}{list(array.shape)}"
