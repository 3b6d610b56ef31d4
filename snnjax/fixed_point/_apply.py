"""`run`: the integers of a chip; `apply`: the same with a derivative; `headroom`: how far from their bounds."""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32

from snnjax._arguments import explained
from snnjax._check import as_lengths, check_shape, concrete, fail, short_repr
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Params, Signal, Stats, Unchecked
from snnjax.blocks.block import flat
from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._convert import given, whole_network
from snnjax.fixed_point._derivative import Real, SpikeRule, train_layer
from snnjax.fixed_point._network import IntegerNetwork, LayerState, State
from snnjax.fixed_point._quantise import quantised_layer
from snnjax.fixed_point._run import Steps, run_layer
from snnjax.graph.network import Network, NetworkOutput


class Integers(NamedTuple):
    """What a chip computes, by the names of its neurons."""

    output: Int32[Array, "time batch outputs"]  # membranes of the readout after each step, or its spikes
    activity: dict[str, Float[Array, "batch neurons"]]  # mean number of spikes in a step
    spikes: dict[str, Int32[Array, "time batch neurons"]]  # if recorded
    membranes: dict[str, Int32[Array, "time batch neurons"]]
    currents: dict[str, Int32[Array, "time synapses batch neurons"]]
    unit: Float[Array, " outputs"]  # an output of 1 of the float network


@explained
def run(
    network: IntegerNetwork,
    inputs: Signal,
    state: State | None = None,
    *,
    lengths: Unchecked = None,
    record: Sequence[str] = (),
) -> tuple[Integers, State]:
    """Run a network in the integers of its chip, bit for bit.

    States are int32, and so are sums of weights in the CPU's kernel of a layer; elsewhere and behind convolutions sums
    are float32, exact in bounds that `convert` ensures. Where currents saturate after each source, sources are taken
    in order if a current could reach a bound on the way.

    Args:
        network: from `convert` or `from_xylo`.
        inputs: numbers of spikes ``[time, batch, inputs]``, or images of them: whole numbers of any dtype, or
            `SparseSpikes`.
        state: from an earlier call; None starts from 0.
        lengths: number of steps of each sequence.
        record: which of "spikes", "membranes" and "currents" to return for all neurons.

    Returns:
        The integers and the state.

    Raises:
        ValueError: if inputs do not have the shape that the network takes, are not whole numbers, or are more spikes
            than the chip takes in a step.

    Example:
        >>> import jax, jax.numpy as jnp, snnjax
        >>> from snnjax import fixed_point, neurons
        >>> net = snnjax.network(12, [snnjax.layer(8, neurons.current_lif())], snnjax.leaky_readout(4))
        >>> whole, _ = fixed_point.convert(net, net.init(jax.random.key(0)), fixed_point.XYLO)
        >>> found, state = fixed_point.run(whole, jnp.ones((5, 1, 12), jnp.uint8))
        >>> found.output.shape, found.output.dtype
        ((5, 1, 4), dtype('int32'))
    """
    spikes = _checked_inputs("fixed_point.run", network.chip, network.layers[0].num_inputs, inputs)
    if lengths is not None:
        lengths = as_lengths("fixed_point.run", lengths, *spikes.shape[:2])
    state = network.initial_state(spikes.shape[1]) if state is None else state
    return _run(network, spikes, state, lengths, tuple(record))


@functools.partial(jax.jit, static_argnames=("record",))
def _run(
    network: IntegerNetwork, spikes: Array, state: State, lengths: Array | None, record: tuple[str, ...]
) -> tuple[Integers, State]:
    found, after = _chain(network, None, spikes, state, lengths)
    names = [layer.name for layer in network.layers]
    each = {"spikes": "spikes", "membranes": "v", "currents": "current"}
    whole = functools.partial(jnp.asarray, dtype=jnp.int32)
    kept = [
        dict(zip(names, (whole(getattr(own, field)) for own in found), strict=True)) if what in record else {}
        for what, field in each.items()
    ]
    output = whole(found[-1].spikes if network.spiking_output else found[-1].v)
    activity = _activity(names, found, lengths)
    recorded, membranes, currents = kept
    return Integers(output, activity, recorded, membranes, currents, network.layers[-1].unit), after


def _chain(
    network: IntegerNetwork,
    trained: Sequence[tuple[SpikeRule | None, Real]] | None,
    spikes: Array,
    state: State,
    lengths: Array | None,
) -> tuple[list[Steps], State]:
    """All layers in order; those that are trained have a derivative."""
    found, after = list[Steps](), list[LayerState]()
    for place, (layer, held) in enumerate(zip(network.layers, state, strict=True)):
        chip = network.chip_of(place)
        if trained is None:
            steps, end = run_layer(chip, layer, held, spikes, lengths)
        else:
            rule, real = trained[place]
            steps, end = cast(
                tuple[Steps, LayerState], train_layer((chip, rule), real, spikes, (layer, held, lengths))
            )
        found, after, spikes = [*found, steps], [*after, end], steps.spikes
    return found, tuple(after)


