"""The settings of a training run, and what follows from them: the optimiser and the schedules."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from snnjax._arguments import explained
from snnjax._check import check_choice, check_integer, fail, short_repr
from snnjax._types import Optimiser, Unchecked
from snnjax.graph.check import are_weights
from snnjax.train.online import RULES

_DEFAULT = "Leave it out for its default"


@explained
@dataclass(frozen=True)
class TrainConfig:
    """How a network is trained. Every field is stored in the checkpoint and must be the same to resume.

    Errors: a number is out of range.

    Example:
        >>> from snnjax.train import TrainConfig
        >>> TrainConfig(epochs=3).activity_bound
        0.04
    """

    epochs: int = 10
    batch_size: int = 128
    seed: int = 0
    # Which parameters are the result: "best", those of the epoch of the best validation accuracy, or without validation
    # data "last", those of the last epoch, or "average", the mean of those after each of the last fifth of the epochs.
    selection: str = "best"
    # Where gradients come from: back-propagation through time, or an online rule of `snnjax.online` in each step.
    rule: str = "bptt"
    learning_rate: float = 2e-3  # peak: a linear warm-up leads up to it, and a cosine from it down to 0
    warmup_epochs: float = 0.5
    weight_decay: float = 0.0  # of weights only: biases, delays, norms and neuron constants do not decay
    max_gradient_norm: float = 1.0  # larger gradients are scaled down to this norm
    activity_bound: float = 0.04  # spikes per neuron and step; sparse lists need sparse activity
    # A layer below it is penalised too: with few spikes, little gradient gets through.
    activity_floor: float = 0.03
    # Weight of the penalties outside these two bounds; 0 turns them off. None is 1 for back-propagation, and 0 for
    # online rules, whose accuracy they can cost.
    activity_strength: float | None = None
    second_threshold: float | None = None  # in the first epoch; None keeps those of the layers
    final_second_threshold: float | None = None  # in the last epoch, linear in between; None keeps the first

    def __post_init__(self) -> None:
        op = "TrainConfig"
        check_choice(op, "rule", self.rule, ("bptt", *RULES))
        check_choice(op, "selection", self.selection, ("best", "last", "average"))
        first, last = self.second_threshold, self.final_second_threshold
        if first is None and last is not None:
            hint = "Set both, for instance second_threshold=0.8"
            fail(f"{op}: `second_threshold` must be given together with a final one, got None. {hint}.")
        if self.rule != "bptt" and first is not None:
            hint = "Leave it None: each layer has its own"
            fail(f"{op}: `second_threshold` must be None with rule {self.rule!r}, got {first}. {hint}.")
        for name in ("epochs", "batch_size"):
            check_integer(op, name, getattr(self, name), 1)
        check_integer(op, "seed", self.seed, 0, bits=63)  # that of a key is an int64
        for name in ("learning_rate", "max_gradient_norm", "activity_bound", "activity_floor"):
            value = getattr(self, name)
            if not _is_number(value) or not value > 0:  # an infinite one turns a bound off
                fail(f"{op}: `{name}` must be a positive number, got {short_repr(value)}. {_DEFAULT}.")
        for name in ("learning_rate", "activity_floor"):  # a floor that no layer reaches, or steps to nowhere
            value = getattr(self, name)
            if value == math.inf:
                fail(f"{op}: `{name}` must be finite, got inf. {_DEFAULT}.")
        for name in ("warmup_epochs", "weight_decay", "activity_strength"):
            value = self.penalty_weight if name == "activity_strength" else getattr(self, name)
            if not _is_number(value) or not 0 <= value < math.inf:
                actual = short_repr(value)
                fail(f"{op}: `{name}` must be a finite number of at least 0, got {actual}. {_DEFAULT}.")
        for name in ("second_threshold", "final_second_threshold"):
            value = getattr(self, name)
            if value is not None and not _is_number(value):
                fail(f"{op}: `{name}` must be a number, got {short_repr(value)}. {_DEFAULT}.")

    @property
    def averaged_epochs(self) -> int:
        """Of how many epochs at the end the parameters are averaged, if they are."""
        return math.ceil(self.epochs / 5)

    @property
    def penalty_weight(self) -> float:
        """The weight of the penalties on activity, `activity_strength` or its default."""
        default = 1.0 if self.rule == "bptt" else 0.0
        return default if self.activity_strength is None else self.activity_strength


def _is_number(value: Unchecked) -> bool:
    """Whether `value` is a real number of Python or NumPy; text such as "1e-3", as YAML reads it, is not."""
    is_real = isinstance(value, float | int | np.floating | np.integer) and not isinstance(value, bool)
    return is_real and not math.isnan(value)


def learning_rate_schedule(config: TrainConfig, steps_per_epoch: int) -> Callable[[Any], Any]:
    """The learning rate of each step: a linear warm-up, then half a cosine that is 0 after the last one.

    Example:
        >>> from snnjax.train.config import TrainConfig, learning_rate_schedule
        >>> schedule = learning_rate_schedule(TrainConfig(epochs=2, learning_rate=1.0, warmup_epochs=1.0), 10)
        >>> [round(float(schedule(step)), 2) for step in (0, 5, 10, 20)]
        [0.0, 0.5, 1.0, 0.0]
    """
    import optax

    steps = config.epochs * steps_per_epoch
    warmup = min(round(config.warmup_epochs * steps_per_epoch), steps - 1)
    return optax.warmup_cosine_decay_schedule(0.0, config.learning_rate, warmup, steps)


def make_optimiser(config: TrainConfig, steps_per_epoch: int) -> Optimiser:
    """AdamW after gradient-norm clipping: an optax `GradientTransformation`. Only weights decay.

    Example:
        >>> import jax.numpy as jnp
        >>> from snnjax.train import TrainConfig, make_optimiser
        >>> len(make_optimiser(TrainConfig(), 10).init(jnp.zeros(3)))
        2

    Reference: Loshchilov and Hutter 2019, arXiv:1711.05101; Pascanu et al. 2013, arXiv:1211.5063.
    """
    import optax

    schedule = learning_rate_schedule(config, steps_per_epoch)
    return optax.chain(
        optax.clip_by_global_norm(config.max_gradient_norm),
        # 0 is no natural value of the constants of neurons.
        optax.adamw(schedule, weight_decay=config.weight_decay, mask=are_weights),
    )


def second_threshold_at(config: TrainConfig, epoch: int) -> float | None:
    """The second threshold of an epoch, counted from 0; None keeps those of the layers.

    Example:
        >>> from snnjax.train.config import TrainConfig, second_threshold_at
        >>> config = TrainConfig(epochs=3, second_threshold=0.5, final_second_threshold=0.9)
        >>> [second_threshold_at(config, epoch) for epoch in range(3)]
        [0.5, 0.7, 0.9]
    """
    first, last = config.second_threshold, config.final_second_threshold
    if first is None or last is None or config.epochs == 1:
        return first
    return first + (last - first) * epoch / (config.epochs - 1)
