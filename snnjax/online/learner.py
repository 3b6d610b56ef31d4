"""`Learner`, the interface of every online rule."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array

from snnjax.graph.network import Params

# (output[batch, outputs], targets) -> scalar
StepLoss = Callable[[Array, Any], Array]
# (rates, targets) -> scalar, with rates [batch, neurons] of each layer by name, in spikes per step
RatePenalty = Callable[[dict[str, Array], Any], Array]


class Learner(NamedTuple):
    """An online rule: pure functions, made by `eprop`, `ostl`, `ottt` or `truncated`."""

    init: Callable[..., Any]  # (params, batch, stats=None) -> carry
    step: Callable[..., tuple[Any, Params, Array]]  # (params, carry, inputs, targets)
