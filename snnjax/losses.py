"""Losses on the outputs of a network, and regularisers of the activity of its layers.

Every loss except `cross_entropy_steps` and `temporal_efficient` accepts `outputs` either dense, ``[time, batch,
classes]``, or as `SparseSpikes` with leading axes ``[time, batch]``. Lists are read entry by entry: no array of the
dense size is created, forward or backward, and the listed entries receive gradients. `lengths[batch]` excludes the
steps after the end of each sequence; None counts all steps. Losses are scalars, means over the batch, in float32
(float64 for float64 outputs). A sequence of length 0 is one of the batch: it has the loss of outputs that are 0, or
where each step has a loss of its own the loss 0, and no gradient. All work under `jit`, `grad` and `vmap`. A label
outside ``[0, classes)`` is refused. Inside `jit` it cannot be checked: it makes the loss NaN, and with it the
gradients, so that it never trains silently. Lengths beyond the steps are refused too; inside `jit` they count as all
steps.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from snnjax._arguments import explained
from snnjax._check import check_choice, check_float_array, fail
from snnjax._types import upcast
from snnjax.metrics import class_first_spikes, class_maxima, class_sums, decode
from snnjax.metrics.activity import Activity, rates_of
from snnjax.metrics.decode import Outputs


@explained
def cross_entropy_sum(
    outputs: Outputs,
    labels: Integer[Array, " batch"],
    *,
    lengths: Integer[Array, " batch"] | None = None,
    label_smoothing: float = 0.0,
    weights: Float[Array, " time"] | None = None,
) -> Float[Array, ""]:
    """Compute the cross-entropy of the membranes summed over time.

    ``loss = -mean_b sum_c q[b, c] log softmax(z[b])[c]``, ``z[b] = sum_{t < lengths[b]} weights[t] outputs[t, b]``,
    ``q = (1 - label_smoothing) one_hot(labels) + label_smoothing / classes``

    Args:
        outputs: membranes of the readout, of any floating-point dtype.
        labels: class indices.
        lengths: number of steps of each sequence.
        label_smoothing: in ``[0, 1)``.
        weights: of each step; None for 1. Weights that fall with time make early spikes worth more: without them a
            sum over time hardly depends on when a spike comes.

    Raises:
        ValueError: if there is no time step, shapes or dtypes do not match, or the smoothing is out of range.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.losses import cross_entropy_sum
        >>> outputs = jnp.array([[[0.0, 1.0]], [[0.0, 2.0]]])  # two steps of one sequence, two classes
        >>> float(cross_entropy_sum(outputs, jnp.array([1]))) < 0.05
        True

    Reference:
        Zenke and Vogels 2021, doi:10.1162/neco_a_01367; label smoothing: Szegedy et al. 2016, arXiv:1512.00567.
    """
    labels = _checked("cross_entropy_sum", outputs, labels, lengths)
    return _cross_entropy(
        "cross_entropy_sum", class_sums(outputs, lengths, weights=weights), labels, label_smoothing
    )


@explained
def cross_entropy_count(
    outputs: Outputs,
    labels: Integer[Array, " batch"],
    *,
    lengths: Integer[Array, " batch"] | None = None,
    label_smoothing: float = 0.0,
) -> Float[Array, ""]:
    """Compute the cross-entropy of the spike counts: `cross_entropy_sum` for a spiking readout.

    ``z[b, c]`` is the number of spikes of class c. The gradient of the count with respect to each spike is 1 in every
    step; it continues through the surrogate of the layer that fired.

    Arguments and errors are as for `cross_entropy_sum`; `outputs` are spikes.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax import SparseSpikes
        >>> from snnjax.losses import cross_entropy_count
        >>> ids = jnp.array([[[1]], [[1]], [[0]]])  # class 1 twice, class 0 once
        >>> spikes = SparseSpikes.from_ids(ids, num_neurons=2)
        >>> float(cross_entropy_count(spikes, jnp.array([1]))).__round__(3)
        0.313

    Reference:
        Eshraghian et al. 2023, doi:10.1109/JPROC.2023.3308088.
    """
    labels = _checked("cross_entropy_count", outputs, labels, lengths)
    return _cross_entropy("cross_entropy_count", class_sums(outputs, lengths), labels, label_smoothing)


@explained
def cross_entropy_max(
    outputs: Outputs,
    labels: Integer[Array, " batch"],
    *,
    lengths: Integer[Array, " batch"] | None = None,
    label_smoothing: float = 0.0,
) -> Float[Array, ""]:
    """Compute the cross-entropy of the largest membrane that each class reaches.

    ``z[b, c] = max_{t < lengths[b]} outputs[t, b, c]``; the gradient reaches the step of the maximum, in equal shares
    if there are several. In lists a class is 0 in steps that do not list it, and entries with the same id and step add
    up.

    Arguments and errors are as for `cross_entropy_sum`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax.losses import cross_entropy_max
        >>> outputs = jnp.array([[[0.0, 3.0]], [[0.0, 2.0]]])  # class 1 is highest in the first of two steps
        >>> jax.grad(cross_entropy_max)(outputs, jnp.array([1]))[:, 0, 1] < 0
        Array([ True, False], dtype=bool)

    Reference:
        Cramer et al. 2022, doi:10.1109/TNNLS.2020.3044364.
    """
    labels = _checked("cross_entropy_max", outputs, labels, lengths)
    return _cross_entropy("cross_entropy_max", class_maxima(outputs, lengths), labels, label_smoothing)


@explained
def cross_entropy_steps(
    outputs: Float[Array, "time batch classes"],
    labels: Integer[Array, "time batch"],
    *,
    lengths: Integer[Array, " batch"] | None = None,
    label_smoothing: float = 0.0,
) -> Float[Array, ""]:
    """Compute the cross-entropy of the membranes of every step, for labels per step.

    ``loss = -mean_b sum_t m[t, b] sum_c q[t, b, c] log softmax(outputs[t, b])[c] / max(1, sum_t m[t, b])`` with
    ``m[t, b] = [t < lengths[b] and labels[t, b] >= 0]`` and q as in `cross_entropy_sum`.

    Args:
        outputs: membranes of the readout, of any floating-point dtype; dense, because every class counts in every
            step.
        labels: class indices; a negative one means that the step has no label.
        lengths: number of steps of each sequence.
        label_smoothing: in ``[0, 1)``.

    Raises:
        ValueError: as for `cross_entropy_sum`, and if outputs are lists, or labels are not integers [time, batch].

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.losses import cross_entropy_steps
        >>> outputs = jnp.array([[[0.0, 9.0]], [[9.0, 0.0]]])  # class 1, then class 0
        >>> float(cross_entropy_steps(outputs, jnp.array([[1], [-1]]))) < 0.001
        True

    Reference:
        Yin, Corradi, Bohte 2021, doi:10.1038/s42256-021-00397-w.
    """
    op = "cross_entropy_steps"
    decode.check_dense(op, outputs, lengths)
    labels = decode.as_step_labels(op, labels, outputs.shape)
    valid = decode.has_label(outputs, labels, lengths)
    return _cross_entropy_of_steps(op, outputs, jnp.maximum(labels, 0), valid, label_smoothing)


@explained
def temporal_efficient(
    outputs: Float[Array, "time batch classes"],
    labels: Integer[Array, " batch"],
    *,
    lengths: Integer[Array, " batch"] | None = None,
    label_smoothing: float = 0.0,
) -> Float[Array, ""]:
    """Compute the mean over time of the cross-entropy of each step (TET), so that every step is to be right by itself.

    ``loss = -mean_b mean_{t < lengths[b]} sum_c q[b, c] log softmax(outputs[t, b])[c]``; predicted is
    the class of the largest sum over time.

    Arguments and errors are as for `cross_entropy_sum`; outputs are dense, and sequences without steps count 0.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.losses import temporal_efficient
        >>> outputs = jnp.array([[[0.0, 9.0]], [[9.0, 0.0]]])  # right in the first of two steps
        >>> float(temporal_efficient(outputs, jnp.array([1]))).__round__(2)
        4.5

    Reference:
        Deng et al. 2022, arXiv:2202.11946.
    """
    op = "temporal_efficient"
    decode.check_dense(op, outputs, lengths)
    each = jnp.broadcast_to(decode.as_labels(op, labels, outputs.shape), outputs.shape[:2])
    valid = decode.is_valid(outputs, lengths)
    return _cross_entropy_of_steps(op, outputs, each, valid, label_smoothing)


@explained
def mean_square_rate(
    outputs: Outputs,
    labels: Integer[Array, " batch"],
    correct_rate: float,
    incorrect_rate: float,
    *,
    lengths: Integer[Array, " batch"] | None = None,
) -> Float[Array, ""]:
    """Compute the mean squared distance of each class's rate from a target rate.

    ``loss = mean_{b, c} (rate[b, c] - target[b, c])^2``, ``rate[b, c] = sum_t outputs[t, b, c] / lengths[b]`` in spikes
    per step; the target is `correct_rate` for the label's class and `incorrect_rate` for all others.

    Errors are as for `cross_entropy_sum`; sequences of length 0 have rate 0.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.losses import mean_square_rate
        >>> spikes = jnp.array([[[1.0, 0.0]], [[0.0, 0.0]]])  # class 0 at rate 0.5, class 1 silent
        >>> mean_square_rate(spikes, jnp.array([0]), correct_rate=0.5, incorrect_rate=0.0)
        Array(0., dtype=float32)

    Reference:
        Shrestha and Orchard 2018 (SLAYER), arXiv:1810.08646.
    """
    labels = _checked("mean_square_rate", outputs, labels, lengths)
    sums = class_sums(outputs, lengths)
    steps = jnp.maximum(decode.num_valid_steps(outputs, lengths), 1).astype(sums.dtype)
    hot = _one_hot(labels, sums)
    target = incorrect_rate + (correct_rate - incorrect_rate) * hot
    return jnp.mean(jnp.square(sums / steps[:, None] - target))


@explained
def time_to_first_spike(
    outputs: Outputs,
    labels: Integer[Array, " batch"],
    *,
    time_scale: float = 1.0,
    lengths: Integer[Array, " batch"] | None = None,
    label_smoothing: float = 0.0,
) -> Float[Array, ""]:
    """Compute the cross-entropy of the first spike times: the labelled class should spike before all others.

    ``z[b, c] = -time[b, c] / time_scale`` with the step of the first spike,
    ``time[b, c] = sum_{t < lengths[b]} prod_{t' <= t} (1 - outputs[t', b, c])``, which is ``lengths[b]`` without one.

    The gradient is that of the product, exact where `outputs` are 0 or 1, and continues through the surrogate of each
    spike: with the first spike at f, ``dtime/doutputs[t]`` is ``-(f - t)`` before f (a spike there would come that much
    earlier), ``-(g - f)`` at f, where g is the second spike or the end, and 0 afterwards. A silent class therefore has
    a gradient at every step, or for lists at every step that lists it.

    Args:
        outputs: spikes of the readout.
        labels: class indices.
        time_scale: in steps, positive; a lead of this many steps over a rival multiplies the odds by e.
        lengths: number of steps of each sequence.
        label_smoothing: in ``[0, 1)``.

    Raises:
        ValueError: as for `cross_entropy_sum`, and if `time_scale` is not positive and finite.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from snnjax.losses import time_to_first_spike
        >>> spikes = jnp.array([[[0.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]])  # class 0 never, class 1 at step 1
        >>> float(time_to_first_spike(spikes, jnp.array([1]))).__round__(3)
        0.127

    Reference:
        Mostafa 2018, arXiv:1606.08165; Gardner and Grüning 2021, doi:10.3389/fncom.2021.617862.
    """
    labels = _checked("time_to_first_spike", outputs, labels, lengths)
    if not 0 < time_scale < math.inf:
        hint = "Try 1.0 for a sharp loss, or a tenth of the sequence for a soft one"
        fail(f"time_to_first_spike: `time_scale` must be positive and finite, got {time_scale}. {hint}.")
    times = class_first_spikes(outputs, lengths)
    return _cross_entropy("time_to_first_spike", -times / time_scale, labels, label_smoothing)


@explained
def activity_upper_bound(activity: Activity, bound: float, *, over: str = "population") -> Float[Array, ""]:
    """Penalise layers more active than `bound`, the regulariser that keeps sparse training sparse.

    ``penalty = sum_layers mean_b max(0, mean_n activity[b, n] / bound - 1)^2`` over the "population": this bounds every
    sequence's fraction of active neurons, and hence the length of its lists, while single neurons remain free to fire.
    ``sum_layers mean_n max(0, mean_b activity[b, n] / bound - 1)^2`` over "neurons": this bounds every neuron's rate.

    The rate is measured in units of the bound, so one strength serves all bounds: 0 below, 1 at twice the bound.

    Args:
        activity: mean rates of each layer in spikes per step, as returned by networks: true, uncapped rates,
            with a gradient for every neuron above the second threshold.
        bound: in spikes per neuron and step, positive, for instance 0.04.
        over: "population" or "neurons".

    Raises:
        ValueError: if the bound is not positive, `over` is unknown, there is no layer, or the activity is not
            floating-point [batch, neurons].

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.losses import activity_upper_bound
        >>> activity_upper_bound([jnp.full((2, 5), 0.08)], bound=0.04)
        Array(1., dtype=float32)

    Reference:
        Zenke and Vogels 2021, doi:10.1162/neco_a_01367 (upper threshold of the population).
    """
    rates = _pooled("activity_upper_bound", activity, bound, over)
    return _total([jnp.mean(jnp.square(jax.nn.relu(rate / bound - 1))) for rate in rates])


@explained
def activity_lower_bound(activity: Activity, bound: float, *, over: str = "neurons") -> Float[Array, ""]:
    """Penalise neurons or layers less active than `bound`, which revives silent ones.

    ``penalty = sum_layers mean_n max(0, 1 - mean_b activity[b, n] / bound)^2`` over "neurons", and
    ``sum_layers mean_b max(0, 1 - mean_n activity[b, n] / bound)^2`` over the "population".

    The penalty is 1 for a layer whose neurons are all silent. Its gradient passes through the surrogate of neurons near
    threshold: those that stay below the second threshold at all steps have none, and remain silent.

    Arguments and errors are as for `activity_upper_bound`.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.losses import activity_lower_bound
        >>> activity_lower_bound([jnp.array([[0.0, 0.02]])], bound=0.01)  # one neuron of two is silent
        Array(0.5, dtype=float32)

    Reference:
        Zenke and Vogels 2021, doi:10.1162/neco_a_01367 (lower threshold of each neuron).
    """
    rates = _pooled("activity_lower_bound", activity, bound, over)
    return _total([jnp.mean(jnp.square(jax.nn.relu(1 - rate / bound))) for rate in rates])


def _pooled(op: str, activity: Activity, bound: float, over: str) -> list[Array]:
    """Each layer's mean rates over the population, ``[batch]``, or over the batch, ``[neurons]``."""
    if not bound > 0:
        fail(f"{op}: `bound` must be positive, got {bound}. Try 0.04, four spikes in a hundred steps.")
    check_choice(op, "over", over, ("population", "neurons"))
    rates = rates_of(op, activity)
    for layer, rate in enumerate(rates):
        check_float_array(op, f"activity[{layer}]", rate)
    return [jnp.mean(upcast(rate), axis=1 if over == "population" else 0) for rate in rates]


def _total(penalties: list[Array]) -> Array:
    return jnp.sum(jnp.stack(penalties))


def _checked(op: str, outputs: Outputs, labels: Array, lengths: Array | None) -> Array:
    """The labels as int32 after all checks."""
    decode.check_outputs(op, outputs, lengths)
    return decode.as_labels(op, labels, outputs.shape)


def _one_hot(labels: Array, like: Array) -> Array:
    """One-hot labels in the shape and dtype of `like` [..., classes]; NaN for a label out of range."""
    classes = like.shape[-1]
    hot = jax.nn.one_hot(labels, classes, dtype=like.dtype)
    good = (labels >= 0) & (labels < classes)
    return jnp.where(good[..., None], hot, jnp.nan)


def _targets(op: str, labels: Array, logits: Array, label_smoothing: float) -> Array:
    """The smoothed labels in the shape of `logits` [..., classes]."""
    import optax

    if not 0 <= label_smoothing < 1:
        fail(f"{op}: `label_smoothing` must be in [0, 1), got {label_smoothing}. Try 0.1, or 0.0 for none.")
    return optax.smooth_labels(_one_hot(labels, logits), label_smoothing)


def _cross_entropy(op: str, logits: Array, labels: Array, label_smoothing: float) -> Array:
    """The mean over the batch of the cross-entropy of ``[batch, classes]`` logits."""
    target = _targets(op, labels, logits, label_smoothing)
    return -jnp.mean(jnp.sum(target * jax.nn.log_softmax(logits, axis=-1), axis=-1))


def _cross_entropy_of_steps(
    op: str, outputs: Array, labels: Array, valid: Array, label_smoothing: float
) -> Array:
    """The mean over the batch of each sequence's mean cross-entropy in its `valid` steps; labels ``[time, batch]``."""
    logits = jnp.where(valid[..., None], upcast(outputs), 0)  # others, even NaN, affect no gradient
    target = _targets(op, labels, logits, label_smoothing)
    errors = -jnp.sum(target * jax.nn.log_softmax(logits, axis=-1), axis=-1)
    counts = jnp.maximum(jnp.sum(valid, axis=0), 1).astype(errors.dtype)
    return jnp.mean(jnp.sum(jnp.where(valid, errors, 0), axis=0) / counts)
