"""Calls of the handlers themselves: valid ones with hostile numbers, and such that should be refused."""

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np

from snnjax import (
    DelayedSynapses,
    LIFLayer,
    LIFReadout,
    PoissonInput,
    SparseSpikes,
    Synapses,
    circuits,
    conv2d,
    delay_spikes,
    delayed_spike_matmul,
    fixed_point,
    lif_network,
    neurons,
    pool_spikes,
    select_spikes,
    simulate,
    simulation_state,
    spike_conv,
    spike_matmul,
    spike_sparse_matmul,
)
from snnjax._targets import TARGETS
from snnjax._types import Signal
from snnjax.circuits import Record
from snnjax.fixed_point._network import LayerState
from snnjax.fixed_point._route import Route
from snnjax.fixed_point._run import run_layer
from snnjax.ops._moments import moments
from snnjax.ops.connect import connect
from snnjax.plasticity import STDP, ShortTerm
from snnjax.quantisation import quantise
from tests.cases import PRODUCTS
from tests.fuzz import calls, values
from tests.ops.common import with_gradient
from tests.ops.lif_network.random_networks import arguments, random_form, runner

FORGET = 300  # examples after which compiled programs are dropped, for memory
# What a handler says when it refuses; anything else is a mistake of its own.
REFUSALS = ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED")
# And of numbers, in arrays that are right: random ends of projections say some number of synapses, and random receptors
# are none.
OF_RANDOM_VALUES = (
    "INVALID_ARGUMENT: connect: `words` must be as many as `ends` says, got ",
    "INVALID_ARGUMENT: simulate: `poisson.receptor` must be below 2, got ",
)


def valid_calls(num_networks: int) -> list[calls.Call]:
    """Calls of every handler, as the ops make them."""
    found = []
    for number in range(num_networks):
        rng = np.random.default_rng(number)
        form = random_form(rng)._replace(steps=int(rng.integers(4)))
        given = arguments(form, rng)
        function = runner(form, "cpu")
        if number % 3 == 0:  # weights of two networks: groups
            given = (given[0], *jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), given[1:3]), *given[3:])
            function = jax.vmap(function, (None, 0, 0, None, None, None))
        found += calls.calls_of(with_gradient(function), *given)
        found += calls.calls_of(function, *given)
    for batch, width in ((3, 5), (17, 65), (2, 300)):
        for function, given in (*single_ops(batch, width), *pools_and_norms(batch, width)):
            found += calls.calls_of(with_gradient(function), *given)
        for forms in (with_int8(batch, width), integer_layers(batch, width), simulations(width)):
            for function, given in forms:
                found += calls.calls_of(function, *given)
    assert {call.target for call in found} == set(TARGETS)
    return found


