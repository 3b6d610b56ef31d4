"""The notebooks run from top to bottom in a fresh process, and are stored without outputs."""

import os

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from snnjax.ipu.device import library
from tests.architecture import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Seconds for one cell: a cell that needs longer on two cores is too long for a reader too.
CELL_TIMEOUT = 120
# What a reader waits for, and a test need not: results of fewer steps run through the same code.
FEWER = {"06_learn_delays": ("STEPS, BATCH_SIZE = 400, 64", "STEPS, BATCH_SIZE = 40, 64")}


def unstripped(notebook):
    """The numbers of the code cells that hold outputs or a count of executions."""
    cells = enumerate(notebook.cells)
    return [
        number
        for number, cell in cells
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count is not None)
    ]


def execute(notebook, folder):
    """Run all cells with `folder` as the working directory; raises what the first failing cell raises."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "IPYTHONDIR": str(folder)}
    # Most of the time is compiling: of notebooks as of the pages.
    environment["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "1"
    # The kernel draws its plots inline, and uses the real devices, not those of the tests.
    for variable in ("MPLBACKEND", "JAX_PLATFORMS"):
        environment.pop(variable, None)
    client = NotebookClient(notebook, timeout=CELL_TIMEOUT, resources={"metadata": {"path": str(folder)}})
    client.execute(env=environment)


def notebook_of(*cells):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


def test_the_notebooks_are_there():
    names = {
        "01_first_spikes",
        "02_train_on_events",
        "03_same_model_on_the_ipu",
        "04_read_the_profile",
        "05_your_own_neuron",
        "06_learn_delays",
        "07_convolutions",
        "08_learn_from_a_stream",
        "09_simulate",
    }
    assert names <= {path.stem for path in NOTEBOOKS}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    if "ipu" in path.read_text() and (sentence := library.missing()):
        pytest.skip(sentence)
    text = path.read_text()
    many, few = FEWER.get(path.stem, ("", ""))
    assert many in text
    execute(nbformat.reads(text.replace(many, few) if many else text, as_version=4), tmp_path)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stripped(path):
    assert unstripped(nbformat.read(path, as_version=4)) == []


def test_failing_cell_is_found(tmp_path):
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute(notebook_of("x = 1", "x / 0"), tmp_path)


def test_outputs_are_found(tmp_path):
    notebook = notebook_of("x = 1", "x")
    assert unstripped(notebook) == []
    execute(notebook, tmp_path)
    assert unstripped(notebook) == [0, 1]
