"""The table of `delay_spikes`: spikes over time, those that are under way, and delays."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays

_SPIKES = arrays("floats", "steps", "batch", "neurons")
_UNDER_WAY = arrays("floats", "pending", "batch", "neurons")
_PENDING = arrays("floats", "pending_or_0", "batch", "neurons")
_DELAYS = arrays("sums", "neurons")


class Operands(NamedTuple):
    """The operands of ``snnjax_delay_spikes``."""

    spikes: Annotated[Any, _SPIKES]
    pending: Annotated[Any, _PENDING]  # no rows stand for rows of zeros
    delays: Annotated[Any, _DELAYS]
    ends: Annotated[Any, arrays("counts", "batch")]  # the step after the last one of each sequence


class Results(NamedTuple):
    """Its results."""

    delayed: Annotated[Any, _SPIKES]
    left: Annotated[Any, _UNDER_WAY]


class BackwardOperands(NamedTuple):
    """The operands of ``snnjax_delay_spikes_backward``."""

    operands: Operands
    g: Results


class BackwardResults(NamedTuple):
    """Its results."""

    g_spikes: Annotated[Any, _SPIKES]
    g_pending: Annotated[Any, _PENDING]
    g_delays: Annotated[Any, _DELAYS]


class DelayNumbers(NamedTuple):
    """The static values."""

    max_delay: int


ROOTS = (Operands, Results, BackwardOperands, BackwardResults)
STATIC = (DelayNumbers,)
