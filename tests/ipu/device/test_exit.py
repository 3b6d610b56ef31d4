"""A process may end at any time, even while a thread compiles for the device."""

import os
import subprocess
import sys

import pytest

from tests.architecture import ROOT

# A thread that Python does not wait for compiles; the process ends before the lowering does, or right behind it.
PROGRAM = """
import threading
import time

import jax
from snnjax.ipu import lowering

begun = threading.Event()
lower = lowering.lower

def slow(program, options):
    {signal_first}
    plan = lower(program, options)
    {signal_last}
    return plan

x = jax.device_put(jax.numpy.ones(64), jax.devices("ipu")[0])
program = jax.jit(lambda x: jax.numpy.sin(x)).lower(x)
lowering.lower = slow
threading.Thread(target=program.compile, daemon=True).start()
assert begun.wait(60)
"""
SIGNALS = {"signal_first": "begun.set(); time.sleep(0.3)", "signal_last": "begun.set()"}


def run(program: str) -> tuple[int, str, str]:
    """How a program of its own ends, and what it writes."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("JAX")}
    done = subprocess.run(
        (sys.executable, "-c", program),
        cwd=ROOT,
        env={**known, "SNNJAX_IPU_TILES": "4"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("when", SIGNALS)
def test_process_ends_while_a_thread_compiles(when: str) -> None:
    signals = {**dict.fromkeys(SIGNALS, "pass"), when: SIGNALS[when]}
    assert run(PROGRAM.format(**signals)) == (0, "", "")


@pytest.mark.usefixtures("model")
def test_functions_that_run_when_python_ends_may_compile() -> None:
    program = """
import atexit
import jax

@atexit.register
def last():
    print(jax.jit(lambda x: x + 1)(jax.device_put(1.0, jax.devices("ipu")[0])))

jax.jit(lambda x: x * 2)(jax.device_put(1.0, jax.devices("ipu")[0]))
"""
    assert run(program) == (0, "2.0\n", "")
