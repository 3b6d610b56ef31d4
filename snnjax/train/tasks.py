"""The command-line tasks: `TASKS` holds every setting of how each one is trained."""

import inspect
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax import losses, models, neurons
from snnjax._arguments import explained
from snnjax._check import check_choice, check_integer, check_switches, check_within, fail, short_repr
from snnjax._types import Unchecked
from snnjax.blocks import batch_norm, spiking
from snnjax.blocks._dense import dense
from snnjax.blocks._synaptic import synaptic
from snnjax.blocks.conv import conv2d
from snnjax.blocks.delay import axonal
from snnjax.blocks.pool import sum_pool
from snnjax.graph.build import network
from snnjax.graph.containers import layer, leaky_readout, residual, spiking_readout
from snnjax.graph.network import Network, Params
from snnjax.train.config import TrainConfig
from snnjax.train.task_effects import check_effects

NEURONS = {
    "lif": neurons.lif,
    "adaptive_lif": neurons.adaptive_lif,
    "adlif": neurons.adlif,
    "se_adlif": neurons.se_adlif,
}
# The loss, the decoder of its predictions, and whether the readout spikes.
LOSSES = {
    "cross_entropy_sum": (losses.cross_entropy_sum, "sum", False),
    "cross_entropy_max": (losses.cross_entropy_max, "max", False),
    "temporal_efficient": (losses.temporal_efficient, "sum", False),
    "cross_entropy_steps": (losses.cross_entropy_steps, "steps", False),
    "cross_entropy_count": (losses.cross_entropy_count, "sum", True),
    "time_to_first_spike": (losses.time_to_first_spike, "first_spike", True),
}
# Whole networks of colour images.
MODELS = {"vgg": models.vgg, "sew": models.sew_resnet, "spikformer": models.spikformer}
# Folds of the tasks that can be cross-validated: tenths of the recordings, or speakers.
FOLDS = {"nmnist": 10, "speech": 6}
# Pixels per side of the cameras, both with two polarities.
_CAMERAS = {"digits": 34, "fashion": 34, "nmnist": 34, "dvs-gesture": 128}
# Height, width and channels of colour images, which are currents in every step.
_PICTURES = {"cifar10": (32, 32, 3)}


def _is_number(value: Unchecked) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_options(op: str, argument: str, options: dict[str, Any], name: str, function: Unchecked) -> None:
    unknown = ", ".join(sorted(options.keys() - inspect.signature(function).parameters.keys()))
    if unknown:
        hint = "Leave it out, or use the version of snnjax that has it"
        fail(f"{op}: `{argument}` must be options of {name}, got {unknown}. {hint}.")


