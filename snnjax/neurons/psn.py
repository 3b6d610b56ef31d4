"""Parallel spiking neurons: no reset, so that all time steps are computed at once."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import check_integer, fail
from snnjax._types import accumulation_dtype, upcast
from snnjax.neurons._constants import Constant, check_constant, draw
from snnjax.neurons._neuron import Neuron
from snnjax.neurons._step import Bound, at_zero
from snnjax.surrogates import Surrogate, as_surrogate


class PSNParams(NamedTuple):
    """The parameters of `psn` and `masked_psn`, which all neurons of a layer share."""

    weights: Array  # [steps, steps]; the membrane at step t is the sum of weights[t, s] * currents[s]
    threshold: Array  # [steps]


class PSNState(NamedTuple):
    """The state of `psn` and `masked_psn`: none, because a call holds all steps of its sequences."""


class SlidingPSNParams(NamedTuple):
    """The parameters of `sliding_psn`."""

    weights: Array  # [order], shared by all neurons; the last one is that of the current of the same step
    threshold: Array  # [neurons]


class SlidingPSNState(NamedTuple):
    """The state of `sliding_psn`."""

    currents: Array  # [batch, order - 1, neurons], of the steps before, the latest one last


@explained
def psn(num_steps: int, threshold: float = 1.0, *, surrogate: str | Surrogate = "arctan") -> Neuron:
    r"""Make parallel spiking neurons: each membrane is a learned mixture of the currents of all time steps.

    With the currents :math:`x`, the weights :math:`W` and the thresholds :math:`\theta`, all of them learned:

    .. math::

        v_t = \sum_s W_{ts} x_s, \qquad s_t = [v_t > \theta_t]

    Spikes depend on later currents, so these neurons need all `num_steps` steps of a sequence in one call: they have no
    step of their own, cannot be recurrent, and a network does not cut them into chunks. Currents after the end of a
    shorter sequence are 0.

    Args:
        num_steps: of every sequence; others are refused.
        threshold: initial value.
        surrogate: replaces the derivative of the spikes.

    Raises:
        ValueError: if `num_steps` is not an integer of at least 1, or the surrogate is unknown.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> net = snnjax.network(3, [snnjax.layer(8, snnjax.neurons.psn(num_steps=5))])
        >>> params = net.init(jax.random.key(0))
        >>> params["layer_0/neuron"].weights.shape
        (5, 5)
        >>> net.apply(params, None, jnp.ones((5, 2, 3)))[0].output.shape
        (5, 2, 8)

    Reference:
        Fang et al. 2023, arXiv:2304.12760.
    """
    return _of_all_steps("psn", num_steps, threshold, surrogate, None, 0.0)


@explained
def masked_psn(
    num_steps: int,
    order: int,
    threshold: float = 1.0,
    *,
    mask_share: float = 1.0,
    surrogate: str | Surrogate = "arctan",
) -> Neuron:
    r"""Make masked parallel spiking neurons: those of `psn` that only see the last `order` currents.

    With the mask :math:`M_{ts} = [t - k < s \le t]` of the order :math:`k` and its share :math:`\lambda`:

    .. math::

        v_t = \sum_s (\lambda M_{ts} + 1 - \lambda) W_{ts} x_s, \qquad s_t = [v_t > \theta_t]

    Args:
        num_steps: of every sequence; others are refused.
        order: the number of currents that a membrane depends on, at most `num_steps`.
        threshold: initial value.
        mask_share: 1 masks in full, 0 not at all. Training may begin at 0 and raise it; each value is compiled anew.
        surrogate: replaces the derivative of the spikes.

    Raises:
        ValueError: if a number is out of range, or the surrogate is unknown.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> neuron = neurons.masked_psn(num_steps=3, order=2)
        >>> params = neurons.PSNParams(jnp.ones((3, 3)), jnp.ones(3))
        >>> neuron.sequence(params, neurons.PSNState(), jnp.ones((3, 1, 1)), None)[0].ravel()
        Array([1., 2., 2.], dtype=float32)

    Reference:
        Fang et al. 2023, arXiv:2304.12760.
    """
    num_steps = check_integer("masked_psn", "num_steps", num_steps, 1)
    order = check_integer("masked_psn", "order", order, 1)
    if order > num_steps:
        fail(f"masked_psn: `order` must be at most `num_steps`, {num_steps}, got {order}. Lower it.")
    if not isinstance(mask_share, int | float) or not 0 <= mask_share <= 1:
        fail(f"masked_psn: `mask_share` must be between 0 and 1, got {mask_share!r}. Pass 1 to mask in full.")
    return _of_all_steps("masked_psn", num_steps, threshold, surrogate, int(order), float(mask_share))


@explained
def sliding_psn(order: int, threshold: Constant = 1.0, *, surrogate: str | Surrogate = "arctan") -> Neuron:
    r"""Make sliding parallel spiking neurons: a filter over the last `order` currents, the same at every step.

    With the currents :math:`x`, the weights :math:`w` and the thresholds :math:`\theta`, all of them learned:

    .. math::

        v_t = \sum_{i=0}^{k-1} w_i x_{t-k+1+i}, \qquad s_t = [v_t > \theta]

    Sequences may have any length. The state holds the last ``order - 1`` currents, so chunks and calls that carry the
    state, of one step even, equal one call.

    Args:
        order: the number :math:`k` of currents that a membrane depends on.
        threshold: initial value of each neuron, a number or a range (low, high).
        surrogate: replaces the derivative of the spikes.

    Raises:
        ValueError: if `order` is not an integer of at least 1, or the surrogate is unknown.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax import neurons
        >>> neuron = neurons.sliding_psn(order=3)
        >>> params = neuron.init(jax.random.key(0), 1)
        >>> params.weights
        Array([0.25, 0.5 , 1.  ], dtype=float32)
        >>> state, membranes = neuron.initial_state(params, 1, 1), []
        >>> neuron.sequence(params, state, jnp.ones((4, 1, 1)), None)[0].ravel()
        Array([1.  , 1.5 , 1.75, 1.75], dtype=float32)

    Reference:
        Fang et al. 2023, arXiv:2304.12760.
    """
    order = check_integer("sliding_psn", "order", order, 1)
    check_constant("sliding_psn", "threshold", threshold)
    given = {"order": order, "threshold": threshold, "surrogate": as_surrogate("sliding_psn", surrogate)}
    return Neuron(
        "sliding_psn",
        Bound(_init_sliding, order=int(order), initial=threshold),
        Bound(_no_currents, order=int(order)),
        surrogate=given["surrogate"],
        arguments=tuple(given.items()),
        sequence=_slide,
    )


def _of_all_steps(
    op: str,
    num_steps: int,
    threshold: float,
    surrogate: str | Surrogate,
    order: int | None,
    mask_share: float,
) -> Neuron:
    num_steps = check_integer(op, "num_steps", num_steps, 1)
    if not isinstance(threshold, int | float) or math.isnan(threshold):
        fail(f"{op}: `threshold` must be a number, got {threshold!r}. It is learned for each step.")
    check_constant(op, "threshold", threshold)
    given: dict[str, Any] = {"num_steps": int(num_steps), "threshold": threshold}
    if order is not None:
        given |= {"order": order, "mask_share": mask_share}
    given["surrogate"] = as_surrogate(op, surrogate)
    return Neuron(
        op,
        Bound(_init, num_steps=int(num_steps), initial=float(threshold)),
        _no_state,
        threshold=_threshold,
        surrogate=given["surrogate"],
        arguments=tuple(given.items()),
        sequence=Bound(_mix, order=order, mask_share=mask_share),
        num_steps=int(num_steps),
    )


def _init(
    key: Array, num_neurons: int, dtype: DTypeLike = jnp.float32, *, num_steps: int, initial: float
) -> PSNParams:
    """Weights as in the paper, uniform with the bound ``1 / sqrt(steps)``."""
    num_neurons = check_integer("Neuron.init", "num_neurons", num_neurons, 0)
    bound = num_steps**-0.5
    weights = jax.random.uniform(key, (num_steps, num_steps), jnp.float32, -bound, bound)
    return PSNParams(weights.astype(dtype), jnp.full(num_steps, initial, dtype))


def _no_state(params: PSNParams, batch: int, num_neurons: int, dtype: DTypeLike = jnp.float32) -> PSNState:
    del params, batch, num_neurons, dtype
    return PSNState()


def _threshold(params: PSNParams) -> Array:
    """``[steps, 1, 1]``: one for each step, not for each neuron."""
    return params.threshold[:, None, None]


def _mix(
    params: PSNParams,
    state: PSNState,
    currents: Array,
    valid: Array | None,
    *,
    order: int | None,
    mask_share: float,
) -> tuple[Array, Array, PSNState]:
    del valid
    weights = upcast(params.weights)
    if order is not None:
        step = jnp.arange(weights.shape[0])
        age = step[:, None] - step[None, :]
        weights = jnp.where((age >= 0) & (age < order), weights, (1 - mask_share) * weights)
    return jnp.tensordot(weights, upcast(currents), 1), _threshold(params), state


def _init_sliding(
    key: Array, num_neurons: int, dtype: DTypeLike = jnp.float32, *, order: int, initial: Constant
) -> SlidingPSNParams:
    """Weights as in the paper: each is half of the one after it, and the last one is 1."""
    num_neurons = check_integer("Neuron.init", "num_neurons", num_neurons, 0)
    weights = jnp.exp2(jnp.arange(1 - order, 1, dtype=jnp.float32)).astype(dtype)
    return SlidingPSNParams(weights, draw(key, initial, num_neurons, dtype))


def _no_currents(
    params: SlidingPSNParams, batch: int, num_neurons: int, dtype: DTypeLike = jnp.float32, *, order: int
) -> SlidingPSNState:
    del params
    nothing = at_zero(batch, num_neurons, dtype)
    return SlidingPSNState(jnp.zeros((batch, order - 1, num_neurons), nothing.dtype))


def _slide(
    params: SlidingPSNParams, state: SlidingPSNState, currents: Array, valid: Array | None
) -> tuple[Array, Array, SlidingPSNState]:
    num_steps, order = currents.shape[0], params.weights.shape[0]
    dtype = accumulation_dtype(currents.dtype)
    before = jnp.moveaxis(state.currents, 1, 0).astype(dtype)
    seen = jnp.concatenate([before, currents.astype(dtype)])  # [order - 1 + steps, batch, neurons]
    weights = upcast(params.weights)
    parts = (weights[i] * seen[i : i + num_steps] for i in range(order))
    membranes = sum(parts, start=jnp.zeros(currents.shape, dtype))
    if valid is None:
        last = seen[num_steps:]
    else:
        first = jnp.sum(valid, axis=0, dtype=jnp.int32)[None, :, None]
        places = first + jnp.arange(order - 1, dtype=jnp.int32)[:, None, None]
        last = jnp.take_along_axis(seen, places, axis=0)
    return membranes, params.threshold, SlidingPSNState(jnp.moveaxis(last, 0, 1).astype(state.currents.dtype))
