"""One of several processes that train together, each with its own devices.

    python -m tests.train.one_process PORT PROCESSES INDEX FOLDER [EPOCH AFTER WHICH IT IS KILLED]

It continues from the checkpoint in FOLDER if there is one, and writes the parameters to FOLDER/INDEX.npz.
"""

import os
import signal
import sys
import time
from pathlib import Path

import jax
import numpy as np

from snnjax import losses, train
from tests.train.toy import CONFIG, NET, VALIDATION, events


def main(port: str, processes: str, index: str, folder: str, last: str = "") -> None:
    jax.distributed.initialize(f"127.0.0.1:{port}", int(processes), int(index))

    def die(line) -> None:
        if str(line["epoch"]) == last:
            while not (Path(folder) / "checkpoint.safetensors").exists():  # which another process writes
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGKILL)

    options = {"loss": losses.cross_entropy_sum, "config": CONFIG, "folder": folder, "on_epoch": die}
    resume = (Path(folder) / "checkpoint.safetensors").exists()
    params = NET.init(jax.random.key(0))
    result = train.fit(NET, params, events(0), VALIDATION, resume=resume, **options)
    np.savez(Path(folder) / f"{index}.npz", *jax.tree.leaves(result.params))


if __name__ == "__main__":
    main(*sys.argv[1:])
