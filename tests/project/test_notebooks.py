"""The notebooks run from top to bottom in a fresh process, and their stored outputs are those of their code."""

import json
import re

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from snnjax.ipu.device import library
from tests.project import notebooks
from tests.project.notebooks import NOTEBOOKS, code_cells, execute, fingerprint, read

# What a reader waits for, and a test need not: results of fewer steps run through the same code.
FEWER = {
    "02_train_on_events": ("EPOCHS, BATCH_SIZE = 5, 50", "EPOCHS, BATCH_SIZE = 1, 50"),
    "03_same_model_on_the_ipu": ("for epoch in range(3)", "for epoch in range(1)"),
    "05_your_own_neuron": ("for epoch in range(61)", "for epoch in range(11)"),
    "06_learn_delays": ("STEPS, BATCH_SIZE = 400, 64", "STEPS, BATCH_SIZE = 20, 64"),
    "07_convolutions": ("EPOCHS, BATCH_SIZE = 3, 20", "EPOCHS, BATCH_SIZE = 1, 20"),
    "09_simulate": ("CALLS, LARGEST = 4", "CALLS, LARGEST = 1"),
    "08_learn_from_a_stream": ("CHANNELS, ROUNDS = 200, 50, 40", "CHANNELS, ROUNDS = 200, 50, 4"),
}
MOST_BYTES = 500_000  # of a notebook with its pictures
PATH = re.compile(r"/(home|root|tmp|Users|work)/")


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
    notebook = read(path)
    needs_ipu = any("ipu" in cell.source for cell in code_cells(notebook))
    if needs_ipu and (sentence := library.missing()):
        pytest.skip(sentence)
    many, few = FEWER.get(path.stem, ("", ""))
    assert any(many in cell.source for cell in notebook.cells)
    for cell in notebook.cells if many else ():
        cell.source = cell.source.replace(many, few)
    execute(notebook, tmp_path)


def wrong(notebook):
    """What is wrong with the stored outputs."""
    found = []
    if notebook.metadata.get("code") != fingerprint(notebook):
        found.append("the code has changed")
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    if [cell.execution_count for cell in code_cells(notebook)] != list(
        range(1, len(code_cells(notebook)) + 1)
    ):
        found.append("cells did not run in order")
    if any(output.output_type == "error" or output.get("name") == "stderr" for output in outputs):
        found.append("an error or a warning")
    if PATH.search(
        json.dumps([output.get("text") or output.get("data", {}).get("text/plain") for output in outputs])
    ):
        found.append("a path of the machine")
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_the_code(path):
    """If they are not: `make notebooks`."""
    assert wrong(read(path)) == []
    assert path.stat().st_size < MOST_BYTES


def test_failing_cell_is_found(tmp_path):
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute(notebook_of("x = 1", "x / 0"), tmp_path)


def test_wrong_outputs_are_found(tmp_path, monkeypatch):
    path = tmp_path / "own.ipynb"
    nbformat.write(notebook_of("x = 1", "x"), path)
    assert wrong(read(path)) == ["the code has changed", "cells did not run in order"]
    monkeypatch.setattr(notebooks, "NOTEBOOKS", [path])
    notebooks.main([])
    stored = read(path)
    assert wrong(stored) == []
    assert stored.cells[1].outputs[0].data["text/plain"] == "1"
    stored.cells[1].source = "x + 1"
    stored.cells[1].outputs[0].data["text/plain"] = "'/home/me/x'"
    stored.cells[0].outputs = [nbformat.v4.new_output("stream", name="stderr", text="careful")]
    assert wrong(stored) == ["the code has changed", "an error or a warning", "a path of the machine"]
