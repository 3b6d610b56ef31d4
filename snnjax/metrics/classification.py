"""Predictions of a readout, and their accuracy."""

from typing import cast

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Integer

from snnjax._check import check_choice, fail
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
    every step, ``argmax_c outputs[t, b, c]``, even after the end of a sequence.

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
        return jnp.argmax(cast(Array, outputs), axis=-1).astype(jnp.int32)
    if decoder == "first_spike":
        return jnp.argmin(class_first_spikes(outputs, lengths), axis=-1).astype(jnp.int32)
    scores = (
        class_sums(outputs, lengths, weights=weights) if decoder == "sum" else class_maxima(outputs, lengths)
    )
    return jnp.argmax(scores, axis=-1).astype(jnp.int32)


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


def right_answers(
    op: str,
    outputs: Outputs,
    labels: Array,
    lengths: Array | None,
    decoder: str,
    weights: Float[Array, " time"] | None = None,
) -> tuple[Array, Array]:
    """The numbers of correctly predicted labels and of all labels of each sequence, int32 ``[batch]``."""
    check_outputs(op, outputs, lengths)
    named = predictions(outputs, lengths=lengths, decoder=decoder, weights=weights)
    if decoder == "steps":
        labels = as_step_labels(op, labels, outputs.shape)
        asked = has_label(outputs, labels, lengths)
        right = asked & (named == labels)
        return jnp.sum(right, axis=0, dtype=jnp.int32), jnp.sum(asked, axis=0, dtype=jnp.int32)
    labels = as_labels(op, labels, outputs.shape)
    right = (named == labels).astype(jnp.int32)
    return right, jnp.ones_like(right)
