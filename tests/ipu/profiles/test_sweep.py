"""One call tries chips, numbers of tiles and of IPUs, and says what limits a program."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from snnjax.ipu import Sweep, SweepRow, sweep
from snnjax.ipu.profiles.units import percent
from tests.ipu.profiles import made

pytestmark = pytest.mark.usefixtures("ipus")


def square(x):
    return x @ x


def test_every_combination_is_tried() -> None:
    found = sweep(square, jnp.ones((40, 40)), chips=["mk2", "bow"], tiles=[1, 8], ipus=[1, 2])
    machines = [(row.chip, row.ipus, row.tiles) for row in found.rows]
    assert machines == [(chip, ipus, tiles) for chip in ("mk2", "bow") for ipus in (1, 2) for tiles in (1, 8)]
    for row in found.rows:
        assert row.profile is not None
        data = row.profile.data
        assert (data["chip"], data["ipus"], data["tiles_per_ipu"]) == (row.chip, row.ipus, row.tiles)
        assert sum(row.shares.values()) == pytest.approx(1)
    assert found.fastest.seconds == min(row.seconds for row in found.rows)
    assert found.fastest.chip == "bow"
    first, *others = found.rows
    assert found.first is first
    assert re.search(rf"mk2 +1 +8 .* {first.seconds / others[0].seconds:.2f} ", str(found))
    assert f"What limits it: {found.fastest.limit} " in str(found)


def test_what_does_not_fit_is_told() -> None:
    found = sweep(square, jnp.ones((512, 512)), chips=["bow"], tiles=[1, 64])
    small, large = found.rows
    assert (small.profile, small.seconds, small.limit, small.shares) == (None, float("inf"), "memory", {})
    assert found.fastest is found.first is large
    assert "bow       1      1  does not fit\n" in str(found)
    nothing = Sweep((small,))
    assert str(nothing).endswith(
        "It fits on none of them. Use more tiles or IPUs, a smaller batch, or fewer steps.\n"
    )


def test_verdict_and_table_say_the_same_share() -> None:
    """That of the time on the chip, although most of the time the host brings the array."""
    found = sweep(square, np.ones((64, 64), np.float32), chips=["bow"], tiles=[32])
    share = f"{found.fastest.limit} {percent(found.fastest.shares[found.fastest.limit])}"
    *_, row, verdict = str(found).splitlines()
    assert share in row and f"What limits it: {share}:" in verdict


def test_nothing_limits_tiles_that_always_compute() -> None:
    tiles = [{**tile, "cycles": 600} for tile in made.data()["tiles"]]
    cycles = {"compute": 600, "exchange": 0, "sync": 0, "host": 0, "total": 600}
    row = SweepRow("mk2", 2, 1, made.profile(tiles=tiles, cycles=cycles))
    assert row.limit == "compute"
    assert "Fastest: 1 x mk2 with 2 tiles. What limits it: the arithmetic alone\n" in str(Sweep((row,)))


@pytest.mark.parametrize("name", ["chips", "tiles", "ipus"])
def test_nothing_to_try_is_refused(name: str) -> None:
    nothing = {name: []}
    with pytest.raises(ValueError) as error:
        sweep(square, jnp.ones((4, 4)), **nothing)
    assert (
        str(error.value) == f"sweep: `{name}` must hold at least one, got none. Leave it out for the default."
    )


@pytest.mark.parametrize("name", ["tiles", "ipus"])
def test_numbers_must_be_positive(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^sweep: `{name}` must be .*, got 0\."):
        sweep(square, jnp.ones((4, 4)), **{name: [0]})


def test_other_errors_are_raised() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="`ipu_version` must be mk1, mk2, bow or c600"):
        sweep(square, jnp.ones((4, 4)), chips=["gc9"], tiles=[2])
