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
from jaxtyping import PyTree

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
    sequential,
    sparse,
    spiking_readout,
    synaptic,
)
from snnjax._neuron_table import SURROGATES
from snnjax._types import Params
from snnjax.blocks import batch_norm, late
from snnjax.blocks._sparse import SparseParams
from snnjax.blocks._synaptic import SynapticParams, SynapticState
from snnjax.blocks.delay import DelayState
from snnjax.blocks.late import LateState
from snnjax.blocks.linear import LinearParams
from snnjax.blocks.norm import NormParams, NormStats
from snnjax.quantisation import Quantised, dequantise
from tests.graph.helpers import CarriedSums, Sums, Totals
from tests.numbers import Pick, array, assert_close, dyadic, picker
from tests.ops.common import float_leaves, is_float, jit

# Of the largest entry of a gradient, by the dtype of the weights, where the borders of fused ops and of chunks round
# cotangents to that dtype; and where results alone are rounded.
TOLERANCE = {"float32": 1e-5, "bfloat16": 0.04, "float16": 0.005}
ROUNDED_ONCE = 1e-5
# Of the largest entry of a result: the longest runs need a few digits more than float32 has.
ROUNDING = 1e-6
# Adds nothing to the variances of norms, which are powers of four, in any dtype.
EPSILON = 2.0**-80
JOINS = "add", "either", "multiply", "concatenate", "iand"
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
    """Any form, in which low precision, delays, loops and scanned neurons are frequent."""
    pick = picker(rng)
    outputs = pick(
        leaky_readout(3, decay=0.5),
        leaky_readout(3, decay=0.5, normalize=False),
        spiking_readout(2, neurons.lif(0.5)),
    )
    return Form(
        net=network(pick(1, 7, 40), _parts(pick), outputs),
        dtype=pick("bfloat16", "bfloat16", "float16", "float32"),
        given=pick("float32", "bfloat16", "float16", "uint8", "bool", "lists"),
        steps=pick(1, 3, 6),
        batch=pick(1, 3, 17),
        has_lengths=pick(True, False),
        chunk=pick(None, None, 1, 2, 4),
        record=pick((), ("spikes",), ("membranes", "spikes")),
        integers=pick("int32", "int32", "uint8", "int8", "int16", "uint16"),
    )


def _parts(pick: Pick) -> list[Any]:
    """One or two parts, the last of which may send its signal back to the first layer."""
    forms = [(pick(1, 3, 17, 65), pick(None, None, None, *JOINS)) for _ in range(pick(1, 1, 2))]
    is_loop, back = pick(True, False, False), None
    if is_loop:
        (own, _), (width, join) = forms[0], forms[-1]
        source, size = f"part_{len(forms) - 1}", 2 * width if join == "concatenate" else width
        back = [late(source, size, steps=pick(1, 2, 3)), _weights(pick, own, size)]
        if pick(True, False):  # beside the spikes of the layer itself
            back = parallel(join="add", own=_weights(pick, own, own), above=back)
    parts = (_part(pick, *form, is_loop, None if index else back) for index, form in enumerate(forms))
    return [sequential(*items).named(f"part_{index}") for index, items in enumerate(parts)]


def _part(pick: Pick, width: int, join: str | None, is_in_loop: bool, back: Any) -> list[Any]:
    """A layer that may receive signals from `back`, behind which others may stand beside it."""
    layer_of = functools.partial(_layer, pick, width, is_in_loop)
    # Of one's own: with a state; not to be cut into chunks; with stats of all steps. Only the first may be in a loop.
    own = pick([], [], [CarriedSums()]) if is_in_loop else pick([], [], [CarriedSums()], [Sums()], [Totals()])
    first = [layer_of(back), *own]
    if join is None:
        return first
    beside = residual(layer_of(), join=join)
    three = parallel(join=join, a=layer_of(), b=layer_of(), c=None)
    return [*first, beside if join == "concatenate" else pick(beside, three)]


def _layer(pick: Pick, width: int, is_in_loop: bool, back: Any = None) -> Any:
    most = pick(None, None, 1, 3, 7, 40, 1000)
    delays, of_synapses, weights = None, None, _weights(pick, width, width)
    if most is not None:
        learn, owner = most < 1000 and pick(True, False), pick("neuron", "layer")
        delays = axonal(most, learn=learn, per=owner, initial=most / 2 if learn else (0, most))
        of_synapses = synaptic(weights, most, learn=learn, initial=most / 2 if learn else (0, most))
    if back is None and pick(True, False):
        back = weights if delays is None else pick([delays, weights], of_synapses)
    norm = batch_norm(epsilon=EPSILON, frozen=is_in_loop or pick(True, False))
    return layer(
        width if delays is None else [delays, dense(width)],
        _neuron(pick),
        norm=pick(None, None, None, norm),
        recurrent=False if back is None else back,
        capacity=pick(None, None, 1, width),
    )


