"""Checkpoints: one file that holds either the old or the new state, whatever happens in between.

A checkpoint is a safetensors file, which other programs can also read: arrays, named by their path in the tree, and a
JSON ``header`` in its metadata with everything else, a description of the network and a checksum of the whole. Nothing
is pickled, so loading a checkpoint cannot run code.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from snnjax._check import alternatives, fail, short_repr, type_words
from snnjax._types import Unchecked
from snnjax._write import write_atomically
from snnjax.blocks._sparse import SparseParams
from snnjax.blocks._synaptic import SynapticParams, SynapticState, SynapticStats
from snnjax.blocks.delay import DelayParams, DelayState
from snnjax.blocks.late import LateState
from snnjax.blocks.linear import LinearParams
from snnjax.blocks.norm import NormParams, NormStats
from snnjax.graph.describe import describe, first_difference
from snnjax.graph.network import Network
from snnjax.train import _format3

_FORMAT = "snnjax checkpoint 4"
_RESERVED = "__metadata__"  # the one name that safetensors does not give to an array
# Those that safetensors, NumPy and JAX have.
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64"),
)
# What networks hold: parameters, states and stats are dictionaries of these by block, and of those of a user's blocks.
_OF_NETWORKS = (
    LinearParams
    | SparseParams
    | SynapticParams
    | DelayParams
    | NormParams
    | LateState
    | DelayState
    | SynapticState
    | NormStats
    | SynapticStats
)
_REBUILD = "Build the network with the settings that the checkpoint was trained with"


def save_checkpoint(
    path: Path | str, arrays: PyTree, header: dict[str, Any], network: Network | None = None
) -> None:
    """Write a dictionary of pytrees of arrays, and a header, to one file, atomically.

    Args:
        path: the file.
        arrays: a dictionary of pytrees of arrays: parameters, stats, the state of an optimiser.
        header: anything that JSON returns unchanged: numbers, text, lists, and dictionaries with text as keys.
        network: the network of the parameters and states among the arrays. The file describes it, and
            `load_checkpoint` refuses another one.

    Raises:
        ValueError: if something is not an array, or could not be loaded as it is; if parameters or a state have no
            network; if the file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> import jax.numpy as jnp
        >>> from snnjax.train import load_checkpoint, save_checkpoint
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "checkpoint.safetensors"
        >>> save_checkpoint(path, {"mean": {"of_inputs": jnp.ones(2)}}, {"epoch": 3})
        >>> load_checkpoint(path, {"mean": {"of_inputs": jnp.zeros(2)}})
        ({'mean': {'of_inputs': Array([1., 1.], dtype=float32)}}, {'epoch': 3})
    """
    from safetensors.numpy import save

    op = "save_checkpoint"
    if not isinstance(arrays, dict):
        hint = "Put the tree under a name, as in {'params': params}"
        fail(f"{op}: `arrays` must be a dictionary of trees, got {type_words(arrays)}. {hint}.")
    _check_network(op, arrays, network)
    leaves = _named_leaves(op, arrays)
    kinds = {name: _kind(op, name, leaf) for name, leaf in leaves.items()}
    named = {name: np.asarray(leaf, order="C") for name, leaf in leaves.items()}
    if not _is_json(header):
        expected = "hold numbers, text, lists, and dictionaries with text as keys"
        hint = "Convert it, for instance tuples to lists and arrays with tolist()"
        fail(f"{op}: `header` must {expected}, got {short_repr(header)}. {hint}.")
    content = {"format": _FORMAT, "network": describe(network), "arrays": kinds, "header": header}
    text = json.dumps(content, allow_nan=True)
    metadata = {
        "header": text,
        "sha256": _digest(text, {name: each.tobytes() for name, each in named.items()}),
    }
    write_atomically("save_checkpoint", path, save(named, metadata))


def header_of(op: str, path: Path) -> dict[str, Any]:
    """Only the header of a checkpoint; errors name `op`."""
    return _read(op, path, ())[1]["header"]


def load_checkpoint(
    path: Path | str, like: dict[str, Any], network: Network | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Load the arrays of a checkpoint in the structure of `like`, and the header.

    Args:
        path: a file that `save_checkpoint` wrote.
        like: pytrees of arrays or of `jax.ShapeDtypeStruct`, under the names to load; other names are not loaded.
        network: the network of the parameters and states to load, made with the arguments that it was made with when
            they were saved: another neuron, reset, capacity or initial value is refused. To run them in a network that
            differs on purpose, load them with the one that was saved, and pass them to the other.

    Raises:
        ValueError: if the file is missing, incomplete, damaged, or not a checkpoint; if its structure, shapes or dtypes
            differ from those of `like`, or its network from `network`.

    Example:
        >>> import pathlib, tempfile
        >>> import jax
        >>> import snnjax
        >>> from snnjax.train import load_checkpoint, save_checkpoint
        >>> net = snnjax.network(4, [snnjax.layer(3)], snnjax.leaky_readout(2))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "checkpoint.safetensors"
        >>> save_checkpoint(path, {"params": net.init(jax.random.key(0))}, {}, net)
        >>> like = {"params": jax.eval_shape(net.init, jax.random.key(0))}
        >>> load_checkpoint(path, like, net)[0]["params"]["readout/connection"].weights.shape
        (3, 2)
    """
    op, path = "load_checkpoint", Path(path)
    _check_network(op, like, network)
    likes = _named_leaves(op, like)
    members, content = _read(op, path, tuple(_text(jax.tree_util.DictKey(name)) for name in like))
    if network is not None:
        now = describe(network) if content["format"] == _FORMAT else _format3.described(network)
        _check_same(op, path, content["network"], now)
        if content["format"] != _FORMAT:
            members, content["arrays"] = _with_new_names(members, content["arrays"], network)
    wanted = {name: _kind(op, name, leaf) for name, leaf in likes.items()}
    kinds = content["arrays"]
    for name in sorted(wanted.keys() ^ kinds.keys()):
        expected, actual = ("have", "none") if name in wanted else ("not have", "one")
        fail(f"{op}: `path` must {expected} an array {name}, got {actual} in {path}. {_REBUILD}.")
    for name, (dtype, shape) in wanted.items():
        if [dtype, shape] != list(kinds[name]):
            actual = f"{kinds[name][0]}{kinds[name][1]} in {path}"
            fail(f"{op}: `path` must have {name} as {dtype}{shape}, got {actual}. {_REBUILD}.")
    leaves = [jnp.asarray(members[name]) for name in wanted]
    return jax.tree.unflatten(jax.tree.structure(like), leaves), content["header"]


