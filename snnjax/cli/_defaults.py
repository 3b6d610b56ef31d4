"""The defaults of ``snnjax train``, a table by task that its help ends with."""

import argparse
from collections.abc import Callable
from typing import Any

_COLUMNS = ("task", "hidden", "capacity", "epochs", "batch", "rate", "bound")


class Parser(argparse.ArgumentParser):
    """A parser whose help may end with text that is only made when it is shown."""

    late_epilog: Callable[[], str] | None = None

    def format_help(self) -> str:
        """The help, with the late text."""
        if self.late_epilog is not None:
            self.epilog = self.late_epilog()
        return super().format_help()


def table() -> str:
    """The defaults of each task, with the dense model."""
    from snnjax.train import TASKS

    rows = [_COLUMNS, *(_row(name, settings) for name, settings in TASKS.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    title = "defaults of --hidden, --capacity, --epochs, --batch-size, --learning-rate and --activity-bound:"
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _row(name: str, settings: Any) -> tuple[str, ...]:
    training, hidden = settings.training, settings.model or " ".join(map(str, settings.hidden))
    capacity = "--dense" if settings.capacity is None else f"{settings.capacity:g}"
    numbers = (training.learning_rate, training.activity_bound)
    return (
        name,
        hidden,
        capacity,
        str(training.epochs),
        str(training.batch_size),
        *(f"{n:g}" for n in numbers),
    )
