"""The parts of JAX without a promise are there, in this version and in all that `pyproject.toml` allows."""

import re
import tomllib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from snnjax_jax_plugin import _jax_private

from snnjax import _jax_compat
from tests.project import architecture


def version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:2])


def test_jax_is_one_that_is_supported() -> None:
    """The suite runs on the oldest and on the newest; a wider range needs a run on what it adds."""
    dependencies = tomllib.loads((architecture.ROOT / "pyproject.toml").read_text())["project"][
        "dependencies"
    ]
    ranges = {re.split(r"\W", each)[0]: each for each in dependencies}
    for package, installed in (("jax", jax.__version__), ("jaxlib", jax.lib.__version__)):
        lowest, beyond = re.findall(r"[<>]=?([\d.]+)", ranges[package])
        assert version(lowest) <= version(installed) < version(beyond)
        excluded = re.findall(r"!=([\d.]+)", ranges[package])
        assert set(excluded) == set(_jax_compat.WRONG_NUMBERS)
        assert installed not in excluded


def test_jaxlib_with_wrong_numbers_is_reported() -> None:
    """0.10.2 had one wrong row of 32,769 (jax-ml/jax 39103); the installed version has none."""
    with pytest.warns(
        RuntimeWarning, match=r"jaxlib 0.10.2 computes wrong numbers on CPUs \(jax-ml/jax 39103\)"
    ):
        _jax_compat.warn_of_wrong_numbers("0.10.2")
    rows = np.zeros((32769, 3), np.float32)
    rows[:, 0] = np.arange(32769)
    squares = jax.jit(jax.vmap(lambda row: jnp.sum((jnp.eye(3) @ row) ** 2)))(rows)
    np.testing.assert_array_equal(squares, rows[:, 0] ** 2)


def test_programs_of_tests_are_lowered_with_few_dialects() -> None:
    """As tests/conftest.py asks: contexts of a known version lack the dialect of GPUs, those of others have it."""
    with _jax_compat.make_ir_context() as context:
        assert context.is_registered_operation("stablehlo.add")
        is_known = version(jax.lib.__version__) == (0, 10)
        assert context.is_registered_operation("gpu.launch") != is_known


def test_platform_that_is_registered_is_known_and_donates(monkeypatch) -> None:
    assert _jax_private.is_known_platform("cpu")
    assert not _jax_private.is_known_platform("snnjax_test")
    donating = list(_jax_private._mlir._platforms_with_donation)
    monkeypatch.setattr(_jax_private._mlir, "_platforms_with_donation", donating)
    factories = dict(_jax_private.xla_bridge._backend_factories)
    monkeypatch.setattr(_jax_private.xla_bridge, "_backend_factories", factories)
    _jax_private.register_platform("snnjax_test", lambda: None)
    assert _jax_private.is_known_platform("snnjax_test")
    assert donating.count("snnjax_test") == 1
    registration = factories["snnjax_test"]
    assert registration.fail_quietly
    assert registration.priority < factories["cpu"].priority


def test_primitives_of_other_platforms_are_those_without_a_rule() -> None:
    names = {primitive.name for primitive in _jax_private.primitives_of_others("snnjax_test")}
    assert {"eig", "schur"} <= names
    assert not {"add", "sin", "cholesky"} & names


def test_private_names_are_used_in_one_module_each() -> None:
    private = ("jax._src", "jaxlib", "jax.interpreters", "jax.extend")
    found = {
        path
        for path in architecture.python_files("snnjax", "xla_ext/pjrt/snnjax_jax_plugin")
        for name, _ in architecture.imports((architecture.ROOT / path).read_text())
        if any(architecture.starts_with(name, prefix) for prefix in private)
    }
    assert found == {"snnjax/_jax_compat.py", "xla_ext/pjrt/snnjax_jax_plugin/_jax_private.py"}
