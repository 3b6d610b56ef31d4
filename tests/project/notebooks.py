"""Execute the notebooks, and store their outputs with a fingerprint of the code that made them.

python -m tests.project.notebooks [number ...]
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.project.architecture import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Seconds for one cell: a cell that needs longer on two cores is too long for a reader too.
CELL_TIMEOUT = 120


def read(path: Path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def fingerprint(notebook) -> str:
    """The same for the same code."""
    code = "\0".join(cell.source for cell in code_cells(notebook))
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def execute(notebook, folder: Path) -> None:
    """Run all cells with `folder` as the working directory; raises what the first failing cell raises."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    shared = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "IPYTHONDIR": str(folder)}
    # The kernel draws its plots inline, and uses the real devices, not those of the tests.
    for variable in ("MPLBACKEND", "JAX_PLATFORMS"):
        shared.pop(variable, None)
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=CELL_TIMEOUT, resources=resources, record_timing=False)
    client.execute(env=shared)


def store(path: Path) -> None:
    """Execute a notebook, and keep the outputs and what they were made from."""
    notebook = read(path)
    with tempfile.TemporaryDirectory() as folder:
        execute(notebook, Path(folder))
    notebook.metadata.pop("language_info", None)  # it names the Python of this machine
    notebook.metadata["code"] = fingerprint(notebook)
    nbformat.write(notebook, path)


def main(words: Sequence[str]) -> None:
    for path in NOTEBOOKS:
        if not words or any(path.name.startswith(word) for word in words):
            store(path)


if __name__ == "__main__":
    main(sys.argv[1:])