def single_ops(batch: int, width: int) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The other ops in all their forms, on arrays of this size."""
    ones, rows = jnp.ones(width), jnp.ones((batch, width))
    found: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (functools.partial(function, implementation="cpu"), given(np.random.default_rng(0)))
        for _, function, _, given, _ in PRODUCTS
    ]
    for capacity, threshold in ((0, 1.0), (4, ones), (width, rows)):
        options = {"capacity": capacity, "implementation": "cpu"}
        found.append((lambda *a, o=options: select_spikes(*a, **o), (rows, threshold, 0.5)))
    for dtype, slots in ((jnp.uint16, 4), (jnp.int32, 2 * width), (jnp.int32, 0)):
        ids, counts = jnp.zeros((batch, slots), dtype), jnp.zeros(batch, jnp.int32)
        spikes = SparseSpikes(ids, jnp.ones((batch, slots)), counts, counts, 0 * counts, width)
        found.append((lambda *a: spike_matmul(*a, implementation="cpu"), (spikes, jnp.ones((width, 7)))))
        spikes = SparseSpikes(ids, jnp.ones((batch, slots)), counts, counts, 0 * counts, 4 * width)
        found.append((_convolve(width), (spikes, jnp.ones((2, 2, 2, 7)))))
        synapses = Synapses.fixed_fan_out(jax.random.key(0), width, 7, fan_out=3)
        spikes = SparseSpikes(ids, jnp.ones((batch, slots)), counts, counts, 0 * counts, width)
        given = spikes, jnp.ones(synapses.num_synapses), synapses
        found.append((lambda *a: spike_sparse_matmul(*a, implementation="cpu"), given))
    for dtype in (jnp.float32, jnp.bfloat16):
        synapses = Synapses.fixed_fan_in(jax.random.key(0), width, 7, fan_in=3)
        given = jnp.ones((batch, width), dtype), jnp.ones(synapses.num_synapses, dtype), synapses
        found.append((lambda *a: spike_sparse_matmul(*a, implementation="cpu"), given))
        given = (jnp.ones((batch, width), dtype), jnp.ones((width, 7), dtype))
        found.append((lambda *a: spike_matmul(*a, implementation="cpu"), given))
        for pending in (None, jnp.ones((4, batch, width), dtype)):
            sequence = jnp.ones((5, batch, width), dtype), ones, pending
            options = {"max_delay": 3, "implementation": "cpu"}
            found.append((lambda *a, o=options: delay_spikes(*a, **o), sequence))
        given = (jnp.ones((batch, 4 * width), dtype), jnp.ones((2, 2, 2, 7), dtype))
        found.append((_convolve(width), given))
    delays, synapses = jnp.ones((width, 7)), Synapses.fixed_fan_out(jax.random.key(0), width, 7, fan_out=3)
    listed = SparseSpikes.from_ids(jnp.zeros((5, batch, 4), jnp.int32), width).with_values()
    late = functools.partial(delayed_spike_matmul, max_delay=3, implementation="cpu")
    found.append((late, (listed, delays, delays)))
    given = jnp.ones((5, batch, width)), *(jnp.ones(synapses.num_synapses),) * 2, synapses
    found.append((functools.partial(late, bias=jnp.ones(7)), (*given, jnp.ones((3, batch, 7)))))
    found.append((late, (given[0], delays, delays)))
    return found


def pools_and_norms(batch: int, width: int) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Maximum pools of lists, and statistics of all rows and of some."""
    rows = jnp.ones((2, batch, width))
    found: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (lambda x, of=is_inside: moments(x, of, implementation="cpu"), (rows,))
        for is_inside in (None, jnp.arange(2 * batch).reshape(2, batch) % 2 == 0)
    ]
    for slots in (4, 2 * width):
        spikes = SparseSpikes.from_ids(jnp.zeros((batch, slots), jnp.int32), 4 * width).with_values()
        found.append((lambda x: pool_spikes(x, 2, shape=(2, 2, width), how="max"), (spikes,)))
    return found


def integer_layers(batch: int, width: int) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Layers in the integers of a chip: recurrent, on spikes that are late, and on given sums."""
    whole = functools.partial(jnp.ones, dtype=jnp.int32)
    cells = fixed_point.Neurons(whole(7), whole(7), whole((2, 7)), whole(7))
    rest = fixed_point.Membranes(whole((batch, 7)), whole((2, batch, 7)))
    held: dict[str, Any] = {"neurons": cells, "unit": jnp.ones(7), "name": "a"}
    weights, own = (jnp.ones((2, inputs, 7), jnp.int8) for inputs in (width, 7))
    dense = fixed_point.IntegerLayer(weights=weights, recurrent=own, **held)
    form = conv2d(1, 1).geometry((7, 1, width))
    kernels = jnp.ones((2, 1, 1, width, 1), jnp.int8)
    images = fixed_point.IntegerLayer(weights=kernels, route=Route((), form), **held)
    found: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    for chip, layer, last, dtype in (
        (fixed_point.XYLO, dense, (jnp.ones((batch, width)), jnp.ones((batch, 7))), jnp.uint8),
        (fixed_point.SPECK, images, (None, None), jnp.float32),
    ):
        spikes = jnp.ones((3, batch, layer.num_inputs), dtype)
        given = layer, LayerState(rest, *last), spikes, whole(batch)
        found.append((functools.partial(run_layer, chip), given))
    return found


def with_int8(batch: int, width: int) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Forward passes with weights of 8 bits, which have no backward ones."""
    rows, lists = jnp.ones((batch, width)), SparseSpikes.from_dense(jnp.ones((batch, width)), capacity=4)
    weights, recurrent = quantise(jnp.ones((width, 7))), quantise(jnp.ones((7, 7)))
    multiply = functools.partial(spike_matmul, implementation="cpu")

    ring = Synapses.fixed_fan_out(jax.random.key(1), 7, 7, fan_out=2)
    some = quantise(jnp.ones(ring.num_synapses), synapses=ring)

    def run(inputs: Signal, weights, recurrent, some, ring):
        second = LIFLayer(recurrent, 0.9, recurrent=some, recurrent_synapses=ring)
        layers = [LIFLayer(weights, 0.9, recurrent=recurrent), second]
        readout = LIFReadout(recurrent, 0.9)
        return lif_network(inputs, layers, readout, capacity=3, implementation="cpu")

    network = run, (jnp.ones((5, batch, width)), weights, recurrent, some, ring)
    products = [(multiply, (x, weights)) for x in (rows, lists)]
    synapses = Synapses.fixed_fan_out(jax.random.key(0), width, 7, fan_out=3)
    few = quantise(jnp.ones(synapses.num_synapses), synapses=synapses)
    send = functools.partial(spike_sparse_matmul, implementation="cpu")
    return [*products, *((send, (x, few, synapses)) for x in (rows, lists)), network]


