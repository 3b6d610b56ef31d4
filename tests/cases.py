"""The table of ops that the property tests in `tests/ops` run over: one row per op, and each implementation of it.

Arguments are dyadic (multiples of 1/16, decays and gains powers of 1/2), so every sum is exact in float32 whatever its
order and results can be compared with a reference bit for bit, including threshold crossings.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import snnjax
from snnjax import LayerState, LIFLayer, LIFNetworkState, LIFReadout, SparseSpikes, Synapses, _targets
from snnjax._types import Signal, State
from snnjax.ops._convolution import Convolution
from snnjax.surrogates import Surrogate
from tests.numbers import array, dyadic, halves
from tests.ops import references

BATCH = 4  # divides over the four devices of the tests
CAPACITY = 3
# Images of three by four pixels and two channels, each convolved separately.
CONVOLUTION = Convolution.of("spike_conv", (3, 4, 2), (2, 3), 4, strides=(1, 2), groups=2)
MAX_DELAY = 3
SMOOTH = Surrogate("superspike", 3.0, smooth=True)


@dataclass(frozen=True)
class Case:
    """One op: everything except arrays is bound in `function`."""

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    batch_axes: tuple[int | None, ...]  # of each argument; None if shared by the batch
    result_axes: Any  # the same for the results, a prefix of their tree
    relaxed: Callable[..., Any]  # the function whose true gradient is the op's
    tolerance: float  # relative, of the values
    reason: str
    has_kernel: bool = False  # whether it is compared with its reference in both implementations
    implementation: str | None = None  # which of them this is

    @property
    def id(self) -> str:
        """A unique name."""
        return self.name if self.implementation is None else f"{self.name}-{self.implementation}"


def as_numpy(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def spike_lists(rng: np.random.Generator, rows: int, capacity: int, num_neurons: int) -> SparseSpikes:
    """Lists with duplicates, ids outside the range and values that are not 1."""
    ids = array(rng.integers(0, num_neurons + 2, (rows, capacity)), jnp.uint16)
    return SparseSpikes(
        ids,
        dyadic(rng, -16, 16, rows, capacity),
        *(array(np.full(rows, count), jnp.int32) for count in (capacity, capacity, 0)),
        num_neurons,
    )


def _spike_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return (dyadic(rng, -16, 16, BATCH, 5),)


def _lif_step_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    v, current = dyadic(rng, -8, 40, BATCH, 5), dyadic(rng, -8, 40, BATCH, 5)
    return v, current, halves(rng, 5), dyadic(rng, 8, 16, 5), halves(rng, 5)


def _select_spikes_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    threshold = dyadic(rng, 8, 16, 7)
    second = array(np.subtract(threshold, dyadic(rng, 0, 8, 7)), jnp.float32)
    return dyadic(rng, -8, 24, BATCH, 7), threshold, second


def _spike_matmul_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return spike_lists(rng, BATCH, CAPACITY, 6), dyadic(rng, -32, 32, 6, 3)


def _rows_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    rows = dyadic(rng, -16, 16, BATCH, 6)
    rows = array(np.where(rng.random((BATCH, 6)) < 0.5, rows, 0.0), jnp.float32)
    return rows, dyadic(rng, -32, 32, 6, 3)


def _targets_of(rng: np.random.Generator, synapses: int, neurons: int) -> Any:
    """Some several times, some out of range."""
    return array(rng.integers(0, neurons + 2, synapses), jnp.uint16)


def _sparse_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    synapses = Synapses(array([2, 2, 5, 6, 9, 12], jnp.int32), _targets_of(rng, 12, 4), 4)
    return spike_lists(rng, BATCH, CAPACITY, 6), dyadic(rng, -32, 32, 12), synapses


def _sparse_rows_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return _rows_arguments(rng)[0], *_sparse_arguments(rng)[1:]


def _spike_conv_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    weights = dyadic(rng, -32, 32, *CONVOLUTION.weights_shape)
    return spike_lists(rng, BATCH, CAPACITY, CONVOLUTION.num_inputs), weights


def _conv_rows_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    rows = dyadic(rng, -16, 16, BATCH, CONVOLUTION.num_inputs)
    rows = array(np.where(rng.random(rows.shape) < 0.3, rows, 0.0), jnp.float32)
    return rows, dyadic(rng, -32, 32, *CONVOLUTION.weights_shape)


def convolve(spikes: Signal, weights: Any, **options: Any) -> Any:
    """`spike_conv` with the geometry `CONVOLUTION`."""
    c = CONVOLUTION
    return snnjax.spike_conv(spikes, weights, **c.options, **options)


def _pool_spikes_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    return (dyadic(rng, -16, 16, BATCH, 5 * 4 * 2),)


def pool(spikes: Signal) -> Any:
    """`pool_spikes` of an image that its windows do not fill."""
    return snnjax.pool_spikes(spikes, 2, shape=(5, 4, 2), how="mean")


def _delay_spikes_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    """Integer and other delays, including the bounds."""
    rows = dyadic(rng, -16, 16, MAX_DELAY + 6, BATCH, 5)
    rows = np.where(rng.random(rows.shape) < 0.5, rows, 0.0)
    delays = array(np.concatenate([dyadic(rng, 0, 16 * MAX_DELAY, 3), [0.0, MAX_DELAY]]), jnp.float32)
    lengths = array(rng.permutation([5, 3, 1, 0]), jnp.int32)
    pending, spikes = (array(part, jnp.float32) for part in np.split(rows, [MAX_DELAY + 1]))
    return spikes, delays, pending, lengths


def run_delays(spikes: Signal, delays: Any, pending: Any, lengths: Any, **options: Any) -> Any:
    """`delay_spikes` on arrays only."""
    return snnjax.delay_spikes(spikes, delays, pending, max_delay=MAX_DELAY, lengths=lengths, **options)


def _delayed_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    """A delay for each synapse, the bounds among them."""
    spikes, delays, _, lengths = _delay_spikes_arguments(rng)
    _, weights, synapses = _sparse_arguments(rng)
    delays = array(np.tile(delays, 3)[:12], jnp.float32)
    ends = array(np.minimum(np.asarray(synapses.ends)[:5] + 3, 12), jnp.int32)
    synapses = Synapses(ends, synapses.targets, synapses.num_targets)
    return spikes, weights, delays, synapses, dyadic(rng, -16, 16, MAX_DELAY, BATCH, 4), lengths


def run_delayed(
    spikes: Signal, weights: Any, delays: Any, synapses: Any, pending: Any, lengths: Any, **options: Any
) -> Any:
    """`delayed_spike_matmul` on arrays only."""
    options = {"max_delay": MAX_DELAY, "lengths": lengths, **options}
    return snnjax.delayed_spike_matmul(spikes, weights, delays, synapses, pending, **options)


def network_layer(rng: np.random.Generator, inputs: int, neurons: int, recurrent: bool) -> LIFLayer:
    return LIFLayer(
        weights=dyadic(rng, -16, 24, inputs, neurons),
        decay=halves(rng, neurons),
        threshold=dyadic(rng, 8, 16, neurons),
        gain=halves(rng, neurons),
        bias=dyadic(rng, -4, 8, neurons),
        recurrent=dyadic(rng, -16, 16, neurons, neurons) if recurrent else None,
    )


def network_arguments(rng: np.random.Generator, widths: tuple[int, ...] = (6,)) -> tuple[Any, ...]:
    """Inputs, layers of `widths` (the first recurrent), readout, state, lengths and second threshold."""
    inputs = array(rng.integers(0, 2, (4, BATCH, 5)), jnp.float32)
    pairs = list(zip((5, *widths), widths, strict=False))
    layers = tuple(network_layer(rng, *pair, recurrent=index == 0) for index, pair in enumerate(pairs))
    readout = LIFReadout(dyadic(rng, -16, 16, widths[-1], 3), halves(rng), halves(rng), dyadic(rng, -4, 4, 3))
    spikes = array(rng.integers(0, 2, (BATCH, widths[0])), jnp.float32)
    membranes = tuple(dyadic(rng, -8, 24, BATCH, width) for width in widths)
    states = (LayerState(v, None, None if index else spikes) for index, v in enumerate(membranes))
    state = LIFNetworkState(tuple(states), dyadic(rng, -8, 8, BATCH, 3))
    lengths = array(rng.permutation([4, 2, 1, 0]), jnp.int32)
    return inputs, layers, readout, state, lengths, dyadic(rng, 2, 6)


def currents_arguments(rng: np.random.Generator) -> tuple[Any, ...]:
    """The same with currents as inputs of the first layer, which has no weights."""
    _, (first, *others), *rest = network_arguments(rng)
    return dyadic(rng, -16, 80, 4, BATCH, 6), (first._replace(weights=None), *others), *rest


def run_network(
    inputs: Signal,
    layers: Any,
    readout: Any,
    state: State,
    lengths: Any,
    second_threshold: Any,
    **options: Any,
) -> Any:
    """`lif_network` on arrays only: output, activity, dropped, spikes and state."""
    options = {"capacity": CAPACITY, "second_threshold": second_threshold, **options}
    out, state = snnjax.lif_network(
        inputs, layers, readout, state, lengths=lengths, record_spikes=True, **options
    )
    return out.output, out.activity, out.dropped, out.spikes, tuple(state)


def relaxed_network(*arguments: Any, **options: Any) -> Any:
    """With smooth spikes, an attached reset and, instead of the last argument, a second threshold below everything.

    The activity's gradient only reaches the neurons above it, and its relaxed form counts all of them.
    """
    return run_network(*arguments[:-1], -np.inf, **{"surrogate": SMOOTH, "detach_reset": False, **options})


EXACT = "dyadic arguments: every sum is exact"

# The products of spikes, in both forms: (name, op, reference, arguments, which of them have a batch axis).
PRODUCTS: tuple[tuple[str, Any, Any, Any, tuple[int | None, ...]], ...] = (
    ("spike_matmul", snnjax.spike_matmul, references.spike_matmul, _spike_matmul_arguments, (0, None)),
    ("spike_matmul of rows", snnjax.spike_matmul, references.multiply_rows, _rows_arguments, (0, None)),
    *(
        (name, snnjax.spike_sparse_matmul, references.spike_sparse_matmul, arguments, (0, None, None))
        for name, arguments in (
            ("spike_sparse_matmul", _sparse_arguments),
            ("spike_sparse_matmul of rows", _sparse_rows_arguments),
        )
    ),
    *(
        (name, convolve, functools.partial(references.spike_conv, geometry=CONVOLUTION), arguments, (0, None))
        for name, arguments in (
            ("spike_conv", _spike_conv_arguments),
            ("spike_conv of rows", _conv_rows_arguments),
        )
    ),
)
OPS = (
    Case(
        name="spike",
        function=snnjax.spike,
        reference=references.spike,
        arguments=_spike_arguments,
        batch_axes=(0,),
        result_axes=0,
        relaxed=functools.partial(snnjax.spike, surrogate=SMOOTH),
        tolerance=0.0,
        reason="zeros and ones",
    ),
    Case(
        name="lif_step",
        function=snnjax.lif_step,
        reference=references.lif_step,
        arguments=_lif_step_arguments,
        batch_axes=(0, 0, None, None, None),
        result_axes=0,
        relaxed=functools.partial(snnjax.lif_step, surrogate=SMOOTH, detach_reset=False),
        tolerance=0.0,
        reason=EXACT,
    ),
    Case(
        name="select_spikes",
        function=functools.partial(snnjax.select_spikes, capacity=CAPACITY),
        reference=functools.partial(references.select_spikes, capacity=CAPACITY),
        arguments=_select_spikes_arguments,
        batch_axes=(0, None, None),
        result_axes=0,
        relaxed=functools.partial(snnjax.select_spikes, capacity=CAPACITY, surrogate=SMOOTH),
        tolerance=0.0,
        reason="ids, zeros and ones",
        has_kernel=True,
    ),
    *(
        Case(
            name=name,
            function=function,
            reference=reference,
            arguments=arguments,
            batch_axes=axes,
            result_axes=0,
            relaxed=function,
            tolerance=0.0,
            reason=EXACT,
            has_kernel=True,
        )
        for name, function, reference, arguments, axes in PRODUCTS
    ),
    Case(
        name="pool_spikes",
        function=pool,
        reference=references.pool_spikes,
        arguments=_pool_spikes_arguments,
        batch_axes=(0,),
        result_axes=0,
        relaxed=pool,
        tolerance=0.0,
        reason=EXACT,
    ),
    Case(
        name="delay_spikes",
        function=run_delays,
        reference=references.delay_spikes,
        arguments=_delay_spikes_arguments,
        batch_axes=(1, None, 1, 0),
        result_axes=1,
        relaxed=run_delays,
        tolerance=0.0,
        reason=EXACT,
        has_kernel=True,
    ),
    Case(
        name="delayed_spike_matmul",
        function=run_delayed,
        reference=references.delayed_spike_matmul,
        arguments=_delayed_arguments,
        batch_axes=(1, None, None, None, 1, 0),
        result_axes=1,
        relaxed=run_delayed,
        tolerance=0.0,
        reason=EXACT,
        has_kernel=True,
    ),
    Case(
        name="lif_network",
        function=run_network,
        reference=functools.partial(references.lif_network, capacity=(CAPACITY,)),
        arguments=network_arguments,
        batch_axes=(1, None, None, 0, 0, None),
        result_axes=(1, 0, 0, 1, 0),
        relaxed=relaxed_network,
        tolerance=0.0,
        reason=EXACT,
    ),
    Case(
        name="lif_network of currents",
        function=run_network,
        reference=functools.partial(references.lif_network, capacity=(CAPACITY,)),
        arguments=currents_arguments,
        batch_axes=(1, None, None, 0, 0, None),
        result_axes=(1, 0, 0, 1, 0),
        relaxed=relaxed_network,
        tolerance=0.0,
        reason=EXACT,
    ),
)


def _in_each_implementation(case: Case) -> Iterator[Case]:
    """The case once for each available implementation: without a compiler, there are no kernels to test."""
    if not case.has_kernel:
        yield case
        return
    for implementation in ("reference", "cpu") if _targets.missing() is None else ("reference",):
        function = functools.partial(case.function, implementation=implementation)
        yield replace(case, function=function, implementation=implementation)


CASES = tuple(case for op in OPS for case in _in_each_implementation(op))
