"""Our training step beside the hardware log of graphcore_snn: ``python -m tests.ipu.calibration``.

The step is what a user writes: a `snnjax.network`, a loss, optax, and `jax.jit` for the device ``ipu``. Every list of
every step is full: of each hidden layer as many neurons as its lists have slots get weights that make them fire at
every step, evenly spread, and the others weights that never do. It is another program than the one that was timed,
which computes step by step: the ratio is no error of the model. Nothing of this is measured on hardware.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import snnjax
from snnjax import losses, neurons
from snnjax.ipu import Profile, read_profile

LOG = Path(__file__).parents[2] / "xla_ext/ipu_model/calibration/hardware_log.csv"
INPUTS, EVENTS, CLASSES, BATCH, STEPS = 2312, 32, 10, 48, 100
CHIP = {"ipu_version": "bow", "ipu_tiles": 1472}
# graphcore_snn's neurons: https://github.com/jrfinkbeiner/graphcore_snn at afd6c70
DECAY, SECOND_THRESHOLD, LEARNING_RATE = 0.95, 0.9, 1e-3
# A neuron gains (1 - DECAY) of its current: four spikes of this weight exceed the threshold of 1.
FIRING = 10.0
CLOCKS = {"Bow": 1.85e9, "Mk2": 1.33e9}


class Cell(NamedTuple):
    """A row of the log."""

    activity: float  # the largest, of a hidden layer
    capacity: int  # slots of the lists of hidden layers
    low: float  # milliseconds: they were printed as whole ones
    high: float
    hidden: tuple[int, ...]

    def __str__(self) -> str:
        return f"{100 * self.activity:g} %, {len(self.hidden)} hidden, lists of {self.capacity}"

    @property
    def measured(self) -> float:
        """The middle."""
        return (self.low + self.high) / 2


def cells() -> list[Cell]:
    """The twelve of the log."""
    rows = [[float(each) for each in line.strip(",\n").split(",")] for line in LOG.read_text().splitlines()]
    return [
        Cell(activity, int(capacity), low - 0.5, high + 0.5, tuple(int(each) for each in hidden if each))
        for activity, capacity, low, high, *hidden in rows
    ]


def network(cell: Cell) -> snnjax.Network:
    """Without biases of the hidden layers, as theirs."""
    neuron = neurons.lif(DECAY, reset="zero")
    layers = [
        snnjax.layer(snnjax.dense(width, bias=False), neuron, capacity=cell.capacity) for width in cell.hidden
    ]
    return snnjax.network(INPUTS, layers, snnjax.leaky_readout(CLASSES))


def full_lists(cell: Cell, weights: jax.Array) -> np.ndarray[Any, Any]:
    """Weights ``[inputs, neurons]`` of a hidden layer; those of the readout stay."""
    inputs, width = weights.shape
    if width == CLASSES:
        return np.asarray(weights)
    row = np.full(width, -FIRING, np.float32)
    row[np.arange(cell.capacity) * width // cell.capacity] = FIRING
    return np.tile(row, (inputs, 1))


def batch(steps: int) -> tuple[snnjax.SparseSpikes, np.ndarray[Any, Any]]:
    """Distinct events, evenly spread, and labels."""
    apart = INPUTS // EVENTS
    row = np.arange(steps * BATCH).reshape(steps, BATCH, 1)
    ids = np.arange(EVENTS) * apart + row % apart
    return snnjax.SparseSpikes.from_ids(ids.astype(np.int32), INPUTS), np.arange(BATCH) % CLASSES


def train_step(net: snnjax.Network, optimiser):
    """``step(params, state, events, labels) -> (params, state, loss, activity)``."""
    import optax

    def loss(params, events, labels):
        output, _ = net.apply(params, None, events, second_threshold=SECOND_THRESHOLD)
        return losses.cross_entropy_sum(output.output, labels), output.activity

    def step(params, state, events, labels):
        (error, activity), gradients = jax.value_and_grad(loss, has_aux=True)(params, events, labels)
        with jax.numpy_dtype_promotion("standard"):  # optax needs it, whatever the caller's setting
            updates, state = optimiser.update(gradients, state, params)
            return optax.apply_updates(params, updates), state, error, activity

    return jax.jit(step, donate_argnums=(0, 1), compiler_options=CHIP)


def run(cell: Cell, steps: int = STEPS) -> tuple[Profile, dict[str, np.ndarray[Any, Any]]]:
    """The profile of a step, to which the host brings a batch, and the activity of its layers."""
    import optax

    jax.config.update("jax_platforms", "cpu,ipu")
    net, optimiser, ipu = network(cell), optax.adam(LEARNING_RATE), jax.devices("ipu")[0]
    params = jax.tree.map(
        lambda leaf: full_lists(cell, leaf) if leaf.ndim > 1 else leaf, net.init(jax.random.key(0))
    )
    params, state = jax.device_put((params, optimiser.init(params)), ipu)
    step = train_step(net, optimiser)
    compiled = step.lower(params, state, *jax.device_put(batch(steps), ipu)).compile()
    params, state, *_ = jax.block_until_ready(compiled(params, state, *jax.device_put(batch(steps), ipu)))
    read_profile(compiled, reset=True)  # the first one brought the parameters to their tiles
    *_, error, activity = compiled(params, state, *jax.device_put(batch(steps), ipu))
    float(error)
    return read_profile(compiled), jax.tree.map(np.asarray, activity)


def milliseconds(profile: Profile, chip: str) -> float:
    """On a chip with that clock; the streams of the host take the same time with any."""
    host = profile.phases.host
    return 1e3 * ((profile.cycles - host) / CLOCKS[chip] + host / profile.data["clock_hz"])


def table() -> Iterator[str]:
    """The lines of a Markdown table; a cell takes half a minute."""
    columns = [part for chip in CLOCKS for part in (f"ours, {chip}", "log / ours")]
    yield f"| cell | measured (ms) | {' | '.join(columns)} |"
    yield f"| --- | --- |{' --- |' * len(columns)}"
    for cell in cells():
        profile, _ = run(cell)
        parts = []
        for chip in CLOCKS:
            predicted = milliseconds(profile, chip)
            parts.append(f"{predicted:.2f} | {cell.measured / predicted:.1f}")
        yield f"| {cell} | {cell.low:.2f} to {cell.high:.2f} | {' | '.join(parts)} |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table())
