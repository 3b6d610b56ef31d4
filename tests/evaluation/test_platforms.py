"""Platforms declare which ops they support, and `import snnjax` does not load them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from snnjax import _dispatch, _platforms
from snnjax._batching import SHARED
from snnjax._dispatch import Target
from tests.project.architecture import ROOT

TARGET = Target("snnjax_test_platforms", "test_platforms", lambda x, static: 2 * x)


@pytest.fixture
def abacus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A platform that supports a target if its operands have one axis after the groups."""
    info = tmp_path / "abacus-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: abacus\nVersion: 0\n")
    (info / "entry_points.txt").write_text("[jax_plugins]\nabacus = abacus_plugin\n")
    (tmp_path / "abacus_plugin.py").write_text(
        "import jax\n"
        "from snnjax._dispatch import Kernel\n"
        "def obstacle(shapes, static):\n"
        "    return None if shapes.ndim == 2 else 'it'\n"
        "def call(x, static, results):\n"
        f"    return [jax.ffi.ffi_call({TARGET.name!r}, results[0])(x)]\n"
        "KERNEL = Kernel(call, obstacle, takes_groups=False)\n"
        "def snnjax_kernel(target):\n"
        f"    return KERNEL if target.name == {TARGET.name!r} else None\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return "abacus"


def test_platform_says_which_kernels_it_has(abacus):
    assert _platforms.kernel(abacus, TARGET) is not None
    assert _platforms.kernel(abacus, replace(TARGET, name="snnjax_other")) is None


def test_platform_of_which_nothing_is_known_has_no_kernels():
    assert _platforms.kernel("slide_rule", TARGET) is None


@pytest.mark.parametrize(
    "platforms, shape, calls",
    [
        (("abacus",), (3,), 1),
        (("abacus",), (3, 2), 0),  # which its kernel does not support
        (("slide_rule",), (3,), 0),
        (("abacus", "abacus"), (3,), 1),
        (("abacus", "slide_rule"), (3,), 0),
    ],
)
def test_op_is_lowered_to_the_kernel_that_all_platforms_have(monkeypatch, abacus, platforms, shape, calls):
    kernel, names = _platforms.kernel, ("cuda", "rocm")[: len(platforms)]
    # JAX lowers for no platforms but its own.
    monkeypatch.setattr(
        _platforms, "kernel", lambda name, target: kernel(platforms[names.index(name)], target)
    )
    traced = jax.jit(lambda x: _dispatch.evaluate(TARGET, x, 0, 0)).trace(jnp.ones(shape))
    text = traced.lower(lowering_platforms=names).as_text()
    assert text.count(TARGET.name) == calls
    assert text.count("stablehlo.multiply") == 1 - calls


@pytest.mark.parametrize("platform, calls", [("abacus", 1), ("slide_rule", 0)])
def test_groups_are_called_one_after_another(monkeypatch, abacus, platform, calls):
    """By a kernel that does not take them."""
    kernel = _platforms.kernel
    monkeypatch.setattr(_platforms, "kernel", lambda _, target: kernel(platform, target))
    each = jax.vmap(lambda x: _dispatch.evaluate(TARGET, x, SHARED, SHARED))
    text = jax.jit(each).trace(jnp.ones((4, 3))).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count(TARGET.name) == text.count("stablehlo.while") == calls


def test_import_loads_nothing_of_the_ipu():
    program = (
        "import snnjax, snnjax.train, snnjax.plot, snnjax.data, snnjax.losses, snnjax.metrics, sys\n"
        "sys.exit(len([name for name in sys.modules if name.startswith('snnjax.ipu')]))"
    )
    assert subprocess.run((sys.executable, "-c", program), cwd=ROOT, check=False).returncode == 0
