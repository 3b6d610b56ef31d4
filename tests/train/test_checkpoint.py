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

from snnjax.train import checkpoint, load_checkpoint, read_header, save_checkpoint
from tests.architecture import ROOT
from tests.numbers import assert_same_bits

OLD = ROOT / "tests/golden/checkpoint_1.npz"
TREE = {
    "params": {"weights": jnp.arange(6, dtype=jnp.float32).reshape(2, 3) / 7, "layers": (jnp.ones(2), None)},
    "optimiser": (jnp.int32(3), jnp.array([1.5, -2.0], jnp.bfloat16), jnp.array([7], jnp.uint16)),
}
HEADER = {"epoch": 2, "metrics": [{"loss": 0.1}], "note": "ä"}


def test_checkpoint_returns_every_bit_and_the_header(tmp_path) -> None:
    save_checkpoint(tmp_path / "c.safetensors", TREE, HEADER)
    arrays, header = load_checkpoint(tmp_path / "c.safetensors", jax.tree.map(jnp.zeros_like, TREE))
    assert_same_bits(arrays, TREE)
    assert header == HEADER == read_header(tmp_path / "c.safetensors")


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
    assert read_header(path) == {"epoch": 4}
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


def test_file_of_an_earlier_version_is_read() -> None:
    """It was written by `save_checkpoint(path, TREE, HEADER)` when checkpoints were .npz files."""
    arrays, header = load_checkpoint(OLD, jax.tree.map(jnp.zeros_like, TREE))
    assert_same_bits(arrays, TREE)
    assert header == HEADER == read_header(OLD)


@functools.cache
def whole_file(old: bool) -> bytes:
    if old:
        return OLD.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(Path(folder) / "c.safetensors", TREE, HEADER)
        return (Path(folder) / "c.safetensors").read_bytes()


@pytest.mark.parametrize("old", [False, True])
@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=300)
def test_damaged_checkpoint_is_refused_or_whole(data, old: bool) -> None:
    content = bytearray(whole_file(old))
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
    assert re.match(r"load_checkpoint: `path` must be a complete checkpoint, got \w+ in ", refusal)


def test_missing_checkpoint_is_named(tmp_path) -> None:
    text = (
        f"read_header: `path` must be a checkpoint, got no file at {tmp_path}/c.safetensors. "
        "Train first, or correct the path."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        read_header(tmp_path / "c.safetensors")


def test_other_files_are_no_checkpoints(tmp_path) -> None:
    np.savez(tmp_path / "c.npz", a=np.zeros(2))
    save_file({"a": np.zeros(2)}, tmp_path / "c.safetensors")
    for name, error in (("c.npz", "KeyError"), ("c.safetensors", "TypeError")):
        text = (
            f"load_checkpoint: `path` must be a complete checkpoint, got {error} in {tmp_path}/{name}. "
            "Use a copy of it, or train again without --resume."
        )
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            load_checkpoint(tmp_path / name, TREE)


def test_checkpoint_of_another_version_is_named(tmp_path, monkeypatch) -> None:
    path = tmp_path / "c.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_FORMAT", "snnjax checkpoint 3")
        save_checkpoint(path, TREE, HEADER)
    text = (
        "read_header: `path` must be of the format snnjax checkpoint 2, got snnjax checkpoint 3. "
        "Load it with the version of snnjax that wrote it."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        read_header(path)


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