def _weights(pick: Pick, width: int, senders: int) -> Any:
    return pick(dense(width, bias=False), sparse(width, fan_in=min(senders, 2), bias=False))


def _neuron(pick: Pick) -> Any:
    switches: Any = {
        "surrogate": pick(*SURROGATES),
        "reset": pick("subtract", "zero", "none"),
        "detach_reset": pick(True, False),
        "normalize": pick(True, False),
    }
    lif = neurons.lif(0.5, 1.0, **switches)
    # Constants are powers of two, and are not learned.
    adaptation: Any = {"adaptation_decay": 0.5, "learn_adaptation": False, **switches}
    couplings: Any = {"membrane_coupling": 0.5, "spike_coupling": 0.5, "learn_decay": False}
    plain = {name: own for name, own in switches.items() if name != "normalize"}
    return pick(
        lif,
        lif,
        neurons.refractory(lif, steps=2),
        neurons.current_lif(0.5, synapse_decay=0.5, **plain),
        neurons.integrate_and_fire(1.0, **plain),
        neurons.adlif(0.5, 1.0, **couplings, **adaptation),
        neurons.adaptive_lif(0.5, 1.0, adaptation_strength=0.5, **adaptation),
    )


def arguments(form: Form, seed: int) -> tuple[Any, ...]:
    """Parameters, state, stats, inputs and lengths in the dtypes of the form."""
    rng, net = np.random.default_rng(seed), form.net
    params = net.init(jax.random.key(seed), dtype=jnp.dtype(form.dtype))
    level = int(rng.integers(-4, 12))

    def drawn(own: PyTree) -> PyTree:
        if isinstance(own, SynapticParams):
            return own._replace(weights=drawn(LinearParams(own.weights, None)).weights)
        if isinstance(own, NormParams):
            return NormParams(*(_powers(rng, each, -1, 2) for each in own))
        if isinstance(own, LinearParams | SparseParams):
            return jax.tree.map(lambda old: dyadic(rng, -16, 16 + level, *old.shape).astype(old.dtype), own)
        return own

    def measured(own: PyTree) -> PyTree:
        """A norm whose mean has few digits, and whose deviation is a power of two."""
        if not isinstance(own, NormStats):
            return own
        return NormStats(dyadic(rng, -8, 8, *own.mean.shape), _powers(rng, own.variance, 0, 2) ** 2)

    here = lambda rows: array(rng.random(rows.shape) < 0.3, rows.dtype)  # noqa: E731

    def sent(own: PyTree) -> PyTree:
        return jax.tree.map(here, own) if isinstance(own, DelayState | LateState | SynapticState) else own

    params = {name: drawn(own) for name, own in params.items()}
    stats = {name: measured(own) for name, own in net.initial_stats(jax.random.key(0)).items()}
    state = {name: sent(own) for name, own in net.initial_state(params, form.batch, stats).items()}
    lengths = None
    if form.has_lengths:
        lengths = jnp.asarray(rng.integers(0, form.steps + 1, form.batch).astype(form.integers))
    return params, state, stats, _inputs(form, rng), lengths


def _powers(rng: np.random.Generator, like: Any, low: int, high: int) -> PyTree:
    """Powers of two."""
    return array(2.0 ** rng.integers(low, high, like.shape), like.dtype)


def _inputs(form: Form, rng: np.random.Generator) -> PyTree:
    shape = (form.steps, form.batch, form.net.num_inputs)
    active = rng.random(shape) < rng.choice([0.05, 0.3, 1.0])
    if form.given == "lists":
        lists = SparseSpikes.from_dense(array(active, jnp.float32), capacity=shape[-1])
        return dataclasses.replace(lists, ids=lists.ids.astype(form.integers))
    numbers = rng.integers(1, 5, shape) / (1 if form.given == "uint8" else 4)
    return jnp.asarray(np.where(active, numbers, 0)).astype(form.given)


@functools.cache
def runner(form: Form, path: str | None) -> PyTree:
    """Output, activity, what is recorded, membranes, stats and state, compiled."""
    return jit(functools.partial(_run, form, path))


