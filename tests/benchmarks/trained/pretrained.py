"""Keep the network of a run as a small file in docs/pretrained, which says what it was trained on and by which commit.

``python -m tests.benchmarks.trained.pretrained out/reproduce/nmnist-0 nmnist-conv`` after ``make reproduce``; the
licences are those of the data.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from snnjax import train
from snnjax.train.progress import CHECKPOINT
from snnjax.train.results import RUN
from tests.project.architecture import ROOT

FOLDER = ROOT / "docs/pretrained"
DATA = {
    "digits": "8,000 digits of MNIST (LeCun, Cortes, Burges) seen by the simulated camera",
    "qtdb": "QT database of PhysioNet (Laguna et al. 1997), ODC-By 1.0",
    "nmnist": "N-MNIST (Orchard et al. 2015), training recordings 1 to 1000, CC BY-SA 4.0",
    "cifar10": "CIFAR-10 (Krizhevsky 2009, which states no licence), images as JPEG",
    "speech": "Free Spoken Digit Dataset (Jackson et al.), CC BY-SA 4.0",
}


def keep(run: Path, path: Path, data: Path | None) -> None:
    """Write the network of a run to a file."""
    record = json.loads((run / RUN).read_text())
    settings = train.TaskSettings.from_header(train.read_run(run / CHECKPOINT))
    parts = train.load_task(settings, data)
    trained = train.read_trained(run / CHECKPOINT, parts.num_inputs, parts.num_classes)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    about = {"data": DATA[settings.task], "commit": commit.stdout.strip()}
    about["test_accuracy"] = record["test"]["accuracy"]
    path.parent.mkdir(exist_ok=True)
    train.save_trained(path, trained, about)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a run of snnjax train")
    parser.add_argument("name", help="of the file")
    parser.add_argument("--data", type=Path, help="as for snnjax train")
    options = parser.parse_args(arguments)
    keep(options.run, FOLDER / f"{options.name}.safetensors", options.data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
