"""The table of `select_spikes`: membranes, and lists of their spikes."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_V = arrays("floats", "rows", "neurons")
# One value, one per neuron or, as `Rows`, one for each membrane
_THRESHOLD = arrays("floats", "neurons_or_1", form="threshold")
_IDS = arrays("ids", "rows", "capacity")
_VALUES = arrays("floats", "rows", "capacity")
_COUNTS = arrays("counts", "rows")


class Rows(NamedTuple):
    """A threshold for each membrane."""

    rows: Any


class Operands(NamedTuple):
    """The operands of ``snnjax_select_spikes``."""

    v: Annotated[Any, _V]
    threshold: Annotated[Any, _THRESHOLD]
    second_threshold: Annotated[Any, _THRESHOLD]


class Results(NamedTuple):
    """Its results."""

    ids: Annotated[Any, _IDS]
    values: Annotated[Any, _VALUES]
    num_spikes: Annotated[Any, _COUNTS]
    num_listed: Annotated[Any, _COUNTS]


class BackwardOperands(NamedTuple):
    """The operands of ``snnjax_select_spikes_backward``."""

    v: Annotated[Any, _V]
    threshold: Annotated[Any, _THRESHOLD]
    ids: Annotated[Any, _IDS]
    g: Annotated[Any, _VALUES]


class BackwardResults(NamedTuple):
    """Its results, the latter in the form of the threshold."""

    g_v: Annotated[Any, _V]
    g_threshold: Annotated[Any, _THRESHOLD]


class SurrogateNumbers(NamedTuple):
    """The static values of a surrogate."""

    surrogate: Annotated[int, "Surrogate"]
    slope: float
    reach: float  # the distance from the threshold at which the surrogate ends; 0: it does not end


ROOTS = (Operands, Results, BackwardOperands, BackwardResults)
STATIC = (SurrogateNumbers,)
