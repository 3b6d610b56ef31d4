"""Whole training steps, which tests/ipu/device/test_training.py runs: what their plans call."""

import collections
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import snnjax
from snnjax import losses
from snnjax.ipu.lowering import lower
from tests.ipu.lowering.artifacts import artifact, options
from tests.ipu.lowering.checks import check, plan_of

INPUTS, WIDTH, TIME, BATCH = 12, 16, 5, 4
OPTIMISERS = {
    "adamw": lambda: optax.adamw(1e-2),
    "sgd": lambda: optax.sgd(1e-2, momentum=0.9, nesterov=True),
    "lion": lambda: optax.lion(1e-3),
    "clipped": lambda: optax.chain(
        optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(1e-2, 50))
    ),
}


@pytest.fixture(autouse=True)
def promotion():
    """optax mixes integers with floats."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@jax.custom_jvp
def fires(v):
    return (v > 1.0).astype(jnp.float32)


fires.defjvp(
    lambda primals, tangents: (fires(*primals), tangents[0] / (1 + 10 * jnp.abs(primals[0] - 1)) ** 2)
)


def plain_network(params, x):
    def step(carry, x):
        v, out = carry
        v = 0.9 * v * (1 - fires(v)) + x @ params["w1"] + params["b1"]
        out = 0.9 * out + fires(v) @ params["w2"]
        return (v, out), out

    first = jnp.zeros((BATCH, WIDTH)), jnp.zeros((BATCH, 10))
    return jnp.max(jax.lax.scan(step, first, x)[1], axis=0)


def plain_step(optimiser):
    def step(params, state, key, images, labels):
        spikes_key, order_key = jax.random.split(key)
        order = jax.random.permutation(order_key, BATCH)
        x = (jax.random.uniform(spikes_key, (TIME, BATCH, INPUTS)) < images[order]).astype(jnp.float32)

        def loss(params):
            logits = plain_network(params, x)
            right = jnp.mean((jnp.argmax(logits, 1) == labels[order]).astype(jnp.float32))
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels[order]).mean(), right

        (value, right), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = optimiser.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value, right

    keys = jax.random.split(jax.random.key(0), 3)
    params = {
        "w1": jax.random.normal(keys[0], (INPUTS, WIDTH)),
        "b1": jnp.zeros(WIDTH),
        "w2": jax.random.normal(keys[1], (WIDTH, 10)),
    }
    images = jax.random.uniform(keys[2], (BATCH, INPUTS))
    return step, (params, optimiser.init(params), jax.random.key(5), images, jnp.arange(BATCH))


def own_step(capacity, **options):
    network = snnjax.network(
        INPUTS, [snnjax.layer(WIDTH, capacity=capacity)] * 2, snnjax.leaky_readout(10), **options
    )
    params, optimiser = network.init(jax.random.key(0)), optax.adam(1e-2)
    x = (jax.random.uniform(jax.random.key(1), (TIME, BATCH, INPUTS)) < 0.4).astype(jnp.float32)

    def step(params, state, x, labels):
        def loss(params):
            out, _ = network.apply(params, network.initial_state(params, batch=BATCH), x)
            return losses.cross_entropy_max(out.output, labels) + losses.activity_upper_bound(
                out.activity, bound=0.04
            )

        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimiser.update(gradients, state)
        return optax.apply_updates(params, updates), state, value

    return step, (params, optimiser.init(params), x, jnp.arange(BATCH))


def count(block, found=None):
    found = collections.Counter() if found is None else found
    for instruction in block.instructions:
        found[instruction.op if instruction.op != "custom_call" else instruction.texts[0]] += 1
        for inner in instruction.blocks:
            count(inner, found)
    return found


@pytest.mark.parametrize("capacity", [None, 4])
def test_own_training_step_calls_each_pass_once(capacity):
    """That it trains as the CPU does is tested on the device."""
    step, arguments = own_step(capacity)
    found = count(plan_of(step, *arguments).main)
    assert (found["snnjax_lif_network"], found["snnjax_lif_network_backward"]) == (1, 1)


def test_own_ops_in_a_scan_equal_cpu():
    w1, w2 = (jax.random.normal(jax.random.key(k), (WIDTH, WIDTH)) for k in range(2))

    def loss(w1, w2, x):
        def step(v, x):
            v, _ = snnjax.lif_step(v, x @ w1, 0.9, 1.0)
            spikes = snnjax.select_spikes(v, 1.0, 0.8, capacity=5)
            return v, snnjax.spike_matmul(spikes, w2)

        return jnp.sum(jax.lax.scan(step, jnp.zeros((BATCH, WIDTH)), x)[1] ** 2)

    x = jax.random.normal(jax.random.key(3), (TIME, BATCH, WIDTH))
    check(jax.value_and_grad(loss, (0, 1)), w1, w2, x, rtol=1e-4, atol=1e-4)
    found = count(plan_of(jax.grad(loss, (0, 1)), w1, w2, x).main)
    assert {"snnjax_select_spikes", "snnjax_select_spikes_backward"} <= set(found)
    assert found["snnjax_spike_matmul_weights_backward"] == 1


def test_groups_of_an_own_op_are_taken_in_turn():
    v, w = (
        jax.random.normal(jax.random.key(0), (3, BATCH, WIDTH)),
        jax.random.normal(jax.random.key(1), (3, WIDTH, 7)),
    )

    def product(v, w):
        return snnjax.spike_matmul(snnjax.select_spikes(v, 1.0, 0.5, capacity=4), w)

    check(jax.vmap(product), v, w)
    found = count(plan_of(jax.vmap(product), v, w).main)
    assert found["snnjax_spike_matmul"] == 1
    assert found["repeat"] == 1


def test_lowering_is_fast():
    step, arguments = plain_step(optax.adamw(1e-2))
    program = artifact(step, *arguments)
    lower(program, options())
    start = time.process_time()  # whatever else the machine is busy with
    lower(program, options())
    assert time.process_time() - start < 1.0
    assert np.frombuffer(lower(program, options()), np.uint8).size == len(lower(program, options()))
