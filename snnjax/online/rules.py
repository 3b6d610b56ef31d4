"""The trace-based rules: a layer's learning signal times its traces."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check_integer, fail
from snnjax._network import Network
from snnjax._network.compare import check_state
from snnjax._network.specs import LayerParams, LayerSpec, NetworkParams, NetworkState
from snnjax._quantised import refuse_gradient
from snnjax._types import upcast
from snnjax.online._rates import Rates, no_rates, update_rates
from snnjax.online._traces import LayerStep, advance, no_traces, readout_decay, sources_of
from snnjax.online.learner import Learner, RatePenalty, StepLoss

# Steps after which an estimate of a rate forgets the oldest: at a rate of 0.04, four spikes of a neuron.
_RATE_WINDOW = 100


class OnlineCarry(NamedTuple):
    """What a trace-based rule carries from step to step."""

    state: NetworkState
    traces: tuple[Any, ...]  # one per layer, and one for the read-out
    rates: Rates | None = None  # with a penalty on rates


def eprop(
    network: Network,
    loss: StepLoss,
    *,
    feedback: tuple[Array, ...] | None = None,
    penalty: RatePenalty | None = None,
    rate_window: int = _RATE_WINDOW,
) -> Learner:
    """E-prop: eligibility traces, filtered like the spikes by the read-out, times a learning signal.

    Args:
        network: dense layers of generalised LIF neurons, feed-forward or recurrent.
        loss: ``loss(output, targets)``, a scalar; the output of one step is ``[batch, outputs]``.
        feedback: None back-propagates through the weights (symmetric feedback); otherwise one matrix ``[outputs,
            neurons]`` per layer, as from `random_feedback`, which projects the error of the output to that layer.
        penalty: ``penalty(rates, targets)``, a scalar of the running estimates of the neurons' rates, one array
            ``[batch, neurons]`` per layer in spikes per step, such as `snnjax.losses.activity_upper_bound`.
        rate_window: an estimate is the mean over all steps so far, and from this number of steps on an exponential mean
            over about as many.

    Raises:
        ValueError: if a layer is not dense, has delays, or is not made of generalised LIF neurons, if the matrices do
            not have the right shapes, or if `rate_window` is not an integer of at least 1.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import online
        >>> net = snnjax.network(4, [snnjax.layer(8)], snnjax.leaky_readout(2))
        >>> params = net.init(jax.random.key(0))
        >>> learner = online.eprop(net, lambda output, target: jnp.mean((output - target) ** 2))
        >>> carry = learner.init(params, batch=3)
        >>> carry, gradients, output = learner.step(params, carry, jnp.ones((3, 4)), jnp.zeros((3, 2)))
        >>> output.shape, gradients.layers[0].weights.shape
        ((3, 2), (4, 8))

    Reference:
        Bellec et al. 2020, doi:10.1038/s41467-020-17236-y.
    """
    _check("online.eprop", network, rate_window)
    if feedback is not None:
        shapes = [(network.num_outputs, spec.num_neurons) for spec in network.layers]
        given = [matrix.shape for matrix in feedback]
        if given != shapes:
            hint = "Make them with online.random_feedback(key, network)"
            fail(f"online.eprop: `feedback` must have shapes {shapes}, got {given}. {hint}.")
    is_filtered = network.readout is not None
    return _learner(network, loss, penalty, rate_window, feedback=feedback, is_filtered=is_filtered)


def ostl(
    network: Network,
    loss: StepLoss,
    *,
    penalty: RatePenalty | None = None,
    rate_window: int = _RATE_WINDOW,
) -> Learner:
    """OSTL: traces of the neurons' states times the gradient of the loss within the step.

    Arguments and errors are as for `eprop`. The two differ below a leaky read-out: OSTL ignores that its membrane
    remembers earlier spikes.

    Example:
        >>> import jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import online
        >>> net = snnjax.network(4, [snnjax.layer(8)], snnjax.spiking_readout(2))
        >>> online.ostl(net, lambda output, target: jnp.mean((output - target) ** 2)).step is None
        False

    Reference:
        Bohnstingl et al. 2023, doi:10.1109/TNNLS.2022.3153985.
    """
    _check("online.ostl", network, rate_window)
    return _learner(network, loss, penalty, rate_window)


def ottt(
    network: Network,
    loss: StepLoss,
    *,
    penalty: RatePenalty | None = None,
    rate_window: int = _RATE_WINDOW,
) -> Learner:
    """OTTT: decaying traces of the inputs only, times the gradient of the loss within the step.

    Arguments and errors are as for `eprop`. The decay is the mean membrane decay of a layer; the traces ignore second
    states and resets, and neuron parameters receive no gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import online
        >>> net = snnjax.network(4, [snnjax.layer(8)], snnjax.leaky_readout(2))
        >>> learner = online.ottt(net, lambda output, target: jnp.mean((output - target) ** 2))
        >>> learner.init(net.init(jax.random.key(0)), batch=3).traces[0].weights.shape  # 4 inputs and a bias
        (3, 5)

    Reference:
        Xiao et al. 2022, arXiv:2210.04195.
    """
    _check("online.ottt", network, rate_window)
    return _learner(network, loss, penalty, rate_window, is_presynaptic=True)


def random_feedback(key: Array, network: Network) -> tuple[Array, ...]:
    """Draw random feedback matrices ``[outputs, neurons]``, one per layer, for `eprop`.

    The entries are normal with variance 1 / neurons.

    Example:
        >>> import jax
        >>> import snnjax
        >>> from snnjax import online
        >>> net = snnjax.network(4, [snnjax.layer(8)], snnjax.leaky_readout(2))
        >>> [matrix.shape for matrix in online.random_feedback(jax.random.key(0), net)]
        [(2, 8)]

    Reference:
        Lillicrap et al. 2016, doi:10.1038/ncomms13276.
    """
    keys = jax.random.split(key, len(network.layers))
    return tuple(
        jax.random.normal(layer_key, (network.num_outputs, spec.num_neurons), jnp.float32)
        / spec.num_neurons**0.5
        for layer_key, spec in zip(keys, network.layers, strict=True)
    )


def _check(op: str, network: Network, rate_window: int) -> None:
    """Check that every layer is a dense product followed by generalised LIF neurons, the only ones with traces."""
    check_integer(op, "rate_window", rate_window, 1)
    for index, spec in enumerate(network.layers):
        form = spec.fitted.connection
        layer, hint = f"network.layers[{index}]", "Use online.truncated for this network"
        if form.parts or spec.delays is not None:
            actual = " and ".join(part.words for part in form.parts) or "one with delays"
            fail(f"{op}: `{layer}` must be a dense layer without delays, got {actual}. {hint}.")
        if spec.neuron.fused is None:
            fail(f"{op}: `{layer}` must be of generalised LIF neurons, got {spec.neuron.name}. {hint}.")


def _learner(
    network: Network,
    loss: StepLoss,
    penalty: RatePenalty | None,
    rate_window: int,
    *,
    feedback: tuple[Array, ...] | None = None,
    is_filtered: bool = False,
    is_presynaptic: bool = False,
) -> Learner:
    """A trace-based rule."""
    specs = [*network.layers, *([] if network.readout is None else [network.readout])]
    filtered = [is_filtered and isinstance(spec, LayerSpec) for spec in specs]

    def init(params: NetworkParams, batch: int) -> OnlineCarry:
        refuse_gradient("online", params)
        state, layers = network.initial_state(params, batch), _all(network.expand(params))
        each = zip(layers, _states(state), filtered, strict=True)
        traces = tuple(no_traces(*layer, is_presynaptic) for layer in each)
        return OnlineCarry(state, traces, None if penalty is None else no_rates(state.neurons))

    def step(
        params: NetworkParams, carry: OnlineCarry, inputs: Array, targets: Any
    ) -> tuple[OnlineCarry, NetworkParams, Array]:
        check_state("online", "carry", carry, init, params, inputs.shape[0])
        # Masks and shared constants act on parameters linearly, so gradients are pulled back through them.
        expanded, pull_back = jax.vjp(network.expand, params)
        layers, kappa = _all(expanded), readout_decay(network, expanded, carry.state)
        second, x, steps, states = network.second_thresholds(expanded), inputs, [], []
        for index, (spec, layer_params) in enumerate(zip(specs, layers, strict=True)):
            before = None if index == len(network.layers) else carry.state.spikes[index]
            sources = sources_of(layer_params, x, before)
            given = (spec, layer_params, _states(carry.state)[index], sources, carry.traces[index])
            after, layer_step = advance(*given, (*second, None)[index], kappa, is_presynaptic)
            x, steps, states = layer_step.fired.listed, [*steps, layer_step], [*states, after]
        output = x.astype(params.layers[0].weights.dtype)
        spikes = [each.fired.counted for each in steps[: len(network.layers)]]
        rates, penalty_gradients = update_rates(penalty, carry.rates, spikes, rate_window, targets)
        gradients = _gradients(layers, steps, jax.grad(loss)(output, targets), penalty_gradients, feedback)
        has_readout = network.readout is not None
        tree = NetworkParams(tuple(gradients[: len(network.layers)]), gradients[-1] if has_readout else None)
        state = _next_state(carry.state, states, [each.fired.listed for each in steps])
        return OnlineCarry(state, tuple(each.traces for each in steps), rates), pull_back(tree)[0], output

    return Learner(init, step)


def _all(params: NetworkParams) -> list[LayerParams]:
    """The parameters of the layers and of the read-out."""
    return [*params.layers, *([] if params.readout is None else [params.readout])]


def _states(state: NetworkState) -> list[Any]:
    return [*state.neurons, *([] if state.readout is None else [state.readout])]


def _next_state(state: NetworkState, states: list[Any], fired: list[Array]) -> NetworkState:
    layers = len(state.neurons)
    each = zip(state.spikes, fired[:layers], strict=True)
    spikes = tuple(None if before is None else now.astype(before.dtype) for before, now in each)
    readout = None if state.readout is None else states[-1]
    return NetworkState(tuple(states[:layers]), spikes, readout, state.pending)


def _gradients(
    layers: list[LayerParams],
    layer_steps: list[LayerStep],
    signal: Array,
    penalty_gradients: list[Array],
    feedback: tuple[Array, ...] | None,
) -> list[LayerParams]:
    """The gradients, from the last layer to the first; `penalty_gradients` are by the rates of the layers, or empty."""
    gradients: list[LayerParams] = []
    error = reaching = upcast(signal)
    for index in reversed(range(len(layers))):
        layer_params, layer_step = layers[index], layer_steps[index]
        if feedback is not None and index < len(feedback):
            reaching = error @ upcast(feedback[index])
        penalty_gradient = penalty_gradients[index] if index < len(penalty_gradients) else None
        gradients.insert(0, _as_params(layer_params, *_times_traces(layer_step, reaching, penalty_gradient)))
        reaching = (reaching * layer_step.fired.slope * layer_step.by_current) @ upcast(
            layer_params.weights
        ).T
    return gradients


def _times_traces(
    layer_step: LayerStep, reaching: Array, penalty_gradient: Array | None
) -> tuple[Array, Array]:
    """A layer's gradient: the learning signal of the loss, and the gradient of the penalty, times its traces.

    The read-out remembers earlier spikes, so the loss of this step depends on them by the filtered traces. The penalty
    weighs each spike in its own step, so it needs the traces as they are.
    """
    direct = None if penalty_gradient is None else penalty_gradient * layer_step.fired.counted_slope
    if layer_step.traces.filtered is None:
        through = reaching * layer_step.fired.slope
        return _product(layer_step, through if direct is None else through + direct)
    by_weights = jnp.einsum("bn,bsn->sn", reaching, layer_step.traces.filtered[0])
    by_constants = jnp.sum(reaching[None] * layer_step.traces.filtered[1], axis=1)
    if direct is None:
        return by_weights, by_constants
    more_weights, more_constants = _product(layer_step, direct)
    return by_weights + more_weights, by_constants + more_constants


def _product(layer_step: LayerStep, through: Array) -> tuple[Array, Array]:
    """A signal at the distance to the threshold, ``[batch, neurons]``, times the unfiltered traces."""
    is_presynaptic = layer_step.by_weights.ndim == 2
    if is_presynaptic:
        by_weights = layer_step.by_weights.T @ (through * layer_step.by_current)
    else:
        by_weights = jnp.einsum("bn,bsn->sn", through, layer_step.by_weights)
    return by_weights, jnp.sum(through[None] * layer_step.by_constants, axis=1)


def _as_params(params: LayerParams, by_weights: Array, by_constants: Array) -> LayerParams:
    """The gradients in the structure of the parameters."""
    inputs = params.weights.shape[0]
    recurrent = None
    if params.recurrent is not None:
        recurrent = by_weights[inputs : inputs + params.recurrent.shape[0]].astype(params.recurrent.dtype)
    bias = None if params.bias is None else by_weights[-1].astype(params.bias.dtype)
    leaves, tree = jax.tree.flatten(params.neuron)
    filled = [
        jnp.zeros_like(leaf)
        if place >= len(by_constants)
        else (by_constants[place] if leaf.ndim else jnp.sum(by_constants[place])).astype(leaf.dtype)
        for place, leaf in enumerate(leaves)
    ]
    weights = by_weights[:inputs].astype(params.weights.dtype)
    return LayerParams(weights, bias, recurrent, jax.tree.unflatten(tree, filled), params.delays)