def _check_network(op: str, arrays: PyTree, network: Network | None) -> None:
    """Check that the parameters and states of a network are not handled without it."""
    leaves = jax.tree.leaves(arrays, is_leaf=lambda leaf: isinstance(leaf, _OF_NETWORKS))
    is_needed = network is not None or any(isinstance(each, _OF_NETWORKS) for each in leaves)
    if is_needed and not isinstance(network, Network):
        actual, hint = type_words(network), f"Write {op}(..., network)"
        fail(f"{op}: `network` must be the network of the parameters, got {actual}. {hint}.")


def _with_new_names(
    members: dict[str, np.ndarray], kinds: dict[str, Any], network: Network
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays of format 3, and their kinds, by the names that they have now."""
    names = _format3.names_of(network, lambda name: _text(jax.tree_util.DictKey(name)))
    new = {name: _format3.renamed(name, names) for name in members}
    found = {new[name]: _format3.as_now(new[name], array) for name, array in members.items()}
    return found, {new[name]: (dtype, list(found[new[name]].shape)) for name, (dtype, _) in kinds.items()}


def _check_same(op: str, path: Path, stored: PyTree, now: PyTree) -> None:
    """Check that the description of a network in a file is the one that it has now."""
    stored, now = map(_format3.with_new_fields, (stored, json.loads(json.dumps(now))))
    found = first_difference(stored, now, "network")
    if found is not None:
        where, old, new = found
        fail(f"{op}: `{where}` must be {_in_words(old)} as in {path}, got {_in_words(new)}. {_REBUILD}.")


def _in_words(part: Unchecked) -> str:
    """A part of a described network: an object by its class, a list by its length."""
    if isinstance(part, dict):
        return str(part.get("class") or part.get("function") or "a dict")
    return f"a list of {len(part)}" if isinstance(part, list) else short_repr(part)


def _read(op: str, path: Path, prefixes: tuple[str, ...]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays under `prefixes`, and everything else: the header, the network, and the kinds of all arrays."""
    if not path.is_file():
        fail(f"{op}: `path` must be a checkpoint, got no file at {path}. Train first, or correct the path.")
    try:
        text, stored = _read_safetensors(path)
        content = json.loads(text)
        form = content["format"]
        kinds = {name: kind for name, kind in content["arrays"].items() if name.split(".")[0] in prefixes}
        members = {name: _array(stored[name], *kind) for name, kind in kinds.items()}
        content = {
            "header": dict(content["header"]),
            "network": content.get("network"),
            "arrays": kinds,
            "format": form,
        }
    # A damaged file fails in a dozen ways, from KeyError to SafetensorError: all mean the same.
    except Exception as error:
        actual = f"{path}, which fails with {type_words(error)}"
        hint = "Use a copy of it, or train again without --resume"
        fail(f"{op}: `path` must be a complete checkpoint, got {actual}. {hint}.")
    if form not in (_FORMAT, _format3.FORMAT):
        hint = "Load it with the version of snnjax that wrote it"
        fail(f"{op}: `path` must have format {_FORMAT}, got {form}. {hint}.")
    return members, content


def _read_safetensors(path: Path) -> tuple[str, dict[str, bytes]]:
    """The header's text and the bytes of each array, after checking them against the stored checksum."""
    from safetensors import deserialize, safe_open

    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    stored = {name: bytes(tensor["data"]) for name, tensor in deserialize(path.read_bytes())}
    if _digest(metadata["header"], stored) != metadata["sha256"]:
        raise ValueError("another checksum")
    return metadata["header"], stored


def _digest(text: str, stored: Mapping[str, bytes]) -> str:
    """A checksum of the header, which lists every array with its dtype and shape, and of the arrays in that order."""
    digest = hashlib.sha256(text.encode())
    for name in json.loads(text)["arrays"]:
        digest.update(stored[name])
    return digest.hexdigest()


def _array(content: bytes, dtype: str, shape: list[int]) -> np.ndarray:
    return np.frombuffer(content, jnp.dtype(dtype)).reshape(shape)


def _kind(op: str, name: str, leaf: Any) -> tuple[str, list[int]]:
    """The dtype and the shape of an array; anything that would come back as something else is refused."""
    argument, dtype = _argument(op), getattr(leaf, "dtype", None)
    text = type_words(leaf) if dtype is None else str(dtype)
    if text not in _DTYPES or not hasattr(leaf, "shape"):
        hint = "Convert it, for instance a number with jnp.asarray and a key with jax.random.key_data"
        fail(
            f"{op}: `{argument}` must hold arrays of {alternatives(_DTYPES)}, got {text} at {name!r}. {hint}."
        )
    kept = jax.dtypes.canonicalize_dtype(text).name
    if kept != text:
        hint = f"Cast it to {kept}, or set jax_enable_x64"
        fail(
            f"{op}: `{argument}` must hold dtypes that JAX keeps on loading, got {text} at {name!r}. {hint}."
        )
    return text, list(leaf.shape)


def _argument(op: str) -> str:
    """The argument that holds the arrays."""
    return "arrays" if op == "save_checkpoint" else "like"


def _named_leaves(op: str, arrays: PyTree) -> dict[str, Any]:
    """The leaves by path, such as ``params.hidden/connection.weights``, in the order of the tree; dots are escaped."""
    argument = _argument(op)
    leaves = jax.tree_util.tree_flatten_with_path(arrays)[0]
    named = {".".join(map(_text, path)): leaf for path, leaf in leaves}
    if len(named) != len(leaves):
        fail(f"{op}: `{argument}` must have keys of different text, got two of one text. Rename one of them.")
    for name in named:
        if name.encode("utf-8", "ignore").decode() != name:
            fail(f"{op}: `{argument}` must have keys that UTF-8 can encode, got {name!r}. Rename it.")
    return named


def _text(key: Unchecked) -> str:
    """A key of a path, without the dot that joins them; safetensors gives no array the name `_RESERVED`."""
    text = jax.tree_util.keystr((key,), simple=True).replace("%", "%25").replace(".", "%2E")
    return text.replace("_", "%5F", 1) if text == _RESERVED else text


def _is_json(value: Unchecked) -> bool:
    """Whether JSON returns a value unchanged; it would turn tuples into lists and other keys into text."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_json(entry) for name, entry in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, bool | int | float | str)
