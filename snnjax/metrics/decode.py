"""Decoding of a readout's outputs over time: the sum, maximum or first spike of each class.

Losses and predictions share these functions. Outputs are dense ``[time, batch, classes]`` or `SparseSpikes` of ``[time,
batch]`` lists; lists are read entry by entry, so no array ``[time, batch, classes]`` is created, forward or backward.
Results accumulate in float32 (float64 for float64), and steps from `lengths` on are ignored.
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from snnjax._check import (
    MAX_SIZE,
    batch_hint,
    check_float_array,
    check_integers,
    check_shape,
    check_within,
    fail,
    type_words,
)
from snnjax._sparse_spikes import SparseSpikes, check_spikes, in_range, values_of
from snnjax._types import Signal, as_int32, steps_within, upcast

_CLASSES = "Number the classes from 0, and give the readout one output for each"

Outputs = Float[Array, "time batch classes"] | SparseSpikes


def check_outputs(op: str, outputs: Outputs, lengths: Array | None) -> None:
    """Check that `outputs` are floating ``[time, batch, classes]`` with at least one step, and match `lengths`."""
    if isinstance(outputs, SparseSpikes):
        check_spikes(op, "outputs", outputs)
    elif not hasattr(outputs, "shape"):
        hint = "Take the field `output` of what network.apply returns first"
        fail(f"{op}: `outputs` must be an array or SparseSpikes, got {type_words(outputs)}. {hint}.")
    shape, hint = outputs.shape, "Stack the outputs of all steps along a first axis, time"
    if len(shape) != 3:
        fail(f"{op}: `outputs` must have shape [time, batch, classes], got {list(shape)}. {hint}.")
    if not isinstance(outputs, SparseSpikes):
        check_float_array(op, "outputs", outputs)
    if shape[0] == 0:
        fail(f"{op}: `outputs` must hold at least one step, got none. Run the network for at least one step.")
    if lengths is not None:
        check_lengths(op, lengths, *shape[:2])


def check_dense(op: str, outputs: Signal, lengths: Array | None) -> None:
    """Check that `outputs` are dense, and pass `check_outputs`."""
    if isinstance(outputs, SparseSpikes):
        hint = "Use the membranes of a leaky readout, or call to_dense()"
        fail(f"{op}: `outputs` must be an array, got SparseSpikes. {hint}.")
    check_outputs(op, outputs, lengths)


def check_lengths(op: str, lengths: Array, steps: int | None, batch: int) -> None:
    """Check that `lengths` are integers ``[batch]``, and no more than the steps if their number is known."""
    hint = "Pass the number of steps of each sequence of the batch"
    _check_entries(op, "lengths", lengths, steps, batch, hint)
    check_within(op, "lengths", lengths, MAX_SIZE if steps is None else steps, hint)


def as_labels(op: str, labels: Array, shape: Sequence[int]) -> Array:
    """The labels as int32 after checking that they are classes ``[batch]`` for outputs of that shape."""
    steps, batch, classes = shape
    _check_entries(op, "labels", labels, steps, batch, "Pass one class index per sequence")
    check_within(op, "labels", labels, classes - 1, _CLASSES)
    return as_int32(labels)


def _check_entries(op: str, argument: str, value: Array, steps: int | None, batch: int, hint: str) -> None:
    """Check that `value` holds an integer for each sequence of a batch."""
    if steps is not None and hasattr(value, "shape"):
        hint = batch_hint(value.shape, steps, batch, hint)
    check_shape(op, argument, value, (batch,), "batch", hint)
    check_integers(op, argument, value)


def as_step_labels(op: str, labels: Array, shape: Sequence[int]) -> Array:
    """The labels as int32 after checking that they are classes ``[time, batch]``, or negative for none."""
    hint = "Pass one class index per step of each sequence"
    check_shape(op, "labels", labels, tuple(shape[:2]), "time, batch", hint)
    check_integers(op, "labels", labels)
    check_within(op, "labels", labels, shape[2] - 1, _CLASSES, least=-MAX_SIZE)
    return as_int32(labels)


def num_valid_steps(outputs: Outputs, lengths: Array | None) -> Array:
    """The number of valid steps of each sequence, int32 ``[batch]``."""
    time, batch = outputs.shape[:2]
    if lengths is None:
        return jnp.full(batch, time, jnp.int32)
    return jnp.clip(as_int32(lengths), 0, time)


def is_valid(outputs: Outputs, lengths: Array | None) -> Array:
    """True at valid steps, bool ``[time, batch]``."""
    return steps_within(outputs.shape[0], num_valid_steps(outputs, lengths))


def has_label(outputs: Outputs, labels: Array, lengths: Array | None) -> Array:
    """True at valid steps whose label is not negative, bool ``[time, batch]``."""
    return is_valid(outputs, lengths) & (labels >= 0)


def class_sums(
    outputs: Outputs,
    lengths: Integer[Array, " batch"] | None = None,
    *,
    weights: Float[Array, " time"] | None = None,
) -> Float[Array, "batch classes"]:
    """Sum the outputs of each class over time: ``sum_{t < lengths[b]} outputs[t, b, c]``, a count for spikes.

    With `weights` each step counts ``weights[t]`` times.

    Errors: outputs are not floating-point [time, batch, classes] with at least one step, or lengths or weights do not
    match.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import class_sums
        >>> class_sums(jnp.array([[[1.0, 0.0]], [[1.0, 1.0]]]))
        Array([[2., 1.]], dtype=float32)
    """
    check_outputs("class_sums", outputs, lengths)
    valid = is_valid(outputs, lengths)
    values = upcast(values_of(outputs) if isinstance(outputs, SparseSpikes) else outputs)
    if weights is not None:
        weights = jnp.asarray(weights)
        check_float_array("class_sums", "weights", weights)
        hint = "Pass one weight for each step"
        check_shape("class_sums", "weights", weights, outputs.shape[:1], "time", hint)
        values = values * weights.astype(values.dtype)[:, None, None]
    if isinstance(outputs, SparseSpikes):
        return _Lists(outputs, valid).add(values)
    return jnp.sum(jnp.where(valid[:, :, None], values, 0), axis=0)


def class_maxima(
    outputs: Outputs, lengths: Integer[Array, " batch"] | None = None
) -> Float[Array, "batch classes"]:
    """Take the maximum of each class over time: ``max_{t < lengths[b]} outputs[t, b, c]``, 0 for length 0.

    The gradient is shared equally among the steps at the maximum. In lists a class is 0 in steps that do not list it,
    and entries with the same id and step add up.

    Errors: those of `class_sums`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import class_maxima
        >>> class_maxima(jnp.array([[[-1.0, 2.0]], [[-3.0, 5.0]]]), lengths=jnp.array([1]))
        Array([[-1.,  2.]], dtype=float32)
    """
    check_outputs("class_maxima", outputs, lengths)
    valid = is_valid(outputs, lengths)
    if isinstance(outputs, SparseSpikes):
        return _list_maxima(outputs, valid, num_valid_steps(outputs, lengths))
    best = jnp.max(jnp.where(valid[:, :, None], upcast(outputs), -jnp.inf), axis=0)
    return jnp.where(jnp.any(valid, axis=0)[:, None], best, 0)


def class_first_spikes(
    outputs: Outputs, lengths: Integer[Array, " batch"] | None = None
) -> Float[Array, "batch classes"]:
    """Find the step of each class's first spike, or the sequence's length for a class that never spikes.

    ``time = sum_t prod_{t' <= t} (1 - outputs[t'])``, the number of steps survived without a spike, with outputs above
    1, such as graded spikes, taken for 1 and those below 0 for 0. Its derivative at
    spikes of 0 and 1: an additional spike at t before the first one, at f, advances it by ``f - t``; removing the first
    spike delays it to the second (or the end); later spikes change nothing.

    Errors: those of `class_sums`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import class_first_spikes
        >>> class_first_spikes(jnp.array([[[0.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]]))
        Array([[3., 1.]], dtype=float32)
    """
    check_outputs("class_first_spikes", outputs, lengths)
    valid = is_valid(outputs, lengths)
    if isinstance(outputs, SparseSpikes):
        return _list_first_times(outputs, valid, num_valid_steps(outputs, lengths))
    outputs = jnp.where(valid[:, :, None], upcast(outputs), 0)
    # As in lists, a larger spike is one, a negative one none, and the derivative is that for spikes of 0 and 1.
    fixed = jax.lax.stop_gradient(outputs)
    survival = jnp.cumprod(1 - (jnp.clip(fixed, 0, 1) + (outputs - fixed)), axis=0)
    return jnp.sum(jnp.where(valid[:, :, None], survival, 0), axis=0)


class _Lists:
    """Scatters and gathers between list entries ``[time, batch, capacity]`` and classes ``[batch, classes]``."""

    def __init__(self, spikes: SparseSpikes, valid: Array) -> None:
        used = in_range(spikes.ids, spikes.num_neurons) & valid[:, :, None]
        self.used = used
        # The id just above the last class is dropped by every scatter below.
        self.ids = jnp.where(used, spikes.ids.astype(jnp.int32), spikes.num_neurons)
        self.rows = jnp.broadcast_to(jnp.arange(used.shape[1], dtype=jnp.int32)[None, :, None], used.shape)
        self.shape = (used.shape[1], spikes.num_neurons)

    def add(self, entries: Array) -> Array:
        entries = jnp.where(self.used, entries, 0)
        return jnp.zeros(self.shape, entries.dtype).at[self.rows, self.ids].add(entries, mode="drop")

    def extreme(self, entries: Array, start: float, largest: bool) -> Array:
        out = jnp.full(self.shape, start, entries.dtype).at[self.rows, self.ids]
        return (out.max if largest else out.min)(entries, mode="drop")

    def of(self, per_class: Array) -> Array:
        return per_class.at[self.rows, self.ids].get(mode="fill", fill_value=0)


def _add_duplicates(spikes: SparseSpikes) -> SparseSpikes:
    """The same lists with one entry per id, the sum of its entries, in at least float32."""
    used = in_range(spikes.ids, spikes.num_neurons)
    ids = jnp.where(used, spikes.ids.astype(jnp.int32), spikes.num_neurons)
    ids, values = jax.lax.sort((ids, upcast(values_of(spikes))), num_keys=1)
    slots = jnp.cumsum(jnp.diff(ids, axis=-1, prepend=-1) != 0, axis=-1, dtype=jnp.int32) - 1

    def merge(ids: Array, values: Array, slots: Array) -> tuple[Array, Array]:
        unused = jnp.full_like(ids, spikes.num_neurons)
        return unused.at[slots].set(ids), jnp.zeros_like(values).at[slots].add(values)

    ids, values = jax.vmap(jax.vmap(merge))(ids, values, slots)
    return dataclasses.replace(spikes, ids=ids, values=values)


def _list_maxima(spikes: SparseSpikes, valid: Array, num_steps: Array) -> Array:
    spikes = _add_duplicates(spikes)
    lists, values = _Lists(spikes, valid), values_of(spikes)
    fixed = jax.lax.stop_gradient(values)
    best = lists.extreme(fixed, -jnp.inf, largest=True)
    unlisted = num_steps[:, None].astype(best.dtype) - lists.add(jnp.ones_like(fixed))
    best = jnp.where(unlisted > 0, jnp.maximum(best, 0), best)
    best = jnp.where(jnp.isneginf(best), 0, best)
    is_best = (fixed == lists.of(best)).astype(fixed.dtype)
    ties = lists.add(is_best) + jnp.where(best == 0, unlisted, 0)
    # A scatter of maxima has no derivative: the value is `best`, and the gradient comes from a sum that is 0.
    return best + lists.add(is_best * (values - fixed)) / jnp.maximum(ties, 1)


def _list_first_times(spikes: SparseSpikes, valid: Array, num_steps: Array) -> Array:
    lists, values = _Lists(spikes, valid), upcast(values_of(spikes))
    end = num_steps[:, None].astype(values.dtype)
    step = jnp.arange(values.shape[0]).astype(values.dtype)[:, None, None]
    never = float(values.shape[0])
    time = jnp.where(values > 0, step, never)
    first = jnp.minimum(lists.extreme(time, never, largest=False), end)
    later = jnp.where(step > lists.of(first), time, never)
    second = jnp.minimum(lists.extreme(later, never, largest=False), end)
    until_first = jnp.maximum(lists.of(first) - step, 0)
    slope = jnp.where(step == lists.of(first), lists.of(second) - step, until_first)
    # The value is `first`, and the gradient comes from a sum that is 0 (see `class_first_spikes` for its slope).
    return first - lists.add(slope * (values - jax.lax.stop_gradient(values)))
