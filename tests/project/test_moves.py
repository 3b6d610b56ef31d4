"""What tests move in NumPy outside of `jit` is what programs yield, in a version whose primitives are known."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from tests.numbers import assert_same_bits

MOVES: dict[str, Callable[[jax.Array], jax.Array]] = {
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


def numbers_of(dtype: DTypeLike) -> np.ndarray:
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
        is_known = jax.lib.__version__.startswith("0.10.")
        assert any("backend_compile" in event for event in compiled) != is_known
    finally:
        jax.monitoring.unregister_event_duration_listener(monitor)
    device = jax.devices("cpu")[1]
    there = jax.device_put(np.ones((3, 4), np.float32), device)
    for move in (jnp.ravel, jnp.transpose, lambda x: x[0]):
        assert move(there).devices() == {device}
    with jax.default_device(device):
        assert jnp.zeros((3, 4)).devices() == {device}
