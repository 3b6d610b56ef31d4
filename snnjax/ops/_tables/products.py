"""The table of the products of spikes, as lists or as rows, with weights: of each op in `snnjax._schema.PRODUCTS`."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import OWN, arrays

_IDS = arrays("given_ids", "rows", "capacity", given="optional")
_VALUES = arrays("floats", "rows", "capacity", given="with ids")
_ROWS = arrays("floats", "rows", "neurons", given="without ids")
_OUT = arrays("floats", "rows", "outputs")
_ONE_ARRAY = OWN._replace(form="array")  # not `Quantised`


class Operands(NamedTuple):
    """The operands of ``snnjax_<op>``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    spikes: Annotated[Any, _ROWS]
    weights: Annotated[Any, OWN]
    ends: Annotated[Any, OWN]  # of synapses
    targets: Annotated[Any, OWN]


class Results(NamedTuple):
    """Its result."""

    out: Annotated[Any, _OUT]


class SpikesBackwardOperands(NamedTuple):
    """The operands of ``snnjax_<op>_spikes_backward``."""

    ids: Annotated[Any, _IDS]
    weights: Annotated[Any, _ONE_ARRAY]
    ends: Annotated[Any, OWN]
    targets: Annotated[Any, OWN]
    g: Annotated[Any, _OUT]


class SpikesBackwardResults(NamedTuple):
    """Its result: of each slot of the lists if there are some, else of each neuron."""

    g_values: Annotated[Any, _VALUES._replace(given="optional")]
    g_spikes: Annotated[Any, _ROWS._replace(given="without g_values")]


class WeightsBackwardOperands(NamedTuple):
    """The operands of ``snnjax_<op>_weights_backward``."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    spikes: Annotated[Any, _ROWS]
    ends: Annotated[Any, OWN]
    targets: Annotated[Any, OWN]
    g: Annotated[Any, _OUT]


class WeightsBackwardResults(NamedTuple):
    """Its result."""

    g_weights: Annotated[Any, _ONE_ARRAY]


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
    dilation_y: int
    dilation_x: int
    input_dilation_y: int
    input_dilation_x: int


ROOTS = (
    Operands,
    Results,
    SpikesBackwardOperands,
    SpikesBackwardResults,
    WeightsBackwardOperands,
    WeightsBackwardResults,
)
STATIC = (Geometry,)
