"""The library of the model: there wherever it can be built, and one sentence where it is not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from snnjax.ipu import _model_library, run_on_model
from tests.architecture import ROOT

LIBRARY = ROOT / "snnjax" / "_ipu_model.so"
ARRAYS = {"ids": np.array([[0]]), "weights": np.ones((1, 2), np.float32)}


@pytest.fixture
def other_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The path of a library that is looked for in place of the package's own."""
    monkeypatch.setenv("SNNJAX_IPU_MODEL", str(tmp_path / "other.so"))
    monkeypatch.setattr(_model_library, "load", _model_library.load.__wrapped__)
    return tmp_path / "other.so"


if shutil.which("g++") and shutil.which("cmake"):  # elsewhere there is nothing to test

    def test_library_is_there_where_it_can_be_built() -> None:
        assert _model_library.missing() is None

    def test_library_shows_its_interface_alone() -> None:
        command = ("nm", "--dynamic", "--defined-only", str(LIBRARY))
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        names = {line.split()[-1] for line in lines}
        assert {"snnjax_ipu_model_run", "snnjax_ipu_model_free"} <= names


def test_missing_library_is_said_in_one_sentence(other_library: Path) -> None:
    with pytest.raises(RuntimeError) as error:
        run_on_model("spike_matmul", ARRAYS)
    assert str(error.value) == (
        f"run_on_model: the IPU Model is not there. There is no {other_library}: build it with `make kernels`, "
        "or install snnjax where there is a C++ compiler."
    )


def test_library_that_is_none_is_said_in_one_sentence(other_library: Path) -> None:
    other_library.write_bytes(b"no library")
    sentence = _model_library.missing()
    assert sentence is not None
    assert sentence.startswith(f"{other_library} cannot be loaded (")
    assert sentence.endswith(
        "): build it with `make kernels`, or install snnjax where there is a C++ compiler"
    )


def test_import_loads_no_library() -> None:
    program = "import snnjax.ipu, sys; sys.exit('_ipu_model.so' in open('/proc/self/maps').read())"
    known = {**os.environ, "JAX_PLATFORMS": "cpu"}
    assert subprocess.run((sys.executable, "-c", program), cwd=ROOT, env=known, check=False).returncode == 0
