"""A process may end while its programs run on the device."""

import os
import subprocess
import sys

import pytest

from tests.project.architecture import ROOT

# The program runs on a thread of the device, and its callback when Python has begun to end.
RUNNING = """
import threading
import time
import jax
import numpy as np

begun = threading.Event()

def slow(x):
    begun.set()
    time.sleep(0.3)
    print("called", flush=True)
    return x

shape = jax.ShapeDtypeStruct((), np.float32)
jax.jit(lambda x: jax.pure_callback(slow, shape, x) + 1)(jax.device_put(np.float32(1), jax.devices("ipu")[0]))
assert begun.wait(60)
"""
LAST = """
import atexit
import jax

@atexit.register
def last():
    print(jax.jit(lambda x: x + 1)(jax.device_put(1.0, jax.devices("ipu")[0])))

jax.jit(lambda x: x * 2)(jax.device_put(1.0, jax.devices("ipu")[0]))
"""


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    "program, output",
    [(RUNNING, "called\n"), (LAST, "2.0\n")],
    ids=["while a program runs", "with a function that compiles"],
)
def test_process_ends(program: str, output: str) -> None:
    known = {name: value for name, value in os.environ.items() if not name.startswith("JAX")}
    done = subprocess.run(
        (sys.executable, "-c", program),
        cwd=ROOT,
        env={**known, "SNNJAX_IPU_TILES": "4"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")
