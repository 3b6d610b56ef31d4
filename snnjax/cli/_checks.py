"""Checks of options that the library would take, but that cannot be meant, in the words of the command line."""

import argparse
import warnings
from typing import Any

from snnjax._check import fail

_THRESHOLD = 1.0  # of the neurons of every task


def check_widths(widths: list[int] | None) -> None:
    """Every hidden layer has a neuron."""
    if widths is not None and min(widths) < 1:
        given = " ".join(map(str, widths))
        fail(f"train: `hidden` must hold widths of at least 1, got {given}. Try --hidden 512 256.")


def check_second_threshold(settings: Any) -> None:
    """A second threshold belongs to layers with lists, and lies below the threshold."""
    given = settings.training.second_threshold
    if given is None:
        return
    if settings.capacity is None:
        actual = f"{given:g} for the dense spikes of {settings.task}"
        fail(
            f"train: `second_threshold` must come with spike lists, got {actual}. Add --capacity 0.1, or omit it."
        )
    if given > _THRESHOLD:
        fail(
            f"train: `second_threshold` must be at most the threshold, {_THRESHOLD:g}, got {given:g}. Try 0.9."
        )


def check_meant(options: argparse.Namespace, settings: Any) -> None:
    """An option without effect: a bound without a penalty."""
    bound = options.activity_bound
    if bound is not None and settings.training.penalty_weight == 0:
        actual = f"{bound:g} with a strength of 0"
        fail(
            f"train: `activity_bound` must come with a penalty, got {actual}. Add --activity-strength 1, or omit it."
        )


def warn_of_short_lists(settings: Any) -> None:
    """Warn about lists that cannot hold the spikes of a layer whose activity is at its bound."""
    bound = settings.training.activity_bound
    if settings.capacity is not None and settings.capacity < bound:
        warnings.warn(
            f"spike lists hold {100 * settings.capacity:g} % of a layer, but up to {100 * bound:g} % of its neurons "
            f"may spike in a step: the spikes that do not fit are lost. Try --capacity {2.5 * bound:.2g}.",
            RuntimeWarning,
            stacklevel=2,
        )
