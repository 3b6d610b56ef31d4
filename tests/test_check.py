"""The error template, and the checks that use it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax import _check


def test_message_has_the_template() -> None:
    text = _check.message("spike", "x", "be small", 7, "Divide it")
    assert text == "spike: `x` must be small, got 7. Divide it."
    with pytest.raises(ValueError, match=r"^spike: `x` must be small, got 7. Divide it.$"):
        _check.fail("spike", "x", "be small", 7, "Divide it")


def test_check_raises_only_where_the_condition_fails() -> None:
    _check.check(True, "op", "x", "be", 1, "Do")
    with pytest.raises(ValueError, match=r"^op: `x` must be, got 1. Do.$"):
        _check.check(False, "op", "x", "be", 1, "Do")


@pytest.mark.parametrize("value", [2, 3, np.int64(2), np.uint8(200)])
def test_check_integer_takes_whole_numbers(value: Any) -> None:
    _check.check_integer("op", "n", value, 2)


@pytest.mark.parametrize("value", [1, True, 2.0, "2", None, np.float32(3), np.array([3])])
def test_check_integer_refuses_all_else(value: Any) -> None:
    with pytest.raises(ValueError) as caught:
        _check.check_integer("op", "n", value, 2)
    hint = "Pass a larger integer" if type(value) is int else "Pass an int"
    actual = "int64[1]" if isinstance(value, np.ndarray) else repr(value)
    assert str(caught.value) == f"op: `n` must be an integer of at least 2, got {actual}. {hint}."


def test_check_choice_lists_the_choices() -> None:
    _check.check_choice("op", "way", "up", ("up", "down"))
    with pytest.raises(ValueError) as caught:
        _check.check_choice("op", "way", "left", ("up", "down"))
    assert str(caught.value) == "op: `way` must be one of 'up', 'down', got 'left'. Choose one of these."


def test_values_are_shown_in_short() -> None:
    shown = [_check.shown(value) for value in (3, "3", jnp.zeros((200, 3)), np.float32(2), list(range(99)))]
    assert shown[:4] == ["3", "'3'", "float32[200, 3]", "np.float32(2.0)"]
    assert shown[4].startswith("[0, 1, 2,") and shown[4].endswith("...") and len(shown[4]) < 70


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_check_float_array_takes_floats(dtype: Any) -> None:
    _check.check_float_array("op", "x", jnp.zeros(1, dtype))


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint8, bool, jnp.complex64])
def test_check_float_array_refuses_all_else(dtype: Any) -> None:
    with pytest.raises(ValueError) as caught:
        _check.check_float_array("op", "x", jnp.zeros(1, dtype))
    name = jnp.dtype(dtype).name
    assert str(caught.value) == (
        f"op: `x` must have a floating-point dtype, got {name}. Cast it, for instance x.astype(jnp.float32)."
    )


@pytest.mark.parametrize("value", [np.zeros((2, 3)), jnp.zeros((2, 3)), [[1, 2, 3], [4, 5, 6]]])
def test_check_shape_takes_arrays_and_lists(value: Any) -> None:
    _check.check_shape("op", "x", value, (2, 3), "rows, columns", "Transpose it")
    _check.check_shape("op", "x", value, (None, 3), "rows, columns", "Transpose it")
    for shape, wanted in (((3, 2), "3, 2"), ((2,), "2"), ((None, 4), "any, 4"), ((2, 3, 1), "2, 3, 1")):
        with pytest.raises(ValueError) as caught:
            _check.check_shape("op", "x", value, shape, "rows, columns", "Transpose it")
        expected = f"op: `x` must have shape [rows, columns] = [{wanted}], got [2, 3]. Transpose it."
        assert str(caught.value) == expected


class _Tensor:
    """What a tensor of another library shares with an array."""

    shape, dtype, ndim = (2,), np.dtype(np.float32), 1


@pytest.mark.parametrize("value", [jax.ShapeDtypeStruct((2,), jnp.float32), _Tensor(), [1.0], 1.0, None])
def test_check_array_refuses_what_only_has_the_shape_of_one(value: Any) -> None:
    with pytest.raises(
        ValueError, match=f"`x` must be an array, got {type(value).__name__}. Pass a JAX or NumPy"
    ):
        _check.check_array("op", "x", value)
