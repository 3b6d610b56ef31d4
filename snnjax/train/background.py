"""What runs alongside the training loop: data preparation, signal handling, and the progress bar."""

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import jax


class Prepared:
    """The data of each epoch, prepared in a thread while the previous epoch trains (XLA does not hold the GIL).

    `source` is a function of the epoch, or the same data for all.
    """

    def __init__(self, source: Any, first: int, epochs: int) -> None:
        self._source, self._epochs = source if callable(source) else lambda _: source, epochs
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="snnjax-data")
        self._pending = {first: self._thread.submit(self._source, first)} if first < epochs else {}

    def get(self, epoch: int) -> Any:
        """The data of `epoch`; preparation of the next epoch's data starts."""
        for old in [each for each in self._pending if each < epoch]:
            del self._pending[old]
        dataset = self._pending[epoch].result()
        if epoch + 1 < self._epochs and epoch + 1 not in self._pending:
            self._pending[epoch + 1] = self._thread.submit(self._source, epoch + 1)
        return dataset

    def __enter__(self) -> "Prepared":
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second signal has its original effect.

    With several processes (`jax.distributed`), none may stop at a batch that the others continue: signals are left
    alone.
    """
    stop, previous = threading.Event(), {}

    def handle(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, previous[number])

    alone = jax.process_count() == 1
    if alone and threading.current_thread() is threading.main_thread():  # no other thread may set handlers
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def draw_bar(wanted: bool, total: int, done: int) -> Iterator[Callable[[], Any]]:
    """A function to call after each step, which draws a progress bar if it is wanted and tqdm is installed.

    Until the first call the bar shows that the step is being compiled, which can take longer than many steps.
    """
    bar = _tqdm(total, done) if wanted else None

    def advance() -> None:
        if bar is not None:
            bar.set_description_str("training: ", refresh=False)
            bar.update()

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()


@contextmanager
def draw_words(wanted: bool) -> Iterator[Callable[[int, int], Any]]:
    """A function of the words done and the total, which draws a progress bar while spoken words are heard."""
    bar = _tqdm(0, 0, "word") if wanted else None

    def advance(done: int, total: int) -> None:
        if bar is not None:
            bar.set_description_str("hearing the words: ", refresh=False)
            bar.total = total
            bar.update(done - bar.n)

    try:
        yield advance
    finally:
        if bar is not None:
            bar.close()


def _tqdm(total: int, done: int, unit: str = "step") -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    options = {"unit": unit, "dynamic_ncols": True, "leave": False}
    return tqdm(desc="compiling", total=total, initial=done, **options)
