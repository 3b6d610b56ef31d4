"""The table of `spike_sparse_matmul`: spikes as lists or as rows, and weights of the synapses that exist."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_IDS = arrays("given_ids", "rows", "capacity")
_VALUES = arrays("floats", "rows", "capacity")
_ROWS = arrays("floats", "rows", "neurons")
_WEIGHTS = arrays("floats", "synapses")
_ARRAY_OR_QUANTISED = _WEIGHTS._replace(form="sparse")
_ENDS = arrays("counts", "neurons")
_TARGETS = arrays("given_ids", "synapses")
_OUT = arrays("floats", "rows", "outputs")


class Operands(NamedTuple):
    """The operands of ``snnjax_spike_sparse_matmul``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    weights: Annotated[Any, _ARRAY_OR_QUANTISED]
    ends: Annotated[Any, _ENDS]
    targets: Annotated[Any, _TARGETS]


class RowOperands(NamedTuple):
    """The operands of ``snnjax_spike_sparse_matmul_rows``."""

    spikes: Annotated[Any, _ROWS]
    weights: Annotated[Any, _ARRAY_OR_QUANTISED]
    ends: Annotated[Any, _ENDS]
    targets: Annotated[Any, _TARGETS]


class Results(NamedTuple):
    """The result of both."""

    out: Annotated[Any, _OUT]


class ValuesBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_sparse_matmul_values_backward``."""

    ids: Annotated[Any, _IDS]
    weights: Annotated[Any, _WEIGHTS]
    ends: Annotated[Any, _ENDS]
    targets: Annotated[Any, _TARGETS]
    g: Annotated[Any, _OUT]


class ValuesBackwardResults(NamedTuple):
    """Its result."""

    g_values: Annotated[Any, _VALUES]


class RowsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_sparse_matmul_rows_backward``."""

    weights: Annotated[Any, _WEIGHTS]
    ends: Annotated[Any, _ENDS]
    targets: Annotated[Any, _TARGETS]
    g: Annotated[Any, _OUT]


class RowsBackwardResults(NamedTuple):
    """Its result."""

    g_spikes: Annotated[Any, _ROWS]


class WeightsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_sparse_matmul_weights_backward``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    ends: Annotated[Any, _ENDS]
    targets: Annotated[Any, _TARGETS]
    g: Annotated[Any, _OUT]


class RowsWeightsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_sparse_matmul_rows_weights_backward``."""

    spikes: Annotated[Any, _ROWS]
    ends: Annotated[Any, _ENDS]
    targets: Annotated[Any, _TARGETS]
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
    RowsBackwardOperands,
    RowsBackwardResults,
    WeightsBackwardOperands,
    RowsWeightsBackwardOperands,
    WeightsBackwardResults,
)
STATIC = ()
