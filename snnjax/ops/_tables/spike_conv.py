"""The table of `spike_conv`: spikes as lists or as rows, and weights with two spatial axes."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_IDS = arrays("given_ids", "rows", "capacity")
_VALUES = arrays("floats", "rows", "capacity")
_ROWS = arrays("floats", "rows", "neurons")
_WEIGHTS = arrays("floats", "kernel_height", "kernel_width", "group_inputs", "channels_out")
_OUT = arrays("floats", "rows", "outputs")


class Operands(NamedTuple):
    """The operands of ``snnjax_spike_conv``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    weights: Annotated[Any, _WEIGHTS]


class RowOperands(NamedTuple):
    """The operands of ``snnjax_spike_conv_rows``."""

    spikes: Annotated[Any, _ROWS]
    weights: Annotated[Any, _WEIGHTS]


class Results(NamedTuple):
    """The result of both."""

    out: Annotated[Any, _OUT]


class ValuesBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_conv_values_backward``."""

    ids: Annotated[Any, _IDS]
    weights: Annotated[Any, _WEIGHTS]
    g: Annotated[Any, _OUT]


class ValuesBackwardResults(NamedTuple):
    """Its result."""

    g_values: Annotated[Any, _VALUES]


class WeightsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_conv_weights_backward``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    g: Annotated[Any, _OUT]


class RowsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_conv_rows_backward``."""

    spikes: Annotated[Any, _ROWS]
    g: Annotated[Any, _OUT]


class WeightsBackwardResults(NamedTuple):
    """The result of both."""

    g_weights: Annotated[Any, _WEIGHTS]


class InputsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_spike_conv_inputs_backward``."""

    weights: Annotated[Any, _WEIGHTS]
    g: Annotated[Any, _OUT]


class InputsBackwardResults(NamedTuple):
    """Its result."""

    g_spikes: Annotated[Any, _ROWS]


class Geometry(NamedTuple):
    """The static values of a convolution; one spatial axis is an image of height 1."""

    height: int
    width: int
    channels: int
    kernel_height: int
    kernel_width: int
    stride_y: int
    stride_x: int
    top: int
    bottom: int
    left: int
    right: int
    groups: int
    channels_out: int


ROOTS = (
    Operands,
    RowOperands,
    Results,
    ValuesBackwardOperands,
    ValuesBackwardResults,
    WeightsBackwardOperands,
    RowsBackwardOperands,
    WeightsBackwardResults,
    InputsBackwardOperands,
    InputsBackwardResults,
)
STATIC = (Geometry,)
