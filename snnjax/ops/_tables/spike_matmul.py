"""The table of `spike_matmul`: spikes as lists or as rows, and weights."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_IDS = arrays("given_ids", "rows", "capacity")
_VALUES = arrays("floats", "rows", "capacity")
_ROWS = arrays("floats", "rows", "neurons")
_WEIGHTS = arrays("floats", "neurons", "outputs")
_OUT = arrays("floats", "rows", "outputs")


class Operands(NamedTuple):
    """The operands of ``snnjax_spike_matmul``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    weights: Annotated[Any, _WEIGHTS._replace(form="weights")]  # an array or `Quantised`


class RowOperands(NamedTuple):
    """The operands of ``snnjax_spike_matmul_rows``."""

    spikes: Annotated[Any, _ROWS]
    weights: Annotated[Any, _WEIGHTS._replace(form="weights")]


class Results(NamedTuple):
    """The result of both."""

    out: Annotated[Any, _OUT]


class ValuesBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_matmul_values_backward``."""

    ids: Annotated[Any, _IDS]
    weights: Annotated[Any, _WEIGHTS]
    g: Annotated[Any, _OUT]


class ValuesBackwardResults(NamedTuple):
    """Its result."""

    g_values: Annotated[Any, _VALUES]


class WeightsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_matmul_weights_backward``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    g: Annotated[Any, _OUT]


class RowsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_matmul_rows_backward``."""

    spikes: Annotated[Any, _ROWS]
    g: Annotated[Any, _OUT]


class WeightsBackwardResults(NamedTuple):
    """The result of both."""

    g_weights: Annotated[Any, _WEIGHTS]


ROOTS = (
    Operands,
    RowOperands,
    Results,
    ValuesBackwardOperands,
    ValuesBackwardResults,
    WeightsBackwardOperands,
    RowsBackwardOperands,
    WeightsBackwardResults,
)
STATIC = ()
