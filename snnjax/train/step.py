"""One step of training, and the evaluation of a data set."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, PyTree

from snnjax._arguments import explained
from snnjax._check import fail, type_words
from snnjax._types import Optimiser, Unchecked
from snnjax.blocks._listing import warn_unless_below
from snnjax.blocks.readout import Integrator
from snnjax.blocks.spiking import Spiking
from snnjax.data import Batch, batches
from snnjax.data.datasets import Dataset
from snnjax.graph.network import Network, NetworkOutput, Params, Stats
from snnjax.losses import activity_lower_bound, activity_upper_bound
from snnjax.metrics.classification import right_answers
from snnjax.train.config import TrainConfig
from snnjax.train.online import online_gradients
from snnjax.train.parallel import forward
from snnjax.train.tasks import LOSSES
from snnjax.train.totals import Totals, count, count_operations, spiking_nodes, summarise

Loss = Callable[..., Array]  # loss(outputs, labels, lengths=lengths) -> [], such as those of `snnjax.losses`


class TrainState(NamedTuple):
    """The state that a training step updates."""

    params: Params
    optimiser: PyTree  # the state of the optax optimiser
    stats: Stats | None = None  # the running statistics of norms; None if the network has none


@explained
def make_train_step(
    network: Network,
    loss: Loss,
    optimiser: Optimiser,
    config: TrainConfig,
    decoder: str | None = None,
    mesh: Mesh | None = None,
) -> Callable[..., tuple[TrainState, Totals]]:
    """Make a jitted training step, ``train_step(state, batch, second_threshold, key=None) -> (state, totals)``.

    The objective is ``loss + activity_strength * penalty``, with the penalty of `activity_upper_bound` above
    `activity_bound` and of `activity_lower_bound` below `activity_floor`, both on each layer's mean activity. The
    second threshold is a traced argument, so a schedule does not recompile. The old state is donated: use the new one.
    Samples of length 0 are part of the loss, which is a mean over the batch (`snnjax.losses`), and of no other total.
    The network runs with ``train=True``: norms use the statistics of the batch, and dropout drops by the `key`. The
    `decoder` is as for `evaluate`.

    With an online `rule` the gradient is that of the loss of each step, the mean over the steps of each sample: its
    padding changes nothing. An `activity_strength` adds the gradient of the same penalty, on the activity of the
    forward pass that measures the loss.

    With a `mesh` (`data_mesh`), each of its devices runs the network on an equal share of the batch; the loss, the
    totals and the new state are those of the whole batch, up to rounding.

    Raises:
        ValueError: for an online rule with a mesh, and for layers that it does not know; for a second threshold if no
            layer has lists; for a loss of first spikes if the readout does not spike.

    Example:
        >>> import jax, optax
        >>> import snnjax
        >>> from snnjax import data, losses, train
        >>> vowels = data.load_japanese_vowels().take(range(4))
        >>> net = snnjax.network(12, [snnjax.layer(8)], snnjax.leaky_readout(9))
        >>> params, optimiser = net.init(jax.random.key(0)), optax.adam(1e-2)
        >>> step = train.make_train_step(net, losses.cross_entropy_sum, optimiser, train.TrainConfig())
        >>> state, totals = step(train.TrainState(params, optimiser.init(params)), vowels, 0.9)
        >>> float(totals.samples)
        4.0
    """
    import optax

    _check_config(network, config, mesh)
    # Neurons of the readout may be as active as the task requires.
    hidden = [name for name in spiking_nodes(network) if name not in dict(network.outputs).values()]
    run, decoding = forward(network, mesh, train=True), _fitting("fit", network, loss, decoder)

    def penalty(activity: dict[str, Array]) -> Array:
        return config.penalty_weight * _activity_penalty([activity[name] for name in hidden], config)

    def objective(params: Params, stats: Stats | None, batch: Batch, *others: Unchecked) -> tuple[Array, Any]:
        output = run(params, stats, batch, *others)
        error = loss(output.output, batch.labels, lengths=batch.lengths)
        return error + penalty(output.activity).astype(error.dtype), (error, output)

    def compute(params: Params, stats: Stats | None, batch: Batch, *others: Unchecked) -> tuple[Any, Params]:
        if config.rule == "bptt":
            with_gradients = jax.value_and_grad(objective, has_aux=True)
            (_, results), gradients = with_gradients(params, stats, batch, *others)
            return results, gradients
        results = objective(params, stats, batch, *others)[1]
        penalty_gradients = jax.grad(penalty)(results[1].activity) if config.penalty_weight > 0 else None
        learn = online_gradients(network, loss, config.rule)
        return results, learn(params, batch, _lengths(batch), penalty_gradients, stats)

    def train_step(
        state: TrainState, batch: Batch, second_threshold: Any, key: Array | None = None
    ) -> tuple[TrainState, Totals]:
        (error, output), gradients = compute(state.params, state.stats, batch, second_threshold, key)
        with jax.numpy_dtype_promotion("standard"):  # optax needs it, whatever the caller's setting
            updates, optimiser_state = optimiser.update(gradients, state.optimiser, state.params)
            params = optax.apply_updates(state.params, updates)
        lengths = _lengths(batch)
        found = right_answers("fit", _first(network, output), batch.labels, batch.lengths, *decoding)
        error = jnp.broadcast_to(error, lengths.shape)
        totals = count(network, output, batch, lengths, error, found)
        return TrainState(cast(Params, params), optimiser_state, state.stats and output.stats), totals

    return jax.jit(train_step, donate_argnums=0)


def decoder_of(loss: Loss, decoder: str | None) -> str:
    """The decoder that is given, or that of the loss, which may have bound arguments or be jitted."""
    own: Any = loss
    while decoder is None and own is not None:
        decoder = next((fitting for known, fitting, _ in LOSSES.values() if known is own), None)
        own = own.func if isinstance(own, partial) else getattr(own, "__wrapped__", None)
    return decoder or "sum"


def _weights_of(loss: Loss) -> Array | None:
    """The weights of the steps that are bound to the loss, by which predictions are decoded too."""
    own: Any = loss
    while own is not None:
        if isinstance(own, partial) and "weights" in own.keywords:
            return own.keywords["weights"]
        own = own.func if isinstance(own, partial) else getattr(own, "__wrapped__", None)
    return None


def _fitting(op: str, network: Network, loss: Loss, decoder: str | None) -> tuple[str, Array | None]:
    """The decoder and its weights, after checking that it fits to the readout: membranes have no first spike."""
    found, readout = decoder_of(loss, decoder), network.outputs[0][1]
    block = next((node.block for node in network.nodes if node.name == readout), None)
    if found == "first_spike" and isinstance(block, Integrator):
        hint = "Give the network a snnjax.spiking_readout, or choose another loss"
        fail(f"{op}: `decoder` must be one of membranes for {readout!r}, got 'first_spike'. {hint}.")
    if decoder_of(loss, None) in ("max", "first_spike"):
        _check_times(op, network)
    return found, _weights_of(loss) if found == "sum" else None


def _check_times(op: str, network: Network) -> None:
    """Refuse losses of single steps for spikes whose times have derivatives."""
    for node in network.nodes:
        if isinstance(node.block, Spiking) and node.block.neuron.sent is not None:
            fail(
                f"{op}: `loss` must be a sum over time for the spike times of {node.name!r}, got one of single steps: "
                "these jump where inputs arrive. Use cross_entropy_sum with weights of the steps."
            )


def _check_config(network: Network, config: TrainConfig, mesh: Mesh | None) -> None:
    """Warn of second thresholds without effect or refuse them, and an online rule on several devices."""
    blocks: list[Any] = [node.block for node in network.nodes]
    has_lists = any(block.lists_spikes for block in blocks)
    if config.second_threshold is not None and not has_lists:
        hint = "Give a layer a capacity, or leave it out"
        fail(f"fit: `second_threshold` must be None without lists, got {config.second_threshold:g}. {hint}.")
    for second in (config.second_threshold, config.final_second_threshold):
        for block in blocks:
            if second is not None and isinstance(block, Spiking) and block.lists_spikes:
                warn_unless_below("TrainConfig", second, block.neuron)
    if config.rule != "bptt" and mesh is not None:
        fail(f"fit: `rule` must be 'bptt' on several devices, got {config.rule!r}. Train on one device.")


def _activity_penalty(activity: list[Array], config: TrainConfig) -> Array:
    """The penalty that keeps the activity of hidden layers between floor and bound."""
    if not activity:
        return jnp.zeros(())
    above = activity_upper_bound(activity, config.activity_bound)
    floor = min(config.activity_floor, config.activity_bound)  # a bound below the floor serves as both
    return above + activity_lower_bound(activity, floor, over="population")


@explained
def evaluate(
    network: Network,
    params: Params,
    dataset: Dataset,
    *,
    loss: Loss,
    stats: Stats | None = None,
    decoder: str | None = None,
    batch_size: int = 128,
) -> dict[str, Any]:
    """Run a network over a data set once, and return the metrics of `summarise`. Samples of length 0 do not count.

    Args:
        network: the network, with its `params`.
        dataset: a data set of `snnjax.data`, with ``len(dataset)`` and ``dataset.take(indices)``.
        loss: a loss of `snnjax.losses`.
        stats: the running statistics of its norms, such as `FitResult.stats`; None if it has none.
        decoder: the decoder of `snnjax.metrics.predictions`, None for that of the loss (`LOSSES`), or else "sum"; of
            several readouts, it decodes the first.
        batch_size: samples per batch; the last batch is padded with samples that do not count.

    Raises:
        ValueError: if there are no samples, or more classes than the network has outputs.

    Example:
        >>> import jax
        >>> import snnjax
        >>> from snnjax import data, losses, train
        >>> net = snnjax.network(12, [snnjax.layer(8)], snnjax.leaky_readout(9))
        >>> vowels = data.load_japanese_vowels().select(slice(10))
        >>> train.evaluate(net, net.init(jax.random.key(0)), vowels, loss=losses.cross_entropy_sum)["samples"]
        10.0
    """
    check_dataset("evaluate", "dataset", dataset, network)
    step = make_evaluation_step(network, loss, decoder)
    return evaluate_with(step, params, dataset, stats, batch_size)


def evaluate_with(
    step: Callable[..., Totals], params: Params, dataset: Dataset, stats: Stats | None, batch_size: int
) -> dict[str, Any]:
    """`evaluate` with the result of `make_evaluation_step`, which is compiled once for many calls."""
    size, totals, start = min(batch_size, len(dataset)), [], time.perf_counter()
    for indices in batches(None, len(dataset), size):
        batch = dataset.take(np.resize(indices, size))
        lengths = jnp.where(jnp.arange(size) < len(indices), _lengths(batch), 0)
        totals.append(step(params, stats, batch._replace(lengths=lengths)))
    jax.block_until_ready(totals)
    return summarise(totals, time.perf_counter() - start)


def check_dataset(op: str, argument: str, dataset: Dataset, network: Network) -> None:
    """Check that `dataset` is a data set with samples. Labels beyond the outputs would make the loss NaN."""
    if not (hasattr(dataset, "take") and hasattr(dataset, "__len__")):
        hint = "Make one with snnjax.data, such as an EventDataset"
        fail(f"{op}: `{argument}` must be a data set, got {type_words(dataset)}. {hint}.")
    if len(dataset) == 0:
        hint = "Split off a larger part for it"
        fail(f"{op}: `{argument}` must hold at least one sample, got none. {hint}.")
    classes = getattr(dataset, "num_classes", network.num_outputs)
    if classes > network.num_outputs:
        expected = f"have no more classes than the network has outputs, {network.num_outputs}"
        fail(
            f"{op}: `{argument}` must {expected}, got {classes}. Give the readout one output for each class."
        )


def make_evaluation_step(network: Network, loss: Loss, decoder: str | None = None) -> Callable[..., Totals]:
    """Make a jitted function for the totals of a batch, ``step(params, stats, batch) -> totals``."""

    def one_loss(output: Any, label: Array, length: Array) -> Array:
        one = jax.tree.map(lambda leaf: leaf[:, None], output)
        return loss(one, label[..., None], lengths=length[None])

    run, decoding = forward(network), _fitting("evaluate", network, loss, decoder)

    @jax.jit
    def step(params: Params, stats: Stats | None, batch: Batch) -> Totals:
        lengths = _lengths(batch)
        output = run(params, stats, batch._replace(lengths=lengths), None)
        error = jax.vmap(one_loss, in_axes=(1, -1, 0))(output.output, batch.labels, lengths)
        found = right_answers("evaluate", _first(network, output), batch.labels, lengths, *decoding)
        totals = count(network, output, batch, lengths, error, found)
        return totals._replace(operations=count_operations(network, params, stats, output, batch, lengths))

    return step


def _first(network: Network, output: NetworkOutput) -> Any:
    """The output, that of the first readout if there are several."""
    return output.output if network.is_single else output.output[network.outputs[0][0]]


def _lengths(batch: Batch) -> Array:
    """The number of valid steps of each sample; all steps if the batch has no lengths."""
    time_steps, size = jax.tree.leaves(batch.inputs)[0].shape[0], batch.labels.shape[-1]
    return jnp.full(size, time_steps, jnp.int32) if batch.lengths is None else batch.lengths
