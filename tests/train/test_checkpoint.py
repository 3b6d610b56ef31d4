"""Checkpoints: what comes back, what a kill leaves, and what damaged files say."""

import functools
import os
import re
import tempfile
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import snnjax
from snnjax._check import alternatives
from snnjax.train import checkpoint, load_checkpoint, save_checkpoint
from snnjax.train.checkpoint import header_of
from tests.numbers import assert_same_bits

TREE = {
    "params": {"weights": jnp.arange(6, dtype=jnp.float32).reshape(2, 3) / 7, "layers": (jnp.ones(2), None)},
    "optimiser": (jnp.int32(3), jnp.array([1.5, -2.0], jnp.bfloat16), jnp.array([7], jnp.uint16)),
}
NETWORK = snnjax.network(4, [snnjax.layer(3)], snnjax.leaky_readout(2))
HEADER = {"epoch": 2, "metrics": [{"loss": 0.1}], "note": "ä"}


def test_checkpoint_returns_every_bit_and_the_header(tmp_path) -> None:
    save_checkpoint(tmp_path / "c.safetensors", TREE, HEADER)
    arrays, header = load_checkpoint(tmp_path / "c.safetensors", jax.tree.map(jnp.zeros_like, TREE))
    assert_same_bits(arrays, TREE)
    assert header == HEADER == header_of("read_run", tmp_path / "c.safetensors")


def test_checkpoint_loads_a_part(tmp_path) -> None:
    save_checkpoint(tmp_path / "c.safetensors", TREE, HEADER)
    arrays, _ = load_checkpoint(tmp_path / "c.safetensors", {"params": TREE["params"]})
    assert_same_bits(arrays, {"params": TREE["params"]})


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_checkpoint_survives_a_kill_in_the_middle_of_a_write(tmp_path, monkeypatch, moment: str) -> None:
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, TREE, HEADER)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, moment, killed)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(path, jax.tree.map(jnp.zeros_like, TREE), {"epoch": 3})
    assert_same_bits(load_checkpoint(path, TREE)[0], TREE)
    save_checkpoint(path, TREE, {"epoch": 4})  # and what the kill has left is in nobody's way
    assert header_of("read_run", path) == {"epoch": 4}
    assert [file.name for file in tmp_path.iterdir()] == ["c.safetensors"]


def test_checkpoint_in_no_folder_is_named(tmp_path) -> None:
    path = tmp_path / "none" / "c.safetensors"
    text = f"got {str(path)!r} (No such file or directory). Make room, or name another folder."
    with pytest.raises(ValueError, match=f"{re.escape(text)}$"):
        save_checkpoint(path, TREE, HEADER)


def test_arrays_are_there_for_other_programs(tmp_path) -> None:
    save_checkpoint(tmp_path / "c.safetensors", TREE, HEADER)
    with safe_open(tmp_path / "c.safetensors", framework="flax") as file:
        assert_same_bits(file.get_tensor("params.weights"), TREE["params"]["weights"])
        assert file.get_tensor("optimiser.1").dtype == jnp.bfloat16


@functools.cache
def whole_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(Path(folder) / "c.safetensors", TREE, HEADER)
        return (Path(folder) / "c.safetensors").read_bytes()


@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=300)
def test_damaged_checkpoint_is_refused_or_whole(data) -> None:
    content = bytearray(whole_file())
    if data.draw(st.booleans(), label="cut"):
        del content[data.draw(st.integers(0, len(content) - 1), label="length") :]
    else:
        place = data.draw(st.integers(0, len(content) - 1), label="place")
        content[place] ^= data.draw(st.integers(1, 255), label="bits")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.safetensors"
        path.write_bytes(content)
        try:
            arrays, header = load_checkpoint(path, TREE)
        except ValueError as error:
            refusal = str(error)
        else:  # a byte that means nothing, such as a date
            assert_same_bits(arrays, TREE)
            assert header == HEADER
            return
    assert re.match(
        r"load_checkpoint: `path` must be a complete checkpoint, got .*, which fails with a \w+\. ", refusal
    )


