"""The program of `make test-wheel`, with only the wheel installed: a training step on the CPU, and one on an IPU."""

import time
from pathlib import Path

START = time.perf_counter()  # before the imports, which a user waits for as well

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402

import snnjax  # noqa: E402
from snnjax import _dispatch, losses  # noqa: E402
from snnjax.ipu import profile  # noqa: E402

network = snnjax.network(64, [snnjax.layer(128, capacity=0.25)], snnjax.leaky_readout(10))
spikes = jax.random.bernoulli(jax.random.key(0), 0.1, (20, 8, 64)).astype(jnp.float32)
labels = jnp.arange(8)
params = network.init(jax.random.key(1))
optimiser = optax.adam(1e-3)


def train_step(params, optimiser_state):
    """One step of training, with its loss."""

    def loss(params):
        output, _ = network.apply(params, None, spikes)
        return losses.cross_entropy_sum(output.output, labels)

    value, gradients = jax.value_and_grad(loss)(params)
    updates, optimiser_state = optimiser.update(gradients, optimiser_state)
    return optax.apply_updates(params, updates), optimiser_state, value


state = (params, optimiser.init(params))
there = Path(snnjax.__file__).parent
assert "site-packages" in there.parts, f"this is not the wheel: {there}"
assert _dispatch.missing_kernels() is None, _dispatch.missing_kernels()
on_cpu = jax.block_until_ready(jax.jit(train_step)(*state))
print(f"trained a step on the CPU {time.perf_counter() - START:.1f} s after the start, jax {jax.__version__}")

ipu = jax.devices("ipu")[0]
on_ipu = jax.jit(train_step)(*jax.device_put(state, ipu))
assert on_ipu[2].devices() == {ipu}
# Sums are in another order: the two losses agree within a few ulp of float32.
assert abs(float(on_ipu[2]) - float(on_cpu[2])) < 1e-5 * float(on_cpu[2])
print(f"trained a step on a modelled IPU after {time.perf_counter() - START:.1f} s")
cycles = profile(lambda: network.apply(params, None, spikes)[0].output).cycles
print(f"inference would take {cycles} cycles there")