@explained
@dataclass(frozen=True)
class TaskSettings:
    """All settings of a run except where its data are; a checkpoint stores them to rebuild the network."""

    task: str
    hidden: tuple[int, ...] = (512, 256)
    # Before the hidden layers: each convolution's channels, kernel length, and length of the sum pooling after it.
    convolutions: tuple[tuple[int, int, int], ...] = ()
    # Residual blocks between the last convolution and its neurons: neurons, a convolution and a norm, whose currents
    # are added to those before. All convolutions then have norms.
    residual_blocks: int = 0
    # In place of these layers a whole network of colour images, of `MODELS`, and its keyword arguments.
    model: str | None = None
    model_options: dict[str, Any] = field(default_factory=dict)
    neuron: str = "lif"
    neuron_options: dict[str, Any] = field(default_factory=dict)  # keyword arguments of the neuron's factory
    recurrent: bool = False
    max_delay: int = 0  # steps; the inputs of each hidden layer have learned delays of up to this many
    delay_per: str = "neuron"  # whether each sending "neuron" has a delay, or each "synapse"
    # Slots of the spike lists, as a share of the layer's width; None means dense.
    capacity: float | None = 0.1
    readout_decay: float = 0.95
    loss: str = "cross_entropy_sum"
    label_smoothing: float = 0.0
    # The initial weights are scaled to it on sample inputs; None does not scale them.
    initial_activity: float | None = 0.05
    num_steps: int = 30
    input_capacity: int | None = None  # slots of the input event lists; None fits the fullest step
    downsample: int = 1  # merges this many neighbouring pixels (per axis) or channels into one input
    # Cameras: new shifts, rotations and scales each epoch; qtdb, spar, speech: as if from other people.
    augment: bool = False
    # Series: standard deviation of new Gaussian noise each epoch, relative to that of a channel.
    noise: float = 0.0
    # Of the training data, if the data set has no validation part; 0 for none, which goes with the last epoch.
    validation_share: float = 0.1
    # Instead of the usual test data: nmnist tests on this tenth of all recordings, speech on this speaker.
    fold: int | None = None
    samples: int | None = None  # use at most this many training and test samples, for a quick look
    training: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        op = "TaskSettings"
        check_choice(op, "task", self.task, tuple(TASKS) or (self.task,))
        check_choice(op, "neuron", self.neuron, tuple(NEURONS))
        check_choice(op, "loss", self.loss, tuple(LOSSES))
        check_choice(op, "delay_per", self.delay_per, ("neuron", "synapse"))
        self._check_model(op)
        if self.fold is not None:
            self._check_fold(op)
        if self.samples is not None:
            check_integer(op, "samples", self.samples, 1)
        self._check_numbers(op)
        if self.convolutions and self.task not in _CAMERAS:
            expected = f"be () for {self.task}, whose inputs are not images"
            fail(f"{op}: `convolutions` must {expected}, got {self.convolutions}. Train dense layers on it.")
        neuron = NEURONS[self.neuron]
        _check_options(op, "neuron_options", self.neuron_options, f"neurons.{self.neuron}", neuron)
        check_effects(op, self, LOSSES[self.loss][2])

    def _check_model(self, op: str) -> None:
        """Tasks of colour images have whole networks, all others layers."""
        if self.task not in _PICTURES:
            if self.model is not None:
                expected = f"be None for {self.task}, whose inputs are not images in colour"
                fail(f"{op}: `model` must {expected}, got {short_repr(self.model)}. Leave it out.")
            if not self.hidden and not self.convolutions:
                fail(f"{op}: `hidden` must hold at least one width, got none. Try (512, 256).")
            return
        check_choice(op, "model", self.model, tuple(MODELS))
        assert self.model is not None
        if self.hidden:
            expected = f"be () for {self.task}, whose networks have their own layers"
            fail(f"{op}: `hidden` must {expected}, got {self.hidden}. Leave it out.")
        if LOSSES[self.loss][2]:
            expected = f"be one of membranes for {self.model}, whose outputs do not spike"
            fail(f"{op}: `loss` must {expected}, got {self.loss!r}. Use 'cross_entropy_sum'.")
        made = MODELS[self.model]
        _check_options(op, "model_options", self.model_options, f"models.{made.__name__}", made)

    def _check_numbers(self, op: str) -> None:
        """Refuse here what the parts of the network would refuse in their own words."""
        for width in self.hidden:
            check_integer(op, "hidden", width, 1)
        for argument, least in (
            ("residual_blocks", 0),
            ("max_delay", 0),
            ("num_steps", 1),
            ("downsample", 1),
        ):
            check_integer(op, argument, getattr(self, argument), least)
        check_switches(op, recurrent=self.recurrent, augment=self.augment)
        if not (_is_number(self.validation_share) and 0 <= self.validation_share < 1):
            expected = "be a share of the training data, at least 0 and below 1"
            actual = short_repr(self.validation_share)
            fail(f"{op}: `validation_share` must {expected}, got {actual}. Try 0.1, or 0 for none.")
        if not (_is_number(self.readout_decay) and 0 <= self.readout_decay < 1):
            actual = short_repr(self.readout_decay)
            fail(f"{op}: `readout_decay` must be at least 0 and below 1, got {actual}. Try 0.95.")
        if self.capacity is not None and not (_is_number(self.capacity) and 0 < self.capacity < 1):
            expected = "be a share of each layer, above 0 and below 1"
            actual = short_repr(self.capacity)
            fail(f"{op}: `capacity` must {expected}, got {actual}. Try 0.1, or dense layers.")

    def _check_fold(self, op: str) -> None:
        if self.task not in FOLDS:
            fail(
                f"{op}: `fold` must be None for {self.task}, got {self.fold}. Folds are for nmnist and speech."
            )
        check_integer(op, "fold", self.fold, 0)
        check_within(op, "fold", np.array([self.fold]), FOLDS[self.task] - 1, "Number the folds from 0")

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON, without `training`."""
        fields = asdict(self)
        del fields["training"]
        return fields | {
            "hidden": list(self.hidden),
            "convolutions": [list(each) for each in self.convolutions],
        }

    @property
    def image(self) -> tuple[int, int, int] | None:
        """(height, width, channels) of the inputs if the first layer is a convolution; None if it is dense."""
        if self.model is not None:
            return _PICTURES[self.task]
        if not self.convolutions:
            return None
        side = math.ceil(_CAMERAS[self.task] / self.downsample)
        return side, side, 2

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> "TaskSettings":
        """The settings that a checkpoint was trained with, from its header (`read_run`)."""
        settings, config = dict(header["settings"]), dict(header["config"])
        if "task" not in settings:
            actual = short_repr(settings)
            fail(
                f"TaskSettings.from_header: `header` must name a task, got {actual}. Train with `snnjax train`."
            )
        for kind, values in ((cls, settings), (TrainConfig, config)):
            known = {each.name for each in fields(kind)} - {"training"}
            absent = [f"no {name}" for name in sorted(known - values.keys())]
            differences = ", ".join(sorted(values.keys() - known) + absent)
            if differences:
                fail(
                    "TaskSettings.from_header: `header` must hold the settings of this version, got "
                    f"{differences}. Use the version of snnjax that trained it."
                )
        settings["hidden"] = tuple(settings["hidden"])
        settings["convolutions"] = tuple(tuple(each) for each in settings["convolutions"])
        # JSON has no tuples, and an option that is a range is a tuple.
        options = settings["neuron_options"].items()
        ranges = {name: tuple(value) if isinstance(value, list) else value for name, value in options}
        settings["neuron_options"] = ranges
        return cls(**settings, training=TrainConfig(**config))


# Filled after the class is defined; `TaskSettings.task` is checked against it.
TASKS: dict[str, TaskSettings] = {}
TASKS |= {
    "digits": TaskSettings(
        task="digits",
        neuron_options={"normalize": False},
        num_steps=20,
        input_capacity=256,
        augment=True,
        initial_activity=0.04,
        training=TrainConfig(epochs=20, batch_size=64, learning_rate=4e-3),
    ),
    # Tuned on the training data only, by the mean of the last fifth of the epochs: five times, two fifths of the data
    # (contiguous runs of each speaker) trained and the rest validated, 810 predictions in all.
    "vowels": TaskSettings(
        task="vowels",
        hidden=(512,),
        neuron="adlif",
        neuron_options={"decay": (0.5, 0.9)},
        capacity=None,
        readout_decay=0.9,
        loss="cross_entropy_max",
        label_smoothing=0.1,
        noise=0.8,
        validation_share=0.15,
        training=TrainConfig(
            epochs=100, batch_size=18, learning_rate=5e-3, weight_decay=0.1, activity_bound=0.2
        ),
    ),
    "qtdb": TaskSettings(
        task="qtdb",
        hidden=(200,),
        neuron="se_adlif",
        recurrent=True,
        capacity=None,
        readout_decay=0.9,
        loss="cross_entropy_steps",
        initial_activity=0.1,
        augment=True,
        training=TrainConfig(epochs=40, batch_size=32, learning_rate=1e-2, activity_bound=0.2),
    ),
    "spar": TaskSettings(
        task="spar",
        hidden=(128, 128),
        neuron="se_adlif",
        recurrent=True,
        capacity=None,
        readout_decay=0.97,
        loss="cross_entropy_max",
        label_smoothing=0.1,
        initial_activity=0.1,
        augment=True,
        noise=0.5,
        validation_share=0.0,
        training=TrainConfig(
            epochs=30, batch_size=64, learning_rate=5e-3, activity_bound=0.2, selection="average"
        ),
    ),
    "fashion": TaskSettings(
        task="fashion", input_capacity=512, training=TrainConfig(epochs=10, learning_rate=3e-3)
    ),
    # Tuned with convolutions, on 199 of the first 1,000 training recordings without training on these.
    "nmnist": TaskSettings(
        task="nmnist",
        neuron_options={"normalize": False},
        label_smoothing=0.1,
        num_steps=15,
        input_capacity=512,
        initial_activity=0.04,
        augment=True,
        validation_share=0.0,
        training=TrainConfig(epochs=30, batch_size=32, learning_rate=4e-3, selection="last"),
    ),
    # Tuned on words of index 5 to 9, without training on these: channels, neurons, recurrence, augmentation.
    "speech": TaskSettings(
        task="speech",
        hidden=(128, 128),
        neuron="se_adlif",
        neuron_options={"decay": (0.5, 0.95), "adaptation_decay": (0.8, 0.98)},
        recurrent=True,
        capacity=None,
        label_smoothing=0.1,
        initial_activity=0.1,
        num_steps=65,
        augment=True,
        validation_share=0.0,
        training=TrainConfig(
            epochs=30,
            batch_size=32,
            learning_rate=1e-2,
            weight_decay=0.03,
            activity_bound=0.5,
            selection="last",
        ),
    ),
    # Chosen by 1,000 validation images after 240 steps: a wide surrogate, without which so few teach nothing, then
    # the learning rate and the second threshold.
    "cifar10": TaskSettings(
        task="cifar10",
        hidden=(),
        model="vgg",
        model_options={"stages": [[64, 64], [128, 128], [256]], "strides": 2},
        neuron_options={"decay": 0.5, "reset": "zero", "surrogate": "triangle"},
        capacity=0.2,
        label_smoothing=0.1,
        initial_activity=None,
        num_steps=4,
        augment=True,
        training=TrainConfig(
            epochs=40,
            batch_size=64,
            learning_rate=4e-3,
            weight_decay=0.05,
            activity_strength=0.0,
            second_threshold=0.3,
        ),
    ),
    "shd": TaskSettings(
        task="shd",
        hidden=(256, 256),
        recurrent=True,
        num_steps=100,
        downsample=5,
        training=TrainConfig(epochs=50),
    ),
    "ssc": TaskSettings(
        task="ssc",
        hidden=(256, 256),
        recurrent=True,
        num_steps=100,
        downsample=5,
        training=TrainConfig(epochs=30),
    ),
    "dvs-gesture": TaskSettings(
        task="dvs-gesture",
        num_steps=60,
        downsample=4,
        input_capacity=512,
        training=TrainConfig(epochs=50, batch_size=32),
    ),
}


# Image layers have many neurons, most of them silent: half the activity of dense layers and smaller batches suffice.
_SPARSE_IMAGES = {"batch_size": 32, "activity_bound": 0.02, "activity_floor": 0.01}


def _convolutional(
    task: str, *, hidden: tuple[int, ...] = (), kernels: Unchecked, **training: Any
) -> TaskSettings:
    settings = TASKS[task]
    return replace(
        settings,
        hidden=hidden,
        convolutions=kernels,
        initial_activity=_SPARSE_IMAGES["activity_bound"],
        training=replace(settings.training, **(_SPARSE_IMAGES | training)),
    )


# Training settings of convolutional networks: tuned on validation data of the digits, which are in the package, and
# used for the other tasks as well.
_TWO_OF_FIVE = ((12, 5, 2), (32, 5, 2))
_CONVOLUTIONAL = {
    "digits": replace(_convolutional("digits", kernels=_TWO_OF_FIVE, epochs=4), num_steps=10),
    "fashion": _convolutional("fashion", kernels=_TWO_OF_FIVE),
    # The surrogate, weight decay and second threshold of images in colour: better on the 199 recordings as well.
    "nmnist": replace(
        _convolutional("nmnist", kernels=_TWO_OF_FIVE, weight_decay=0.05, second_threshold=0.3),
        neuron_options={"normalize": False, "surrogate": "triangle"},
    ),
    "dvs-gesture": _convolutional("dvs-gesture", hidden=(128,), kernels=((16, 5, 2), (32, 3, 2))),
}


def _residual(task: str, **training: Any) -> TaskSettings:
    bounds = {"activity_bound": 0.05, "activity_floor": 0.02}
    settings = _convolutional(task, kernels=((16, 5, 2), (28, 5, 2)), **bounds, **training)
    return replace(settings, num_steps=10, residual_blocks=1, initial_activity=bounds["activity_bound"])


# Chosen on validation data of the digits. Blocks that add spikes, two convolutions each, learn slower than the network
# without them; those that add currents learn faster.
_RESIDUAL = {"digits": _residual("digits", epochs=10), "nmnist": _residual("nmnist")}
_PICTURED = TASKS["cifar10"]
_SEW = {"cifar10": replace(_PICTURED, model="sew", model_options={"depth": 18})}
# Up to half of the neurons of attention are active: lists of a fifth would lose most of their spikes.
_SPIKFORMER = {
    "cifar10": replace(
        _PICTURED,
        model="spikformer",
        model_options={"depth": 2, "width": 256},
        capacity=None,
        training=replace(_PICTURED.training, second_threshold=None),
    )
}
# Neurons without adaptation and recurrent weights: the decay was chosen without delays, and a learning rate for each,
# on words of index 5 to 9, without training on these.
_SMALL = {
    "speech": replace(
        TASKS["speech"],
        hidden=(96, 96),
        neuron="lif",
        neuron_options={"decay": 0.8},
        recurrent=False,
        downsample=5,
        training=replace(TASKS["speech"].training, learning_rate=3e-2),
    )
}
_DELAYED = {
    "speech": replace(
        _SMALL["speech"],
        max_delay=20,
        delay_per="synapse",
        training=replace(TASKS["speech"].training, learning_rate=1.5e-2),
    ),
}


_BY_MODEL = {
    "dense": {name: settings for name, settings in TASKS.items() if settings.model is None},
    "conv": _CONVOLUTIONAL,
    "residual": _RESIDUAL,
    "small": _SMALL,
    "delayed": _DELAYED,
    "vgg": {"cifar10": _PICTURED},
    "sew": _SEW,
    "spikformer": _SPIKFORMER,
}


def task_settings(task: str, model: str | None = None) -> TaskSettings:
    """The settings of a task with the network given by `model`.

    It is "dense", "conv" (convolutions), "residual" (convolutions with norms, and residual blocks), "small" (few
    parameters), "delayed", or a whole network of `snnjax.models`: "vgg", "sew" (`sew_resnet`) or "spikformer". None is
    the first one that the task has.

    Raises:
        ValueError: if the task does not exist or has no such model.

    Example:
        >>> from snnjax.train import task_settings
        >>> task_settings("digits", "conv").image
        (34, 34, 2)
    """
    op = "task_settings"
    check_choice(op, "task", task, tuple(TASKS))
    if model is None:
        return TASKS[task]
    check_choice(op, "model", model, tuple(name for name, tasks in _BY_MODEL.items() if task in tasks))
    return _BY_MODEL[model][task]


def loss_of(settings: TaskSettings) -> tuple[Callable[..., Any], str]:
    """Look up the loss of a task, and the decoder of its predictions.

    Example:
        >>> from snnjax.train import TASKS, loss_of
        >>> loss_of(TASKS["digits"])[1]
        'sum'
    """
    loss, decoder, _ = LOSSES[settings.loss]
    return partial(loss, label_smoothing=settings.label_smoothing), decoder


def build_network(settings: TaskSettings, num_inputs: int, num_classes: int) -> Network:
    """Build the network of a task.

    Example:
        >>> from snnjax.train import TASKS, build_network
        >>> build_network(TASKS["digits"], 2312, 10).out_shape
        (10,)
    """
    neuron = NEURONS[settings.neuron](**settings.neuron_options)
    if settings.model is not None:
        given = settings.model_options | {"neuron": neuron, "capacity": settings.capacity}
        return MODELS[settings.model](settings.image, num_classes, **given)
    options = {"recurrent": settings.recurrent, "capacity": settings.capacity}
    layers: list[Any] = []
    for place, (channels, kernel, window) in enumerate(settings.convolutions):
        is_last = place + 1 == len(settings.convolutions)
        layers += _convolved(settings, neuron, channels, kernel, is_last)
        layers += [sum_pool(window)] if window > 1 else []
    for width in settings.hidden:
        layers.append(layer(_connection(settings, width), neuron, **options))
    is_spiking = LOSSES[settings.loss][2]
    decay = settings.readout_decay
    readout = spiking_readout(num_classes) if is_spiking else leaky_readout(num_classes, decay=decay)
    return network(num_inputs if settings.image is None else settings.image, layers, readout)


def _connection(settings: TaskSettings, width: int) -> Any:
    """Dense weights, with the delays of the settings."""
    if not settings.max_delay:
        return dense(width)
    if settings.delay_per == "synapse":
        return synaptic(dense(width), settings.max_delay)
    return [axonal(settings.max_delay), dense(width)]


def _convolved(settings: TaskSettings, neuron: Any, channels: int, kernel: int, is_last: bool) -> list[Any]:
    """A layer of an image, the last one with residual blocks; they have no recurrent weights."""
    if not settings.residual_blocks:
        return [layer(conv2d(channels, kernel), neuron, capacity=settings.capacity)]

    def normalised(kernel: int) -> list[Any]:
        return [conv2d(channels, kernel, bias=False), batch_norm()]

    fires = spiking(neuron, capacity=settings.capacity)
    blocks = [residual([fires, *normalised(3)])] * (settings.residual_blocks if is_last else 0)
    return [*normalised(kernel), *blocks, fires]


def init_params(settings: TaskSettings, net: Network, sample: Any) -> Params:
    """Draw the initial parameters of a task from its seed.

    Example:
        >>> from snnjax.train import TASKS, build_network, init_params
        >>> net = build_network(TASKS["vowels"], 12, 9)
        >>> params = init_params(TASKS["vowels"], net, None)
        >>> params["layer_0/connection"].weights.shape
        (12, 512)
    """
    key = task_key(settings, 0)
    if settings.initial_activity is None or sample is None:
        return net.init(key)
    options = {"lengths": sample.lengths, "target_activity": settings.initial_activity}
    return net.init(key, sample.inputs, **options)


def task_key(settings: TaskSettings, use: int) -> PRNGKeyArray:
    """The key for the initial weights (0), the validation split (1) or the augmentation (2)."""
    return jax.random.split(jax.random.key(settings.training.seed), 3)[use]
