"""`delayed_spike_matmul`: the product of spikes with weights, each of which has a delay of its own."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, Num, PyTree

from snnjax._arguments import explained
from snnjax._batching import SHARED
from snnjax._check import as_lengths, check_float_array, check_integer, check_shape, fail, short_repr
from snnjax._dispatch import Kernel, Target, evaluate
from snnjax._sharding import gathered, vary_alike
from snnjax._sparse_spikes import SparseSpikes, values_of
from snnjax._synapses import Synapses, ends_and_targets
from snnjax._types import (
    Signal,
    Unchecked,
    accumulation_dtype,
    id_dtype,
    steps_within,
    uint16_or_int32,
    upcast,
)
from snnjax.ops._kernel_operands import call_kernel, dtype_obstacle
from snnjax.ops._lif_network.recorded import packed
from snnjax.ops._product import neurons_of
from snnjax.ops._tables.delayed_spike_matmul import (
    Operands,
    Received,
    Record,
    Results,
    SpikesBackwardOperands,
    SpikesBackwardResults,
    WeightsBackwardOperands,
    WeightsBackwardResults,
)
from snnjax.ops.delay_spikes import bounded
from snnjax.ops.spike_matmul import spike_matmul

_OP = "delayed_spike_matmul"
_MOST_ENTRIES = 2**31 - 1  # of a matrix, numbered in int32


@explained
def delayed_spike_matmul(
    spikes: SparseSpikes | Num[Array, "time batch neurons"],
    weights: Float[Array, "..."],
    delays: Float[Array, "..."],
    synapses: Synapses | None = None,
    pending: Float[Array, "max_delay batch targets"] | None = None,
    *,
    max_delay: int,
    bias: Float[Array, " targets"] | None = None,
    lengths: Integer[Array, " batch"] | None = None,
    implementation: str | None = None,
) -> tuple[Float[Array, "time batch targets"], Float[Array, "max_delay batch targets"]]:
    """Send spikes through synapses with a weight and a delay each: what neuron i sends at t arrives at ``t + delay``.

    ``currents[t, b, j] = sum_i weights[i, j] * spikes[t - delays[i, j], b, i]``, all steps at once. A delay that is no
    integer splits a spike between two steps: with ``k = floor(delay)`` and ``f = delay - k``, the share ``1 - f``
    arrives at ``t + k`` and ``f`` at ``t + k + 1``. What has not arrived after the last step is `pending`. An entry
    with value 0 adds nothing whatever its weights, including NaN and infinities.

    Gradients of weights are exact, and those of spikes as in `spike_matmul`; that of a delay is that of the split,
    ``weight * (g[t + k + 1] - g[t + k])`` for each spike, at an integer the right-hand derivative (at `max_delay` the
    left-hand one). The compiled kernels read synapses of neurons that spike, or that are listed, and no others.

    Args:
        spikes: lists ``[time, batch]``, or an array.
        weights: ``[neurons, targets]``, or one for each of the `synapses`.
        delays: in steps, of the shape of the weights. Those outside ``[0, max_delay]`` are clipped and have no
            gradient; NaN counts as 0.
        synapses: which exist, if not all; they have no gradient.
        pending: what arrives in the next `max_delay` steps of spikes before these, from an earlier call; None if there
            were none (in a scan, pass zeros).
        max_delay: the longest possible delay; it determines the shape of `pending`.
        bias: added to the currents of every step, not to what is `pending`.
        lengths: number of steps of each sequence. After its end currents are 0, and `pending` is what arrives in the
            steps behind it, so running in pieces equals running the whole.
        implementation: None chooses automatically; "reference" forces the jnp reference, one dense product for each
            step of `max_delay`; "cpu" forces the compiled kernel or raises; "composed" is plain jnp with forward mode
            and second-order derivatives.

    Returns:
        The currents in the dtype of the weights, and the new `pending` in float32 (float64 for float64), in which sums
        are computed.

    Raises:
        ValueError: if shapes do not match, weights or delays are not floating, lengths are not integers, `max_delay` is
            negative, or the implementation is unknown or unavailable.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import delayed_spike_matmul
        >>> spikes = jnp.zeros((4, 1, 1)).at[0].set(1.0)
        >>> weights, delays = jnp.array([[1.0, 2.0]]), jnp.array([[1.0, 2.25]])
        >>> currents, pending = delayed_spike_matmul(spikes, weights, delays, max_delay=3)
        >>> currents[:, 0].T
        Array([[0. , 1. , 0. , 0. ],
               [0. , 0. , 1.5, 0.5]], dtype=float32)

    Reference:
        Hammouamri, Khalfaoui-Hassani and Masquelier 2024, arXiv:2306.17670 (learned, split by a Gaussian).
    """
    structure = _checked(spikes, weights, delays, synapses)
    max_delay = check_integer(_OP, "max_delay", max_delay, 0)
    spikes, weights, delays, structure, pending, bias, lengths = gathered(
        (spikes, weights, delays, structure, pending, bias, lengths)
    )
    steps, batch = spikes.shape[:2]
    if pending is not None:
        after, hint = (max_delay, batch, structure.num_targets), "Pass that of the previous call, or None"
        check_shape(_OP, "pending", pending, after, "max_delay, batch, targets", hint)
        pending = jnp.asarray(pending).astype(accumulation_dtype(weights.dtype))
    if bias is not None:
        check_shape(_OP, "bias", bias, (structure.num_targets,), "targets", "Pass one for each target")
        bias = jnp.asarray(bias).astype(accumulation_dtype(weights.dtype))
    ends = None if lengths is None else as_lengths(_OP, lengths, steps, batch)
    given = _operands(spikes, weights, delays, structure, max_delay, ends)
    # What is left of a sequence that ends is found among its currents, and has no bias.
    given = vary_alike(given._replace(pending=pending, bias=bias if ends is None else None))
    static, is_composed = (structure.num_targets, max_delay), implementation == "composed"
    results: Any = _composed(given, static) if is_composed else _multiply(given, static, implementation)
    if ends is not None:
        results = _until(results, ends, bias)
    return results.currents.astype(weights.dtype), results.left


def _checked(spikes: Unchecked, weights: Unchecked, delays: Unchecked, synapses: Unchecked) -> Synapses:
    """The synapses, all pairs of a matrix if none are given."""
    neurons = neurons_of(_OP, spikes)
    check_shape(
        _OP,
        "spikes",
        spikes,
        (None,) * 3,
        "time, batch, neurons",
        "Add the missing axes, for instance spikes[:, None]",
    )
    check_float_array(_OP, "weights", weights)
    check_float_array(_OP, "delays", delays)
    if synapses is None:
        hint = "Pass one row for every neuron, or synapses"
        shape, axes = (neurons, None), "neurons, targets"
    elif not isinstance(synapses, Synapses):
        hint = "Make them with Synapses.from_mask, for instance"
        fail(f"{_OP}: `synapses` must be Synapses or None, got {short_repr(synapses)}. {hint}.")
    else:
        shape, axes, hint = (synapses.num_synapses,), "synapses", "Pass one for each synapse"
    check_shape(_OP, "weights", weights, shape, axes, hint)
    check_shape(_OP, "delays", delays, weights.shape, axes, "Pass one for each weight")
    if synapses is None:
        if weights.size > _MOST_ENTRIES:
            fail(f"{_OP}: `weights` must be at most {_MOST_ENTRIES}, got {weights.size}. Use fewer neurons.")
        return _all_pairs(*weights.shape)
    hint = f"Make synapses of {neurons} neurons"
    check_shape(_OP, "synapses.ends", synapses.ends, (neurons,), "neurons", hint)
    return synapses


def _all_pairs(neurons: int, targets: int) -> Synapses:
    ends = targets * jnp.arange(1, neurons + 1, dtype=jnp.int32)
    return Synapses(ends, jnp.tile(jnp.arange(targets, dtype=id_dtype(targets)), neurons), targets)


def _operands(
    spikes: Signal, weights: Array, delays: Array, synapses: Synapses, max_delay: int, ends: Array | None
) -> Operands:
    """The operands in the accumulation dtype, without what is sent after the end of a sequence."""
    dtype, valid = accumulation_dtype(weights.dtype), steps_within(spikes.shape[0], ends)

    def within(numbers: Any) -> Array:
        numbers = jnp.asarray(numbers).astype(dtype)
        return numbers if valid is None else jnp.where(valid[:, :, None], numbers, 0)

    are_lists = isinstance(spikes, SparseSpikes)
    sent = (
        (uint16_or_int32(spikes.ids), within(values_of(spikes)), None)
        if are_lists
        else (None, None, within(spikes))
    )
    late = jnp.asarray(delays).reshape(-1)
    # Where no delay is possible, none has a derivative.
    late = bounded(late, max_delay, late.size, dtype) if max_delay else jnp.zeros(late.shape, dtype)
    return Operands(*sent, upcast(weights).reshape(-1), late, *ends_and_targets(synapses))


def _until(results: Received, ends: Array, bias: Array | None) -> Received:
    """Without what arrives after the end of a sequence, which is left in its place; `bias` is still to be added."""
    currents, left = results
    behind = jax.vmap(
        lambda own, end: jax.lax.dynamic_slice_in_dim(own, end, left.shape[0]), in_axes=(1, 0), out_axes=1
    )(jnp.concatenate(results), ends)
    valid = steps_within(currents.shape[0], ends)
    if bias is not None:
        currents = currents + bias[None, None]
    return Received(jnp.where(valid[:, :, None], currents, 0), behind)


def _arriving(operands: Operands, static: tuple[int, int]) -> Array:
    """What arrives, ``[time + max_delay, batch, targets]``: for each step of a delay, a product with its shares."""
    num_targets, max_delay = static
    spikes: Any = operands.spikes
    if operands.ids is not None:
        assert operands.values is not None
        counts = jnp.zeros(operands.ids.shape[:2], jnp.int32)
        spikes = SparseSpikes(operands.ids, operands.values, counts, counts, counts, operands.ends.shape[0])
    synapses = Synapses(operands.ends, operands.targets, num_targets)
    whole = jnp.minimum(jnp.floor(operands.delays), max(max_delay - 1, 0))
    later = operands.delays - whole
    (steps, batch), weights = spikes.shape[:2], operands.weights

    def add(out: Array, step: Array) -> tuple[Array, None]:
        share = jnp.where(step == whole, 1 - later, jnp.where(step == whole + 1, later, 0))
        # A share of 0 is nothing whatever the weight, but has a derivative.
        own = jnp.where((share == 0) & ~jnp.isfinite(weights), 0, share * weights)
        sent = spike_matmul(spikes, synapses.to_dense(own), implementation="composed")
        place = step.astype(jnp.int32)
        now = jax.lax.dynamic_slice_in_dim(out, place, steps, 0)
        return jax.lax.dynamic_update_slice_in_dim(out, now + sent, place, 0), None

    start = jnp.zeros((steps + max_delay, batch, num_targets), weights.dtype)
    if operands.pending is not None:
        start = start.at[:max_delay].set(operands.pending)
    if operands.bias is not None:
        start = start.at[:steps].add(operands.bias[None, None])
    start = vary_alike((start, operands))[0]
    taps = jnp.arange(max_delay + 1, dtype=operands.delays.dtype)
    return jax.lax.scan(add, start, taps)[0]


def _received(operands: Operands, static: tuple[int, int]) -> Received:
    sequence = operands.spikes if operands.ids is None else operands.ids
    out, steps = _arriving(operands, static), sequence.shape[0]
    return Received(out[:steps], out[steps:])


_composed = jax.jit(_received, static_argnums=1)


def _reference(operands: Operands, static: tuple[int, int]) -> Results:
    received, x = _received(operands, static), operands.spikes
    if x is None:
        return Results(received, Record(None, None))
    return Results(received, Record(packed(x != 0), jnp.all((x == 0) | (x == 1), axis=-1)))


def _spikes_backward(operands: SpikesBackwardOperands, static: tuple[int, int]) -> SpikesBackwardResults:
    ids, *others, g = operands
    steps, batch = g.currents.shape[:2]
    width = operands.ends.shape[0] if ids is None else ids.shape[-1]
    zeros = jnp.zeros((steps, batch, width), g.currents.dtype)

    def run(sent: Array) -> Received:
        forms = (None, None, sent) if ids is None else (ids, sent, None)
        return _received(Operands(*forms, *others), static)

    (g,) = jax.vjp(run, vary_alike((zeros, operands))[0])[1](g)
    return SpikesBackwardResults(None, g) if operands.ids is None else SpikesBackwardResults(g, None)


def _weights_backward(arguments: WeightsBackwardOperands, static: tuple[int, int]) -> WeightsBackwardResults:
    *own, g, _ = arguments

    def run(weights: Array, delays: Array) -> Received:
        return _received(Operands(*own)._replace(weights=weights, delays=delays), static)

    return WeightsBackwardResults(*jax.vjp(run, arguments.weights, arguments.delays)[1](g))


def _kernel(name: str, *results: str) -> dict[str, Kernel]:
    """How the compiled kernel of a target is called, which writes some of these results."""

    def call(arguments: PyTree, _: object, shapes: PyTree) -> list[Array]:
        if arguments.ids is None:
            own = [each for each in results if each != "g_values"]
        else:
            own = [each for each in results if each != "g_spikes" and not each.startswith("record.")]
        return list(call_kernel(name, arguments, dict(zip(own, shapes, strict=True))).values())

    def obstacle(arguments: PyTree, _: object) -> str | None:
        return dtype_obstacle("weights", arguments.weights)  # float32 here if they were bfloat16

    return {"cpu": Kernel(call, obstacle)}


_NAME = f"snnjax_{_OP}"
_FORWARD = Target(
    _NAME,
    _OP,
    _reference,
    _kernel(_NAME, "received.currents", "received.left", "record.marks", "record.is_binary"),
)
_SPIKES_BACKWARD = Target(
    f"{_NAME}_spikes_backward",
    _OP,
    _spikes_backward,
    _kernel(f"{_NAME}_spikes_backward", "g_values", "g_spikes"),
)
_WEIGHTS_BACKWARD = Target(
    f"{_NAME}_weights_backward",
    _OP,
    _weights_backward,
    _kernel(f"{_NAME}_weights_backward", "g_weights", "g_delays"),
)
# Which operands have a batch axis, behind that of time.
_BATCHED = ("ids", "values", "spikes", "pending")


def _axes(record: PyTree) -> PyTree:
    """The batch axis of each array of a record."""

    def axis(name: str, part: PyTree) -> PyTree:
        if isinstance(part, tuple):
            return jax.tree.map(lambda _: 1, part)
        return None if part is None else 1 if name in _BATCHED else SHARED

    return type(record)(*map(axis, record._fields, record))


def _evaluate(operands: Operands, static: tuple[int, int], implementation: str | None) -> Results:
    record = Record(None, None) if operands.spikes is None else Record(1, 1)
    return evaluate(
        _FORWARD,
        operands,
        _axes(operands),
        Results(Received(1, 1), record),
        static,
        droppable=Results(Received(False, False), jax.tree.map(lambda _: True, record)),
        implementation=implementation,
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _multiply(operands: Operands, static: tuple[int, int], implementation: str | None) -> Received:
    return _evaluate(operands, static, implementation).received


def _fwd(operands: Operands, static: tuple[int, int], implementation: str | None) -> tuple[Received, Any]:
    results = _evaluate(operands, static, implementation)
    return results.received, (operands, results.record)


def _bwd(
    static: tuple[int, int], implementation: str | None, kept: tuple[Operands, Record], g: Received
) -> tuple[Operands]:
    operands, record = kept
    ids, values, spikes, weights, delays, ends, targets, pending, bias = operands
    back = SpikesBackwardOperands(ids, weights, delays, ends, targets, g)
    form = SpikesBackwardResults(*((None, 1) if ids is None else (1, None)))
    sent = evaluate(_SPIKES_BACKWARD, back, _axes(back), form, static, implementation=implementation)
    given = WeightsBackwardOperands(ids, values, spikes, weights, delays, ends, targets, g, record)
    own = evaluate(
        _WEIGHTS_BACKWARD,
        given,
        _axes(given),
        WeightsBackwardResults(SHARED, SHARED),
        static,
        results=WeightsBackwardResults(*jax.eval_shape(lambda: (weights, delays))),
        droppable=WeightsBackwardResults(False, True),
        implementation=implementation,
    )
    g_pending = None if pending is None else jnp.concatenate(g)[: pending.shape[0]]
    g_bias = None if bias is None else jnp.sum(g.currents, (0, 1))
    of_weights = own.g_weights, own.g_delays
    return (Operands(None, sent.g_values, sent.g_spikes, *of_weights, None, None, g_pending, g_bias),)


_multiply.defvjp(_fwd, _bwd)
