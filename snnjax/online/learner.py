"""`Learner`, the interface of every online rule."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array

from snnjax._check import check_real_array, check_shape
from snnjax._types import Signal
from snnjax.graph.network import Network, Params

# (output[batch, outputs], targets) -> scalar
StepLoss = Callable[[Array, Any], Array]
# (rates, targets) -> scalar, with rates [batch, neurons] of each layer by name, in spikes per step
RatePenalty = Callable[[dict[str, Array], Any], Array]


class Learner(NamedTuple):
    """An online rule: pure functions, made by `eprop`, `ostl`, `ottt` or `truncated`."""

    init: Callable[..., Any]  # (params, batch, stats=None) -> carry
    step: Callable[..., tuple[Any, Params, Array]]  # (params, carry, inputs, targets)


def check_inputs(network: Network, inputs: Signal) -> None:
    """Check that the inputs of a step are ``[batch, inputs]``."""
    check_real_array("online", "inputs", inputs)
    hint = "Pass those of one step, over flat neurons"
    check_shape("online", "inputs", inputs, (None, network.num_inputs), "batch, inputs", hint)
