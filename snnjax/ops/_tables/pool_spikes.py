"""The table of maximum pools of lists: which entries are the first of the largest in their windows."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays


class Operands(NamedTuple):
    """The operands of ``snnjax_pool_spikes``."""

    ids: Annotated[Any, arrays("given_ids", "rows", "capacity")]
    values: Annotated[Any, arrays("floats", "rows", "capacity")]


class Results(NamedTuple):
    """Its result."""

    is_largest: Annotated[Any, arrays("flags", "rows", "capacity")]


class WindowNumbers(NamedTuple):
    """The static values: an image, and windows side by side."""

    height: int
    width: int
    channels: int
    window_height: int
    window_width: int


ROOTS = (Operands, Results)
STATIC = (WindowNumbers,)
