"""The table of `lif_step`, for codelets: the CPU has no kernel for it."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_ROWS = arrays("floats", "rows", "neurons")
_CONSTANT = arrays("floats", "neurons_or_1")


class Operands(NamedTuple):
    """The operands of ``snnjax_lif_step``."""

    v: Annotated[Any, _ROWS]
    current: Annotated[Any, _ROWS]
    decay: Annotated[Any, _CONSTANT]
    threshold: Annotated[Any, _CONSTANT]
    gain: Annotated[Any, _CONSTANT]


class Results(NamedTuple):
    """Its results."""

    v: Annotated[Any, _ROWS]
    spikes: Annotated[Any, _ROWS]


class BackwardOperands(NamedTuple):
    """The operands of ``snnjax_lif_step_backward``, whose results are cotangents of the former."""

    operands: Operands
    g: Results


class StepNumbers(NamedTuple):
    """The static values of a step, with names as codes."""

    surrogate: int
    slope: float
    reach: float  # as in the table of `select_spikes`
    reset: int
    detach_reset: bool
    reset_time: int
    takes_old_spikes: bool
    inclusive: bool


ROOTS = (Operands, Results, BackwardOperands)
STATIC = (StepNumbers,)
