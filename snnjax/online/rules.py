"""The trace-based rules: a layer's learning signal times its traces."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

from snnjax._arguments import explained
from snnjax._check import check_integer, fail
from snnjax._quantised import refuse_gradient
from snnjax._types import upcast
from snnjax.blocks.late import Late, LateState
from snnjax.blocks.linear import Product
from snnjax.graph.check import check_state
from snnjax.graph.layers import ChainLayer, layers_of
from snnjax.graph.network import Network, Params, State, Stats, params_dtype
from snnjax.online._rates import Rates, no_rates, update_rates
from snnjax.online._traces import (
    LayerArrays,
    LayerStep,
    advance,
    neuron_of,
    no_traces,
    readout_decay,
    sources_of,
)
from snnjax.online.learner import Learner, RatePenalty, StepLoss, check_inputs

# Steps after which an estimate of a rate forgets the oldest: at a rate of 0.04, four spikes of a neuron.
_RATE_WINDOW = 100


class OnlineCarry(NamedTuple):
    """What a trace-based rule carries from step to step."""

    state: State
    traces: tuple[Any, ...]  # one per layer, and one for the readout
    rates: Rates | None = None  # with a penalty on rates
    stats: Stats | None = None  # those of the network


@explained
def eprop(
    network: Network,
    loss: StepLoss,
    *,
    feedback: tuple[Array, ...] | None = None,
    penalty: RatePenalty | None = None,
    rate_window: int = _RATE_WINDOW,
) -> Learner:
    """E-prop: eligibility traces, filtered like the spikes by the readout, times a learning signal.

    Args:
        network: dense layers of generalised LIF neurons, feed-forward or recurrent.
        loss: ``loss(output, targets)``, a scalar; the output of one step is ``[batch, outputs]``.
        feedback: None back-propagates through the weights (symmetric feedback); otherwise one matrix ``[outputs,
            neurons]`` per layer, as from `random_feedback`, which projects the error of the output to that layer.
        penalty: ``penalty(rates, targets)``, a scalar of the running estimates of the neurons' rates, like the activity
            of a network: ``[batch, neurons]`` of each layer, in spikes per step.
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
        >>> output.shape, gradients["layer_0/connection"].weights.shape
        ((3, 2), (4, 8))

    Reference:
        Bellec et al. 2020, doi:10.1038/s41467-020-17236-y.
    """
    layers = _checked("online.eprop", network, rate_window)
    if feedback is not None:
        shapes = [(network.num_outputs, width) for width in _widths(layers)]
        given = [matrix.shape for matrix in feedback]
        if given != shapes:
            hint = "Make them with online.random_feedback(key, network)"
            fail(f"online.eprop: `feedback` must have shapes {shapes}, got {given}. {hint}.")
    is_filtered = layers[-1].is_readout
    return _learner(network, layers, loss, penalty, rate_window, feedback=feedback, is_filtered=is_filtered)


@explained
def ostl(
    network: Network,
    loss: StepLoss,
    *,
    penalty: RatePenalty | None = None,
    rate_window: int = _RATE_WINDOW,
) -> Learner:
    """OSTL: traces of the neurons' states times the gradient of the loss within the step.

    Arguments and errors are as for `eprop`. The two differ below a leaky readout: OSTL ignores that its membrane
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
    layers = _checked("online.ostl", network, rate_window)
    return _learner(network, layers, loss, penalty, rate_window)


@explained
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
    layers = _checked("online.ottt", network, rate_window)
    return _learner(network, layers, loss, penalty, rate_window, is_presynaptic=True)


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
    widths = _widths(layers_of("online.random_feedback", network))
    keys = jax.random.split(key, len(widths))
    return tuple(
        jax.random.normal(own, (network.num_outputs, width), jnp.float32) / width**0.5
        for own, width in zip(keys, widths, strict=True)
    )


def _widths(layers: tuple[ChainLayer, ...]) -> list[int]:
    """The numbers of neurons of the layers that spike."""
    return [layer.out_shape[-1] for layer in layers if not layer.is_readout]


