"""The compiler's options that make programs faster."""

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator

import chex
import jax
import jax.numpy as jnp
import pytest

import snnjax
from snnjax import _compiler_options, data, losses, train
from snnjax.train import loop

UNKNOWN = {"xla_option_that_nobody_knows": 1}


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As with a version of JAX that does not know the option."""
    monkeypatch.setattr(_compiler_options, "_LARGEST_BLOCK", UNKNOWN)
    _compiler_options._is_known.cache_clear()
    yield
    _compiler_options._is_known.cache_clear()


PAGES_CLEARED = """
import resource, jax, jax.numpy as jnp, snnjax

inputs = (jax.random.uniform(jax.random.key(0), (50, 128, 700)) < 0.02).astype(jnp.float32)
network = snnjax.network(700, [snnjax.layer(700) for _ in range(3)], snnjax.leaky_readout(20))
params = network.init(jax.random.key(1), inputs)

def loss(params):
    output, _ = network.apply(params, None, inputs)
    return jnp.sum(output.output)

step = jax.jit(jax.grad(loss), compiler_options=snnjax.compiler_options())
pages = []
for _ in range(40):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    jax.block_until_ready(step(params))
    pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
# On a busy machine other threads than before may run a part, in memory of their own; some call meets the same ones.
print(min(pages[5:]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="measures glibc's allocator")
def test_temporaries_keep_their_pages() -> None:
    """A gradient with 55 MiB of temporaries: above glibc's limit of 32 MiB together, and below it in blocks.

    In a new process. By blocks alone they would stay in some processes and not in others; the kernels keep the heap as
    well. In one block, every call clears 750 pages and more.
    """
    known = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}  # compiled as a user's program
    done = subprocess.run(
        [sys.executable, "-c", PAGES_CLEARED], env=known, check=True, capture_output=True, text=True
    )
    assert float(done.stdout) < 100


def test_options_by_device() -> None:
    (name,) = snnjax.compiler_options()
    assert name.startswith("xla_")
    assert snnjax.compiler_options(jax.devices("cpu")[0]) == snnjax.compiler_options()
    with jax.default_device("cpu"):
        assert name in snnjax.compiler_options()
    assert jax.eval_shape(lambda: jnp.zeros(len(snnjax.compiler_options()))).shape == (1,)
    hint = "Pass one of jax.devices(), or None."
    text = f"compiler_options: `device` must be a device of JAX, got 'cpu'. {hint}"
    with pytest.raises(ValueError, match=re.escape(text)):
        snnjax.compiler_options("cpu")


def test_options_that_jax_does_not_know_are_left_out(unknown: None) -> None:
    assert snnjax.compiler_options() == {}


def test_results_belong_to_the_caller() -> None:
    snnjax.compiler_options().clear()
    assert snnjax.compiler_options()


def test_fit_passes_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler refuses those that it does not know, so they reach it."""
    monkeypatch.setattr(loop, "compiler_options", lambda device: UNKNOWN)
    vowels = data.load_japanese_vowels()
    parts = vowels.select(range(16)), vowels.select(range(16, 24))
    net = snnjax.network(12, [snnjax.layer(4)], snnjax.leaky_readout(9))
    params, config = net.init(jax.random.key(0)), train.TrainConfig(epochs=1, batch_size=8)
    with pytest.raises(jax.errors.JaxRuntimeError, match="xla_option_that_nobody_knows"):
        train.fit(net, params, *parts, loss=losses.cross_entropy_sum, config=config)


def test_training_steps_may_be_scanned() -> None:
    """A training step carries no options, so that a caller's own program can hold it."""
    vowels = data.load_japanese_vowels().take(range(8))
    net = snnjax.network(12, [snnjax.layer(4)], snnjax.leaky_readout(9))
    params, optimiser = net.init(jax.random.key(0)), train.make_optimiser(train.TrainConfig(), 2)
    step = train.make_train_step(net, losses.cross_entropy_sum, optimiser, train.TrainConfig())
    start = train.TrainState(params, optimiser.init(params))

    def both(state: train.TrainState) -> train.TrainState:
        return jax.lax.scan(lambda state, _: (step(state, vowels, 0.9)[0], None), state, length=2)[0]

    scanned = jax.jit(both, compiler_options=snnjax.compiler_options())(start)
    one_by_one = step(step(start, vowels, 0.9)[0], vowels, 0.9)[0]
    chex.assert_trees_all_close(scanned, one_by_one, atol=1e-6, rtol=0, strict=True)  # sums in another order
