"""Pickles of arrays, read without unpickling: what NumPy writes comes back, anything else is refused in words."""

import pickle

import numpy as np
import pytest
from hypothesis import given

from snnjax._types import State
from snnjax.data import _pickled_arrays
from tests.data.damage import flips

CONTENT = {
    "list": [1, -2.5, "text", None, True, 2**70],
    "tuple": (1, (2, 3), ()),
    "array": np.arange(6, dtype=">i2").reshape(2, 3),
}


@pytest.mark.parametrize("protocol", [2, 3, 4])  # `np.save` writes 4
@pytest.mark.parametrize("dtype", ["?", "i1", "<u2", ">i4", "<f2", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back(protocol: int, dtype: str, order) -> None:
    array = np.asarray(np.arange(6).reshape(2, 3), dtype, order=order)
    found = _pickled_arrays.load(pickle.dumps({"a": [array, array]}, protocol))
    for each in found["a"]:
        np.testing.assert_array_equal(each.numbers(), array, strict=True)


def test_the_rest_comes_back() -> None:
    found = _pickled_arrays.load(pickle.dumps(CONTENT, 4))
    assert {**found, "array": 0} == {**CONTENT, "array": 0}
    np.testing.assert_array_equal(found["array"].numbers(), CONTENT["array"])
    objects = np.array([{"a": 1}, None], object)
    assert _pickled_arrays.load(pickle.dumps(objects, 4)).objects() == [{"a": 1}, None]


class Calls:
    """Unpickled, it would call a function."""

    def __init__(self, function, *arguments, state: State = None) -> None:
        self.what = function, arguments, state

    def __reduce__(self):
        return self.what


@pytest.mark.parametrize(
    "value, text",
    [
        (Calls(print, "called"), "a pickle that calls builtins.print"),
        (Calls(np.load, "file"), "a pickle that calls numpy"),
        (Calls(np.dtype, [("a", "i4")]), "a pickle with another call than those of arrays"),
        (Calls(np.dtype, "i4,i4"), "a pickle with another call than those of arrays"),
        (Calls(np.dtype, "V8"), "a pickle with another call than those of arrays"),
        (Calls(np.ndarray, (2**40,)), "a pickle with another call than those of arrays"),
        (
            Calls(np.dtype, "i4", state=(3, "!", None, None, None, -1, -1, 0)),
            "a pickle with the state of no array",
        ),
        ({1, 2}, "a pickle with EMPTY_SET"),
    ],
)
def test_everything_else_is_refused(value, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}"):
        _pickled_arrays.load(pickle.dumps(value, 4))


@pytest.mark.parametrize("shape", [(2**40,), (2**62, 4), (3,)])
def test_shapes_that_the_content_does_not_have_are_refused(shape) -> None:
    array = _pickled_arrays.PickledArray(shape, _pickled_arrays.PickledDtype("i1"), False, bytes(2))
    with pytest.raises(ValueError):
        array.numbers()


@given(flips(pickle.dumps(CONTENT, 4)))
def test_damaged_pickles_take_no_memory(content: bytes) -> None:
    try:
        found = _pickled_arrays.load(content)
        for each in found.values():
            if isinstance(each, _pickled_arrays.PickledArray):
                each.numbers()
    except MemoryError:
        raise
    except Exception:
        pass
