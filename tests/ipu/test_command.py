"""``snnjax ipu-model run``: what it writes, and how it says that something is wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

from snnjax import cli
from snnjax.ipu import Profile
from snnjax.ipu.harness import OPS

pytestmark = pytest.mark.usefixtures("model")
RUN = ("ipu-model", "run")
SMALL = (
    "--steps",
    "3",
    "--batch",
    "2",
    "--inputs",
    "9",
    "--neurons",
    "7",
    "5",
    "--slots",
    "4",
    "--capacity",
    "3",
)


@pytest.mark.parametrize("op", OPS)
def test_run_of_an_example_prints_costs_and_results(op: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*RUN, op, *SMALL, "--tiles", "5", "--ipus", "2", "--chip", "c600"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("IPU Model (not measured on hardware): 2 x c600, 5 tiles each")
    first = {"spike_matmul": "out: float32[2, 7]", "select_spikes": "ids: int32[2, 3]"}
    first |= {"lif_step": "v_new: float32[2, 7]", "lif_network": "output: float32[3, 2, 10]"}
    assert first.get(op, "new_weights1: float32[7, 5]") in out
    assert err == ""


def test_run_writes_results_and_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("arrays.npz", "results.npz", "profile.json", "profile.html")
    arrays, results, profile, page = (tmp_path / name for name in names)
    np.savez(arrays, v=np.array([[0.5, 1.5, 1.25]], np.float32))
    files = ("--arrays", str(arrays), "--out", str(results), "--json", str(profile), "--html", str(page))
    assert cli.main([*RUN, "select_spikes", *files, "--tiles", "1", "--set", "capacity=1", "slope=2.5"]) == 0
    with np.load(results) as file:
        assert file["ids"].tolist() == [[1]]
        assert file["num_spikes"].tolist() == [2]
    assert json.loads(profile.read_text())["tiles_per_ipu"] == 1
    assert page.read_text(encoding="utf-8") == Profile(profile.read_text()).html()
    assert "num_spikes: int32[1]\n" in capsys.readouterr().out


def test_half_forward_only_runs_fewer_programs(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--tiles", "3", "--set", "reset=zero", "detach_reset=false", "capacity=None,3")
    assert cli.main([*RUN, "lif_network", *SMALL, "--half", "--forward-only", *options]) == 0
    out = capsys.readouterr().out
    assert "snnjax::LifForward<half,short unsigned int>" in out
    assert "backward" not in out


@pytest.mark.parametrize("op", ["lif_network", "training_step"])
def test_recurrent_and_dense_examples_run(op: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*RUN, op, *SMALL, "--tiles", "5", "--recurrent", "--dense"]) == 0
    out = capsys.readouterr().out
    assert "snnjax::LifRecurrentForward<float,short unsigned int>" in out
    assert "snnjax::ListInputs<short unsigned int>" in out
    assert ("g_recurrent1: float32[5, 5]" if op == "lif_network" else "new_recurrent1: float32[5, 5]") in out


@pytest.mark.parametrize(
    "options, message",
    [
        (("--set", "reset=soft"), "snnjax: lif_network: `reset` must be one of 'subtract', 'zero', 'none', got 'soft'"),
        (("--set", "speed=3"), "unexpected keyword argument 'speed'"),
        (("--arrays", "/no/such/file"), "No such file"),
        (("--tiles", "0"), "snnjax: run_on_model: `num_tiles` must be at least 1, got 0."),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(
    options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*RUN, "lif_network", *SMALL, *options]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
