"""`_targets`: the library of compiled kernels is found, or one sentence says why not."""

import os
import platform
import shutil
import subprocess
import sys

import numpy as np
import pytest

from snnjax import _schema, _targets
from tests.ops.kernel_checks import needs_kernels
from tests.project.architecture import ROOT

HINT = (
    "in a clone, build it with `make kernels`; else install snnjax again: wheels for Linux (x86-64, aarch64) and macOS "
    "(arm64) have it, and elsewhere it takes a C++20 compiler"
)


@pytest.fixture
def looked_up(monkeypatch):
    """Look for the library at a path, like a new process."""

    def look(path):
        monkeypatch.setenv("SNNJAX_CPU_KERNELS", str(path))
        return _targets.missing.__wrapped__()

    return look


def run(program: str, **environment: str) -> str:
    """The output of a fresh interpreter."""
    command = [sys.executable, "-c", program]
    known = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=known, capture_output=True, text=True, check=True).stdout


def test_library_that_is_not_there(looked_up, tmp_path):
    path = tmp_path / "none.so"
    assert looked_up(path) == f"There is no {path}: {HINT}"


def test_file_that_is_no_library(looked_up, tmp_path):
    path = tmp_path / "text.so"
    path.write_text("not a library")
    sentence = looked_up(path)
    assert sentence.startswith(f"{path} cannot be loaded ({path}: ")
    assert sentence.endswith(f"): {HINT}")


def test_library_without_a_handler(looked_up):
    """Such as one that was built before the handler was written."""
    sentence = looked_up(np.random.mtrand.__file__)
    assert f"undefined symbol: {_targets.TARGETS[0]}" in sentence
    assert sentence.endswith(HINT)


@needs_kernels
def test_library_of_other_tables(looked_up, monkeypatch):
    """Such as one that was built before an operand was added."""
    path, built = _targets._path(), _targets.schema()
    monkeypatch.setattr(_targets, "schema", lambda: "0123456789abcdef")
    table = f"was built with other tables of arrays ({built}, not 0123456789abcdef)"
    assert looked_up(path) == f"{path} {table}: {HINT}"


def test_every_table_belongs_to_an_op():
    found = (ROOT / "snnjax" / "ops" / "_tables").glob("[!_]*.py")
    assert {f"ops/_tables/{path.name}" for path in found} < set(_schema.TABLES.values())


@pytest.mark.parametrize("op", _schema.TABLES)
def test_digest_is_another_with_another_table(op, monkeypatch, tmp_path):
    for path in ("_schema.py", "_neuron_table.py", *_schema.TABLES.values()):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "snnjax" / path, tmp_path / path)
    monkeypatch.setattr(_schema, "__file__", str(tmp_path / "_schema.py"))
    assert _schema.digest() == _targets.schema()
    with (tmp_path / _schema.TABLES[op]).open("a") as table:
        table.write("NEW = 1\n")
    assert _schema.digest() != _targets.schema()


def test_import_does_not_look_for_the_library():
    """Nor does it fail without one, or set up a device."""
    program = """
import sys, snnjax
from jax._src import xla_bridge
from snnjax import _targets
sys.stdout.write(f"{_targets.missing.cache_info().currsize} {len(xla_bridge._backends)}")
"""
    assert run(program, SNNJAX_CPU_KERNELS="/nowhere") == "0 0"


def test_environment_names_another_library(tmp_path):
    program = "import sys; from snnjax import _targets; sys.stdout.write(str(_targets.missing()))"
    path = tmp_path / "other.so"
    assert run(program, SNNJAX_CPU_KERNELS=str(path)) == f"There is no {path}: {HINT}"


def test_version_of_the_ffi_is_read_from_the_headers():
    major, minor = _targets._api_version()
    assert (major, minor) >= (0, 3)


@needs_kernels
def test_library_names_its_instruction_set():
    program = """
import sys
from snnjax import _targets
sys.stdout.write(f"{_targets.missing()} {_targets.instruction_set()}")
"""
    least = "neon" if platform.machine() in ("aarch64", "arm64") else "portable"
    assert run(program, SNNJAX_CPU_ISA=least) == f"None {least}"
    assert _targets.instruction_set() in (least, "avx2", "avx512", "amx")
