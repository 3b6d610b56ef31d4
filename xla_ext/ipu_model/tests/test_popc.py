"""The command line of popc.py: forms, flags, cache and exit status."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_cpp")
POPC = Path(__file__).parents[1] / "codelets" / "popc.py"

SCALAR = """
#include <poplar/Vertex.hpp>
struct Scalar : poplar::Vertex { poplar::Output<int> out; void compute() { *out = NUMBER; } };
"""
BOTH = """
#include <poplar/Vertex.hpp>
#if defined(SNNJAX_VECTOR_FORM)
struct Vectors : poplar::Vertex {
  poplar::Output<float> out;
  void compute() { out = (float2{1, 2} * float2{3, 4})[1]; }
};
#else
struct Scalars : poplar::Vertex { poplar::Output<float> out; void compute() { out = 2.0f * 4.0f; } };
#endif
"""


def popc(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs popc.py in `folder`, where its cache lies."""
    command = [sys.executable, str(POPC), "--cache", "cache", "--flag=-O0", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def written(folder: Path) -> set[str]:
    """The object files in the cache."""
    return {path.name for path in (folder / "cache").glob("*.o")}


def test_vector_form_compiles_only_what_has_one(tmp_path: Path):
    (tmp_path / "scalar.cpp").write_text(SCALAR)
    (tmp_path / "both.cpp").write_text(BOTH)
    sources = ["scalar.cpp", "both.cpp", "-D", "NUMBER=3"]
    first = popc(tmp_path, "-o", "scalar.gp", *sources)
    assert (first.returncode, first.stderr) == (0, "")
    objects = written(tmp_path)
    assert popc(tmp_path, "-o", "vector.gp", "--vector-form", *sources).returncode == 0
    assert len(written(tmp_path) - objects) == 1
    assert b"Scalars" in (tmp_path / "scalar.gp").read_bytes()
    assert b"Vectors" in (tmp_path / "vector.gp").read_bytes()


def test_cache_serves_the_same_text_and_flags(tmp_path: Path):
    (tmp_path / "scalar.cpp").write_text(SCALAR)
    for flags in (["-DNUMBER=3"], ["-DNUMBER=3", "--flag=-std=c++14"]):  # an older standard is left out
        assert popc(tmp_path, "-o", "a.gp", "-j", "2", "scalar.cpp", *flags).returncode == 0
    objects = written(tmp_path)
    assert len(objects) == 1
    assert popc(tmp_path, "-o", "a.gp", "scalar.cpp", "-DNUMBER=4").returncode == 0
    assert len(written(tmp_path) - objects) == 1


def test_failure_leaves_no_library(tmp_path: Path):
    (tmp_path / "scalar.cpp").write_text(SCALAR)
    failed = popc(tmp_path, "-o", "a.gp", "scalar.cpp")
    assert failed.returncode == 1
    assert failed.stderr.startswith("popc: `scalar.cpp` must compile, got:\n")
    assert "NUMBER" in failed.stderr
    assert not (tmp_path / "a.gp").exists()
