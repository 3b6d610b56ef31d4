"""Plain `jit` over arrays that are sharded: every IPU computes its part, and fetches what it lacks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.ipu.lowering.arrays import numbers
from tests.ipu.lowering.test_sharding import line, mesh_of_cpus, on_ipus, plan_of, put, square

FLOAT = np.float32
X, W, V = numbers(FLOAT, (8, 5)), numbers(FLOAT, (5, 6), 1) / 4, numbers(FLOAT, (6, 4), 2) / 4
LABELS = (np.arange(8) % 4).astype(np.int32)
D = P("d")


def ops(block) -> list[str]:
    """The names of all instructions, those of loops and branches too."""
    inner = (name for each in block.instructions for nested in each.blocks for name in ops(nested))
    return [*(each.op for each in block.instructions), *inner]


def check(function, mesh, specs, out, *arguments, rtol=2e-5):
    """The shards of the results are those of the function on whole arrays, spread as `out` says; the plan's names."""
    with mesh_of_cpus(mesh):
        plan = plan_of(function, *put(arguments, specs))
        expected = jax.tree.leaves(jax.jit(function)(*arguments))
    results = jax.tree.leaves(on_ipus(function, mesh, specs, *arguments))
    for result, whole, spec in zip(results, expected, out, strict=True):
        assert result.sharding.is_equivalent_to(NamedSharding(result.sharding.mesh, spec), result.ndim), spec
        for shard in result.addressable_shards:
            np.testing.assert_allclose(shard.data, np.asarray(whole)[shard.index], rtol, 1e-5)
    return ops(plan.main)


def loss(w, v, x, labels):
    logits = jax.nn.log_softmax(jnp.tanh(x @ w) @ v)
    return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))


def step(w, v, x, labels):
    value, (g, h) = jax.value_and_grad(loss, (0, 1))(w, v, x, labels)
    return w - 0.1 * g, v - 0.1 * h, value


def test_data_parallel_step_sums_gradients_and_moves_nothing_else():
    names = check(step, line, [P(), P(), D, D], [P(), P(), P()], W, V, X, LABELS, rtol=1e-4)
    assert names.count("all_reduce") == 3  # both gradients and the loss
    assert not {"all_gather", "dynamic_slice", "all_to_all"} & set(names)


def test_model_parallel_step_keeps_the_parts_of_the_weights():
    specs = [P(None, "b"), P("b"), P("a"), P("a")]
    names = check(step, square, specs, [*specs[:2], P()], W, V, X, LABELS, rtol=1e-4)
    assert names.count("all_reduce") == 4  # and the products between the layers
    assert "all_gather" not in names


def test_weights_in_parts_of_the_batch_s_axis_are_gathered():
    names = check(step, square, [P(None, "a"), P("a"), P("a"), P("a")], [P(None, "a"), P("a"), P()],
                  W, V, X, LABELS, rtol=1e-4)  # fmt: skip
    assert names.count("all_gather") == 2


def test_reductions():
    def reductions(x):
        return jnp.sum(x), jnp.sum(x, 0), jnp.max(x, 1), jnp.any(x > 2, 0), jnp.argmax(x, 1), jnp.argmax(x, 0)

    assert check(reductions, line, [D], [P(), P(), D, P(), D, P()], X).count("all_gather") == 1

    def by_functions(x):
        either = lambda a, b: a + b - a * b  # noqa: E731
        return lax.reduce(x, FLOAT(0), either, (0,)), lax.reduce(x, FLOAT(2), lax.add, (0,))

    check(by_functions, line, [D], [P(), P()], X / 8)


def test_shapes_and_moves():
    def shapes(x):
        return x.reshape(-1), x.reshape(2, 4, 5), x.T.reshape(-1), x[:, None], x.T, x[:, 1:3]

    out = [D, P(), P(), D, P(None, "d"), D]
    assert check(shapes, line, [D], out, X).count("all_gather") == 2

    def moves(x):
        return x[1:3], x[::-1], jnp.concatenate([x, x]), jnp.pad(x, 1), jnp.roll(x, 1, 0), jnp.sort(x, 1)

    check(moves, line, [D], [P(), P(), P(), P(), P(), D], X)


def test_indices():
    def indexed(x, i):
        rows = x[i], x.at[i].add(1.0), x.at[i, :2].set(2.0), lax.dynamic_slice(x, (i[0], 0), (2, 5))
        return *rows, lax.dynamic_update_slice(x, x[:2], (i[1], 0))

    check(indexed, line, [D, P()], [P()] * 5, X, LABELS)
    batched = jax.vmap(lambda x, i: (x[i], x.at[i].add(1.0)))
    assert "all_gather" not in check(batched, line, [D, D], [D, D], X, LABELS[:, None])


def test_convolutions_of_a_sharded_batch():
    x, kernel = numbers(FLOAT, (4, 2, 5, 5)), numbers(FLOAT, (3, 2, 3, 3))

    def both(kernel, x):
        value, gradient = jax.value_and_grad(lambda k: jnp.sum(jnp.sin(lax.conv(x, k, (1, 1), "SAME"))))(
            kernel
        )
        return value, gradient

    names = check(both, line, [P(), D], [P(), P()], kernel, x, rtol=1e-4)
    assert "all_gather" not in names
    check(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), line, [P(None, None, None, "d"), P()], [P()],
          np.concatenate([x, x[..., :3]], 3), kernel)  # fmt: skip


def test_a_scan_carries_shards():
    def recurrent(w, x):
        def body(h, _):
            h = jnp.tanh(h @ w + x)
            return h, jnp.sum(h, 1)

        return lax.scan(body, jnp.zeros((8, 5)), None, length=3)

    names = check(recurrent, line, [P(), D], [D, P(None, "d")], W[:, :5], X)
    assert not {"all_gather", "all_reduce"} & set(names)


def test_loops_and_branches_fetch_what_they_need():
    def rolled(x, i):
        return lax.while_loop(lambda c: c[0] < i, lambda c: (c[0] + 1, jnp.roll(c[1], 1, 0)), (0, x))

    check(rolled, line, [D, P()], [P(), P()], X, np.int32(3))

    def branched(x, i):
        same = lax.cond(i > 0, lambda: x * 2, lambda: x + 1)
        return same, lax.switch(i, [lambda: x, lambda: jnp.ones_like(x)])

    check(branched, line, [D, P()], [D, P()], X, np.int32(1))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (P("a", "b"), P("b", "a")),
        (P(("a", "b")), P("a", "b")),
        (P("a"), P(("a", "b"))),
        (P(), P("b")),
        (P("a"), P()),
    ],
)
def test_constraints_move_shards(given, wanted):
    def function(x):
        return lax.with_sharding_constraint(x * 2, wanted) + 1

    check(function, square, [given], [wanted], numbers(FLOAT, (8, 4)))


def test_constraints_cut_into_equal_parts_alone():
    def function(x):
        return lax.with_sharding_constraint(jnp.sum(x, 1), P(("a", "b")))

    check(function, square, [P("a")], [P("a")], numbers(FLOAT, (6, 4)))


def test_what_is_left_open_stays():
    def function(x):
        return lax.with_sharding_constraint(x, P(P.UNCONSTRAINED, "b"))

    check(function, square, [P("a")], [P("a", "b")], numbers(FLOAT, (8, 4)))
