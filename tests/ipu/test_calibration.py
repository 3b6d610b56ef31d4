"""Our training step on the network of the hardware log; the quickest of its twelve cells stands for them."""

import functools

import jax
import numpy as np
import pytest

from tests.benchmarks import process
from tests.ipu import calibration

pytestmark = pytest.mark.usefixtures("ipus")


def test_log_has_twelve_cells() -> None:
    cells = calibration.cells()
    assert len(cells) == len({str(cell) for cell in cells}) == 12
    assert str(cells[0]) == "1 %, 2 hidden, lists of 14"
    assert (cells[4].low, cells[4].high, cells[4].measured) == (7.5, 9.5, 8.5)
    assert {len(cell.hidden) for cell in cells} == {2, 3, 4, 5}
    for cell in cells:  # as theirs: two neurons a tile, rounded to whole tiles, and a list for every layer
        assert 1461 <= sum(cell.hidden) / 2 <= 1472
        assert cell.capacity == pytest.approx(cell.activity * cell.hidden[0], abs=2)


def test_step_with_all_lists_full_is_faster_than_the_log() -> None:
    cell = calibration.cells()[3]
    # All tiles of a chip are more than this process may hold beside what other tests left.
    profile, activity = process.ask(functools.partial(calibration.run, cell))
    for layer, width in zip(jax.tree.leaves(activity), cell.hidden, strict=True):
        assert layer.shape == (calibration.BATCH, width)
        assert np.all(np.sum(np.asarray(layer) == 1, axis=1) == cell.capacity)
        assert np.count_nonzero(layer) == cell.capacity * calibration.BATCH
    runs = {step.name: step.executions for step in profile.steps}
    assert (
        runs["backward/weights0"] == runs["backward/weights1"]
    )  # nothing is named twice, nor past the last step
    assert calibration.milliseconds(profile, "Bow") < cell.low
    assert calibration.milliseconds(profile, "Mk2") > calibration.milliseconds(profile, "Bow")
    assert profile.tile_memory.max() < profile.data["memory_per_tile"]
