"""The same dense network trained on real recordings in other libraries: accuracy and time beside ours.

``python -m tests.benchmarks.trained.peers nmnist --python path/to/other/bin/python``, where ``pip install spyx snntorch
torch`` put the libraries and ``nmnist`` holds the recordings, as for ``snnjax train --task nmnist``. All train
2312-512-256-10 for 30 epochs in batches of 32, without augmentation, and are tested after the last one; fold n tests on
a tenth of the recordings, with seed n. Neurons, loss and optimiser of the others are those of their tutorials, ours
those of the task. Only the learning rate was chosen, for each by `--validate`.
"""

import argparse
import functools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks import process
from tests.benchmarks.peers import installed
from tests.benchmarks.timing import say

WIDTHS, CLASSES, EPOCHS, BATCH = (512, 256), 10, 30, 32
OURS = "snnjax"
HEAD = """
## The same network in other libraries

N-MNIST with 2312 - 512 - 256 - 10 neurons in dense layers, after the last of 30 epochs in batches of 32, without
augmentation: mean and standard deviation over {folds} folds, each of which tests on a tenth of the 1,100 recordings.
Each library has the neurons, loss and optimiser of its tutorial, and snnjax those of its task. Only the learning rate
of each was chosen, with seeds 0 and 1 on 199 recordings of the usual training part, held out from training for that
purpose; folds test on these as well. The time is the least over the folds, for all threads and including compilation,
on {cpus} virtual CPUs that other programs used as well ({kernels}). snnTorch runs on one thread, with which it takes
the least CPU time there. Made by `python -m tests.benchmarks.trained.peers`.

| library | test accuracy | CPU time of training | times ours |
| --- | --- | --- | --- |
"""


class Recordings(NamedTuple):
    """Events to train on and to be judged on, bool [samples, time, inputs], with their labels, and the seed."""

    known: np.ndarray
    known_labels: np.ndarray
    unknown: np.ndarray
    unknown_labels: np.ndarray
    seed: int

    def epochs(self) -> Iterator[Iterator[tuple[np.ndarray, np.ndarray]]]:
        """The batches of each epoch: float32 [time, batch, inputs], labels."""
        random, count = np.random.default_rng(self.seed), len(self.known)
        for _ in range(EPOCHS):
            order = random.permutation(count)
            parts = (order[first : first + BATCH] for first in range(0, count - BATCH + 1, BATCH))
            yield ((frames(self.known[part]), self.known_labels[part]) for part in parts)


def frames(events: np.ndarray) -> np.ndarray:
    """Events as a network reads them, float32 [time, batch, inputs]."""
    return events.swapaxes(0, 1).astype(np.float32)


class Result(NamedTuple):
    """What training led to, and what it took; compiling is part of it, reading and testing are not."""

    accuracy: float
    cpu_seconds: float  # of all threads, which other programs change least


def measured(train: Callable[[], Callable[[], float]]) -> Result:
    """Train, which returns what measures the accuracy."""
    start = time.process_time()
    test = train()
    seconds = time.process_time() - start
    return Result(test(), seconds)


def spyx(recordings: Recordings, rate: float) -> Result:
    """As in its first tutorial: triangular surrogate, learned decays, integral cross-entropy, `optimize.fit`, Lion."""
    import optax
    from flax import nnx
    from spyx import axn, fn, nn, optimize

    judge, score = fn.integral_crossentropy(time_axis=0), fn.integral_accuracy(time_axis=0)

    def train() -> Callable[[], float]:
        rngs, modules, before = nnx.Rngs(recordings.seed), [], recordings.known.shape[2]
        for width in WIDTHS:
            modules.append(nnx.Linear(before, width, use_bias=False, rngs=rngs))
            modules.append(nn.LIF((width,), activation=axn.triangular(), rngs=rngs))
            before = width
        modules += [nnx.Linear(before, CLASSES, use_bias=False, rngs=rngs), nn.LI((CLASSES,), rngs=rngs)]
        model, epochs = nn.Sequential(*modules), recordings.epochs()

        def loss(model, inputs, labels):
            return judge(nn.run(model, inputs)[0], labels)

        optimize.fit(model, optax.lion(rate), loss, lambda: next(epochs), epochs=EPOCHS)
        traces = functools.partial(nn.run, model, frames(recordings.unknown))
        return lambda: float(score(traces()[0], recordings.unknown_labels)[0])

    return measured(train)


def snntorch(recordings: Recordings, rate: float) -> Result:
    """As in its tutorial on these recordings: decay 0.5, arctangent surrogate, mean squared error of counts, Adam."""
    import snntorch as snn
    import torch
    from snntorch import functional, surrogate
    from torch import nn

    judge = functional.mse_count_loss(correct_rate=0.8, incorrect_rate=0.2)

    def train() -> Callable[[], float]:
        # Several wait for each other in loops: beside other programs they take five times as long.
        torch.set_num_threads(1)
        torch.manual_seed(recordings.seed)
        widths = (recordings.known.shape[2], *WIDTHS, CLASSES)
        linears = [nn.Linear(*pair) for pair in pairwise(widths)]
        neurons = [snn.Leaky(0.5, spike_grad=surrogate.atan()) for _ in linears]

        def forward(inputs: np.ndarray):
            states, spikes = [each.init_leaky() for each in neurons], []
            for x in torch.from_numpy(inputs):
                for place, (linear, neuron) in enumerate(zip(linears, neurons, strict=True)):
                    x, states[place] = neuron(linear(x), states[place])
                spikes.append(x)
            return torch.stack(spikes)

        optimiser = torch.optim.Adam(nn.ModuleList(linears).parameters(), rate)
        for epoch in recordings.epochs():
            for inputs, labels in epoch:
                optimiser.zero_grad()
                judge(forward(inputs), torch.from_numpy(labels)).backward()
                optimiser.step()
        labels = torch.from_numpy(recordings.unknown_labels)
        return lambda: float(functional.accuracy_rate(forward(frames(recordings.unknown)), labels))

    return measured(train)


