"""Truncated back-propagation through time: the last steps are stored, and run again at every step."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from snnjax._check import check_integer
from snnjax.graph.check import check_state
from snnjax.graph.network import Network, Params, State, Stats, params_dtype
from snnjax.online.learner import Learner, StepLoss, check_inputs


class Window(NamedTuple):
    """What truncated back-propagation carries from step to step."""

    state: State  # state before the oldest step of the window
    inputs: Array  # [window, batch, inputs], inputs of the last steps, oldest first
    steps: Array  # int32 [], how many steps are filled
    stats: Stats | None = None  # those of the network


def truncated(network: Network, loss: StepLoss, window: int) -> Learner:
    """Truncated back-propagation through time: the gradient of each step's loss through the last `window` steps.

    It works with any network and all kernels; the cost of a step grows with the window.

    Raises:
        ValueError: if `window` is not an integer of at least 1.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import online
        >>> net = snnjax.network(4, [snnjax.layer(8)], snnjax.leaky_readout(2))
        >>> learner = online.truncated(net, lambda output, target: jnp.mean((output - target) ** 2), window=5)
        >>> learner.init(net.init(jax.random.key(0)), batch=3).inputs.shape
        (5, 3, 4)

    Reference:
        Williams and Peng 1990, doi:10.1162/neco.1990.2.4.490.
    """
    window = check_integer("online.truncated", "window", window, 1)

    def init(params: Params, batch: int, stats: Stats | None = None) -> Window:
        nothing = jnp.zeros((window, batch, network.num_inputs), params_dtype(params))
        return Window(network.initial_state(params, batch, stats), nothing, jnp.int32(0), stats)

    def step(params: Params, carry: Window, inputs: Array, targets: PyTree) -> tuple[Window, Params, Array]:
        check_inputs(network, inputs)
        check_state("online", "carry", carry, init, params, inputs.shape[0], carry.stats)
        carry = _shifted(network, params, carry, inputs, window)
        lengths = jnp.full(inputs.shape[:1], carry.steps)

        def last_loss(params: Params) -> tuple[Array, Array]:
            given: dict[str, Any] = {"stats": carry.stats, "lengths": lengths}
            outputs = network.apply(params, carry.state, carry.inputs, **given)[0].output
            output = outputs[carry.steps - 1]
            return loss(output, targets), output

        gradients, output = jax.grad(last_loss, has_aux=True)(params)
        return carry, gradients, output

    return Learner(init, step)


# Compiled once, not in each call outside jit.
@functools.partial(jax.jit, static_argnames=("network", "window"))
def _shifted(network: Network, params: Params, carry: Window, inputs: Array, window: int) -> Window:
    """The window with one more step; if it was full, its oldest step advances the state before it."""
    is_full = carry.steps == window

    def advanced() -> State:
        return network.apply(params, carry.state, carry.inputs[:1], stats=carry.stats)[1]

    state = jax.lax.stop_gradient(jax.lax.cond(is_full, advanced, lambda: carry.state))
    rows = jnp.where(is_full, jnp.roll(carry.inputs, -1, axis=0), carry.inputs)
    place = jnp.minimum(carry.steps, window - 1)
    rows = rows.at[place].set(inputs.astype(rows.dtype))
    return Window(state, rows, place + 1, carry.stats)
