"""Collectives over modelled IPUs against the same ones over CPU devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.ipu.device.on_device import numbers

ROWS = PartitionSpec("i")


def on(devices, function, x, names=("i",), shape=None, out=ROWS):
    """The result of the function over the devices, of a row each."""
    mesh = Mesh(np.array(devices).reshape(shape or (len(devices),)), names)
    spec = PartitionSpec(names) if len(names) > 1 else ROWS
    spread = jax.device_put(x, NamedSharding(mesh, spec))
    f = jax.shard_map(
        function, mesh=mesh, in_specs=spec, out_specs=spec if len(names) > 1 else out, check_vma=False
    )
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(f)(spread))]


def check(ipus, count, function, x, rtol=1e-6, **where):
    actual = on(ipus[:count], function, x, **where)
    for a, b in zip(actual, on(jax.devices("cpu")[:count], function, x, **where), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol, 1e-6)


REDUCTIONS = {"psum": lax.psum, "pmax": lax.pmax, "pmin": lax.pmin, "pmean": lax.pmean}


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("kind", REDUCTIONS)
def test_reductions_of_few_elements(ipus, count, kind):
    x = numbers((count * 3, 7), "float32", count)
    check(
        ipus, count, lambda x: (REDUCTIONS[kind](x, "i"), REDUCTIONS[kind](jnp.sum(x, keepdims=True), "i")), x
    )


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint32"])
def test_reductions_go_around_the_ring(ipus, count, dtype):
    check(ipus, count, lambda x: lax.psum(x, "i"), numbers((count * 130, 129), dtype, 1))


def test_all_replicas_hold_the_same_bits(ipus):
    (sums,) = on(ipus, lambda x: lax.psum(jnp.sin(x), "i"), numbers((4 * 41, 3), "float32", 2))
    np.testing.assert_array_equal(sums.reshape(4, 41, 3), np.broadcast_to(sums[:41], (4, 41, 3)))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_gathered_along_any_dimension(ipus, count, dtype):
    def gather(x):
        return lax.all_gather(x, "i").reshape(-1, 5), lax.all_gather(x, "i", axis=1, tiled=True)

    check(ipus, count, gather, numbers((count * 2, 5), dtype, 3))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_scattered_and_exchanged_parts(ipus, count):
    def parts(x):
        scattered = (
            lax.psum_scatter(x, "i", tiled=True),
            lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
        )
        return *scattered, lax.all_to_all(x, "i", 0, 1, tiled=True), lax.all_to_all(x, "i", 1, 0, tiled=True)

    check(ipus, count, parts, numbers((count * count * 2, count * 3), "float32", 4))


@pytest.mark.parametrize("pairs", [[(0, 1), (1, 2), (2, 0)], [(0, 2)], [(2, 1), (1, 0)], []])
def test_permutations_leave_zeros_where_nothing_comes(ipus, pairs):
    check(
        ipus,
        3,
        lambda x: lax.ppermute(x, "i", pairs) + lax.axis_index("i").astype(x.dtype),
        numbers((6, 5), "float32", 5),
    )


@pytest.mark.parametrize("axis", ["a", "b"])
def test_groups_of_devices(ipus, axis):
    def groups(x):
        gathered = lax.all_gather(x, axis, axis=1, tiled=True)
        return lax.psum(x, axis), lax.psum_scatter(gathered, axis, scatter_dimension=1, tiled=True)

    check(ipus, 4, groups, numbers((4 * 3, 9), "float32", 6), names=("a", "b"), shape=(2, 2))


def test_inside_loops(ipus):
    def loop(x):
        return lax.scan(
            lambda carry, row: (carry + lax.psum(row, "i"), lax.pmax(carry, "i")), jnp.zeros(5), x
        )[1]

    check(ipus, 2, loop, numbers((8, 5), "float32", 7))


def test_gradients_of_a_mean_over_devices(ipus):
    def gradient(x):
        return jax.grad(lambda x: jnp.sum(lax.pmean(jnp.sin(x), "i") ** 2))(x)

    check(ipus, 4, gradient, numbers((8, 5), "float32", 8), rtol=1e-5)
