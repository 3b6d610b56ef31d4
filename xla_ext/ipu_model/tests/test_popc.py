"""The command line of popc.py: flags, cache and exit status."""

import os
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

ALL_FIELDS = """
#include <poplar/Vertex.hpp>
#ifndef NAME
#define NAME requires
#endif
namespace outer {
enum class Mode : unsigned char { A, B };
template <typename T>
struct All : poplar::Vertex {
  poplar::Input<poplar::Vector<T>> in;
  poplar::Vector<poplar::InOut<poplar::Vector<half, poplar::VectorLayout::ONE_PTR, 8>>> rows;
  poplar::Input<poplar::VectorList<unsigned short, poplar::VectorListLayout::DELTAN>> list;
  poplar::Output<T> out;
  poplar::Vector<int> state;
  Mode NAME;
  std::size_t count;
  const T scale;
  float table[3];
  static int shared;
  All();
  int function(int) const;
  bool compute() {
    for (const T value : in) *out = *out + value * scale;
    *out = *out + T(rows[0][0]) + T(list[0].size()) + T(count) + T(state.size());
    return NAME == Mode::A;
  }
};
template struct All<float>;
struct Workers : poplar::MultiVertex {
  poplar::InOut<poplar::Vector<long>> counts;
  void compute(unsigned worker) { counts[worker] = int(worker); }
};
}  // namespace outer
"""


