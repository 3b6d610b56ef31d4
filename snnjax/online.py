"""Learning while a sequence arrives: gradients of every step from traces, with memory that no step adds to.

A rule makes a `Learner` out of a network and the loss of one step, ``loss(output, targets)`` with
``output[batch, outputs]``: a pure function ``step(params, carry, inputs, targets) -> (carry, gradients, output)`` of
``inputs[batch, inputs]``, for `jax.jit`, `jax.lax.scan` and any optimiser. What back-propagation through time keeps of
every step, a trace sums up::

    trace[t] = d state[t] / d state[t-1] * trace[t-1] + d state[t] / d weights        (of each neuron by itself)
    gradient[t] = (d loss[t] / d spikes[t]) * (d spikes[t] / d state[t]) * trace[t]

* `eprop`: traces of the neurons' states, ``[batch, inputs, neurons]``, filtered as the read-out filters spikes; the
  loss reaches a layer through the weights, backwards within the step, or through random matrices.
* `ostl`: traces of the neurons' states; the loss through the weights, backwards within the step.
* `ottt`: traces of the inputs alone, ``[batch, inputs]``; the loss likewise.
* `truncated`: the last inputs, ``[window, batch, inputs]``, and back-propagation through these steps.

Summed over the steps of a sequence, the gradients equal back-propagation through time, to rounding, where nothing but a
neuron's own states leads from step to step: `eprop` for one feed-forward layer of generalised LIF neurons below a leaky
read-out of one decay, `ostl` for one below a read-out without memory or for a spiking read-out by itself, `ottt`
likewise for LIF neurons of one decay with a detached reset; `truncated` wherever the window holds the sequence. Beyond
this they are approximations: what recurrent spikes and deeper layers carry from step to step is left out.

In layers with a `capacity`, listed neurons alone write what the loss reads, as in `Network.apply`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from snnjax._check import check, check_integer
from snnjax._network import Network
from snnjax._network.scan import fire
from snnjax._network.specs import LayerParams, LayerSpec, NetworkParams, NetworkState, ReadoutSpec
from snnjax._types import wide
from snnjax.neurons import glif_of
from snnjax.sparse_spikes import SparseSpikes

# (output[batch, outputs], targets) -> scalar
StepLoss = Callable[[Array, Any], Array]


class Learner(NamedTuple):
    """An online rule: pure functions, made by `eprop`, `ostl`, `ottt` or `truncated`."""

    init: Callable[..., Any]  # (params, batch) -> carry
    step: Callable[..., tuple[Any, NetworkParams, Array]]  # (params, carry, inputs, targets)


class OnlineCarry(NamedTuple):
    """What a rule with traces carries from step to step."""

    state: NetworkState
    traces: tuple[Any, ...]  # one a layer, and one of the read-out


class Window(NamedTuple):
    """What truncated back-propagation carries from step to step."""

    state: NetworkState  # before the oldest step of the window
    inputs: Array  # [window, batch, inputs], those of the last steps first to last
    steps: Array  # int32 [], how many of them there are


class _Traces(NamedTuple):
    """The traces of a layer in the dtype of sums; a state has components such as ``v`` and ``w``.

    The weights of all that a neuron sums stand in one axis `sources`: inputs, recurrent spikes, and 1 for a bias.
    """

    weights: Array  # [components, batch, sources, neurons]; of `ottt` [batch, sources]
    constants: Array  # [constants, components, batch, neurons]: of the neurons' own parameters
    filtered: (
        tuple[Array, Array] | None
    )  # [batch, sources, neurons], [constants, batch, neurons], as spikes saw them


class _Ran(NamedTuple):
    """A layer after one step."""

    traces: _Traces
    by_weights: Array  # [batch, sources, neurons], d spikes / d weights; of `ottt` the trace of the sources
    by_constants: Array  # [constants, batch, neurons]
    by_current: Array  # [batch, neurons], d spikes / d current in this step
    slope: Array  # [batch, neurons], d spikes / d distance to the threshold


def eprop(network: Network, loss: StepLoss, *, feedback: tuple[Array, ...] | None = None) -> Learner:
    """E-prop: eligibility traces, filtered as the read-out filters spikes, times a learning signal.

    Args:
        network: dense layers of generalised LIF neurons, feed-forward or recurrent.
        loss: of the output ``[batch, outputs]`` of one step and its targets, a scalar.
        feedback: None takes the weights backwards (symmetric); or one matrix ``[outputs, neurons]`` a layer, as from
            `random_feedback`, by which the error of the output reaches it.

    Raises:
        ValueError: for layers that are not dense, not of generalised LIF neurons, or delayed, and for matrices that
            do not fit.

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
    _check_network("online.eprop", network)
    if feedback is not None:
        shapes = [(_num_outputs(network), spec.num_neurons) for spec in network.layers]
        given = [matrix.shape for matrix in feedback]
        way_out = "Make them with online.random_feedback(key, network)"
        check(given == shapes, "online.eprop", "feedback", f"have shapes {shapes}", given, way_out)
    return _learner(network, loss, feedback=feedback, is_filtered=network.readout is not None)