def simulations(width: int) -> list[tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Steps of networks with currents and conductances; one has random and given input, and plastic synapses."""
    found: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    shared: dict[str, Any] = {"synaptic_taus": (5.0, 10.0), "rest": 0.0, "threshold": 1.0, "reset": 0.0}
    shared |= {"refractory": 0.2, "dt": 0.1}
    synapses = Synapses.fixed_fan_out(jax.random.key(0), width, 2 * width, fan_out=3)
    for cells, dtype, max_delay in (
        (neurons.cuba_lif(tau=np.ones(width), **shared), jnp.float32, 3),
        (neurons.coba_lif(tau=20.0, reversals=(0.0, -80.0), **shared), jnp.bfloat16, 1),
    ):
        weights, blocks = jnp.ones(3 * width, dtype), 2 if max_delay > 1 and width > 1 else 1
        delayed = DelayedSynapses.of(synapses, weights, max_delay=max_delay, blocks=blocks)
        plastic = dict.fromkeys(("stdp", "eligibility", "short_term"), max_delay > 1)
        state, key = simulation_state(cells, delayed, **plastic), jax.random.key(1)
        options: dict[str, Any] = {"steps": 5, "capacity": 4, "implementation": "cpu"}
        if max_delay > 1:
            chosen = jnp.arange(3 * width) % 2 == 0
            options |= {"stdp": STDP(plastic=chosen, eligibility=0.5), "modulation": jnp.ones(5)}
            options |= {"short_term": ShortTerm(0.5, (0.9, 0.9)), "noise": jnp.ones(width)}
            seen = Record.of([1], means=[slice(0, width)], every=2, received=True, synapses=[0, width])
            rising = PoissonInput.of(rate=np.full((5, width), 1e3), weight=0.1, dt=0.1)
            steady = PoissonInput.of(rate=np.full(width, 1e4), weight=0.1, dt=0.1, receptor=1)
            options |= {"record": seen, "poisson": [steady, rising]}
            options |= {"spikes": circuits.SpikeTrains.of([0.1, 0.3], [0, 1], dt=0.1)}
            options |= {"currents": (jnp.ones((5, 2)), jnp.ones((2, width)))}
        run = functools.partial(simulate, **options)
        found.append((run, (cells, delayed, state, key)))
    people = circuits.Populations({"all": width}, dt=0.1)
    each: dict[str, Any] = {
        "source": "all",
        "target": "all",
        "weight": 1.0,
        "delay": circuits.Uniform(0.1, 0.5),
    }
    for dtype, rule in ((jnp.float32, {"probability": 0.2}), (jnp.bfloat16, {"in_degree": 2})):
        operands, static = people.plan(jax.random.key(0), [circuits.Projection(**each, **rule)], dtype, None)
        found.append((functools.partial(connect, static=static, implementation="cpu"), (operands,)))
    return found


def _convolve(width: int) -> Callable[..., Any]:
    """`spike_conv` of images of two rows and two channels."""
    return functools.partial(spike_conv, shape=(2, width, 2), strides=(1, 2), implementation="cpu")


class Fuzz:
    """Examples are a call with the number of its mistakes, a seed for its arrays, and what is in them."""

    def __init__(self, num_networks: int, rounds: int) -> None:
        self.rounds = rounds  # of an example, each with other numbers: one compilation for all
        self.num_examples = 0
        mistaken = calls.mistaken(valid_calls(num_networks))
        self.strategy = st.tuples(mistaken, st.integers(0, 2**32 - 1), st.sampled_from(values.KINDS))

    def check(self, example, counted: Counter[str]) -> None:
        """A valid call succeeds and writes all of its results; any other one may be refused, in words."""
        (call, mistakes), seed, kind = example
        rng = np.random.default_rng(seed)
        self.num_examples += 1
        if self.num_examples % FORGET == 0:
            jax.clear_caches()
        try:
            run = calls.compiled(call)
            for _ in range(self.rounds):
                counted["calls of handlers"] += 1
                results = calls.results_of(run, call, rng, lambda: kind if rng.random() < 0.7 else "plain")
                assert not any(values.is_unwritten(result) for result in results)
        except (jax.errors.JaxRuntimeError, ValueError) as error:  # of numbers, when the call runs
            if not str(error).startswith(REFUSALS if mistakes else OF_RANDOM_VALUES):
                raise
            counted["refused"] += 1