def popc(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs popc.py in `folder`, where its cache lies."""
    command = [sys.executable, str(POPC), "--cache", "cache", "--flag=-O0", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def written(folder: Path) -> set[str]:
    """The object files in the cache."""
    return {path.name for path in (folder / "cache").glob("*.o")}


def test_cache_serves_the_same_text_and_flags(tmp_path: Path):
    (tmp_path / "scalar.cpp").write_text(SCALAR)
    for _ in range(2):
        assert popc(tmp_path, "-o", "a.gp", "-j", "2", "scalar.cpp", "-DNUMBER=3").returncode == 0
    objects = written(tmp_path)
    assert len(objects) == 1
    for flag in ("-DNUMBER=4", "-std=c++14"):
        assert popc(tmp_path, "-o", "a.gp", "scalar.cpp", "-DNUMBER=3", flag).returncode == 0
    assert len(written(tmp_path) - objects) == 2


@pytest.mark.parametrize("command", ["env {}", "env 'A VARIABLE=1' {} -DUNUSED='1 2'", ""])
def test_compiler_is_split_into_words_as_by_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
):
    monkeypatch.setenv("CXX", command.format(os.environ.get("CXX", "g++")))
    (tmp_path / "scalar.cpp").write_text(SCALAR)
    built = popc(tmp_path, "-o", "a.gp", "scalar.cpp", "-DNUMBER=3")
    assert (built.returncode, built.stderr) == (0, "")
    assert (tmp_path / "a.gp").exists()


def test_compiler_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O1")
    (tmp_path / "scalar.cpp").write_text(SCALAR)
    failed = popc(tmp_path, "-o", "a.gp", "scalar.cpp", "-DNUMBER=3")
    assert failed.stderr.startswith("popc: `no-such-compiler` must be installed, got no such program.")


def test_compiler_with_an_open_quotation_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CXX", "'g++")
    (tmp_path / "scalar.cpp").write_text(SCALAR)
    failed = popc(tmp_path, "-o", "a.gp", "scalar.cpp", "-DNUMBER=3")
    assert failed.stderr.startswith(
        'popc: `CXX` must be words of a shell, got "\'g++" (No closing quotation). '
    )


def test_failure_leaves_no_library(tmp_path: Path):
    (tmp_path / "scalar.cpp").write_text(SCALAR)
    failed = popc(tmp_path, "-o", "a.gp", "scalar.cpp")
    assert failed.returncode == 1
    assert failed.stderr.startswith("popc: `scalar.cpp` must compile, got:\n")
    assert "NUMBER" in failed.stderr
    assert not (tmp_path / "a.gp").exists()


@pytest.mark.parametrize("standard", ["c++11", "c++17", "c++20"])
def test_standard_is_the_one_asked_for(tmp_path: Path, standard: str):
    """Every kind of field, in any standard; one of the names is a keyword from C++20 on."""
    (tmp_path / "all.cpp").write_text(ALL_FIELDS)
    newest = standard == "c++20"
    done = popc(tmp_path, "-o", "a.gp", "all.cpp", f"-std={standard}", *(["-DNAME=x"] if newest else []))
    assert (done.returncode, done.stderr) == (0, "")
    older = popc(tmp_path, "-o", "b.gp", "all.cpp", f"--flag=-std={standard}")
    assert older.returncode == (1 if newest else 0)


CASTS = """
#include <ipudef.h>
#include <poplar/Vertex.hpp>
using namespace poplar;
struct Casts : Vertex {
  Input<Vector<float>> in;
  Vector<Input<Vector<float, VectorLayout::ONE_PTR, 8>>> rows;
  InOut<Vector<float>> inout;
  Output<Vector<float>> out;
  void compute() {
    auto a = reinterpret_cast<float2 *>(&in[0]);
    const float2* b = reinterpret_cast<const float2*>(&rows[0][2]);
    auto c = reinterpret_cast <float4 *>(&inout[0]);
    const float* const start = in.begin();
    auto d = reinterpret_cast<float2 *>(reinterpret_cast<unsigned long>(start));
    out[0] = a[0][1] + (*b)[0] + (*c)[3] + d[0][0] + reinterpret_cast<float2 &>(in[0])[1];
    STATEMENT
  }
};
"""


def test_cast_may_take_const_from_an_input(tmp_path: Path):
    (tmp_path / "casts.cpp").write_text(CASTS)
    for standard in ("c++11", "c++20"):
        done = popc(tmp_path, "-o", "a.gp", "casts.cpp", "-DSTATEMENT=", f"-std={standard}")
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("statement", ["in[0]=1;", "rows[0][0]=1;", "float*p=&in[0];"])
def test_input_is_not_written_to_by_mistake(tmp_path: Path, statement: str):
    (tmp_path / "casts.cpp").write_text(CASTS)
    failed = popc(tmp_path, "-o", "a.gp", "casts.cpp", f"-DSTATEMENT={statement}")
    assert failed.returncode == 1
    assert "error" in failed.stderr


@pytest.mark.parametrize(
    "text",
    [
        "using namespace poplar; class A : public Vertex { FIELDS };",
        "namespace mine { using namespace poplar; namespace inner { class A : public Vertex { FIELDS }; } }",
        "namespace poplar { namespace mine { class A : public Vertex { FIELDS }; } }",
        "namespace poplar { template <typename T> class A : public Vertex { FIELDS }; template class A<int>; }",
        "namespace poplar { template <typename T> class A : public Vertex { FIELDS }; }"
        "template class poplar::A<poplar::Vector<int>>;",
        "using poplar::Input; using poplar::Vector; using poplar::VectorList; using poplar::VectorListLayout;"
        "class A : public poplar::Vertex { FIELDS };",
    ],
)
def test_names_of_poplar_need_no_prefix(tmp_path: Path, text: str):
    fields = "Input<Vector<float>> in; Vector<Input<float>> rows; Input<VectorList<int, VectorListLayout::DELTAN>> t;"
    body = f"{fields} public: bool compute() {{ return in.size() + rows.size() + t.size() > 0; }}"
    (tmp_path / "names.cpp").write_text(f"#include <poplar/Vertex.hpp>\n{text}\n")
    done = popc(tmp_path, "-o", "a.gp", "names.cpp", f"-DFIELDS={body}")
    assert (done.returncode, done.stderr) == (0, "")
    assert b"VectorList" in (tmp_path / "a.gp").read_bytes()  # what connects the field is there


def test_library_shows_its_entry_alone(tmp_path: Path):
    (tmp_path / "scalar.cpp").write_text(SCALAR)
    assert (
        popc(tmp_path, "-o", "a.gp", "scalar.cpp", "-DNUMBER=3", "-O1", "-g", "--target=ipu2").returncode == 0
    )
    command = ["nm", "--dynamic", "--defined-only", str(tmp_path / "a.gp")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["ipu_model_vertex_types"]


SHORT_VECTORS = """
#include <poplar/Vertex.hpp>
DECLARATION
struct Twice : poplar::Vertex {
  poplar::InOut<float> x;
  void compute() {
    static_assert(sizeof(Pair) == 8, "two elements");
    Pair pair = {x, x};
    pair += pair;
    *x = pair[1];
  }
};
"""


@pytest.mark.parametrize(
    "declaration, hint",
    [
        ("typedef float Pair __attribute__((ext_vector_type(2)));", ""),
        ("using Pair = float __attribute__((__ext_vector_type__(2)));", ""),
        ("typedef int32_t Pair __attribute__ (( ext_vector_type (1 + 1) ));", ""),
        ("typedef long Pair __attribute__((ext_vector_type(2)));", "other than long"),
        ("typedef __attribute__((ext_vector_type(2))) float Pair;", "must be a typedef"),
    ],
)
def test_short_vectors_of_clang_are_honoured_or_refused(tmp_path: Path, declaration: str, hint: str):
    (tmp_path / "twice.cpp").write_text(
        "#include <cstdint>" + SHORT_VECTORS.replace("DECLARATION", declaration)
    )
    done = popc(tmp_path, "-o", "a.gp", "twice.cpp")
    assert done.returncode == (1 if hint else 0), done.stderr
    assert hint in done.stderr


ASSEMBLY = """
#include <poplar/Vertex.hpp>
template <typename T> T squashed(T x) { T y; asm volatile("mov %0, %1" : "=r"(y) : "r"(x)); return y; }
struct A : poplar::Vertex { poplar::InOut<int> x; void compute() { *x = CALL(x); } };
"""


def test_assembly_in_a_template_matters_where_it_is_instantiated(tmp_path: Path):
    (tmp_path / "a.cpp").write_text(ASSEMBLY)
    done = popc(tmp_path, "-o", "a.gp", "a.cpp", "-DCALL=int")
    assert (done.returncode, done.stderr) == (0, "")
    failed = popc(tmp_path, "-o", "b.gp", "a.cpp", "-DCALL=squashed<int>")
    assert failed.returncode == 1
    assert "assemblyOfTheIpu" in failed.stderr
    assert "takes a form in C++ beside it" in failed.stderr


LOST = """
#include <cmath>
#include <poplar/Vertex.hpp>
HEAD { public: poplar::Output<float> out; static constexpr float top = INFINITY;
  bool compute() { *out = top; return true; } };
"""


def test_vertex_class_that_the_parser_loses_is_refused_by_name(tmp_path: Path):
    head = "poplar::Vertex plain(); namespace { class A : public decltype(plain())"
    (tmp_path / "lost.cpp").write_text(LOST.replace("HEAD", head) + "}")
    failed = popc(tmp_path, "-o", "a.gp", "lost.cpp")
    assert failed.returncode == 1
    assert failed.stderr.startswith("popc: `A` must be written so")
    assert not written(tmp_path)
    assert not (tmp_path / "a.gp").exists()


def test_macro_of_a_system_header_loses_nothing(tmp_path: Path):
    (tmp_path / "kept.cpp").write_text(LOST.replace("HEAD", "class Kept : public poplar::Vertex"))
    done = popc(tmp_path, "-o", "a.gp", "kept.cpp")
    assert (done.returncode, done.stderr) == (0, "")
    assert b"Kept" in (tmp_path / "a.gp").read_bytes()
