"""The table of `connect`: projections between populations, and the synapses that are drawn of them."""

from typing import Annotated, Any, NamedTuple

from snnjax._schema import arrays


class Operands(NamedTuple):
    """The operands of ``snnjax_connect``."""

    key: Annotated[Any, arrays("counts", "pair")]
    projections: Annotated[
        Any, arrays("counts", "projections", "columns")
    ]  # `Projection` of snnjax/ops/connect.py
    # Of each projection, block and sender, and one behind the last one: the number of synapses before its own.
    firsts: Annotated[Any, arrays("counts", "cells")]
    ends: Annotated[Any, arrays("counts", "blocks", "neurons", "pair")]  # as in `DelayedSynapses`
    quantiles: Annotated[Any, arrays("sums", "quantiles")]  # of weights, one projection after another
    late: Annotated[Any, arrays("given_ids", "late")]  # of delays


class Results(NamedTuple):
    """Its results, of `DelayedSynapses`."""

    words: Annotated[Any, arrays("given_ids", "synapses")]
    weights: Annotated[Any, arrays("sums", "synapses", given="optional")]
    segments: Annotated[Any, arrays("given_ids", "segments", "pair")]


ROOTS = (Operands, Results)
STATIC = ()
