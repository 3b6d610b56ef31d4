"""Predictions of a readout, their accuracy, and which classes they confuse."""

from typing import cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer

from snnjax._check import check_choice, check_integers, fail
from snnjax.metrics.decode import (
    Outputs,
    as_labels,
    as_step_labels,
    check_dense,
    check_outputs,
    class_first_spikes,
    class_maxima,
    class_sums,
    has_label,
)

DECODERS = ("sum", "max", "first_spike", "steps")


def predictions(
    outputs: Outputs,
    *,
    lengths: Integer[Array, " batch"] | None = None,
    decoder: str = "sum",
    weights: Float[Array, " time"] | None = None,
) -> Int[Array, " batch"] | Int[Array, "time batch"]:
    """Decode the predicted class from the outputs, int32.

    ``argmax_c z[b, c]`` with z the sum over time ("sum": membranes or spike counts), the maximum over time ("max"), or
    the earliest first spike ("first_spike"); ties go to the lowest class index. The decoder "steps" predicts a class in
    every step, ``argmax_c outputs[t, b, c]``, even after the end of a sequence. Where a z is NaN, as of a run that
    diverged, no class is predicted: -1.

    Args:
        outputs: dense ``[time, batch, classes]`` or `SparseSpikes`, as for the losses; dense for "steps".
        lengths: number of steps of each sequence.
        decoder: the decoder that matches the loss.
        weights: of each step in a "sum", those of `snnjax.losses.cross_entropy_sum`.

    Raises:
        ValueError: if outputs, lengths or weights do not match, or the decoder is unknown or takes no weights.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import predictions
        >>> outputs = jnp.array([[[0.0, 0.6]], [[0.9, 0.6]]])
        >>> predictions(outputs), predictions(outputs, decoder="max")
        (Array([1], dtype=int32), Array([0], dtype=int32))
    """
    check_outputs("predictions", outputs, lengths)
    check_choice("predictions", "decoder", decoder, DECODERS)
    if weights is not None and decoder != "sum":
        hint = "Leave them out, or decode the sum"
        fail(f"predictions: `weights` must be None for the decoder {decoder!r}, got some. {hint}.")
    if decoder == "steps":
        check_dense("predictions", outputs, lengths)
        return _largest(cast(Array, outputs))
    if decoder == "first_spike":
        return _largest(-class_first_spikes(outputs, lengths))
    scores = (
        class_sums(outputs, lengths, weights=weights) if decoder == "sum" else class_maxima(outputs, lengths)
    )
    return _largest(scores)


def _largest(scores: Array) -> Array:
    """The class of the largest score, -1 if one is NaN."""
    return jnp.where(jnp.isnan(scores).any(axis=-1), -1, jnp.argmax(scores, axis=-1)).astype(jnp.int32)


def accuracy(
    outputs: Outputs,
    labels: Integer[Array, " batch"] | Integer[Array, "time batch"],
    *,
    lengths: Integer[Array, " batch"] | None = None,
    decoder: str = "sum",
    weights: Float[Array, " time"] | None = None,
) -> Float[Array, ""]:
    """Compute the fraction of sequences (with "steps", of labelled steps) whose `predictions` equal `labels`, float32.

    Labels per step are ``[time, batch]``, negative where a step has no label, and count within `lengths`.

    Errors: those of `predictions`, or labels that are not integers [batch] ([time, batch] for "steps").

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import accuracy
        >>> accuracy(jnp.array([[[0.0, 1.0], [0.0, 1.0]]]), jnp.array([1, 0]))
        Array(0.5, dtype=float32)
    """
    right, asked = right_answers("accuracy", outputs, labels, lengths, decoder, weights)
    total = jnp.sum(asked).astype(jnp.float32)
    return jnp.sum(right).astype(jnp.float32) / (jnp.maximum(total, 1) if decoder == "steps" else total)


def confusion(
    outputs: Outputs,
    labels: Integer[Array, " batch"] | Integer[Array, "time batch"],
    *,
    lengths: Integer[Array, " batch"] | None = None,
    decoder: str = "sum",
    weights: Float[Array, " time"] | None = None,
) -> Int[Array, "classes classes"]:
    """Count the sequences (with "steps", the labelled steps) of each class by what they are predicted as, int32.

    ``confusion[i, j]`` is the number of those with label i and prediction j (`predictions`); what has no prediction is
    not counted. Matrices of batches add up, and `snnjax.plot.confusion` draws their sum.

    Errors: those of `accuracy`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import confusion
        >>> confusion(jnp.array([[[0.0, 1.0], [0.0, 1.0]]]), jnp.array([1, 0])).tolist()
        [[0, 1], [0, 1]]
    """
    named, labels, asked = _answers("confusion", outputs, labels, lengths, decoder, weights)
    labels = jnp.where(asked, labels, -1)  # whose row is 0
    rows, columns = (jax.nn.one_hot(each, outputs.shape[-1], dtype=jnp.int32) for each in (labels, named))
    return jnp.einsum("...i,...j->ij", rows, columns)


def class_accuracy(confusion: Integer[Array, "classes classes"]) -> Float[Array, " classes"]:
    """Compute the accuracy of each class from a `confusion` matrix, float32; NaN for a class that does not occur.

    ``confusion[i, i] / sum_j confusion[i, j]``

    Errors: the matrix is not square, or does not hold integers.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import class_accuracy
        >>> class_accuracy(jnp.array([[3, 1], [0, 2]]))
        Array([0.75, 1.  ], dtype=float32)
    """
    check_confusion("class_accuracy", confusion)
    right, total = jnp.diagonal(confusion), jnp.sum(confusion, axis=1)
    share = right.astype(jnp.float32) / jnp.maximum(total, 1).astype(jnp.float32)
    return jnp.where(total > 0, share, jnp.nan)


def check_confusion(op: str, confusion: Array) -> None:
    """Check that `confusion` holds integers ``[classes, classes]``."""
    hint = "Pass what metrics.confusion returns"
    shape = jnp.shape(confusion)
    if len(shape) != 2 or shape[0] != shape[1]:
        fail(f"{op}: `confusion` must have shape [classes, classes], got {list(shape)}. {hint}.")
    check_integers(op, "confusion", confusion)


def right_answers(
    op: str,
    outputs: Outputs,
    labels: Array,
    lengths: Array | None,
    decoder: str,
    weights: Float[Array, " time"] | None = None,
) -> tuple[Array, Array]:
    """The numbers of correctly predicted labels and of all labels of each sequence, int32 ``[batch]``."""
    named, labels, asked = _answers(op, outputs, labels, lengths, decoder, weights)
    right = asked & (named == labels) & (named >= 0)
    if decoder == "steps":
        return jnp.sum(right, axis=0, dtype=jnp.int32), jnp.sum(asked, axis=0, dtype=jnp.int32)
    return right.astype(jnp.int32), asked.astype(jnp.int32)


def _answers(
    op: str,
    outputs: Outputs,
    labels: Array,
    lengths: Array | None,
    decoder: str,
    weights: Float[Array, " time"] | None,
) -> tuple[Array, Array, Array]:
    """The predictions, the labels as int32, and whether there is one, ``[batch]`` or with "steps" ``[time, batch]``."""
    check_outputs(op, outputs, lengths)
    named = predictions(outputs, lengths=lengths, decoder=decoder, weights=weights)
    if decoder == "steps":
        labels = as_step_labels(op, labels, outputs.shape)
        return named, labels, has_label(outputs, labels, lengths)
    return named, as_labels(op, labels, outputs.shape), jnp.ones(named.shape, bool)
