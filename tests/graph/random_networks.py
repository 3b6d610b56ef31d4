"""Random networks in low precision: every path against the composition of single steps in float64.

Constants, weights and states are dyadic and runs short, so that all sums are exact, whatever their order: a result in
bfloat16 is the exact one, rounded. Learned delays are halves of steps; fixed ones are as long as 1,000 steps.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from snnjax import (
    SparseSpikes,
    Synapses,
    axonal,
    dense,
    layer,
    leaky_readout,
    network,
    neurons,
    parallel,
    residual,
    sparse,
    spiking_readout,
    synaptic,
)
from snnjax._neuron_table import SURROGATES
from snnjax._types import Params, Signal, State
from snnjax.blocks._sparse import SparseParams
from snnjax.blocks._synaptic import SynapticParams, SynapticState
from snnjax.blocks.delay import DelayState
from snnjax.blocks.late import LateState
from snnjax.blocks.linear import LinearParams
from snnjax.quantisation import Quantised, dequantise
from tests.graph.helpers import CarriedSums, Sums, Totals
from tests.numbers import assert_close, dyadic
from tests.ops.common import float_leaves, is_float, jit

# Of the largest entry of a gradient, by the dtype of the weights, where the borders of fused ops and of chunks round
# cotangents to that dtype; and where results alone are rounded.
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.04, "float16": 0.005}
ROUNDED_ONCE = 1e-5
# Of the largest entry of a result: the longest runs need a few digits more than float32 has.
ROUNDING = 1e-6
# Gradients beyond half of what float16 holds are not compared.
LARGEST = {"float16": 3e4}
PATHS = None, "reference", "composed"


class Form(NamedTuple):
    """The static configuration of a network and of what it is given."""

    net: Any
    dtype: str  # of the weights
    given: str  # of the inputs
    steps: int
    batch: int
    has_lengths: bool
    chunk: int | None
    record: tuple[str, ...]
    integers: str = "int32"  # the dtype of ids and lengths


def random_form(rng: np.random.Generator) -> Form:
    """Any form, in which low precision, delays and scanned neurons are frequent."""
    pick = lambda *choices: choices[int(rng.integers(len(choices)))]  # noqa: E731
    widths = [pick(1, 3, 17, 65) for _ in range(pick(1, 1, 2))]
    outputs = pick(
        leaky_readout(3, decay=0.5),
        leaky_readout(3, decay=0.5, normalize=False),
        spiking_readout(2, neurons.lif(0.5)),
    )
    return Form(
        net=network(pick(1, 7, 40), [_part(pick, width) for width in widths], outputs),
        dtype=pick("bfloat16", "bfloat16", "float16", "float32"),
        given=pick("float32", "bfloat16", "float16", "uint8", "bool", "lists"),
        steps=pick(1, 3, 6),
        batch=pick(1, 3, 17),
        has_lengths=pick(True, False),
        chunk=pick(None, None, 1, 2, 4),
        record=pick((), ("spikes",), ("membranes", "spikes")),
        integers=pick("int32", "int32", "uint8", "int8", "int16", "uint16"),
    )


def _part(pick, width: int) -> list[Any]:
    """A layer, behind which others may stand beside it."""
    first = _layer(pick, width)
    how = pick(None, None, None, "add", "either", "multiply", "concatenate")
    # Of one's own: one that must not be cut into chunks, one with a state, and one with stats of all steps.
    own = pick([], [], [], [Sums()], [CarriedSums()], [Totals()])
    if how is None:
        return [first, *own]
    beside = residual(_layer(pick, width), join=how)
    return [
        first,
        *own,
        pick(beside, parallel(join=how, a=_layer(pick, width), b=_layer(pick, width), c=None)),
    ]


def _layer(pick, width: int):
    switches = {"surrogate": pick(*SURROGATES), "reset": pick("subtract", "zero", "none")}
    lif = neurons.lif(0.5, 1.0, **switches, detach_reset=pick(True, False), normalize=pick(True, False))
    neuron = pick(
        lif,
        lif,
        neurons.refractory(lif, steps=2),
        neurons.current_lif(0.5, synapse_decay=0.5, **switches),
        neurons.integrate_and_fire(1.0, **switches),
    )
    most = pick(None, 1, 3, 7, 40, 1000)
    delays, learn = None, False
    if most is not None:
        learn, owner = most < 1000 and pick(True, False), pick("neuron", "layer")
        delays = axonal(most, learn=learn, per=owner, initial=most / 2 if learn else (0, most))
    capacity, recurrent = pick(None, None, 1, width), pick(True, False)
    weights = pick(dense(width, bias=False), sparse(width, fan_in=min(width, 2), bias=False))
    if delays is None:
        return layer(width, neuron, recurrent=weights if recurrent else False, capacity=capacity)
    of_synapses = synaptic(weights, most, learn=learn, initial=most / 2 if learn else (0, most))
    back = pick([delays, weights], of_synapses) if recurrent else False
    return layer([delays, dense(width)], neuron, recurrent=back, capacity=capacity)


def arguments(form: Form, seed: int) -> tuple[Any, ...]:
    """Parameters, state, inputs and lengths in the dtypes of the form."""
    rng, net = np.random.default_rng(seed), form.net
    params = net.init(jax.random.key(seed), dtype=jnp.dtype(form.dtype))
    level = int(rng.integers(-4, 12))

    def drawn(own):
        if isinstance(own, SynapticParams):
            return own._replace(weights=drawn(LinearParams(own.weights, None)).weights)
        if isinstance(own, LinearParams | SparseParams):
            return jax.tree.map(lambda old: dyadic(rng, -16, 16 + level, *old.shape).astype(old.dtype), own)
        return own

    params = {name: drawn(own) for name, own in params.items()}
    state = net.initial_state(params, form.batch, _stats(form))
    here = lambda rows: jnp.asarray(rng.random(rows.shape) < 0.3, rows.dtype)  # noqa: E731

    def sent(own):
        return jax.tree.map(here, own) if isinstance(own, DelayState | LateState | SynapticState) else own

    state = {name: sent(own) for name, own in state.items()}
    lengths = (
        jnp.asarray(rng.integers(0, form.steps + 1, form.batch).astype(form.integers))
        if form.has_lengths
        else None
    )
    return params, state, _inputs(form, rng), lengths


def _stats(form: Form):
    """The constants that are not learned, in float32 on every path."""
    return form.net.initial_stats(jax.random.key(0))


def _inputs(form: Form, rng: np.random.Generator):
    shape = (form.steps, form.batch, form.net.num_inputs)
    active = rng.random(shape) < rng.choice([0.05, 0.3, 1.0])
    if form.given == "lists":
        lists = SparseSpikes.from_dense(jnp.asarray(active, jnp.float32), capacity=shape[-1])
        return dataclasses.replace(lists, ids=lists.ids.astype(form.integers))
    numbers = rng.integers(1, 5, shape) / (1 if form.given == "uint8" else 4)
    return jnp.asarray(np.where(active, numbers, 0)).astype(form.given)


def results(form: Form, path: str | None, *given):
    """Outputs, activity, spikes and state, and the gradients of a loss that sees them, by all parameters and inputs."""
    params, state, inputs, lengths = given
    floats, fixed = (
        (inputs, None) if is_float(jax.tree.leaves(inputs)[-1]) and form.given != "lists" else (None, inputs)
    )

    def loss(floats):
        params, dense = floats
        out, last = form.net.apply(
            params,
            state,
            fixed if dense is None else dense,
            stats=_stats(form),
            lengths=lengths,
            chunk=form.chunk,
            record=form.record,
            implementation=path,
        )
        seen = out.output, out.activity, out.membranes, last
        return _weighted(seen), (out.output, out.activity, out.recorded, out.membranes, out.stats, last)

    return jax.grad(loss, has_aux=True)((params, floats))[::-1]


def _weighted(seen) -> jax.Array:
    """A sum whose cotangents are exact in every dtype."""
    total = 0.0
    for leaf in float_leaves(seen):
        weights = (jnp.arange(leaf.size, dtype=jnp.int32) * 7 % 5 - 2).reshape(leaf.shape)
        wide = leaf.astype(jnp.float64 if leaf.dtype == jnp.float64 else jnp.float32)
        total = total + jnp.sum(weights.astype(wide.dtype) * wide)
    return total


@functools.cache
def compiled_values(form: Form, path: str | None):
    """Outputs, activity, spikes and state."""

    def run(params: Params, state: State, inputs: Signal, lengths):
        options = {"stats": _stats(form), "lengths": lengths, "chunk": form.chunk, "record": form.record}
        out, last = form.net.apply(params, state, inputs, **options, implementation=path)
        return out.output, out.activity, out.recorded, out.membranes, last

    return jit(run)


@functools.cache
def compiled(form: Form, path: str | None):
    return jit(functools.partial(results, form, path))


def check_paths(form: Form, seed: int) -> int:
    """Each path yields the exact results, rounded, and gradients within the tolerance; count those out of range."""
    given = arguments(form, seed)
    with jax.enable_x64(True):
        whole = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if is_float(leaf) else leaf, given)
        values, gradients = jax.tree.map(np.asarray, compiled(form, "composed")(*whole))
    most, beyond = LARGEST.get(form.dtype, np.inf), 0
    if form.given == "float16":
        most = LARGEST["float16"]
    for path in PATHS:
        ours, own = compiled(form, path)(*given)
        for found, expected in zip(jax.tree.leaves(ours), jax.tree.leaves(values), strict=True):
            half_ulp = float(jnp.finfo(found.dtype).eps) / 2 if is_float(found) else 0.0
            assert_close(found, expected, rtol=1.001 * half_ulp, of_largest=ROUNDING)
        largest = max(float(np.max(np.abs(each), initial=1)) for each in jax.tree.leaves(gradients))
        for found, expected in zip(jax.tree.leaves(own), jax.tree.leaves(gradients), strict=True):
            inside = np.abs(expected) < most
            beyond += int(np.sum(~inside))
            kept = [np.where(inside, np.asarray(each).astype(np.float64), 0) for each in (found, expected)]
            # One number of a whole layer is a sum whose terms cancel: float32 rounds them, not it.
            scale = largest if expected.size == 1 else 1.0
            if path == "composed" and form.chunk is None:
                # Inputs are rounded to the dtype of the weights, and so are their cotangents: twice, if dtypes differ.
                dtypes = {found.dtype} if found is not own[1] else {found.dtype, jnp.dtype(form.dtype)}
                half_ulp = sum(float(jnp.finfo(each).eps) for each in dtypes) / 2
                assert_close(*kept, rtol=1.001 * half_ulp, of_largest=scale * ROUNDED_ONCE)
            else:
                kind = min((str(found.dtype), form.dtype), key=["bfloat16", "float16", "float32"].index)
                assert_close(*kept, of_largest=scale * TOLERANCE[kind])
    return beyond


def check_int8(form: Form, seed: int) -> None:
    """With weights of 8 bits times powers of two, each path yields the exact results, rounded."""
    params, *given = arguments(form, seed)
    stats, rng = _stats(form), np.random.default_rng(seed)

    def small(path, own):
        if not isinstance(own, LinearParams | SparseParams):
            return own
        numbers = jnp.asarray(rng.integers(-32, 48, own.weights.shape), jnp.int8)
        owner = held.get(jax.tree_util.keystr(path))
        outputs = own.weights.shape[-1] if owner is None else owner.num_targets
        dtype = "bfloat16" if own.weights.dtype == jnp.bfloat16 else "float32"
        scale = jnp.asarray(0.5 ** rng.integers(4, 6, outputs), dtype)
        return own._replace(weights=Quantised(numbers, scale, own.weights.dtype))

    def whole(path, own):
        is_small = isinstance(own, LinearParams | SparseParams)
        synapses = held.get(jax.tree_util.keystr(path))
        own = own._replace(weights=dequantise(own.weights, synapses)) if is_small else own
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float64), own)

    found = jax.tree_util.tree_leaves_with_path(stats, is_leaf=lambda own: isinstance(own, Synapses))
    held = {jax.tree_util.keystr(path): own for path, own in found if isinstance(own, Synapses)}
    is_connection = lambda own: isinstance(own, LinearParams | SparseParams)  # noqa: E731
    params = jax.tree_util.tree_map_with_path(small, params, is_leaf=is_connection)
    with jax.enable_x64(True):
        exact = jax.tree_util.tree_map_with_path(whole, params, is_leaf=is_connection)
        wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if is_float(leaf) else leaf, given)
        expected = jax.tree.map(np.asarray, compiled_values(form, "composed")(exact, *wide))
    for path in PATHS:
        for ours, other in zip(
            jax.tree.leaves(compiled_values(form, path)(params, *given)),
            jax.tree.leaves(expected),
            strict=True,
        ):
            half_ulp = float(jnp.finfo(ours.dtype).eps) / 2 if is_float(ours) else 0.0
            assert_close(ours, other, rtol=1.001 * half_ulp, of_largest=ROUNDING)
