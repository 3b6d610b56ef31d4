"""The error template, and the checks that use it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import DTypeLike

from snnjax import _check


def test_fail_raises_the_message() -> None:
    text = "spike: `x` must be small, got 7. Divide it."
    with pytest.raises(ValueError) as caught:
        _check.fail(text)
    assert str(caught.value) == text


@pytest.mark.parametrize("value", [2, 3, np.int64(2), np.uint8(200)])
def test_check_integer_takes_whole_numbers(value) -> None:
    _check.check_integer("spike", "n", value, 2)


@pytest.mark.parametrize("value", [1, True, 2.0, "2", None, np.float32(3), np.array([3])])
def test_check_integer_refuses_all_else(value) -> None:
    with pytest.raises(ValueError) as caught:
        _check.check_integer("spike", "n", value, 2)
    hint = "Pass 2 or more" if type(value) is int else "Pass an int, such as 2"
    actual = "int64[1]" if isinstance(value, np.ndarray) else repr(value)
    assert str(caught.value) == f"spike: `n` must be an integer of at least 2, got {actual}. {hint}."


def test_check_choice_lists_the_choices() -> None:
    _check.check_choice("spike", "way", "up", ("up", "down"))
    with pytest.raises(ValueError) as caught:
        _check.check_choice("spike", "way", "left", ("up", "down"))
    assert str(caught.value) == "spike: `way` must be 'up' or 'down', got 'left'. Choose one of these."


def test_too_large_integer_is_refused() -> None:
    with pytest.raises(ValueError) as caught:
        _check.check_integer("spike", "n", 2**31, 2)
    assert str(caught.value) == "spike: `n` must be below 2**31, got 2147483648. Pass a smaller integer."


def test_short_repr_cuts_long_values() -> None:
    texts = [
        _check.short_repr(value) for value in (3, "3", jnp.zeros((200, 3)), np.float32(2), list(range(99)))
    ]
    assert texts[:4] == ["3", "'3'", "float32[200, 3]", "np.float32(2.0)"]
    assert texts[4].startswith("[0, 1, 2,") and texts[4].endswith("...") and len(texts[4]) < 70


def test_type_words_have_an_article() -> None:
    values = (None, 3, "3", [], jnp.zeros(2), np.zeros(2), ValueError())
    words = ["None", "an int", "a str", "a list", "an array", "an array", "a ValueError"]
    assert [_check.type_words(value) for value in values] == words


def test_counts_and_alternatives_are_english() -> None:
    assert [_check.plural(count, "layer") for count in (0, 1, 2)] == ["0 layers", "1 layer", "2 layers"]
    assert [_check.alternatives("abc"[:n]) for n in (1, 2, 3)] == ["a", "a or b", "a, b or c"]


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.int64, np.uint8])
def test_check_integers_takes_integers_and_nothing(dtype: DTypeLike) -> None:
    _check.check_integers("spike", "x", np.zeros(3, dtype))
    _check.check_integers("spike", "x", np.zeros(0))


def test_check_integers_refuses_all_else() -> None:
    with pytest.raises(ValueError) as caught:
        _check.check_integers("spike", "x", np.zeros(3, np.float32))
    assert str(caught.value) == "spike: `x` must hold integers, got float32. Cast it with x.astype(int)."


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_check_float_array_takes_floats(dtype: DTypeLike) -> None:
    _check.check_float_array("spike", "x", jnp.zeros(1, dtype))


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.uint8, bool, jnp.complex64])
def test_check_float_array_refuses_all_else(dtype: DTypeLike) -> None:
    with pytest.raises(ValueError) as caught:
        _check.check_float_array("spike", "x", jnp.zeros(1, dtype))
    name = jnp.dtype(dtype).name
    assert str(caught.value) == (
        f"spike: `x` must have a floating-point dtype, got {name}. Cast it with x.astype(jnp.float32)."
    )


def test_check_float_asks_for_a_float_in_place_of_an_int() -> None:
    with pytest.raises(ValueError) as caught:
        _check.check_float("spike", "x", 3)
    assert str(caught.value) == "spike: `x` must have a floating-point dtype, got int32. Pass a float."


@pytest.mark.parametrize("value", [np.zeros((2, 3)), jnp.zeros((2, 3)), [[1, 2, 3], [4, 5, 6]]])
def test_check_shape_takes_arrays_and_lists(value) -> None:
    _check.check_shape("spike", "x", value, (2, 3), "rows, columns", "Transpose it")
    _check.check_shape("spike", "x", value, (None, 3), "rows, columns", "Transpose it")
    for shape, wanted in (((3, 2), "3, 2"), ((2,), "2"), ((None, 4), "any, 4"), ((2, 3, 1), "2, 3, 1")):
        with pytest.raises(ValueError) as caught:
            _check.check_shape("spike", "x", value, shape, "rows, columns", "Transpose it")
        expected = f"spike: `x` must have shape [rows, columns] = [{wanted}], got [2, 3]. Transpose it."
        assert str(caught.value) == expected


class _Tensor:
    """What a tensor of another library shares with an array."""

    shape, dtype, ndim = (2,), np.dtype(np.float32), 1


@pytest.mark.parametrize("value", [jax.ShapeDtypeStruct((2,), jnp.float32), _Tensor(), [1.0], 1.0, None])
def test_check_array_refuses_what_only_has_the_shape_of_one(value) -> None:
    with pytest.raises(ValueError) as caught:
        _check.check_array("spike", "x", value)
    words = _check.type_words(value)
    assert str(caught.value) == f"spike: `x` must be an array, got {words}. Pass a JAX or NumPy array."