def test_missing_checkpoint_is_named(tmp_path) -> None:
    text = (
        f"read_run: `path` must be a checkpoint, got no file at {tmp_path}/c.safetensors. "
        "Train first, or correct the path."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        header_of("read_run", tmp_path / "c.safetensors")


def test_other_files_are_no_checkpoints(tmp_path) -> None:
    np.savez(tmp_path / "c.npz", a=np.zeros(2))
    save_file({"a": np.zeros(2)}, tmp_path / "c.safetensors")
    for name, error in (("c.npz", "SafetensorError"), ("c.safetensors", "TypeError")):
        text = (
            f"load_checkpoint: `path` must be a complete checkpoint, got {tmp_path}/{name}, "
            f"which fails with a {error}. Use a copy of it, or train again without --resume."
        )
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            load_checkpoint(tmp_path / name, TREE)


def test_checkpoint_of_another_version_is_named(tmp_path, monkeypatch) -> None:
    path = tmp_path / "c.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_FORMAT", "snnjax checkpoint 2")
        save_checkpoint(path, TREE, HEADER)
    text = (
        "read_run: `path` must have format snnjax checkpoint 4, got snnjax checkpoint 2. "
        "Load it with the version of snnjax that wrote it."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        header_of("read_run", path)


MISMATCHES = {
    "shape": (
        {"params": {"weights": jnp.zeros((2, 4)), "layers": (jnp.ones(2), None)}},
        "have params.weights as float32[2, 4], got float32[2, 3] in {}",
    ),
    "dtype": (
        {"params": {"weights": jnp.zeros((2, 3)), "layers": (jnp.ones(2, jnp.bfloat16), None)}},
        "have params.layers.0 as bfloat16[2], got float32[2] in {}",
    ),
    "missing": (
        {"params": {"weights": jnp.zeros((2, 3)), "layers": (jnp.ones(2), jnp.ones(2))}},
        "have an array params.layers.1, got none in {}",
    ),
    "superfluous": (
        {"params": {"weights": jnp.zeros((2, 3))}},
        "not have an array params.layers.0, got one in {}",
    ),
}


@pytest.mark.parametrize("case", sorted(MISMATCHES))
def test_checkpoint_of_another_network_is_named(tmp_path, case: str) -> None:
    like, found = MISMATCHES[case]
    path = tmp_path / "c.safetensors"
    save_checkpoint(path, TREE, HEADER)
    text = (
        f"load_checkpoint: `path` must {found.format(path)}. "
        "Build the network with the settings that the checkpoint was trained with."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        load_checkpoint(path, like)


# What a key of a dictionary and a leaf may be: among them, whatever cannot come back.
NAMES = st.one_of(
    st.text(max_size=3),
    st.sampled_from(["a", "a.b", "b", "model.v1", "%2E", "%", ".", "", "__metadata__", "_", "\ud800"]),
)
KEYS = st.one_of(NAMES, st.integers(0, 2))
NUMBERS = st.sampled_from(
    [
        *(np.dtype(name) for name in ("bool", "int8", "uint16", "int32", "float16", "float32", "complex64")),
        *(np.dtype(name) for name in (">f4", "int64", "float64", "complex128", "datetime64[s]")),
        jnp.dtype("bfloat16"),
    ]
).flatmap(lambda dtype: st.sampled_from([(), (0, 2), (3,), (2, 1)]).map(lambda shape: np.ones(shape, dtype)))
LEAVES = st.one_of(
    NUMBERS,
    NUMBERS.map(lambda array: array[()]),
    st.sampled_from([0.5, 3, True, None, "text", jax.random.key(0), jnp.ones((2, 3)), jnp.uint8(3)]),
)
TREES = st.recursive(
    LEAVES,
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=2).map(tuple),
        st.dictionaries(KEYS, children, max_size=3),
    ),
    max_leaves=6,
)
JSON_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.just((1,))
)
HEADERS = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        JSON_LEAVES,
        lambda own: st.lists(own, max_size=2) | st.dictionaries(st.text(max_size=2) | st.integers(0, 1), own),
    ),
    max_size=3,
)