def task(path: Path, fold: int | None, seed: int) -> tuple[Any, Any, Any]:
    """Settings of snnjax, the training data and those to be judged on: of no fold, 199 that are not trained on."""
    from dataclasses import replace

    from snnjax import train

    settings = train.TASKS["nmnist"]
    training = replace(settings.training, seed=seed, epochs=EPOCHS, batch_size=BATCH)
    share = 0.2 if fold is None else 0.0
    changed = {"augment": False, "fold": fold, "validation_share": share, "training": training}
    settings = replace(settings, hidden=WIDTHS, **changed)
    parts = train.load_task(settings, path)
    return settings, parts, parts.test if parts.validation is None else parts.validation


def read(path: Path, fold: int | None, seed: int) -> Recordings:
    """What the other libraries learn from."""
    _, parts, judged = task(path, fold, seed)

    def dense(events) -> tuple[np.ndarray, np.ndarray]:
        inputs = events.take(np.arange(len(events))).inputs
        return np.asarray(inputs.to_dense()).swapaxes(0, 1) > 0, np.asarray(events.labels, np.int64)

    return Recordings(*dense(parts.train(0)), *dense(judged), seed)


def ours(path: Path, fold: int | None, seed: int, rate: float) -> Result:
    """The settings of the task."""
    from dataclasses import replace

    from snnjax import train

    settings, parts, judged = task(path, fold, seed)
    net = train.build_network(settings, parts.num_inputs, parts.num_classes)
    loss, decoder = train.loss_of(settings)
    options = {"loss": loss, "decoder": decoder}
    config = replace(settings.training, learning_rate=rate)

    def fitted() -> Callable[[], float]:
        params = train.init_params(settings, net, parts.sample)
        params = train.fit(net, params, parts.train, None, config=config, **options).params
        return lambda: train.evaluate(net, params, judged, **options)["accuracy"]

    return measured(fitted)


# Package, function, and learning rate: for Spyx that of its tutorial, for snnTorch a tenth.
OTHERS = {"Spyx": ("spyx", spyx, 3e-4), "snnTorch": ("snntorch", snntorch, 2e-3)}
OUR_RATE = 2e-3


def runs(options: argparse.Namespace) -> Iterator[tuple[str, Result]]:
    """The libraries in turn on each fold, or with `--validate` on recordings that seeds hold out."""
    for seed in range(options.folds):
        part = options.path, None if options.validate else seed, seed
        yield OURS, process.ask(functools.partial(ours, *part, OUR_RATE * options.factor))
        recordings = read(*part)
        for name, (package, train, rate) in OTHERS.items():
            found = installed(package, tuple(options.python))
            if found is None:
                say(f"skipped {name}: {package} is not installed in {' or '.join(options.python)}")
                continue
            python, version = found
            with process.opened(python) as other:
                other.send(process.Held.ask, functools.partial(train, recordings, rate * options.factor))
                yield f"{name} {version}", other.answer()


def section(record: dict[str, Any]) -> str:
    """The results in Markdown."""
    results = {name: [Result(*each) for each in found] for name, found in record["results"].items()}
    least = {name: min(each.cpu_seconds for each in found) for name, found in results.items()}
    rows = []
    for name, found in results.items():
        percent, seconds = [100 * each.accuracy for each in found], least[name]
        spread = f" ± {statistics.stdev(percent):.2f}" if len(percent) > 1 else ""
        accuracy = f"{statistics.mean(percent):.2f}{spread} %"
        rows.append(f"| {name} | {accuracy} | {seconds:.1f} s | {seconds / least[OURS]:.1f} |\n")
    counted = {"folds": len(results[OURS]), "cpus": record["cpus"], "kernels": record["kernels"]}
    return HEAD.format(**counted) + "".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="folder or file of the recordings")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters of the others")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument(
        "--validate", action="store_true", help="judge on training recordings that are held out"
    )
    parser.add_argument("--factor", type=float, default=1.0, help="of all learning rates")
    parser.add_argument("--out", type=Path, help="file for the results, such as docs/runs/trained_peers.json")
    options = parser.parse_args(arguments)
    results: dict[str, list[Result]] = {}
    for name, result in runs(options):
        say(f"{name}: {json.dumps(result._asdict())}")
        results.setdefault(name, []).append(result)
    from snnjax import _dispatch

    record = {
        "cpus": len(os.sched_getaffinity(0)),
        "kernels": _dispatch.instruction_set(),
        "results": results,
    }
    say("\n" + section(record))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    from tests.benchmarks.trained import peers  # other processes know its functions by this name

    sys.exit(peers.main())
