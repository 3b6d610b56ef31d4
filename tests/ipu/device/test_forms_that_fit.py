"""A program runs in a form that fits on the tiles, if there is one, whatever form is estimated to be the fastest."""

from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import snnjax
from snnjax import SparseSpikes
from snnjax.ipu import lowering, read_profile
from snnjax.ipu.device import network_cost

pytestmark = pytest.mark.usefixtures("ipus")


class Shape(NamedTuple):
    """A network, and the tiles that it hardly fits on, or does not."""

    tiles: int
    steps: int
    batch: int
    widths: tuple[int, ...]
    recurrent: bool
    capacity: int | None


# What fits of lists (with the layout that is planned first), and dense products.
ONLY_LISTS = Shape(4, 16, 125, (128, 64, 10), False, 6)
NEITHER = ONLY_LISTS._replace(batch=160)
ONLY_DENSE = Shape(32, 4, 21, (512, 512, 512, 10), True, 170)
ANOTHER_LAYOUT = Shape(32, 32, 11, (1024, 256, 256, 10), True, 85)  # lists in a later one
SMALL_PRODUCTS = Shape(16, 3, 121, (512, 256, 10), True, 25)  # dense ones with the least memory of all plans


def arguments(shape: Shape):
    rng = np.random.default_rng(0)
    width = shape.widths[0]
    ids = rng.integers(0, width, (shape.steps, shape.batch, max(1, width // 10)))
    pairs = list(zip(shape.widths, shape.widths[1:], strict=False))
    weights = [rng.integers(-8, 16, pair).astype(np.float32) / 64 for pair in pairs]
    recurrent = [
        np.zeros((own.shape[1],) * 2, np.float32) if shape.recurrent else None for own in weights[:-1]
    ]
    return weights, SparseSpikes.from_ids(jnp.asarray(ids), width), recurrent


def gradient(shape: Shape):
    def loss(weights, lists, recurrent) -> jax.Array:
        layers = [
            snnjax.LIFLayer(own, 0.75, 0.5, 1.0, recurrent=back)
            for own, back in zip(weights, recurrent, strict=False)
        ]
        options = {"capacity": shape.capacity, "second_threshold": 0.25}
        out, _ = snnjax.lif_network(lists, layers, snnjax.LIFReadout(weights[-1], 0.5, 1.0), **options)
        return jnp.sum(out.output)

    return jax.jit(jax.grad(loss))


def compiled(shape: Shape, pays: bool, there):
    """The program with lists if they pay, else in the dense form."""
    tiles = mock.patch.object(network_cost, "TILES", shape.tiles)
    with mock.patch.object(network_cost, "pays", return_value=pays), tiles:
        lowered = gradient(shape).lower(*there)
    return lowered.compile({"ipu_version": "bow", "ipu_tiles": str(shape.tiles)})


@pytest.mark.parametrize(
    "shape, pays",
    [(ONLY_LISTS, False), (ONLY_DENSE, True), (ANOTHER_LAYOUT, True), (SMALL_PRODUCTS, False)],
    ids=["lists for dense products", "dense products for lists", "another layout", "small products"],
)
def test_form_that_fits_runs_in_place_of_one_that_does_not(shape: Shape, pays: bool) -> None:
    given = arguments(shape)
    there = jax.device_put(given, jax.devices("ipu")[0])
    lower = lowering.lower
    with (
        mock.patch.object(lowering, "lower", lambda *program: b"" if program[2] else lower(*program)),
        pytest.raises(
            jax.errors.JaxRuntimeError, match=r"RESOURCE_EXHAUSTED: \w+: `\w+` must fit in 638976 "
        ),
    ):
        compiled(shape, pays, there)
    program = compiled(shape, pays, there)
    results, expected = program(*there), gradient(shape)(*given)
    for own, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-5, atol=1e-5 * float(np.abs(wanted).max()))
    notes = read_profile(program).notes
    assert notes[0].startswith("It takes less memory than the form estimated to be the fastest")
    assert any("runs on its reference" in note for note in notes) == (shape in (ONLY_DENSE, SMALL_PRODUCTS))


def test_program_that_fits_in_no_form_is_refused_as_the_first_one() -> None:
    there = jax.device_put(arguments(NEITHER), jax.devices("ipu")[0])
    with pytest.raises(
        jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED: compile: `program` must fit in "
    ):
        compiled(NEITHER, False, there)
    with pytest.raises(
        jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED: lif_network: `layers` must fit into "
    ):
        compiled(NEITHER, True, there)
