"""The table of `moments`: numbers of channels, and their mean and variance."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_IMAGES = arrays("sums", "steps", "batch", "neurons")  # neurons are pixels and channels here
_CHANNELS = arrays("sums", "channels")
_INSIDE = arrays("flags", "steps", "batch", "pixels", given="optional")


class Operands(NamedTuple):
    """The operands of ``snnjax_moments``."""

    x: Annotated[Any, _IMAGES]
    is_inside: Annotated[Any, _INSIDE]  # which pixels count; without it all


class Results(NamedTuple):
    """Its results."""

    mean: Annotated[Any, _CHANNELS]
    variance: Annotated[Any, _CHANNELS]


class BackwardOperands(NamedTuple):
    """The operands of ``snnjax_moments_backward``: what is added to the cotangents of the pixels that count."""

    g: Annotated[Any, _IMAGES]
    x: Annotated[Any, _IMAGES]
    is_inside: Annotated[Any, _INSIDE]
    term: Annotated[Any, _CHANNELS]
    factor: Annotated[Any, _CHANNELS]


class BackwardResults(NamedTuple):
    """Its result."""

    g_x: Annotated[Any, _IMAGES]


ROOTS = (Operands, Results, BackwardOperands, BackwardResults)
STATIC = ()