def _checked(op: str, network: Network, rate_window: int) -> tuple[ChainLayer, ...]:
    """The layers, each a dense product followed by generalised LIF neurons, the only ones with traces."""
    rate_window = check_integer(op, "rate_window", rate_window, 1)
    layers = layers_of(op, network)
    hint = "Use online.truncated for this network"
    for layer in layers:
        others = [node.block.kind for node in (*layer.before, layer.connection, *layer.between)]
        others.remove(layer.connection.block.kind)
        # One's own may have a product of any form under that name.
        is_known = isinstance(layer.connection.block.op(layer.connection_shape), Product)
        if layer.connection.block.kind != "dense" or others or not is_known:
            kind = layer.connection.block.kind if is_known else "a connection of one's own"
            name, got = layer.connection.name, others[0] if others else kind
            fail(f"{op}: `{name}` must be dense, without delays, pools and norms, got {got}. {hint}.")
        model, late = neuron_of(layer), [node.block for node in layer.returning[:1]]
        is_dense = [node.block.kind for node in layer.returning[1:]] in ([], ["dense"])
        is_dense = is_dense and late in ([], [Late(layer.out_shape)]) and len(layer.returning) != 1
        if not layer.is_readout and (model.fused is None or not is_dense):
            got = model.name if is_dense else "a recurrent connection that is not dense"
            fail(f"{op}: `{layer.neuron.name}` must be of generalised LIF neurons, got {got}. {hint}.")
    return layers


def _arrays(layers: tuple[ChainLayer, ...], params: Params) -> list[LayerArrays]:
    """The parameters of all layers as their neurons use them."""
    found = []
    for layer in layers:
        linear: Any = layer.connection.block
        weights, bias = linear.operands(params[layer.connection.name], None, layer.connection_shape)
        recurrent = None
        for node in layer.returning[1:]:
            recurrent = node.block.operands(params[node.name], None, layer.out_shape).weights
        found.append(LayerArrays(weights, bias, recurrent, params.get(layer.neuron.name)))
    return found


def _learner(
    network: Network,
    layers: tuple[ChainLayer, ...],
    loss: StepLoss,
    penalty: RatePenalty | None,
    rate_window: int,
    *,
    feedback: tuple[Array, ...] | None = None,
    is_filtered: bool = False,
    is_presynaptic: bool = False,
) -> Learner:
    """A trace-based rule."""
    filtered = [is_filtered and not layer.is_readout for layer in layers]
    hidden = {layer.neuron.name: layer for layer in layers if not layer.is_readout}

    def init(params: Params, batch: int, stats: Stats | None = None) -> OnlineCarry:
        refuse_gradient("online", params)
        state, owns = network.initial_state(params, batch, stats), _arrays(layers, params)
        states = [state[layer.neuron.name] for layer in layers]
        each = zip(owns, states, filtered, strict=True)
        traces = tuple(no_traces(*own, is_presynaptic) for own in each)
        hidden_states = {name: state[name] for name in hidden}
        return OnlineCarry(state, traces, None if penalty is None else no_rates(hidden_states), stats)

    def step(
        params: Params, carry: OnlineCarry, inputs: Array, targets: PyTree
    ) -> tuple[OnlineCarry, Params, Array]:
        check_inputs(network, inputs)
        check_state("online", "carry", carry, init, params, inputs.shape[0], carry.stats)
        # Masks act on parameters linearly, so gradients are update_rates back through them.
        owns, pull_back = jax.vjp(lambda params: _arrays(layers, params), params)
        stats = carry.stats or {}
        drawn = [stats.get(layer.neuron.name) for layer in layers]
        owns = [own._replace(drawn=each) for own, each in zip(owns, drawn, strict=True)]
        state, steps = _advanced(layers, owns, carry, inputs, is_presynaptic)
        output = steps[-1].fired.listed.astype(params_dtype(params))
        fired = {name: ran.fired.counted for name, ran in zip(hidden, steps, strict=False)}
        rates, penalty_gradients = update_rates(penalty, carry.rates, fired, rate_window, targets)
        pulls = list(map(penalty_gradients.get, hidden))
        gradients = _gradients(owns, steps, jax.grad(loss)(output, targets), pulls, feedback)
        carry = OnlineCarry(state, tuple(ran.traces for ran in steps), rates, carry.stats)
        return carry, pull_back(gradients)[0], output

    return Learner(init, step)


