"""The parts of JAX without a promise are there, in this version and in all that `pyproject.toml` allows."""

import re
import tomllib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from snnjax_jax_plugin import _jax_private

from snnjax import _jax_compat
from tests.numbers import assert_same_bits
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


MOVES: dict[str, Callable[[Any], Any]] = {
    "as it is": jnp.asarray,
    "broadcast": lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)),
    "concatenated": lambda x: jnp.concatenate([x, x], 1),
    "filled": lambda x: jnp.full_like(x, 3),
    "joined": lambda x: x.reshape(-1),
    "numbered": lambda _: jnp.arange(3),
    "numbered in two axes": lambda _: jax.lax.broadcasted_iota(jnp.float32, (2, 3), 1),
    "one column": lambda x: x[:, 1],
    "one row from the end": lambda x: x[-1],
    "sliced": lambda x: x[1:, ::2],
    "sliced beyond the end": lambda x: jax.lax.dynamic_slice(x, (np.int32(5), np.int32(-5)), (2, 2)),
    "without an axis": lambda x: x[:1].squeeze(0),
    "turned": lambda x: x.T,
}
DTYPES = (jnp.float32, jnp.bfloat16, jnp.float16, jnp.int32, jnp.int8, jnp.uint16, jnp.uint32, jnp.bool_)


def numbers_of(dtype: Any) -> np.ndarray:
    """Some of a dtype, with the largest, subnormal ones and those that are no number."""
    if jnp.issubdtype(dtype, jnp.floating):
        limits = jnp.finfo(dtype)
        extreme = [limits.max, limits.smallest_subnormal, -0.0, np.inf, np.nan, -1.5, 0.1, 1 / 3]
    else:
        limits = np.iinfo(np.uint8 if dtype == jnp.bool_ else dtype)
        extreme = [limits.min, limits.max, limits.max - 1, limits.max // 3, 0, 1, 2, 77]
    return np.array([*extreme, 0, 1, 2, 3]).astype(dtype).reshape(3, 4)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_numbers_that_tests_move_without_programs_are_those_of_programs(dtype) -> None:
    """As tests/conftest.py asks: bits, dtypes and whether these are weak are those that `jax.jit` yields."""

    def moved(numbers: jax.Array) -> dict[str, jax.Array]:
        # Programs differ in whether a subnormal number is true; floats become integers and bool in programs only.
        kinds = [
            to for to in DTYPES if not jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(to, jnp.floating)
        ]
        converted = {f"to {np.dtype(to).name}": numbers.astype(to) for to in kinds}
        return {**converted, **{name: move(numbers) for name, move in MOVES.items()}}

    numbers = jax.device_put(numbers_of(dtype))
    ours, theirs = moved(numbers), jax.jit(moved)(numbers)
    for name, ours_of in ours.items():
        assert_same_bits({name: ours_of}, {name: theirs[name]})
        assert ours_of.weak_type == theirs[name].weak_type
        assert ours_of.committed == theirs[name].committed


def test_tests_move_numbers_without_programs_where_these_may_be_anywhere() -> None:
    """A known version compiles nothing for them, others do; arrays that are on a chosen device stay on it."""
    compiled = []
    monitor = lambda event, seconds, **_: compiled.append(event)  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(monitor)
    try:
        for move in MOVES.values():
            move(jax.device_put(np.ones((3, 4), np.float32)))
        is_known = version(jax.lib.__version__) == (0, 10)
        assert any("backend_compile" in event for event in compiled) != is_known
    finally:
        jax.monitoring.unregister_event_duration_listener(monitor)
    device = jax.devices("cpu")[1]
    there = jax.device_put(np.ones((3, 4), np.float32), device)
    for move in (jnp.ravel, jnp.transpose, lambda x: x[0]):
        assert move(there).devices() == {device}
    with jax.default_device(device):
        assert jnp.zeros((3, 4)).devices() == {device}


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
