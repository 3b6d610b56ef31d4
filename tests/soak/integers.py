"""Functions of integers that a user gives: ids, targets, delays, labels and lengths of any dtype are the same numbers.

Bounds, such as the number of neurons, often do not fit the dtype: 256 classes have labels of uint8, 300 neurons ids of
int8. Each function is traced, where numbers out of range cannot be refused, and compared with itself on int32.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import snnjax
from snnjax import DelayedSynapses, SparseSpikes, Synapses, _targets, losses, metrics, neurons
from snnjax.circuits import Record
from snnjax.plasticity import STDP, stdp, stdp_traces
from snnjax.quantisation import quantise
from tests.numbers import array, dyadic, picker
from tests.ops.common import jit, with_gradient

DTYPES = ("uint8", "int8", "uint16", "int16", "uint32")
# Sizes at and around the ends of the dtypes.
SIZES = (1, 3, 100, 127, 128, 129, 255, 256, 257, 300)
LARGE = (32767, 32768, 40_000, 65_535, 65_536, 70_000)
COUNT = 6  # of integers
_STEPS, _BATCH, _OUTPUTS = 4, 6, 2
IMPLEMENTATIONS = ("reference", "cpu") if _targets.missing() is None else ("reference",)
CELLS = neurons.cuba_lif(
    tau=20.0, synaptic_taus=(5.0,), rest=0.0, threshold=0.5, reset=0.0, refractory=0.0, dt=1.0
)


class Form(NamedTuple):
    """A function, the bound of its integers and their dtype."""

    name: str
    size: int
    dtype: str
    implementation: str | None = None


# The function of integers ``[COUNT]`` for a bound, and the least of them that is meant.
Maker = Callable[[np.random.Generator, int, str | None], Callable[[jax.Array], Any]]


def _lists(ids: jax.Array, size: int) -> SparseSpikes:
    """Two lists of three."""
    counts, values = jnp.full(2, 3, jnp.int32), jnp.asarray([[1.0, 2.0, -1.0], [0.5, 0.0, 4.0]])
    return SparseSpikes(ids.reshape(2, 3), values, counts, counts, 0 * counts, size)


def _graded(function: Any, *arrays: Any) -> Callable[[jax.Array], Any]:
    """Results and gradients of a function of arrays and integers."""
    return lambda integers: with_gradient(lambda *given: function(integers, *given))(*arrays)


def _dense(rng: Any, size: int, how: Any) -> Any:
    del rng, how
    return lambda ids: _lists(ids, size).to_dense()


def _from_ids(rng: Any, size: int, how: Any) -> Any:
    del rng, how
    return lambda ids: SparseSpikes.from_ids(ids[None], size)


def _product(rng: Any, size: int, how: Any) -> Any:
    def multiply(ids: Any, weights: Any) -> Any:
        return snnjax.spike_matmul(_lists(ids, size), weights, implementation=how)

    return _graded(multiply, dyadic(rng, -16, 16, size, _OUTPUTS))


def _quantised_product(rng: Any, size: int, how: Any) -> Any:
    weights = quantise(dyadic(rng, -16, 16, size, _OUTPUTS))
    return lambda ids: snnjax.spike_matmul(_lists(ids, size), weights, implementation=how)


def _convolution(rng: Any, size: int, how: Any) -> Any:
    def convolve(ids: Any, weights: Any) -> Any:
        return snnjax.spike_conv(_lists(ids, size), weights, shape=(size, 1), implementation=how)

    return _graded(convolve, dyadic(rng, -16, 16, 3, 1, 2))


def _pools(rng: Any, size: int, how: Any) -> Any:
    del rng, how
    windows = ((1, "sum"), (2, "mean"), (1, "max"))
    return lambda ids: [
        snnjax.pool_spikes(_lists(ids, size), min(window, size), shape=(size, 1), how=kind)
        for window, kind in windows
    ]


def _synapses(rng: Any, size: int, how: Any) -> Any:
    """Targets of six synapses of three neurons."""
    ends, spikes = jnp.asarray([1, 4, 6], jnp.int32), dyadic(rng, 0, 2, 2, 3)

    def send(targets: Any, weights: Any) -> Any:
        synapses = Synapses(ends, targets, size)
        delays, trains = 0 * weights + 1, jnp.stack([spikes, 2 * spikes])
        return (
            synapses.to_dense(weights),
            snnjax.spike_sparse_matmul(spikes, weights, synapses, implementation=how),
            snnjax.delayed_spike_matmul(trains, weights, delays, synapses, max_delay=2, implementation=how),
        )

    return _graded(send, dyadic(rng, -16, 16, COUNT))


def _ends(rng: Any, size: int, how: Any) -> Any:
    """Six neurons, whose synapses end at sorted numbers; `size` of them exist."""
    targets = array(rng.integers(0, 4, size), jnp.uint16)
    spikes = dyadic(rng, 0, 2, 2, COUNT)

    def send(ends: Any, weights: Any) -> Any:
        synapses = Synapses(jnp.sort(ends), targets, 3)
        trains = jnp.stack([spikes, 2 * spikes])
        return (
            synapses.sources(),
            snnjax.spike_sparse_matmul(spikes, weights, synapses, implementation=how),
            snnjax.delayed_spike_matmul(
                trains, weights, 0 * weights + 1, synapses, max_delay=2, implementation=how
            ),
        )

    return _graded(send, dyadic(rng, -16, 16, size))


def _rewired(rng: Any, size: int, how: Any) -> Any:
    """Synapses grown to any of so many targets."""
    del how
    scores, weights = dyadic(rng, 0, 99, 3, size), dyadic(rng, 1, 16, COUNT)
    kept = jnp.asarray([True, False, True, True, False, True])
    ends = jnp.asarray([1, 4, 6], jnp.int32)

    def grow(targets: Any) -> Any:
        synapses, grown = snnjax.regrow(Synapses(ends, targets, size), weights, kept, scores)
        return synapses.to_dense(grown + 1)

    return grow


def _plastic(rng: Any, size: int, how: Any) -> Any:
    del how
    weights, after = dyadic(rng, 0, 16, size, 1), SparseSpikes.from_ids(jnp.asarray([0]), 1)

    def step(ids: Any) -> Any:
        before = _lists(ids, size)[0]
        once, traces = stdp(weights, stdp_traces(weights), before, after, STDP())
        return stdp(once, traces, before, after, STDP())

    return step


def _recorded(rng: Any, size: int, how: Any) -> Any:
    nobody = Synapses(jnp.zeros(size, jnp.int32), jnp.zeros(0, jnp.uint16), size)
    none = DelayedSynapses.of(nobody, jnp.zeros(0))
    state = snnjax.simulation_state(CELLS, none, v=dyadic(rng, -16, 0, size))

    def run(ids: Any) -> Any:
        out, _ = snnjax.simulate(CELLS, none, state, steps=2, record=Record.of(ids), implementation=how)
        return out.recorded.v

    return run


def _network(rng: Any, size: int, how: Any) -> Any:
    """Lists of inputs, and targets of the recurrent synapses of a layer of as many neurons."""
    ends = jnp.minimum(jnp.arange(1, size + 1), COUNT).astype(jnp.int32)

    def run(integers: Any, weights: Any, recurrent: Any) -> Any:
        lists = _lists(integers, size)
        inputs = jax.tree.map(lambda leaf: leaf[None], lists)
        layer = snnjax.LIFLayer(
            weights, 0.5, recurrent=recurrent, recurrent_synapses=Synapses(ends, integers, size)
        )
        two = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), inputs)
        out, state = snnjax.lif_network(two, [layer], record_spikes=True, implementation=how)
        return out.output, state.layers[0].v

    weights = jnp.zeros((size, size), jnp.float32) + dyadic(rng, 8, 32, size)[None]
    return _graded(run, weights, dyadic(rng, -16, 16, COUNT))


def _label(rng: Any, size: int, how: Any) -> Any:
    """All losses and scores for so many classes."""
    del how
    spikes = array(rng.integers(0, 2, (_STEPS, _BATCH, size)), jnp.float32)

    def score(labels: Any, outputs: Any) -> Any:
        of_steps = jnp.stack([labels] * _STEPS)
        return (
            losses.cross_entropy_sum(outputs, labels, label_smoothing=0.1),
            losses.cross_entropy_count(outputs, labels),
            losses.cross_entropy_max(outputs, labels),
            losses.cross_entropy_steps(outputs, of_steps),
            losses.mean_square_rate(outputs, labels, 0.5, 0.1),
            losses.time_to_first_spike(outputs, labels),
            metrics.accuracy(outputs, labels),
            metrics.accuracy(outputs, of_steps, decoder="steps"),
        )

    return _graded(score, spikes)


def _length(rng: Any, size: int, how: Any) -> Any:
    """So many steps."""
    inputs = array(rng.integers(0, 2, (size, _BATCH, 2)), jnp.float32)
    weights = dyadic(rng, -8, 16, 2, 2)
    labels, delays = jnp.zeros(_BATCH, jnp.int32), jnp.asarray([0.5, 2.0])

    def run(lengths: Any, weights: Any) -> Any:
        options: Any = {"lengths": lengths, "implementation": how}
        out = snnjax.lif_network(inputs, [snnjax.LIFLayer(weights, 0.5)], **options)[0]
        return (
            out,
            snnjax.delay_spikes(inputs, delays, max_delay=2, **options),
            snnjax.delayed_spike_matmul(inputs, weights, 0 * weights + 1, max_delay=2, **options),
            losses.mean_square_rate(inputs, labels, 0.5, 0.1, lengths=lengths),
            losses.time_to_first_spike(inputs, labels, lengths=lengths),
            metrics.class_maxima(inputs, lengths),
            metrics.dropped_share([labels + 1], [jnp.ones((_BATCH, 1))], lengths),
        )

    return _graded(run, weights)


_NET = snnjax.network(
    2, [snnjax.layer(2, recurrent=True), snnjax.layer(2, neurons.izhikevich())], snnjax.leaky_readout(2)
)


def _length_of_network(rng: Any, size: int, how: Any) -> Any:
    inputs = array(rng.integers(0, 2, (size, _BATCH, 2)), jnp.float32)
    params = _NET.init(jax.random.key(0))

    def run(lengths: Any) -> Any:
        out, state = _NET.apply(params, None, inputs, lengths=lengths)
        return out.output, out.activity, state

    del how
    return run


CASES: dict[str, tuple[Maker, tuple[int, ...]]] = {
    "dense": (_dense, SIZES + LARGE),
    "from_ids": (_from_ids, SIZES + LARGE),
    "spike_matmul": (_product, SIZES + LARGE),
    "spike_matmul of int8": (_quantised_product, SIZES + LARGE),
    "spike_conv": (_convolution, SIZES + LARGE),
    "pool_spikes": (_pools, SIZES + LARGE),
    "targets": (_synapses, SIZES + LARGE),
    "ends": (_ends, SIZES + LARGE),
    "regrow": (_rewired, SIZES + LARGE),
    "stdp": (_plastic, SIZES + LARGE),
    "record": (_recorded, SIZES + LARGE),
    "lif_network": (_network, SIZES[2:]),
    "labels": (_label, SIZES[1:] + LARGE[:1]),
    "lengths": (_length, SIZES),
    "lengths of a network": (_length_of_network, SIZES),
}


def random_form(rng: np.random.Generator) -> Form:
    """Any form."""
    pick = picker(rng)
    name = pick(*CASES)
    return Form(name, pick(*CASES[name][1]), pick(*DTYPES), pick(*IMPLEMENTATIONS))


@functools.lru_cache(maxsize=1)  # the arrays of a form may be large
def compiled(form: Form) -> Callable[[Any], Any]:
    maker, _ = CASES[form.name]
    return jit(maker(np.random.default_rng(form.size), form.size, form.implementation))


def integers(form: Form, rng: np.random.Generator) -> np.ndarray:
    """Numbers around 0, the bound and the ends of dtypes, those that the dtype holds, as int64."""
    ends = np.array([0, form.size, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, rng.integers(form.size + 1)])
    numbers = rng.choice(ends, COUNT) + rng.integers(-2, 3, COUNT)
    limits = np.iinfo(form.dtype)
    return np.clip(numbers, limits.min, limits.max)


def check(form: Form, seed: int) -> None:
    """The same results as with int32, in which numbers beyond it are its largest."""
    numbers, run = integers(form, np.random.default_rng(seed)), compiled(form)
    ours = run(jnp.asarray(numbers.astype(form.dtype)))
    expected = run(jnp.asarray(np.minimum(numbers, 2**31 - 1).astype(np.int32)))
    for own, other in zip(jax.tree.leaves(ours), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(own, other)