def _advanced(
    layers: tuple[ChainLayer, ...],
    owns: list[LayerArrays],
    carry: OnlineCarry,
    x: Array,
    is_presynaptic: bool,
) -> tuple[State, list[LayerStep]]:
    """The state after one step, and what the gradients of all layers need."""
    kappa = readout_decay(layers[-1], owns[-1], carry.state[layers[-1].neuron.name])
    steps, state = [], dict(carry.state)
    for layer, own, traces in zip(layers, owns, carry.traces, strict=True):
        block: Any = layer.neuron.block
        before = state[layer.neuron.name]
        late = layer.returning[0].name if layer.returning else None
        spikes = None if late is None else state[late].sent[0]
        second = None if layer.is_readout else block.second(own.constants(layer, own.neuron))
        given = (layer, own, before, sources_of(own, x, spikes), traces)
        after, ran = advance(*given, second, kappa, is_presynaptic)
        x = ran.fired.listed
        steps.append(ran)
        state[layer.neuron.name] = after
        if late is not None:
            state[late] = LateState(x[None].astype(state[late].sent.dtype))
    return state, steps


def _gradients(
    owns: list[LayerArrays],
    steps: list[LayerStep],
    signal: Array,
    penalty_gradients: list[Array | None],
    feedback: tuple[Array, ...] | None,
) -> list[LayerArrays]:
    """The gradients, from the last layer to the first; `penalty_gradients` are those of the penalty."""
    gradients: list[LayerArrays] = []
    error = reaching = upcast(signal)
    for index in reversed(range(len(owns))):
        own, ran = owns[index], steps[index]
        if feedback is not None and index < len(feedback):
            reaching = error @ upcast(feedback[index])
        pull = penalty_gradients[index] if index < len(penalty_gradients) else None
        gradients.insert(0, _as_arrays(own, *_times_traces(ran, reaching, pull)))
        reaching = (reaching * ran.fired.slope * ran.by_current) @ upcast(own.weights).T
    return gradients


def _times_traces(ran: LayerStep, reaching: Array, pull: Array | None) -> tuple[Array, Array]:
    """A layer's gradient: the learning signal of the loss, and the pull of the penalty, times its traces.

    The readout remembers earlier spikes, so the loss of this step depends on them by the filtered traces. The penalty
    weighs each spike in its own step, so it needs the traces as they are.
    """
    direct = None if pull is None else pull * ran.fired.counted_slope
    if ran.traces.filtered is None:
        through = reaching * ran.fired.slope
        return _product(ran, through if direct is None else through + direct)
    by_weights = jnp.einsum("bn,bsn->sn", reaching, ran.traces.filtered[0])
    by_constants = jnp.sum(reaching[None] * ran.traces.filtered[1], axis=1)
    if direct is None:
        return by_weights, by_constants
    more_weights, more_constants = _product(ran, direct)
    return by_weights + more_weights, by_constants + more_constants


def _product(ran: LayerStep, through: Array) -> tuple[Array, Array]:
    """A signal at the distance to the threshold, ``[batch, neurons]``, times the unfiltered traces."""
    is_presynaptic = ran.by_weights.ndim == 2
    if is_presynaptic:
        by_weights = ran.by_weights.T @ (through * ran.by_current)
    else:
        by_weights = jnp.einsum("bn,bsn->sn", through, ran.by_weights)
    return by_weights, jnp.sum(through[None] * ran.by_constants, axis=1)


def _as_arrays(own: LayerArrays, by_weights: Array, by_constants: Array) -> LayerArrays:
    """The gradients in the structure of the parameters."""
    inputs = own.weights.shape[0]
    recurrent = None
    if own.recurrent is not None:
        recurrent = by_weights[inputs : inputs + own.recurrent.shape[0]].astype(own.recurrent.dtype)
    bias = None if own.bias is None else by_weights[-1].astype(own.bias.dtype)
    leaves, tree = jax.tree.flatten(own.neuron)
    filled = [
        jnp.zeros_like(leaf)
        if place >= len(by_constants)
        else (by_constants[place] if leaf.ndim else jnp.sum(by_constants[place])).astype(leaf.dtype)
        for place, leaf in enumerate(leaves)
    ]
    weights = by_weights[:inputs].astype(own.weights.dtype)
    return LayerArrays(weights, bias, recurrent, jax.tree.unflatten(tree, filled))