@hypothesis.given(st.dictionaries(NAMES, TREES, max_size=3), HEADERS)
@hypothesis.settings(max_examples=120, deadline=None)
def test_what_is_saved_comes_back_equal_or_is_refused(tree: dict, header: dict) -> None:
    try:
        jax.tree.leaves(tree)
    except ValueError:  # keys of several types, which JAX does not sort
        hypothesis.reject()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.safetensors"
        try:
            save_checkpoint(path, tree, header)
        except ValueError as error:
            refusal = str(error)
        else:
            refusal = None
        if refusal is not None:
            assert re.match(r"save_checkpoint: `.*` must ", refusal, re.DOTALL)
            assert not path.exists()
            return
        arrays, loaded = load_checkpoint(path, tree)
        assert_same_bits(arrays, tree)
        assert loaded == header
        for name in tree:
            assert_same_bits(load_checkpoint(path, {name: tree[name]})[0], {name: tree[name]})


HINT = "Convert it, for instance a number with jnp.asarray and a key with jax.random.key_data."
UNSAVED = {
    "a Python number": (
        {"rate": 0.5},
        {},
        "`arrays` must hold arrays of {}, got a float at 'rate'. " + HINT,
    ),
    "a key": (
        {"key": jax.random.key(0)},
        {},
        "`arrays` must hold arrays of {}, got key<fry> at 'key'. " + HINT,
    ),
    "a dtype that JAX does not keep": (
        {"a.b": np.ones(2)},
        {},
        "`arrays` must hold dtypes that JAX keeps on loading, got float64 at 'a%2Eb'. "
        "Cast it to float32, or set jax_enable_x64.",
    ),
    "a tree without a name": (
        jnp.ones(2),
        {},
        "`arrays` must be a dictionary of trees, got an array. Put the tree under a name, as in {{'params': params}}.",
    ),
    "a name that is no text": (
        {"\ud800": jnp.ones(2)},
        {},
        "`arrays` must have keys that UTF-8 can encode, got '\\ud800'. Rename it.",
    ),
    "a header with a tuple": (
        {},
        {"hidden": (3, 4)},
        "`header` must hold numbers, text, lists, and dictionaries with text as keys, got {{'hidden': (3, 4)}}. "
        "Convert it, for instance tuples to lists and arrays with tolist().",
    ),
    "parameters without a network": (
        {"params": NETWORK.init(jax.random.key(0))},
        {},
        "`network` must be the network of the parameters, got None. Write save_checkpoint(..., network).",
    ),
}


@pytest.mark.parametrize("case", UNSAVED)
def test_what_could_not_be_loaded_is_not_saved(tmp_path, case: str) -> None:
    arrays, header, text = UNSAVED[case]
    text = "save_checkpoint: " + text.format(alternatives(checkpoint._DTYPES))
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        save_checkpoint(tmp_path / "c.safetensors", arrays, header)
    assert not list(tmp_path.iterdir())


def test_keys_of_one_text_are_refused(tmp_path) -> None:
    class Key(str):
        """Keys that are not equal, but have the same text."""

        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            return self is other

    text = (
        "save_checkpoint: `arrays` must have keys of different text, got two of one text. Rename one of them."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        save_checkpoint(tmp_path / "c.safetensors", {Key("a"): jnp.ones(1), Key("a"): jnp.ones(1)}, {})


def test_parameters_are_loaded_with_the_network_they_were_saved_with(tmp_path) -> None:
    path, params = tmp_path / "c.safetensors", NETWORK.init(jax.random.key(0))
    save_checkpoint(path, {"params": params, "mean": jnp.ones(2)}, {}, NETWORK)
    again = snnjax.network(4, [snnjax.layer(3)], snnjax.leaky_readout(2))  # equal arguments
    assert_same_bits(load_checkpoint(path, {"params": params}, again)[0]["params"], params)
    assert_same_bits(load_checkpoint(path, {"mean": jnp.ones(2)})[0]["mean"], jnp.ones(2))
    other = snnjax.network(4, [snnjax.layer(3, snnjax.neurons.lif(reset="zero"))], snnjax.leaky_readout(2))
    text = (
        "load_checkpoint: `network.nodes.layer_0/neuron.block.neuron.glif.reset` must be 'subtract' as in "
        f"{path}, got 'zero'. Build the network with the settings that the checkpoint was trained with."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        load_checkpoint(path, {"params": params}, other)
    text = "load_checkpoint: `network` must be the network of the parameters, got None. "
    with pytest.raises(ValueError, match=re.escape(text)):
        load_checkpoint(path, {"params": params})
