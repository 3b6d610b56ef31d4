"""Settings of a task that would have no effect, which are refused: a run must not claim what it did not do."""

from collections.abc import Iterator
from dataclasses import fields

from snnjax._check import fail, short_repr
from snnjax._types import Unchecked

# The settings of which each task's data are made, by task.
_EVENTS = frozenset({"num_steps", "input_capacity"})
_OF_DATA = {
    "digits": _EVENTS | {"augment"},
    "vowels": frozenset({"noise"}),
    "qtdb": frozenset({"augment"}),
    "spar": frozenset({"augment", "noise"}),
    "fashion": _EVENTS | {"augment"},
    "nmnist": _EVENTS | {"augment"},
    "speech": _EVENTS | {"augment", "downsample"},
    "cifar10": frozenset({"augment", "num_steps"}),
    "shd": _EVENTS | {"downsample"},
    "ssc": _EVENTS | {"downsample"},
    "dvs-gesture": _EVENTS | {"downsample"},
}
_OF_LAYERS = ("residual_blocks", "recurrent", "max_delay", "delay_per", "readout_decay")


def check_effects(op: str, settings: Unchecked, readout_spikes: bool) -> None:
    """Refuse settings other than the default that nothing reads, and shares of people that cannot be had."""
    usual = {field.name: field.default for field in fields(settings)}
    for name, why in _without_effect(settings, readout_spikes):
        value = getattr(settings, name)
        if value != usual[name]:
            expected = f"be {usual[name]!r} {why}, where it has no effect"
            fail(f"{op}: `{name}` must {expected}, got {short_repr(value)}. Leave it out.")
    count, of = _people(settings)
    if count and settings.validation_share not in (0, count / of):
        expected = f"be 0 or {count / of:g}, {count} of {of} people, for {settings.task}"
        got = short_repr(settings.validation_share)
        fail(f"{op}: `validation_share` must {expected}, got {got}. Pass one of these.")


def _without_effect(settings: Unchecked, readout_spikes: bool) -> Iterator[tuple[str, str]]:
    """The settings that nothing reads, and where that is so."""
    task = settings.task
    for name in sorted(frozenset().union(*_OF_DATA.values()) - _OF_DATA[task]):
        yield name, f"for {task}"
    if task == "ssc":
        yield "validation_share", "for ssc, which has its own validation part"
    if not settings.augment and task == "spar":
        yield "noise", "without augment"
    if settings.model is not None:
        yield from ((name, f"for {settings.model}") for name in _OF_LAYERS)
    elif not settings.hidden:
        yield from ((name, "without hidden layers") for name in ("recurrent", "max_delay"))
    if not settings.convolutions:
        yield "residual_blocks", "without convolutions"
    if not settings.max_delay:
        yield "delay_per", "without delays"
    if readout_spikes:
        yield "readout_decay", "for a readout that spikes"


def _people(settings: Unchecked) -> tuple[int, int]:
    """How many people validate, of those who are not tested on; (0, 0) where samples are held out."""
    if settings.task == "spar":
        return 2, 8
    return (1, 5) if settings.task == "speech" and settings.fold is not None else (0, 0)