def ostl(network: Network, loss: StepLoss) -> Learner:
    """OSTL: traces of the neurons' states times the gradient of the loss within the step.

    Arguments and errors are those of `eprop`. The two differ below a leaky read-out: OSTL leaves out what its membrane
    remembers of earlier spikes.

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
    _check_network("online.ostl", network)
    return _learner(network, loss)


def ottt(network: Network, loss: StepLoss) -> Learner:
    """OTTT: decayed traces of the inputs alone, times the gradient of the loss within the step.

    Arguments and errors are those of `eprop`. The decay is the mean of that of a layer's membranes; second states and
    resets are left out of the traces, and neurons' own parameters receive no gradient.

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
    _check_network("online.ottt", network)
    return _learner(network, loss, is_presynaptic=True)


def truncated(network: Network, loss: StepLoss, window: int) -> Learner:
    """Truncated back-propagation through time: the gradient of each step's loss through the last `window` steps.

    Any network will do, and every kernel; the cost of a step grows with the window.

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
    check_integer("online.truncated", "window", window, 1)

    def init(params: NetworkParams, batch: int) -> Window:
        nothing = jnp.zeros((window, batch, network.num_inputs), params.layers[0].weights.dtype)
        return Window(network.initial_state(params, batch), nothing, jnp.int32(0))

    def step(
        params: NetworkParams, carry: Window, inputs: Array, targets: Any
    ) -> tuple[Window, NetworkParams, Array]:
        carry = _shifted(network, params, carry, inputs, window)
        lengths = jnp.full(inputs.shape[:1], carry.steps)

        def last_loss(params: NetworkParams) -> tuple[Array, Array]:
            outputs = network.apply(params, carry.state, carry.inputs, lengths=lengths)[0].output
            output = outputs[carry.steps - 1]
            return loss(output, targets), output

        gradients, output = jax.grad(last_loss, has_aux=True)(params)
        return carry, gradients, output

    return Learner(init, step)


def _shifted(network: Network, params: NetworkParams, carry: Window, inputs: Array, window: int) -> Window:
    """The window with one more step; if it was full, the oldest one goes into its first state."""
    is_full = carry.steps == window

    def advanced() -> NetworkState:
        return network.apply(params, carry.state, carry.inputs[:1])[1]

    state = jax.lax.stop_gradient(jax.lax.cond(is_full, advanced, lambda: carry.state))
    rows = jnp.where(is_full, jnp.roll(carry.inputs, -1, axis=0), carry.inputs)
    place = jnp.minimum(carry.steps, window - 1)
    return Window(state, rows.at[place].set(inputs.astype(rows.dtype)), place + 1)


def random_feedback(key: Array, network: Network) -> tuple[Array, ...]:
    """Random matrices ``[outputs, neurons]``, one a layer, by which `eprop` takes the error to the layers.

    Normal numbers of variance 1 / neurons.

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
        jax.random.normal(own, (_num_outputs(network), spec.num_neurons), jnp.float32) / spec.num_neurons**0.5
        for own, spec in zip(keys, network.layers, strict=True)
    )


def _num_outputs(network: Network) -> int:
    last = network.layers[-1] if network.readout is None else network.readout
    return last.fitted.num_neurons


def _check_network(op: str, network: Network) -> None:
    """Traces are known for dense products in front of generalised LIF neurons."""
    for index, spec in enumerate(network.layers):
        form = spec.fitted.connection
        is_dense = form.convolution is None and form.pooling is None and spec.delays is None
        expected, way_out = "be a dense layer without delays", "Use online.truncated for this network"
        check(is_dense, op, f"network.layers[{index}]", expected, str(spec.connection), way_out)
        expected = "be of generalised LIF neurons"
        check(
            glif_of(spec.neuron) is not None,
            op,
            f"network.layers[{index}]",
            expected,
            spec.neuron.name,
            way_out,
        )


