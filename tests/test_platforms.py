"""Platforms declare which ops they support, and `import snnjax` does not load them."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from snnjax import _dispatch, _platforms
from tests.architecture import ROOT

TARGET = "snnjax_test_platforms"


@pytest.fixture
def abacus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A platform that supports a target if its operands have one axis after the groups."""
    info = tmp_path / "abacus-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: abacus\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[jax_plugins]\nabacus = abacus_plugin\n")
    (tmp_path / "abacus_plugin.py").write_text(
        "def snnjax_obstacle():\n"
        f"    known = {TARGET!r}\n"
        "    return lambda target, shapes, static: None if target == known and shapes.ndim == 2 else 'it'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "abacus"


def test_platform_says_what_it_takes(abacus):
    assert _platforms.takes(abacus, TARGET, jax.ShapeDtypeStruct((1, 3), "float32"), ())
    assert not _platforms.takes(abacus, TARGET, jax.ShapeDtypeStruct((1, 3, 2), "float32"), ())
    assert not _platforms.takes(abacus, "snnjax_other", jax.ShapeDtypeStruct((1, 3), "float32"), ())


def test_platform_of_which_nothing_is_known_takes_nothing():
    assert not _platforms.takes("slide_rule", TARGET, jax.ShapeDtypeStruct((1, 3), "float32"), ())


@pytest.mark.parametrize("platform, calls", [("abacus", 1), ("slide_rule", 0)])
def test_op_is_lowered_to_its_target_where_the_platform_takes_it(monkeypatch, abacus, platform, calls):
    kernel = _dispatch.Kernel(
        lambda x, static, groups: jax.ffi.ffi_call(TARGET, jax.ShapeDtypeStruct(x.shape, x.dtype))(x),
        lambda shapes, static: None,
    )
    monkeypatch.setattr(_platforms, "takes", _translated(platform))

    def double(x):
        return _dispatch.evaluate(TARGET, lambda x, static: 2 * x, x, 0, 0, kernel=kernel)

    text = jax.jit(double).trace(jnp.ones(3)).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count(TARGET) == calls
    assert text.count("stablehlo.multiply") == 1 - calls


def _translated(platform: str):
    """`takes` with `platform` in place of one that JAX has, because JAX lowers for no other."""
    takes = _platforms.takes
    return lambda _, *call: takes(platform, *call)


def test_import_loads_nothing_of_the_ipu():
    program = (
        "import snnjax, snnjax.train, snnjax.plot, snnjax.data, snnjax.losses, snnjax.metrics, sys\n"
        "sys.exit(len([name for name in sys.modules if name.startswith('snnjax.ipu')]))"
    )
    assert subprocess.run((sys.executable, "-c", program), cwd=ROOT, check=False).returncode == 0
