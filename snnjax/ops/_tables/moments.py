"""The table of `moments`: numbers of channels, and their mean and variance."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_ROWS = arrays("sums", "rows", "neurons")  # neurons are channels here
_CHANNELS = arrays("sums", "neurons")
_INSIDE = arrays("flags", "rows", given="optional")


class Operands(NamedTuple):
    """The operands of ``snnjax_moments``."""

    x: Annotated[Any, _ROWS]
    is_inside: Annotated[Any, _INSIDE]  # which rows count; without it all


class Results(NamedTuple):
    """Its results."""

    mean: Annotated[Any, _CHANNELS]
    variance: Annotated[Any, _CHANNELS]


class BackwardOperands(NamedTuple):
    """The operands of ``snnjax_moments_backward``: what is added to the cotangents of the rows that count."""

    g: Annotated[Any, _ROWS]
    x: Annotated[Any, _ROWS]
    is_inside: Annotated[Any, _INSIDE]
    term: Annotated[Any, _CHANNELS]
    factor: Annotated[Any, _CHANNELS]


class BackwardResults(NamedTuple):
    """Its result."""

    g_x: Annotated[Any, _ROWS]


ROOTS = (Operands, Results, BackwardOperands, BackwardResults)
STATIC = ()