@functools.partial(jax.jit, static_argnames=("rules",))
def _trained(
    rules: tuple[SpikeRule | None, ...],
    network: IntegerNetwork,
    real: Sequence[Real],
    spikes: Array,
    state: State,
    lengths: Array | None,
) -> tuple[list[Steps], State]:
    """`_chain` of layers that are trained."""
    return _chain(network, list(zip(rules, real, strict=True)), spikes, state, lengths)


def _activity(names: list[str], found: list[Steps], lengths: Array | None) -> dict[str, Array]:
    """The mean number of spikes of each neuron in the steps of its sequence."""
    steps = found[0].spikes.shape[0] if lengths is None else lengths[:, None]
    count = jnp.maximum(jnp.asarray(steps, jnp.float32), 1)
    return {name: own.counts.astype(jnp.float32) / count for name, own in zip(names, found, strict=True)}


@explained
def apply(
    network: Network,
    params: Params,
    chip: FixedPoint,
    inputs: Signal,
    state: State | None = None,
    *,
    stats: Stats | None = None,
    lengths: Unchecked = None,
    record: Sequence[str] = (),
) -> tuple[NetworkOutput, State]:
    """Run a network in the integers of a chip with a derivative: the bits of `run` after `convert`.

    Values are those of the integers, held in float32, and derivatives those of the real-valued neurons: gradients pass
    straight through rounding, clipping and saturation, and spikes have the surrogate of their neurons. Gradients do not
    pass through the state from an earlier call. `on_chip` makes a network of it for `train.fit`.

    Args:
        network: as for `convert`, without norms: fold them first.
        params: its parameters, which receive gradients.
        chip: such as `XYLO`.
        inputs: as for `run`.
        state: from an earlier call; None starts from 0.
        stats: the stats of the network, if it has neurons whose constants are drawn.
        lengths: number of steps of each sequence.
        record: "spikes", "membranes" or both, as the chip computes them, in float32.

    Returns:
        The output in the unit of `network`, so that losses fit, NaN if a parameter is not finite; and the state.

    Raises:
        ValueError: as for `convert`; for norms and dropout, for decays that are learned, and for spike times.

    Example:
        >>> import jax, jax.numpy as jnp, snnjax
        >>> from snnjax import fixed_point, neurons
        >>> net = snnjax.network(12, [snnjax.layer(8, neurons.current_lif())], snnjax.leaky_readout(4))
        >>> params, x = net.init(jax.random.key(0)), jnp.ones((9, 1, 12))
        >>> loss = lambda params: fixed_point.apply(net, params, fixed_point.XYLO, x)[0].output.sum()
        >>> bool((jax.grad(loss)(params)["layer_0/connection"].weights != 0).any())
        True

    Reference:
        Bengio et al. 2013, arXiv:1308.3432 (straight-through).
    """
    op = "fixed_point.apply"
    _, params, layers, stats = given(op, network, params, chip, stats, train=True)
    spikes = _checked_inputs(op, chip, network.num_inputs, inputs)
    if lengths is not None:
        lengths = as_lengths(op, lengths, *spikes.shape[:2])
    found = [quantised_layer(chip, own, params, stats) for own in layers]
    whole = whole_network(chip, found)
    state = whole.initial_state(spikes.shape[1]) if state is None else state
    trained = [own.real for own in found]
    steps, after = _trained(tuple(own.rule for own in found), whole, trained, spikes, state, lengths)
    last, names = steps[-1], [layer.name for layer in whole.layers]
    output = last.spikes if whole.spiking_output else last.v / whole.layers[-1].unit[None, None]
    output = jnp.where(jnp.all(jnp.stack([own.is_finite for own in found])), output, jnp.nan)
    spiking = [place for place, own in enumerate(found) if own.rule is not None]
    named = [names[place] for place in spiking], [steps[place] for place in spiking]
    recorded = {name: own.spikes for name, own in zip(*named, strict=True)} if "spikes" in record else {}
    membranes = {name: own.v for name, own in zip(names, steps, strict=True)} if "membranes" in record else {}
    dropped = dict.fromkeys(named[0], jnp.zeros(spikes.shape[1], jnp.int32))
    activity = _activity(*named, lengths)
    return NetworkOutput(output, activity, dropped, stats, recorded, membranes), after