def _run(form: Form, path: str | None, *given: Any) -> PyTree:
    params, state, stats, inputs, lengths = given
    options: Any = {"lengths": lengths, "chunk": form.chunk, "record": form.record, "implementation": path}
    out, last = form.net.apply(params, state, inputs, stats=stats, **options)
    return out.output, out.activity, out.recorded, out.membranes, out.stats, last


@functools.cache
def compiled(form: Form, path: str | None) -> PyTree:
    """The same, and the gradients of a loss that sees them, by all parameters and inputs."""

    def results(*given: Any) -> PyTree:
        params, state, stats, inputs, lengths = given
        is_dense = form.given != "lists" and is_float(inputs)

        def loss(params: Params, dense: Any) -> PyTree:
            found = _run(form, path, params, state, stats, dense if is_dense else inputs, lengths)
            output, activity, _, membranes, _, last = found
            return _weighted((output, activity, membranes, last)), found

        by = (0, 1) if is_dense else 0
        gradients, found = jax.grad(loss, by, has_aux=True)(params, inputs if is_dense else None)
        return found, gradients if is_dense else (gradients, None)

    return jit(results)


def _weighted(seen) -> jax.Array:
    """A sum whose cotangents are exact in every dtype."""
    total = 0.0
    for leaf in float_leaves(seen):
        weights = (jnp.arange(leaf.size, dtype=jnp.int32) * 7 % 5 - 2).reshape(leaf.shape)
        wide = leaf.astype(jnp.float64 if leaf.dtype == jnp.float64 else jnp.float32)
        total = total + jnp.sum(weights.astype(wide.dtype) * wide)
    return total


def check_paths(form: Form, seed: int) -> int:
    """Each path yields the exact results, rounded, and gradients within the tolerance; count those out of range."""
    given = arguments(form, seed)
    with jax.enable_x64(True):
        values, gradients = jax.tree.map(np.asarray, compiled(form, "composed")(*_wide(given)))
    most, beyond = LARGEST.get(form.dtype, np.inf), 0
    if form.given == "float16":
        most = LARGEST["float16"]
    for path in PATHS:
        ours, own = compiled(form, path)(*given)
        _assert_rounded(ours, values)
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


def _wide(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if is_float(leaf) else leaf, tree)


def _assert_rounded(found: PyTree, exact: PyTree) -> None:
    """Each entry is the exact one, rounded to its dtype."""
    for ours, other in zip(jax.tree.leaves(found), jax.tree.leaves(exact), strict=True):
        half_ulp = float(jnp.finfo(ours.dtype).eps) / 2 if is_float(ours) else 0.0
        assert_close(ours, other, rtol=1.001 * half_ulp, of_largest=ROUNDING)


def check_int8(form: Form, seed: int) -> None:
    """With weights of 8 bits times powers of two, each path yields the exact results, rounded."""
    params, *given = arguments(form, seed)
    stats, rng = given[1], np.random.default_rng(seed)
    found = jax.tree_util.tree_leaves_with_path(stats, is_leaf=lambda own: isinstance(own, Synapses))
    held = {jax.tree_util.keystr(path): own for path, own in found if isinstance(own, Synapses)}
    is_connection = lambda own: isinstance(own, LinearParams | SparseParams)  # noqa: E731

    def small(path: Any, own: PyTree) -> PyTree:
        if not is_connection(own):
            return own
        numbers = array(rng.integers(-32, 48, own.weights.shape), jnp.int8)
        owner = held.get(jax.tree_util.keystr(path))
        outputs = own.weights.shape[-1] if owner is None else owner.num_targets
        dtype = "bfloat16" if own.weights.dtype == jnp.bfloat16 else "float32"
        scale = array(0.5 ** rng.integers(4, 6, outputs), dtype)
        return own._replace(weights=Quantised(numbers, scale, own.weights.dtype))

    def whole(path: Any, own: PyTree) -> PyTree:
        synapses = held.get(jax.tree_util.keystr(path))
        own = own._replace(weights=dequantise(own.weights, synapses)) if is_connection(own) else own
        return _wide(own)

    params = jax.tree_util.tree_map_with_path(small, params, is_leaf=is_connection)
    with jax.enable_x64(True):
        exact = jax.tree_util.tree_map_with_path(whole, params, is_leaf=is_connection)
        expected = jax.tree.map(np.asarray, runner(form, "composed")(exact, *_wide(given)))
    for path in PATHS:
        _assert_rounded(runner(form, path)(params, *given), expected)