def _learner(
    network: Network,
    loss: StepLoss,
    *,
    feedback: tuple[Array, ...] | None = None,
    is_filtered: bool = False,
    is_presynaptic: bool = False,
) -> Learner:
    """A rule with traces."""
    specs = [*network.layers, *([] if network.readout is None else [network.readout])]
    filtered = [is_filtered and isinstance(spec, LayerSpec) for spec in specs]

    def init(params: NetworkParams, batch: int) -> OnlineCarry:
        state, owns = network.initial_state(params, batch), _all(network.spread(params))
        each = zip(owns, _states(state), filtered, strict=True)
        return OnlineCarry(state, tuple(_no_traces(*own, is_presynaptic) for own in each))

    def step(
        params: NetworkParams, carry: OnlineCarry, inputs: Array, targets: Any
    ) -> tuple[OnlineCarry, NetworkParams, Array]:
        # What masks and shared constants do to parameters is linear, and pulled back as such.
        spread, pull_back = jax.vjp(network.spread, params)
        owns, kappa = _all(spread), _readout_decay(network, spread, carry.state)
        second = network.second_thresholds(spread)
        x, rans, states, fired = inputs, [], [], []
        for index, (spec, own) in enumerate(zip(specs, owns, strict=True)):
            before = None if index == len(network.layers) else carry.state.spikes[index]
            sources = _sources(own, x, before)
            given = (spec, own, _states(carry.state)[index], sources, carry.traces[index])
            after, x, ran = _advance(*given, (*second, None)[index], kappa, is_presynaptic)
            rans, states, fired = [*rans, ran], [*states, after], [*fired, x]
        output = x.astype(params.layers[0].weights.dtype)
        signal = jax.grad(loss)(output, targets)
        gradients = _gradients(owns, rans, signal, feedback, is_presynaptic)
        has_readout = network.readout is not None
        tree = NetworkParams(tuple(gradients[: len(network.layers)]), gradients[-1] if has_readout else None)
        carry = OnlineCarry(_next_state(carry.state, states, fired), tuple(ran.traces for ran in rans))
        return carry, pull_back(tree)[0], output

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


def _readout_decay(network: Network, params: NetworkParams, state: NetworkState) -> Array:
    """The share of its membrane that a read-out keeps, the mean over the outputs; 0 without read-out."""
    spec, own = network.readout, params.readout
    if spec is None or own is None:
        return jnp.float32(0)
    nothing = jnp.zeros_like(state.readout.v)

    def kept(v: Array) -> Array:
        return spec.neuron.integrate(own.neuron, state.readout._replace(v=v), nothing)[0]

    return jnp.mean(jax.jvp(kept, (nothing,), (jnp.ones_like(nothing),))[1])


def _sources(own: LayerParams, x: Array, before: Array | None) -> Array:
    """All that a neuron sums, in the dtype of sums: inputs, recurrent spikes, and 1 for a bias."""
    parts = [wide(x.astype(own.weights.dtype))]
    if before is not None:
        parts.append(wide(before))
    if own.bias is not None:
        parts.append(jnp.ones_like(parts[0][:, :1]))
    return jnp.concatenate(parts, axis=-1)


def _weights(own: LayerParams) -> Array:
    """What each source is multiplied with, ``[sources, neurons]``."""
    parts = [own.weights, own.recurrent, None if own.bias is None else own.bias[None, :]]
    return jnp.concatenate([wide(part) for part in parts if part is not None])


def _no_traces(own: LayerParams, state: Any, filtered: bool, is_presynaptic: bool) -> _Traces:
    components, batch, neurons = len(state), *state.v.shape
    sources, constants = _weights(own).shape[0], len(jax.tree.leaves(own.neuron))
    dtype = state.v.dtype
    if is_presynaptic:
        nothing = jnp.zeros((0, components, batch, neurons), dtype)
        return _Traces(jnp.zeros((batch, sources), dtype), nothing, None)
    last = None
    if filtered:
        last = (
            jnp.zeros((batch, sources, neurons), dtype),
            jnp.zeros((constants, batch, neurons), dtype),
        )
    return _Traces(
        jnp.zeros((components, batch, sources, neurons), dtype),
        jnp.zeros((constants, components, batch, neurons), dtype),
        last,
    )


def _advance(
    spec: LayerSpec | ReadoutSpec,
    own: LayerParams,
    state: Any,
    sources: Array,
    traces: _Traces,
    second: Any,
    kappa: Array,
    is_presynaptic: bool,
) -> tuple[Any, Array, _Ran]:
    """One layer by one step: its state, its spikes (a read-out's membrane), and its traces."""

    def move(constants: Any, components: Any, current: Array) -> tuple[tuple[Array, ...], Array, Array]:
        before = type(state)(*components)
        membrane, threshold = spec.neuron.integrate(constants, before, current)
        after = spec.neuron.fire(constants, before, current, membrane, jnp.zeros_like(membrane))
        threshold = jnp.broadcast_to(wide(threshold), membrane.shape)
        return tuple(after), membrane, threshold

    def distance(*arguments: Any) -> tuple[tuple[Array, ...], Array]:
        after, membrane, threshold = move(*arguments)
        return after, membrane - threshold if isinstance(spec, LayerSpec) else membrane

    at = (own.neuron, tuple(state), sources @ _weights(own))
    after, membrane, threshold = move(*at)
    spikes, slope = _fired(spec, own, membrane, threshold, second)
    unit = jnp.ones_like(membrane)
    by_current = jax.jvp(lambda current: distance(*at[:2], current), (at[2],), (unit,))[1]
    if is_presynaptic:
        kept = jnp.mean(_by_component(distance, at, 0)[0][0])
        trace = kept * traces.weights + sources
        ran = _Ran(traces._replace(weights=trace), trace, traces.constants[:, 0], by_current[1], slope)
        return type(state)(*after), spikes, ran
    weights, by_weights = _trace_weights(distance, at, sources, traces.weights, by_current)
    constants, by_constants = _trace_constants(distance, at, traces.constants)
    by_weights, by_constants = slope[:, None, :] * by_weights, slope[None] * by_constants
    last = None
    if traces.filtered is not None:
        by_weights = kappa * traces.filtered[0] + by_weights
        by_constants = kappa * traces.filtered[1] + by_constants
        last = (by_weights, by_constants)
    ran = _Ran(_Traces(weights, constants, last), by_weights, by_constants, by_current[1], slope)
    return type(state)(*after), spikes, ran