@dataclass(frozen=True)
class OnChip(Network):
    """A network whose `apply` is `fixed_point.apply`; made by `on_chip`."""

    chip: FixedPoint | None = None

    def apply(  # type: ignore[override]
        self,
        params: Params,
        state: State | None,
        inputs: Signal,
        *,
        stats: Stats | None = None,
        lengths: Unchecked = None,
        record: Sequence[str] = (),
        **others: Unchecked,
    ) -> tuple[NetworkOutput, State]:
        """`fixed_point.apply` with the arguments of `Network.apply`; it has no second thresholds, chunks and so on."""
        for name, value in others.items():
            if name not in ("train", "key") and value is not None:
                hint = "Leave it out on a chip"
                fail(
                    f"network.apply: `{name}` must be None on {self.chip_name}, got {short_repr(value)}. {hint}."
                )
        assert self.chip is not None
        plain = Network(**{own.name: getattr(self, own.name) for own in dataclasses.fields(Network)})
        found, after = apply(
            plain, params, self.chip, inputs, state, stats=stats, lengths=lengths, record=record
        )
        return found, after

    @property
    def chip_name(self) -> str:
        """The name of the chip."""
        return "no chip" if self.chip is None else self.chip.name


def on_chip(network: Network, chip: FixedPoint) -> OnChip:
    """The network with the bits of a chip, for `train.fit` and `train.evaluate`: its `apply` is `fixed_point.apply`.

    Raises:
        ValueError: in `apply`, as `fixed_point.apply` does.

    Example:
        >>> import jax, jax.numpy as jnp, snnjax
        >>> from snnjax import fixed_point, neurons
        >>> net = snnjax.network(12, [snnjax.layer(8, neurons.current_lif())], snnjax.leaky_readout(4))
        >>> params = net.init(jax.random.key(0))
        >>> fixed_point.on_chip(net, fixed_point.XYLO).apply(params, None, jnp.ones((5, 1, 12)))[
        ...     0
        ... ].output.shape
        (5, 1, 4)
    """
    return OnChip(**{own.name: getattr(network, own.name) for own in dataclasses.fields(Network)}, chip=chip)


class Headroom(NamedTuple):
    """The largest states of a layer as shares of their bounds: at 1 they saturated or wrapped, and order matters."""

    membrane: float
    current: float  # 0 where a chip has none


def headroom(network: IntegerNetwork, inputs: Signal, *, lengths: Unchecked = None) -> dict[str, Headroom]:
    """How close the states of a network come to their bounds on some inputs, by the names of its neurons.

    Raises:
        ValueError: as for `run`.

    Example:
        >>> import jax, jax.numpy as jnp, snnjax
        >>> from snnjax import fixed_point, neurons
        >>> net = snnjax.network(12, [snnjax.layer(8, neurons.current_lif())], snnjax.leaky_readout(4))
        >>> whole, _ = fixed_point.convert(net, net.init(jax.random.key(0)), fixed_point.XYLO)
        >>> fixed_point.headroom(whole, jnp.ones((5, 1, 12)))["layer_0/neuron"].membrane < 1
        True
    """
    found, _ = run(network, inputs, lengths=lengths, record=("membranes", "currents"))
    most = network.chip.bounds[1]
    share = lambda states: float(jnp.max(jnp.abs(states), initial=0)) / most  # noqa: E731
    stored = network.chip.overflow != "none"
    return {
        name: Headroom(share(own), share(found.currents[name]) if stored else 0.0)
        for name, own in found.membranes.items()
    }


def _checked_inputs(op: str, chip: FixedPoint, num_inputs: int, inputs: Signal) -> Array:
    """Inputs ``[time, batch, inputs]``, whole numbers that the chip takes; traced ones cannot be checked."""
    if isinstance(inputs, SparseSpikes):
        inputs = inputs.to_dense()
    spikes = jnp.asarray(inputs)
    spikes = flat(spikes) if spikes.ndim > 3 else spikes
    hint = "Pass as many as the network has"
    check_shape(op, "inputs", spikes, (None, None, num_inputs), "time, batch, inputs", hint)
    known = concrete(spikes)
    if known is not None and known.size > 0 and not _are_counts(known, chip.max_input):
        known = known.astype("float64")
        wrong = known[(known != known.round()) | (known < 0) | (known > chip.max_input)]
        fail(
            f"{op}: `inputs` must be whole numbers of spikes from 0 to {chip.max_input} on {chip.name}, "
            f"got {wrong[0]:g}. Encode them as spikes with snnjax.encoding."
        )
    return spikes if spikes.dtype in (jnp.bool_, jnp.uint8) else spikes.astype(jnp.float32)


def _are_counts(known: np.ndarray, most: int) -> bool:
    """Whether numbers are whole and not negative, and `most` at most."""
    is_whole = known.dtype.kind in "biu" or (known == np.rint(known)).all()
    return bool(is_whole and known.min() >= 0 and known.max() <= most)
