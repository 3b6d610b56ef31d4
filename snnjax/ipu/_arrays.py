"""Arrays by name on their way to the model: checked, completed with defaults, and in the dtypes of its C interface."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from jaxtyping import Float32, Int32, Shaped

# In the order of the enumerations in xla_ext/builders/network_plan.hpp and lif_step.hpp.
SURROGATES = ("superspike", "arctan", "triangle", "gaussian", "sigmoid", "boxcar", "straight_through")
RESETS = ("subtract", "zero", "none")
INPUTS = ("spikes", "events", "dense")
# Of neurons onto tiles: tilesOfLayers and tilesOfEqualColumns in xla_ext/builders/tiles_of_layers.hpp.
MAPPINGS = ("balanced", "equal")
RESET_TIMES = ("before_decay", "after_decay", "immediate")
# Ids of two bytes hold the pad id too.
MAX_SHORT_NEURONS = 65_535


def refuse(op: str, argument: str, expected: str, actual: object, way_out: str) -> NoReturn:
    """Raise in the form of all messages of the library."""
    raise ValueError(f"{op}: `{argument}` must {expected}, got {actual}. {way_out}.")


def number_of(op: str, argument: str, value: object, choices: Sequence[str]) -> int:
    """The number that the codelets have for a name."""
    if value not in choices:
        refuse(op, argument, f"be one of {', '.join(map(repr, choices))}", repr(value), "Choose one of these")
    return choices.index(value)


class Operands:
    """What a call reads and fills: arrays and numbers by the names that the C++ side asks for."""

    def __init__(self, op: str, given: Mapping[str, Any]) -> None:
        """Start from the arrays that the user gives."""
        self.op = op
        self._given = {name: np.asarray(array) for name, array in given.items()}
        self._used: set[str] = set()
        self.arrays: dict[str, np.ndarray] = {}
        self.numbers: dict[str, float] = {}
        self._results: dict[str, Any] = {}  # dtypes
        # What becomes of the results before the user has them.
        self.finish: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]] = lambda results: results

    def has(self, name: str) -> bool:
        """Whether the user gave an array of this name."""
        return name in self._given

    def shape(self, name: str, axes: str) -> tuple[int, ...]:
        """The shape of an array that must be there, as many axes as `axes` names."""
        self._used.add(name)
        if not self.has(name):
            refuse(self.op, name, f"be an array [{axes}]", "none", "Add it to the arrays")
        shape = self._given[name].shape
        if len(shape) != len(axes.split(", ")):
            refuse(self.op, name, f"have the axes [{axes}]", list(shape), "Reshape it")
        if 0 in shape:
            refuse(self.op, name, "hold something", f"shape {list(shape)}", "There is nothing to run for it")
        return shape

    def is_half(self, name: str) -> bool:
        """Whether an array is float16; any other dtype than that and float32 is refused."""
        dtype = self._given[name].dtype
        if dtype not in (np.float16, np.float32):
            refuse(self.op, name, "be float32 or float16", dtype.name, "Cast it")
        return dtype == np.float16

    def floats(self, name: str, shape: Sequence[int], default: Any = None) -> Float32[np.ndarray, "..."]:
        """Hand over an array of this shape, or one that broadcasts to it; `default` where the user gave none."""
        return self._hand_over(name, shape, default, np.float32)

    def integers(self, name: str, shape: Sequence[int], default: Any = None) -> Int32[np.ndarray, "..."]:
        """Likewise whole numbers; what does not fit into 32 bits becomes -1, which names nothing."""
        array = self._given.get(name)
        if array is not None and not np.issubdtype(array.dtype, np.integer):
            refuse(self.op, name, "hold whole numbers", array.dtype.name, "Cast it to int32")
        if array is not None and array.size and array.dtype.itemsize >= 4:
            limits = np.iinfo(np.int32)
            inside = (array >= limits.min) & (array <= limits.max)
            self._given[name] = np.where(inside, array, array.dtype.type(limits.max))
        return self._hand_over(name, shape, default, np.int32)

    def _hand_over(
        self, name: str, shape: Sequence[int], default: Any, dtype: Any
    ) -> Shaped[np.ndarray, "..."]:
        self._used.add(name)
        array = self._given.get(name, default)
        if array is None:
            refuse(self.op, name, f"be an array {list(shape)}", "none", "Add it to the arrays")
        array = np.asarray(array)
        try:
            full = np.broadcast_to(array, tuple(shape))
        except ValueError:
            refuse(self.op, name, f"have shape {list(shape)}", list(array.shape), "Make sizes agree")
        self.arrays[name] = np.array(full, dtype, order="C")
        return self.arrays[name]

    def result(self, name: str, shape: Sequence[int], dtype: Any = np.float32) -> None:
        """Ask for a result."""
        kind = np.int32 if np.issubdtype(dtype, np.integer) else np.float32
        self.arrays[name] = np.zeros(tuple(shape), kind)
        self._results[name] = dtype

    def results(self) -> dict[str, Shaped[np.ndarray, "..."]]:
        """The results, once the call has filled them."""
        return self.finish({name: self.arrays[name].astype(dtype) for name, dtype in self._results.items()})

    def check_all_used(self) -> None:
        """An array that nobody asks for has a misspelt name."""
        for name in self._given.keys() - self._used:
            known = ", ".join(sorted(self._used))
            refuse(self.op, name, f"be one of {known}", "an array of another name", "Leave it out")
