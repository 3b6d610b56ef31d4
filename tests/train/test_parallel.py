"""Training in parallel: several devices, and several processes of which one dies, learn what one device learns."""

import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import chex
import jax
import numpy as np
import optax
import pytest

import snnjax
from snnjax import _dispatch, losses, train
from snnjax.data import Batch
from snnjax.train.parallel import forward
from tests import quick
from tests.project.architecture import ROOT
from tests.train.toy import CLASSES, CONFIG, INPUTS, NET, STEPS, VALIDATION, events

# Gradients of shares are added in another order; 60 steps of Adam enlarge that to some 1e-6 of parameters of order 1.
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}
SCORES = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "input_events")


def run(config=CONFIG, **options):
    params = NET.init(jax.random.key(0))
    options = {"loss": losses.cross_entropy_sum, "config": config} | options
    return train.fit(NET, params, events(0), VALIDATION, **options)


@pytest.fixture(scope="module")
def alone():
    """A run on one device."""
    return run()


def test_four_devices_learn_what_one_learns(alone) -> None:
    assert len(jax.devices()) == 4
    together = run(devices=jax.devices())
    chex.assert_trees_all_close(together.params, alone.params, **TOLERANCE, strict=True)
    for ours, theirs in zip(together.metrics, alone.metrics, strict=True):
        chex.assert_trees_all_close(
            [ours[name] for name in SCORES], [theirs[name] for name in SCORES], **TOLERANCE, strict=True
        )
    assert {each for leaf in jax.tree.leaves(together.params) for each in leaf.devices()} == {
        jax.devices()[0]
    }


def test_norms_take_the_statistics_of_the_whole_batch() -> None:
    hidden = snnjax.layer(16, norm=snnjax.blocks.batch_norm())
    net = snnjax.network(INPUTS, [hidden], snnjax.leaky_readout(CLASSES))
    params, stats = net.init(jax.random.key(0)), net.initial_stats(jax.random.key(0))
    # Adam would make steps of rounding, where a norm makes the gradient of the bias before it 0.
    optimiser, found = optax.sgd(0.1), []
    for mesh in (None, train.data_mesh()):
        step = train.make_train_step(net, losses.cross_entropy_sum, optimiser, CONFIG, mesh=mesh)
        state = jax.tree.map(np.array, train.TrainState(params, optimiser.init(params), stats))
        found.append(step(state, events(0).take(np.arange(8)), None))
    assert not np.allclose(found[0][0].stats["layer_0/norm"].mean, 0)
    chex.assert_trees_all_close(*found, rtol=1e-5, atol=1e-5, strict=True)


def test_each_device_drops_other_neurons() -> None:
    net = snnjax.network(INPUTS, [snnjax.blocks.dropout(0.5)])
    batch = Batch(np.ones((1, 8, INPUTS), np.float32), np.zeros(8, int), np.ones(8, int))
    run = jax.jit(forward(net, train.data_mesh(), train=True))
    shares = np.split(np.asarray(run({}, {}, batch, None, jax.random.key(1)).output), 4, axis=1)
    assert len({each.tobytes() for each in shares}) == 4


if _dispatch.missing_kernels() is None:  # elsewhere the references are all there is to test

    def test_each_device_runs_the_kernels_on_its_share() -> None:
        optimiser = train.make_optimiser(CONFIG, 1)
        step = train.make_train_step(NET, losses.cross_entropy_sum, optimiser, CONFIG, mesh=train.data_mesh())
        params = NET.init(jax.random.key(0))
        state = train.TrainState(params, optimiser.init(params))
        program = step.lower(state, events(0).take(np.arange(8)), 0.9).as_text()
        calls = [line for line in program.splitlines() if "@snnjax_lif_network" in line]
        assert len(calls) == 2  # forward and backward
        assert all(
            f"tensor<1x{STEPS}x2x3xui16>" in call for call in calls
        )  # two samples, three events a step


MISTAKES = {
    "batch": (
        {"config": replace(CONFIG, batch_size=10)},
        "fit: `batch_size` must be a multiple of 4, the number of devices, got 10. Change one of the two.",
    ),
    "none": (
        {"devices": []},
        "fit: `devices` must hold a device, got none. Leave it out for JAX's default.",
    ),
}


@pytest.mark.parametrize("case", sorted(MISTAKES))
def test_devices_that_do_not_fit_are_named(case: str) -> None:
    options, text = MISTAKES[case]
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        run(**{"devices": jax.devices()} | options)


def start(folder, *last_of_second):
    """Two processes with a device each, which meet at a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-m", "tests.train.one_process", str(port), "2"]
    compiled = {
        "JAX_COMPILATION_CACHE_DIR": str(folder / "compiled"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    known = {**os.environ, "XLA_FLAGS": quick.XLA_FLAGS, **compiled}
    started = []
    for index, last in enumerate(((), last_of_second)):
        with (folder / f"{index}.log").open("wb") as log:
            options = {"cwd": ROOT, "env": known, "stdout": log, "stderr": log}
            started.append(subprocess.Popen([*program, str(index), str(folder), *last], **options))
    return started


def test_processes_go_on_from_the_checkpoint_after_one_has_died(alone, tmp_path) -> None:
    first, second = start(tmp_path, "1")
    ended = second.wait(timeout=120)
    first.kill()  # as what has started a job does; by itself it would wait for a minute and a half
    first.wait()
    assert ended == -signal.SIGKILL, (tmp_path / "1.log").read_text()
    assert train.read_run(tmp_path / "checkpoint.safetensors")["epoch"] == 1
    for index, process in enumerate(start(tmp_path)):
        assert process.wait(timeout=120) == 0, (tmp_path / f"{index}.log").read_text()
    for index in range(2):
        with np.load(tmp_path / f"{index}.npz") as left:
            chex.assert_trees_all_close(
                list(left.values()), jax.tree.leaves(alone.params), **TOLERANCE, strict=True
            )
