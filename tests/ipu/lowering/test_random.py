"""`jax.random`: the same numbers as on the CPU, with one operation per call of threefry."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.ipu.lowering.checks import check, plan_of

KEY = jax.random.key(7)


def test_keys_equal_cpu():
    check(lambda key: (jax.random.split(key, 3), jax.random.fold_in(key, 5), jax.random.bits(key, (4,))), KEY)
    check(lambda seed: jax.random.key_data(jax.random.key(seed)), np.int32(3))
    check(lambda: jax.random.key_data(jax.random.key(3)))
    check(lambda key: [jax.random.bits(key, (5,), dtype) for dtype in (jnp.uint8, jnp.uint16)], KEY)


def test_distributions_equal_cpu():
    r = jax.random
    check(
        lambda key: {
            "uniform": r.uniform(key, (3, 50)),
            "one": (r.bits(key), r.uniform(key), r.bernoulli(key, 0.3)),
            "odd": (r.bits(key, (601,)), r.uniform(key, (601,)), r.bernoulli(key, 0.3, (601,))),
            "half": r.uniform(key, (7,), jnp.float16),
            "bfloat16": r.uniform(key, (7,), jnp.bfloat16),
            "normal": r.normal(key, (3, 40)),
            "randint": r.randint(key, (9,), -5, 17),
            "bernoulli": r.bernoulli(key, 0.3, (20,)),
            "exponential": r.exponential(key, (5,)),
            "gumbel": r.gumbel(key, (5,)),
            "truncated": r.truncated_normal(key, -1.0, 1.0, (5,)),
            "categorical": r.categorical(key, jnp.arange(4.0), shape=(6,)),
            "choice": r.choice(key, 9, (4,), replace=False),
            "permutation": r.permutation(key, 30),
            "rows": r.permutation(key, jnp.arange(12.0).reshape(6, 2)),
            "poisson": r.poisson(key, 3.0, (4,)),
            "orthogonal free": r.laplace(key, (3,)),
        },
        KEY,
        rtol=1e-5,
    )


def test_many_keys_equal_cpu():
    check(
        lambda key: jax.vmap(lambda k: jax.random.normal(k, (4,)))(jax.random.split(key, 5)), KEY, rtol=1e-5
    )


def test_random_numbers_are_one_operation_and_no_constant_is_large():
    plan = plan_of(lambda key: jax.random.uniform(key, (60, 70)), KEY)
    names = [instruction.op for instruction in plan.main.instructions]
    assert names.count("threefry") == 1
    assert names.count("elementwise") == 1
    assert all(
        np.asarray(array).strides in ((), (0, 0)) or array.size <= 2 for array in plan.constants.values()
    )


def test_counters_of_many_numbers_are_made_by_the_device():
    """On the host they would take gigabytes, and minutes."""
    plan = plan_of(lambda key: jax.random.bits(key, (10_000, 10_000)), KEY)
    assert [instruction.op for instruction in plan.main.instructions].count("iota") == 1
    assert all(array.strides in ((), (0, 0)) for array in plan.constants.values())
