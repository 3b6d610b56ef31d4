"""Which class a read-out names, and how often it is the right one."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from snnjax._check import check_choice
from snnjax.metrics.decode import (
    Outputs,
    check_labels,
    check_outputs,
    class_maxima,
    class_sums,
    first_spike_times,
)

DECODERS = ("sum", "max", "first_spike")


def predictions(
    outputs: Outputs, *, lengths: Int[Array, " batch"] | None = None, decoder: str = "sum"
) -> Int[Array, " batch"]:
    """The class that the outputs name, int32.

    ``argmax_c z[b, c]`` with z the sum over time ("sum": membranes or spike counts), the maximum over time ("max"), or
    the earliest first spike ("first_spike"); among equals the lowest class number.

    Args:
        outputs: dense ``[time, batch, classes]`` or `SparseSpikes`, as the losses take them.
        lengths: steps of each sequence.
        decoder: the one that belongs to the loss in use.

    Raises:
        ValueError: for outputs or lengths that do not fit, or an unknown decoder.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import predictions
        >>> outputs = jnp.array([[[0.0, 0.6]], [[0.9, 0.6]]])
        >>> predictions(outputs), predictions(outputs, decoder="max")
        (Array([1], dtype=int32), Array([0], dtype=int32))
    """
    check_outputs("predictions", outputs, lengths)
    check_choice("predictions", "decoder", decoder, DECODERS)
    if decoder == "first_spike":
        return jnp.argmin(first_spike_times(outputs, lengths), axis=-1).astype(jnp.int32)
    scores = class_sums(outputs, lengths) if decoder == "sum" else class_maxima(outputs, lengths)
    return jnp.argmax(scores, axis=-1).astype(jnp.int32)


def accuracy(
    outputs: Outputs,
    labels: Int[Array, " batch"],
    *,
    lengths: Int[Array, " batch"] | None = None,
    decoder: str = "sum",
) -> Float[Array, ""]:
    """The share of sequences whose `predictions` equal `labels`, float32.

    Errors: those of `predictions`, and labels that are not integers [batch].

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.metrics import accuracy
        >>> accuracy(jnp.array([[[0.0, 1.0], [0.0, 1.0]]]), jnp.array([1, 0]))
        Array(0.5, dtype=float32)
    """
    check_outputs("accuracy", outputs, lengths)
    check_labels("accuracy", labels, outputs.shape[1])
    right = predictions(outputs, lengths=lengths, decoder=decoder) == labels.astype(jnp.int32)
    return jnp.mean(right, dtype=jnp.float32)