def _fired(
    spec: LayerSpec | ReadoutSpec, own: LayerParams, membrane: Array, threshold: Array, second: Any
) -> tuple[Array, Array]:
    """The listed spikes, dense, and their slope: 0 of neurons that are not listed."""
    if isinstance(spec, ReadoutSpec):
        return membrane, jnp.ones_like(membrane)

    def listed(membrane: Array) -> Array:
        spikes = fire(spec, own, membrane, threshold, second, None, "composed")[0]
        return wide(spikes.to_dense() if isinstance(spikes, SparseSpikes) else spikes)

    spikes, pull_back = jax.vjp(listed, membrane)
    return spikes, pull_back(jnp.ones_like(spikes))[0]


def _by_component(distance: Any, at: Any, component: int) -> tuple[tuple[Array, ...], Array]:
    """The derivatives of states and distance by one component of the state before."""
    units = tuple(
        jnp.ones_like(each) if place == component else jnp.zeros_like(each)
        for place, each in enumerate(at[1])
    )
    return jax.jvp(lambda components: distance(at[0], components, at[2]), (at[1],), (units,))[1]


def _trace_weights(
    distance: Any, at: Any, sources: Array, traces: Array, by_current: Any
) -> tuple[Array, Array]:
    """The traces of the weights after the step, and the derivative of the distance by the weights."""
    new = [each[:, None, :] * sources[:, :, None] for each in (*by_current[0], by_current[1])]
    for component, trace in enumerate(traces):
        after, by_distance = _by_component(distance, at, component)
        new = [
            sum_ + slope[:, None, :] * trace for sum_, slope in zip(new, (*after, by_distance), strict=True)
        ]
    return jnp.stack(new[:-1]), new[-1]


def _trace_constants(distance: Any, at: Any, traces: Array) -> tuple[Array, Array]:
    """The same for the neurons' own parameters: each neuron depends on its own ones alone."""
    leaves, tree = jax.tree.flatten(at[0])
    new, distances = [], []
    for place, trace in enumerate(traces):
        units = [
            jnp.ones_like(leaf) if own == place else jnp.zeros_like(leaf) for own, leaf in enumerate(leaves)
        ]
        tangents = (jax.tree.unflatten(tree, units), tuple(trace))
        after, by_distance = jax.jvp(
            lambda constants, components: distance(constants, components, at[2]), at[:2], tangents
        )[1]
        new.append(jnp.stack(after))
        distances.append(by_distance)
    return (jnp.stack(new), jnp.stack(distances)) if new else (traces, traces[:, 0])


def _gradients(
    owns: list[LayerParams],
    rans: list[_Ran],
    signal: Array,
    feedback: tuple[Array, ...] | None,
    is_presynaptic: bool,
) -> list[LayerParams]:
    """From the last layer to the first: a layer's learning signal times its traces."""
    gradients: list[LayerParams] = []
    error = reaching = wide(signal)
    for index in reversed(range(len(owns))):
        own, ran = owns[index], rans[index]
        if feedback is not None and index < len(feedback):
            reaching = error @ wide(feedback[index])
        through = reaching * ran.slope * ran.by_current
        if is_presynaptic:
            by_weights = ran.by_weights.T @ through
        else:
            by_weights = jnp.einsum("bn,bsn->sn", reaching, ran.by_weights)
        by_constants = jnp.sum(reaching[None] * ran.by_constants, axis=1)
        gradients.insert(0, _as_params(own, by_weights, by_constants))
        reaching = through @ wide(own.weights).T
    return gradients


def _as_params(own: LayerParams, by_weights: Array, by_constants: Array) -> LayerParams:
    """The gradients in the form of the parameters."""
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
    return LayerParams(weights, bias, recurrent, jax.tree.unflatten(tree, filled), own.delays)
