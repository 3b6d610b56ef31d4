"""The library of the model: present wherever it can be built, else a sentence says why not; and processes that end."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from snnjax import _targets
from snnjax.ipu.device import library
from tests.ipu.device.on_device import in_process
from tests.project.architecture import ROOT

LIBRARY = ROOT / "snnjax" / "_ipu_model.so"
CODELETS = ROOT / "snnjax" / "snnjax.gp"
MINUTES = "about 4 minutes on 2 cores"


def lines_of(*command: str | Path) -> list[str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture
def other_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The path of a library to load instead of the package's own."""
    monkeypatch.setenv("SNNJAX_IPU_MODEL", str(tmp_path / "other.so"))
    return tmp_path / "other.so"


if shutil.which("g++") and shutil.which("cmake"):  # elsewhere there is nothing to test

    def test_library_is_there_where_it_can_be_built() -> None:
        assert library.missing() is None

    def test_library_shows_its_interface_alone() -> None:
        names = {line.split()[-1] for line in lines_of("nm", "--dynamic", "--defined-only", LIBRARY)}
        assert {"GetPjrtApi", "snnjax_ipu_profile", "snnjax_ipu_set_lowering"} <= names
        assert [name for name in names - {"GetPjrtApi"} if not name.startswith("snnjax_ipu_")] == []

    @pytest.mark.parametrize("library", [LIBRARY, CODELETS])
    def test_library_needs_no_cpp_runtime(library: Path) -> None:
        """The machine that runs a wheel may have an older one than the machine that built it."""
        lines = lines_of("objdump", "--private-headers", library)
        needed = [line.split()[-1] for line in lines if "NEEDED" in line]
        assert needed
        assert [name for name in needed if name.startswith(("libstdc", "libgcc", "libpython"))] == []

    def test_codelets_of_other_tables_are_refused(tmp_path: Path) -> None:
        """Such as a `snnjax.gp` that was built before an array was added to a table."""
        digest, other = _targets.schema().encode(), b"0123456789abcdef"
        contents = CODELETS.read_bytes()
        assert b"Tables_" + digest in contents
        (tmp_path / "snnjax.gp").write_bytes(contents.replace(digest, other))
        program = """
import sys, jax, jax.numpy as jnp, snnjax
try:
    jax.jit(jnp.tanh)(jax.device_put(jnp.ones(3), jax.devices("ipu")[0]))
except jax.errors.JaxRuntimeError as error:
    sys.stdout.write(str(error).splitlines()[0])
"""
        assert in_process(program, SNNJAX_IPU_CODELETS=str(tmp_path / "snnjax.gp")) == (
            f"INVALID_ARGUMENT: compile: `snnjax.gp` must be built with the tables of arrays {digest.decode()}, "
            "as this library is, got others. Build both with `make kernels`."
        )


def test_missing_library_is_said_in_one_sentence(other_library: Path) -> None:
    assert library.missing() == (
        f"There is no {other_library}: in a clone, build it with `make kernels` "
        "(about 4 minutes on 2 cores); else install snnjax again where there is a C++20 compiler"
    )


def test_library_that_is_none_is_said_in_one_sentence(other_library: Path) -> None:
    other_library.write_bytes(b"no library")
    sentence = library.missing()
    assert sentence is not None
    assert sentence.startswith(f"{other_library} cannot be loaded (")
    assert sentence.endswith(
        "): in a clone, build it with `make kernels` (about 4 minutes on 2 cores); "
        "else install snnjax again where there is a C++20 compiler"
    )


def test_minutes_of_the_build_are_said_where_the_library_is_missing() -> None:
    """By pip after an editable install, and by `make kernels` before it starts; above, by the library's errors."""
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["overrides"]
    editable = next(each for each in overrides if each["if"].get("state") == "editable")
    message = editable["messages"]["after-success"]
    assert "without the IPU Model" in message
    assert MINUTES in message
    assert MINUTES in "".join(lines_of("make", "--dry-run", "kernels"))


def test_progress_of_the_build_goes_to_the_terminal() -> None:
    """Ninja's [n/m], which nothing may swallow; what is only listed builds nothing, however stale the kernels are."""
    build = next(line for line in lines_of("make", "--dry-run", "kernels") if "--build" in line)
    assert build == ": .venv/bin/cmake --build build/release"


def test_import_loads_no_library() -> None:
    program = "import snnjax.ipu, sys; sys.exit('_ipu_model.so' in open('/proc/self/maps').read())"
    known = {**os.environ, "JAX_PLATFORMS": "cpu"}
    assert subprocess.run((sys.executable, "-c", program), cwd=ROOT, env=known, check=False).returncode == 0


# The program runs on a thread of the device, and its callback when Python has begun to end.
RUNNING = """
import threading
import time
import jax
import numpy as np

begun = threading.Event()

def slow(x):
    begun.set()
    time.sleep(0.3)
    print("called", flush=True)
    return x

shape = jax.ShapeDtypeStruct((), np.float32)
jax.jit(lambda x: jax.pure_callback(slow, shape, x) + 1)(jax.device_put(np.float32(1), jax.devices("ipu")[0]))
assert begun.wait(60)
"""
LAST = """
import atexit
import jax

@atexit.register
def last():
    print(jax.jit(lambda x: x + 1)(jax.device_put(1.0, jax.devices("ipu")[0])))

jax.jit(lambda x: x * 2)(jax.device_put(1.0, jax.devices("ipu")[0]))
"""


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    "program, output",
    [(RUNNING, "called\n"), (LAST, "2.0\n")],
    ids=["while a program runs", "with a function that compiles"],
)
def test_process_ends(program: str, output: str) -> None:
    assert in_process(program) == output
