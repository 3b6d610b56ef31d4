"""Checkpoints: one file that holds either the old or the new state, whatever happens in between.

A checkpoint is a safetensors file, which other programs can also read: arrays, named by their path in the tree, and a
JSON ``header`` in its metadata with everything else and a checksum of the whole. Nothing is pickled, so loading a
checkpoint cannot run code. The .npz files of earlier versions of snnjax can be read too.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax._check import check, fail
from snnjax._write import write_atomically

_FORMAT = "snnjax checkpoint 2"
_OLD_FORMAT, _OLD_START = "snnjax checkpoint 1", b"PK"  # .npz files begin like any zip


def save_checkpoint(path: Path | str, arrays: dict[str, Any], header: dict[str, Any]) -> None:
    """Write a dictionary of pytrees of arrays, and a JSON-compatible header, to one file, atomically.

    Example:
        >>> import pathlib, tempfile
        >>> import jax.numpy as jnp
        >>> from snnjax.train import load_checkpoint, save_checkpoint
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "checkpoint.safetensors"
        >>> save_checkpoint(path, {"params": {"weights": jnp.ones(2)}}, {"epoch": 3})
        >>> load_checkpoint(path, {"params": {"weights": jnp.zeros(2)}})
        ({'params': {'weights': Array([1., 1.], dtype=float32)}}, {'epoch': 3})
    """
    from safetensors.numpy import save

    named = {name: np.asarray(leaf, order="C") for name, leaf in _named_leaves(arrays).items()}
    kinds = {name: [array.dtype.name, list(array.shape)] for name, array in named.items()}
    text = json.dumps({"format": _FORMAT, "arrays": kinds, "header": header}, allow_nan=True)
    metadata = {
        "header": text,
        "sha256": _digest(text, {name: each.tobytes() for name, each in named.items()}),
    }
    write_atomically(path, save(named, metadata))


def read_header(path: Path | str) -> dict[str, Any]:
    """Read only the header of a checkpoint.

    Errors: the file is missing, incomplete, damaged, or not a checkpoint.

    Example:
        >>> import pathlib, tempfile
        >>> from snnjax.train import read_header, save_checkpoint
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "checkpoint.safetensors"
        >>> save_checkpoint(path, {}, {"epoch": 3})
        >>> read_header(path)
        {'epoch': 3}
    """
    return _read("read_header", Path(path), ())[1]


def load_checkpoint(path: Path | str, like: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Load the arrays of a checkpoint in the structure of `like`, and the header.

    Args:
        path: a file that `save_checkpoint` wrote.
        like: pytrees of arrays or of `jax.ShapeDtypeStruct`, under the names to load; other names are not loaded.

    Raises:
        ValueError: if the file is missing, incomplete, damaged, or not a checkpoint, or if its structure, shapes or
            dtypes differ from those of `like`.

    Example:
        >>> import pathlib, tempfile
        >>> import jax.numpy as jnp
        >>> from snnjax.train import load_checkpoint, save_checkpoint
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "checkpoint.safetensors"
        >>> save_checkpoint(path, {"params": jnp.ones(2), "optimiser": jnp.zeros(3)}, {})
        >>> load_checkpoint(path, {"params": jnp.zeros(2)})
        ({'params': Array([1., 1.], dtype=float32)}, {})
    """
    op, path = "load_checkpoint", Path(path)
    members, header, kinds = _read(op, path, tuple(like))
    wanted = {
        name: [jnp.dtype(leaf.dtype).name, list(leaf.shape)] for name, leaf in _named_leaves(like).items()
    }
    way_out = "Build the network with the settings that the checkpoint was trained with"
    for name in sorted(wanted.keys() ^ kinds.keys()):
        expected = "have" if name in wanted else "not have"
        actual = "none" if name in wanted else "one"
        fail(op, "path", f"{expected} an array {name}", f"{actual} in {path}", way_out)
    for name, (dtype, shape) in wanted.items():
        actual = f"{kinds[name][0]}{kinds[name][1]} in {path}"
        check([dtype, shape] == kinds[name], op, "path", f"have {name} as {dtype}{shape}", actual, way_out)
    leaves = [jnp.asarray(members[name]) for name in wanted]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), header


def _read(
    op: str, path: Path, prefixes: tuple[str, ...]
) -> tuple[dict[str, np.ndarray], dict[str, Any], dict[str, Any]]:
    """The arrays under `prefixes`, the header, and the dtypes and shapes of these arrays."""
    way_out = "Train first, or correct the path"
    check(path.is_file(), op, "path", "be a checkpoint", f"no file at {path}", way_out)
    try:
        with path.open("rb") as stream:
            is_old = stream.read(len(_OLD_START)) == _OLD_START
        text, stored = (_read_npz if is_old else _read_safetensors)(path)
        content = json.loads(text)
        form, header = content["format"], dict(content["header"])
        kinds = {name: kind for name, kind in content["arrays"].items() if name.split(".")[0] in prefixes}
        members = {name: _array(stored[name], *kind) for name, kind in kinds.items()}
    # A damaged file fails in a dozen ways, from BadZipFile to KeyError to SafetensorError: all mean the same.
    except Exception as error:
        reason = f"{type(error).__name__} in {path}"
        way_out = "Use a copy of it, or train again without --resume"
        fail(op, "path", "be a complete checkpoint", reason, way_out)
    known = _OLD_FORMAT if is_old else _FORMAT
    way_out = "Load it with the version of snnjax that wrote it"
    check(form == known, op, "path", f"be of the format {known}", form, way_out)
    return members, header, kinds


def _read_safetensors(path: Path) -> tuple[str, dict[str, bytes]]:
    """The header's text and the bytes of each array, after checking them against the stored checksum."""
    from safetensors import deserialize, safe_open

    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    stored = {name: bytes(tensor["data"]) for name, tensor in deserialize(path.read_bytes())}
    if _digest(metadata["header"], stored) != metadata["sha256"]:
        raise ValueError("another checksum")
    return metadata["header"], stored


def _read_npz(path: Path) -> tuple[str, dict[str, bytes]]:
    """The same for a file in the old format, a zip file whose members have their own checksums."""
    with path.open("rb") as stream, np.load(stream) as archive:
        stored = {name: archive[name].tobytes() for name in archive.files}
    return stored["header"].decode(), stored


def _digest(text: str, stored: Mapping[str, bytes]) -> str:
    """A checksum of the header, which lists every array with its dtype and shape, and of the arrays in that order."""
    digest = hashlib.sha256(text.encode())
    for name in json.loads(text)["arrays"]:
        digest.update(stored[name])
    return digest.hexdigest()


def _array(content: bytes, dtype: str, shape: list[int]) -> np.ndarray:
    return np.frombuffer(content, jnp.dtype(dtype)).reshape(shape)


def _named_leaves(tree: dict[str, Any]) -> dict[str, Any]:
    """The leaves by path, such as ``params.layers.0.weights``, in the order of the tree."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}
