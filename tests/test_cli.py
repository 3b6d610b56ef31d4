"""The command line: its output, its exit codes and its error messages."""

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest

from snnjax import __version__, cli, train
from snnjax.cli import _text, _train
from snnjax.ipu.device import library
from snnjax.train.lock import locked
from tests.numbers import assert_same_bits
from tests.project import command_line

TINY = ("--task", "digits", "--hidden", "12", "--samples", "60", "--batch-size", "16", "--epochs", "2")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory) -> Path:
    """A folder in which a tiny network was trained."""
    folder = tmp_path_factory.mktemp("run")
    assert cli.main(["train", *TINY, "--out", str(folder)]) == 0
    return folder


def header_of(folder: Path) -> dict[str, Any]:
    return train.read_run(folder / "checkpoint.safetensors")


def line_with(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(start))


def test_page_of_the_command_line_is_that_of_its_parser() -> None:
    remedy = "run python -m tests.project.command_line"
    assert command_line.PAGE.read_text() == command_line.page(), remedy


def test_version_is_that_of_the_package(capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"snnjax {__version__}\n"


# A program that is interrupted while XLA compiles, which takes seconds.
INTERRUPTED_PROGRAM = """
import argparse, atexit, os, signal, sys, threading
import jax, jax.numpy as jnp
from snnjax import cli

def rows(x):
    for number in range(60):
        x = jnp.sort(jnp.sin(x @ x) + number)
    return x

def run(_):
    print("begun")
    traced = jax.jit(rows).lower(jnp.ones((64, 64)))
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    traced.compile()

jax.config.update("jax_disable_most_optimizations", False)
signal.signal(signal.SIGINT, signal.default_int_handler)
cli.command_line = argparse.ArgumentParser
argparse.ArgumentParser.parse_args = lambda *_: argparse.Namespace(run=run)
cli.program()
"""


def test_a_program_interrupted_while_it_compiles_ends_in_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "begun\n", "snnjax: interrupted\n")


@pytest.mark.parametrize("code", [0, 2])
def test_a_program_ends_with_the_code_of_its_command(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "main", lambda: code)
    with pytest.raises(SystemExit) as ended:
        cli.program()
    assert ended.value.code == code


def test_train_writes_pictures_metrics_and_checkpoint(run_folder) -> None:
    pictures = {"raster.png", "overview.png", "curves.png", "activity.png"}
    names = pictures | {"checkpoint.safetensors", "metrics.jsonl", "test.json", "run.json"}
    assert {path.name for path in run_folder.iterdir()} == names
    for name in pictures:
        assert (run_folder / name).read_bytes().startswith(b"\x89PNG")
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2]
    assert lines[0].keys() >= {
        *("train_loss", "train_accuracy", "validation_loss", "validation_accuracy"),
        *("activity", "dropped_share", "events_per_second"),
    }


def test_train_resumed_at_its_end_says_the_same(run_folder, capsys) -> None:
    # without an option of training but --resume: the settings are those of the run
    assert cli.main(["train", "--out", str(run_folder), "--resume", "--energy"]) == 0
    out, err = capsys.readouterr()
    assert re.match(r"spiking: [\d.]+ nJ = [\d.]+ additions \+ [\d.]+ weights", line_with(out, "spiking"))
    accuracy = 100 * json.loads((run_folder / "test.json").read_text())["accuracy"]
    assert line_with(out, "task") == (
        "task digits: 2312 inputs, hidden layers 12, 10 classes, spike lists of 10 % of the width; "
        "7 validation samples"
    )
    assert line_with(out, "test accuracy").startswith(f"test accuracy {accuracy:.2f} % (epoch ")
    assert re.search(r"training ran at [\d.]+ [kM] events/s\n", out)
    assert err == ""


def test_labels_of_steps_are_learned_and_tested(tmp_path, capsys) -> None:
    tiny = ("--hidden", "4", "--samples", "10", "--batch-size", "3", "--epochs", "1")
    assert cli.main(["train", "--task", "qtdb", *tiny, "--out", str(tmp_path)]) == 0
    tested = json.loads((tmp_path / "test.json").read_text())
    right = tested["accuracy"] * 10 * 1301  # all steps count
    assert right == pytest.approx(round(right), rel=1e-6) and 0 < tested["accuracy"] < 1
    assert tested["samples"] == 10 and "1 validation samples" in capsys.readouterr().out


def test_results_are_one_page_of_the_runs(run_folder, tmp_path, capsys) -> None:
    run = json.loads((run_folder / "run.json").read_text())
    tested = json.loads((run_folder / "test.json").read_text())
    weights = 2312 * 12 + 12 * 10
    assert run["test"]["accuracy"] == tested["accuracy"] and run["parameters"] >= weights
    assert run["cpu_seconds"] is None or run["cpu_seconds"] > 0
    assert cli.main(["results", str(run_folder), "--page", str(tmp_path / "page.md")]) == 0
    assert cli.main(["results", str(run_folder)]) == 0
    page = capsys.readouterr().out
    assert page == (tmp_path / "page.md").read_text()
    start = (
        f"| digits | 12 (lif, lists of 10 %) | {100 * tested['accuracy']:.2f} % | 1 | best of 2 epochs on 7 "
    )
    assert page.splitlines()[-3].startswith(start)


def test_folders_without_a_run_are_said_in_one_line(tmp_path, capsys) -> None:
    assert cli.main(["results", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"snnjax: read_runs: `places` must hold records of runs, got {tmp_path}. "
        "Train with `snnjax train`, and pass the folder given as --out.\n"
    )
    (tmp_path / "run.json").write_text("[]")
    assert cli.main(["results", str(tmp_path)]) == 2
    assert "hold records of runs, got " in capsys.readouterr().err


def test_used_folder_is_kept(run_folder, capsys) -> None:
    before = (run_folder / "checkpoint.safetensors").read_bytes()
    assert cli.main(["train", *TINY, "--out", str(run_folder)]) == 2
    assert capsys.readouterr().err == (
        f"snnjax: fit: `folder` must hold no checkpoint yet, got {run_folder / 'checkpoint.safetensors'}. "
        "Continue from it with resume, replace it with overwrite, or choose another folder.\n"
    )
    assert (run_folder / "checkpoint.safetensors").read_bytes() == before


def test_results_are_not_written_beside_a_run_nor_for_another_checkpoint(
    run_folder, capsys, monkeypatch
) -> None:
    results, evaluate = run_folder / "test.json", train.evaluate
    before = results.stat().st_mtime_ns
    with locked(run_folder):
        assert cli.main(["evaluate", str(run_folder)]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("test accuracy") and "must belong to one run" in err

    def late(*args, **options):
        os.utime(run_folder / "checkpoint.safetensors")  # a run replaces it meanwhile
        return evaluate(*args, **options)

    monkeypatch.setattr(train, "evaluate", late)
    assert cli.main(["evaluate", str(run_folder)]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("test accuracy") and err == (
        "snnjax: evaluate: `run` must still have the tested checkpoint, got a newer one. Evaluate it again.\n"
    )
    assert results.stat().st_mtime_ns == before


def test_checkpoint_of_a_newer_version_is_one_line(run_folder, tmp_path, capsys) -> None:
    header = train.read_run(run_folder / "checkpoint.safetensors")
    header["settings"]["dropout"] = 0.1
    train.save_checkpoint(tmp_path / "checkpoint.safetensors", {}, header)
    assert cli.main(["evaluate", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        "snnjax: TaskSettings.from_header: `header` must hold the settings of this version, got dropout. "
        "Use the version of snnjax that trained it.\n"
    )


@pytest.mark.parametrize("batch, hint", [(32, "Try --batch-size 16"), (1, "Try fewer --hidden neurons")])
def test_batch_that_no_tile_holds_is_said_with_a_hint(tmp_path, capsys, monkeypatch, batch, hint) -> None:
    """As of the convolutional network on the IPU; its graph takes minutes to compile."""

    def fit(*_: object, **__: object) -> None:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Engine: `graph` must fit.")

    monkeypatch.setattr(train, "fit", fit)
    options = ["--task", "digits", "--samples", "20", "--batch-size", str(batch), "--out", str(tmp_path)]
    assert cli.main(["train", *options]) == 2
    expected = f"train: `batch_size` must fit into the memory of the device, got {batch} "
    error = capsys.readouterr().err
    assert error.startswith(f"snnjax: {expected}(RESOURCE_EXHAUSTED: Engine: `graph` must fit). {hint}.")


@pytest.mark.skipif(library.missing() is not None, reason=str(library.missing()))
def test_train_on_the_ipu_learns_the_same_and_tells_what_a_step_costs(tmp_path, capsys) -> None:
    tiny = ("--task", "vowels", "--hidden", "12", "--samples", "40", "--batch-size", "8", "--epochs", "1")
    lines = {}
    for device in ("cpu", "ipu"):
        folder = tmp_path / device
        assert cli.main(["train", *tiny, "--out", str(folder), "--device", device]) == 0
        lines[device] = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    out = capsys.readouterr().out
    assert "IPU Model (not measured on hardware): train_step on 1 x mk2, 8 tiles each" in out
    assert re.search(r"\na step of 8 samples would take [\d.]+ ms \(not measured on hardware\)", out)
    assert "Nothing here was measured on hardware" in (folder / "profile.html").read_text(encoding="utf-8")
    assert not (tmp_path / "cpu" / "profile.html").exists()
    for there, here in zip(lines["ipu"], lines["cpu"], strict=True):
        assert there["train_loss"] == pytest.approx(here["train_loss"], rel=0.02)
        assert there["activity"] == pytest.approx(here["activity"], rel=0.05)


def test_device_that_is_not_there_is_said_in_one_line(tmp_path, capsys) -> None:
    assert cli.main(["train", *TINY, "--out", str(tmp_path), "--device", "abacus"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("snnjax: train: `device` must be a platform that JAX has here, got 'abacus' (")
    assert err.endswith("Omit it.\n") and err.count("\n") == 1


def test_evaluate_finds_the_accuracy_of_training(run_folder, capsys) -> None:
    before = json.loads((run_folder / "test.json").read_text())
    assert cli.main(["evaluate", str(run_folder)]) == 0
    assert f"test accuracy {100 * before['accuracy']:.2f} %" in capsys.readouterr().out
    assert json.loads((run_folder / "test.json").read_text())["loss"] == before["loss"]


def test_evaluate_takes_a_file_of_a_network_alone(run_folder, tmp_path, capsys) -> None:
    trained = train.read_trained(run_folder / "checkpoint.safetensors", 2312, 10)
    train.save_trained(tmp_path / "small.safetensors", trained, {"data": "here"})
    before = json.loads((run_folder / "test.json").read_text())
    assert cli.main(["evaluate", str(tmp_path / "small.safetensors")]) == 0
    assert f"test accuracy {100 * before['accuracy']:.2f} %" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["small.safetensors"]


def test_info_names_versions_devices_and_a_checkpoint(run_folder, capsys) -> None:
    assert cli.main(["info", "--checkpoint", str(run_folder / "checkpoint.safetensors")]) == 0
    out = capsys.readouterr().out
    for start in ("snnjax", "jax ", "python", "devices", "ops", "tasks"):
        assert line_with(out, start)
    assert re.match(
        r"IPUs +(4 x mk2 of 8 tiles, modelled: nothing has run on hardware|none \(.+\))",
        line_with(out, "IPUs"),
    )
    assert line_with(out, "  epochs").split()[1:4] == ["2", "of", "2,"]
    assert "  hidden: [12]\n" in out


def test_info_shows_a_run_of_the_callers_own_network(tmp_path, capsys) -> None:
    header = {"epoch": 1, "best_epoch": 1, "metrics": [{"validation_accuracy": 0.5}]}
    header |= {"config": {"epochs": 2}, "settings": {"sensor": "left"}}
    train.save_checkpoint(tmp_path / "checkpoint.safetensors", {}, header)
    assert cli.main(["info", "--checkpoint", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("50.00 % on validation data\n  sensor: left\n")


def test_model_of_residual_blocks_is_trained_and_described(tmp_path, capsys) -> None:
    tiny = (
        "--samples",
        "40",
        "--batch-size",
        "16",
        "--epochs",
        "1",
        "--hidden",
        "12",
        "--out",
        str(tmp_path),
    )
    assert cli.main(["train", "--model", "residual", *tiny]) == 0
    assert line_with(capsys.readouterr().out, "task digits: ").startswith(
        "task digits: 34x34x2 inputs, hidden layers 34x34x16 - 17x17x28 - 17x17x28 - 12, 10 classes, "
    )
    trained = json.loads((tmp_path / "test.json").read_text())
    assert 0 < trained["effective_acs"] < trained["dense_operations"]
    assert cli.main(["evaluate", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "test.json").read_text())["loss"] == trained["loss"]
    capsys.readouterr()
    assert cli.main(["info", "--checkpoint", str(tmp_path)]) == 0
    plan = train.build_network(train.TaskSettings.from_header(header_of(tmp_path)), 1, 1).paths
    assert plan.startswith("fused: conv2d_0 > batch_norm_0 > lif_0\n")
    assert capsys.readouterr().out.endswith("".join(f"  {line}\n" for line in plan.splitlines()))
    assert cli.main(["train", "--model", "dense", "--resume", *tiny]) == 2
    assert "`convolutions` must be" in capsys.readouterr().err


def test_epoch_line_reads_well() -> None:
    line = {"epoch": 3, "train_loss": 0.5, "train_accuracy": 0.925, "validation_accuracy": 1.0}
    line |= {"activity": [0.031, 0.04], "dropped_share": [0.001, 0.0], "seconds": 2.5}
    assert _text.epoch_line(line, 12) == (
        "epoch  3/12  loss 0.500  accuracy  92.5 % train, 100.0 % validation  "
        "activity 3.1 % 4.0 %  dropped 0.10 % 0.00 %  2.5 s\n"
    )


@pytest.mark.parametrize("number, text", [(12, "12"), (1234, "1.23 k"), (5.678e6, "5.68 M"), (3e10, "30 G")])
def test_big_numbers_have_units(number: float, text: str) -> None:
    assert _text.big(number) == text


def test_command_line_knows_every_task() -> None:
    assert set(_train.TASK_NAMES) == set(train.TASKS)


def test_options_change_the_settings_of_the_task() -> None:
    options = ["--task", "digits", "--seed", "3", "--second-threshold", "0.8", "--hidden", "5", "4"]
    settings = _train.settings_of(cli.command_line().parse_args(["train", *options]))
    expected = train.TASKS["digits"]
    training = replace(expected.training, seed=3, second_threshold=0.8)
    assert settings == replace(expected, hidden=(5, 4), training=training)
    settings = _train.settings_of(cli.command_line().parse_args(["train", "--dense"]))
    assert settings == replace(expected, capacity=None)
    # the second threshold of the task goes with its lists
    settings = _train.settings_of(cli.command_line().parse_args(["train", "--task", "cifar10", "--dense"]))
    assert settings.capacity is None and settings.training.second_threshold is None


def test_model_of_a_resumed_run_is_its_own_or_differs(monkeypatch) -> None:
    """Other settings than those of the checkpoint are refused, so another model must never yield the same ones."""
    models = {}
    for task in _train.TASK_NAMES:
        for model in ("dense", "conv", "residual", "small", "delayed", "vgg", "sew", "spikformer"):
            with contextlib.suppress(ValueError):
                models[task, model] = train.task_settings(task, model)
    assert len(models) > len(_train.TASK_NAMES) + 5
    for (task, model), stored in models.items():
        header = {"settings": stored.as_dict(), "config": dataclasses.asdict(stored.training)}
        monkeypatch.setattr(train, "read_run", lambda path, header=header: json.loads(json.dumps(header)))
        for other in (model for own, model in models if own == task):
            options, is_same = cli.command_line().parse_args(["train", "--resume", "--model", other]), False
            with contextlib.suppress(ValueError):  # dense layers that the run has none of
                is_same = _train.settings_of(options) == stored
            assert is_same == (other == model)


FAILURES = {
    "no checkpoint": (
        ["evaluate", "nowhere"],
        "read_run: `path` must be a checkpoint, got no file at nowhere/checkpoint.safetensors. "
        "Train first, or correct the path.",
    ),
    "no data": (
        ["train", "--task", "shd"],
        "load_task: `folder` must hold the data, got None. "
        "Download shd_train.h5 and shd_test.h5 from zenkelab.org/datasets, and pass --data.",
    ),
    "setting": (
        ["train", "--epochs", "0"],
        "TrainConfig: `epochs` must be an integer of at least 1, got 0. Pass 1 or more.",
    ),
    "samples": (
        ["train", "--samples", "-5"],
        "TaskSettings: `samples` must be an integer of at least 1, got -5. Pass 1 or more.",
    ),
    "width": (
        ["train", "--hidden", "8", "0"],
        "train: `hidden` must hold widths of at least 1, got 8 0. Try --hidden 512 256.",
    ),
    "second threshold without lists": (
        ["train", "--task", "qtdb", "--second-threshold", "0.5"],
        "train: `second_threshold` must come with spike lists, got 0.5 for the dense spikes of qtdb. "
        "Add --capacity 0.1, or omit it.",
    ),
    "second threshold above the threshold": (
        ["train", "--second-threshold", "2"],
        "train: `second_threshold` must be at most the threshold, 1, got 2. Try 0.9.",
    ),
    "bound without a penalty": (
        ["train", "--rule", "eprop", "--activity-bound", "0.02"],
        "train: `activity_bound` must come with a penalty, got 0.02 with a strength of 0. "
        "Add --activity-strength 1, or omit it.",
    ),
    "bound with a penalty of 0": (
        ["train", "--activity-bound", "0.02", "--activity-strength", "0"],
        "train: `activity_bound` must come with a penalty, got 0.02 with a strength of 0. "
        "Add --activity-strength 1, or omit it.",
    ),
    "folder of data in the package": (
        ["train", "--data", "mnist"],
        "load_task: `folder` must be None for digits, whose data come with the package, got 'mnist'. Leave it out.",
    ),
    "share of people": (
        ["train", "--task", "spar", "--validation-share", "0.5"],
        "TaskSettings: `validation_share` must be 0 or 0.25, 2 of 8 people, for spar, got 0.5. Pass one of these.",
    ),
    "share of data with a validation part": (
        ["train", "--task", "ssc", "--validation-share", "0.2"],
        "TaskSettings: `validation_share` must be 0.1 for ssc, which has its own validation part, where it has no "
        "effect, got 0.2. Leave it out.",
    ),
    "name": (
        ["new", "my-task"],
        "new: `name` must be a word of letters, digits and _, got 'my-task'. Try my_task.",
    ),
    "folder": (
        ["new", "nowhere/task"],
        "new: `name` must be in a folder that exists, got 'nowhere/task.py'. Make the folder first.",
    ),
    "seed": (
        ["train", "--seed", str(10**20)],
        "TrainConfig: `seed` must be below 2**63, got 100000000000000000000. Pass a smaller integer.",
    ),
}


@pytest.mark.parametrize("case", sorted(FAILURES))
def test_our_errors_are_one_line_and_exit_code_2(case: str, capsys) -> None:
    arguments, text = FAILURES[case]
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == f"snnjax: {text}\n"


def test_lists_shorter_than_the_activity_that_is_allowed_are_warned_of(capsys, monkeypatch) -> None:
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "load_task", stop)
    warning = (
        "snnjax: warning: spike lists hold 0.01 % of a layer, but up to 4 % of its neurons may spike in a step: "
        "the spikes that do not fit are lost. Try --capacity 0.1.\n"
    )
    for capacity, said in ("0.0001", warning), ("0.04", ""):
        assert cli.main(["train", "--capacity", capacity]) == _text.INTERRUPTED
        assert capsys.readouterr().err == f"{said}snnjax: interrupted\n"


def test_new_writes_a_script_that_trains(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "my_task"]) == 0
    assert capsys.readouterr().out == "wrote my_task.py; run it with: python my_task.py\n"
    script = Path("my_task.py").read_text(encoding="utf-8").replace("epochs=10", "epochs=2")
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(script, "my_task.py", "exec"), names)
    assert re.search(r"^test accuracy \d+\.\d %, 8707 parameters$", capsys.readouterr().out, re.MULTILINE)
    written = {path.name for path in Path("out/my_task").iterdir()}
    pictures = {"curves.png", "confusion.png", "sample.png"}
    assert written == {"checkpoint.safetensors", "metrics.jsonl", "trained.safetensors"} | pictures
    network, saved = names["load"]()
    like = {"best_params": jax.eval_shape(network.init, jax.random.key(0))}
    of_fit, _ = train.load_checkpoint("out/my_task/checkpoint.safetensors", like, network)
    assert_same_bits(saved, of_fit["best_params"])
    assert cli.main(["new", "my_task"]) == 2
    assert capsys.readouterr().err == (
        "snnjax: new: `name` must be that of a new file, got 'my_task.py', which exists. Choose another name.\n"
    )


def test_help_of_train_lists_the_defaults_of_every_task(capsys) -> None:
    with pytest.raises(SystemExit):
        cli.main(["train", "--help"])
    lines = capsys.readouterr().out.splitlines()
    for name, settings in train.TASKS.items():
        training = settings.training
        numbers = [
            *(settings.hidden or [settings.model]),
            settings.capacity or "--dense",
            training.epochs,
            training.batch_size,
        ]
        numbers += [training.learning_rate, training.activity_bound]
        assert [name, *map(str, numbers)] in [line.split() for line in lines]


def test_resume_with_other_settings_is_refused(run_folder, capsys) -> None:
    assert cli.main(["train", *TINY, "--seed", "1", "--out", str(run_folder), "--resume"]) == 2
    assert capsys.readouterr().err == (
        "snnjax: fit: `seed` must be 0 as in the checkpoint, got 1. "
        "Resume with the settings of the checkpoint, or start a new run in another folder.\n"
    )


def test_mistakes_of_ours_keep_their_traceback(monkeypatch) -> None:
    def broken(folder):
        raise ValueError("shapes do not match")

    monkeypatch.setattr(train, "read_run", broken)
    with pytest.raises(ValueError, match=r"^shapes do not match$"):
        cli.main(["evaluate"])


def test_interrupt_before_training_is_one_line(monkeypatch, capsys) -> None:
    def interrupted(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "read_run", interrupted)
    assert cli.main(["evaluate"]) == 130
    assert capsys.readouterr().err == "snnjax: interrupted\n"


@pytest.mark.parametrize(
    "losses, text",
    [
        ([], "stopped in the first epoch; nothing is saved before its end\n"),
        ([0.5], "stopped after 1 epoch; continue with --resume\n"),
        ([0.5, 0.4], "stopped after 2 epochs; continue with --resume\n"),
        ([0.5, float("nan")], "stopped after 2 epochs; start again with other settings and --overwrite\n"),
    ],
)
def test_training_that_ended_early_says_how_to_go_on(losses, text) -> None:
    assert _text.stopped_line([{"train_loss": loss} for loss in losses]) == text


def test_wrong_options_are_named_by_the_parser(capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["train", "--capacity", "0.1", "--dense"])
    assert caught.value.code == 2
    assert "--dense: not allowed with argument --capacity" in capsys.readouterr().err


def test_warnings_are_one_line(run_folder, capsys, monkeypatch) -> None:
    import warnings

    def warn(*_):
        warnings.warn("layer 1 is silent", RuntimeWarning, stacklevel=1)
        settings = train.TASKS["digits"]
        header = {"settings": settings.as_dict(), "config": dataclasses.asdict(settings.training)}
        return {"best_epoch": 0, "metrics": [], "epoch": 0, **header}

    monkeypatch.setattr(train, "read_run", warn)
    assert cli.main(["info", "--checkpoint", "some"]) == 0
    assert capsys.readouterr().err == "snnjax: warning: layer 1 is silent\n"


def test_help_needs_none_of_the_optional_packages() -> None:
    code = (
        "import sys; from snnjax import cli\n"
        "try: cli.main(['train', '--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit(any(name in sys.modules for name in ('optax', 'matplotlib', 'tqdm', 'h5py')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--second-threshold" in done.stdout


def test_train_on_two_devices_learns_what_one_learns(run_folder, tmp_path) -> None:
    assert cli.main(["train", *TINY, "--out", str(tmp_path), "--devices", "2"]) == 0
    here, there = (json.loads((folder / "test.json").read_text()) for folder in (tmp_path, run_folder))
    assert here["loss"] == pytest.approx(there["loss"], rel=1e-4)  # gradients are added in another order


MISTAKES = {
    ("--devices", "9"): "train: `devices` must be at most 4, the number available, got 9. Choose fewer.",
    (
        "--devices",
        "0",
    ): "train: `devices` must be an integer of at least 1, got 0. Pass 1 or more.",
}


@pytest.mark.parametrize("options", MISTAKES)
def test_devices_that_are_not_there_are_said_in_one_line(tmp_path, capsys, options) -> None:
    assert cli.main(["train", *TINY, "--out", str(tmp_path), *options]) == 2
    assert capsys.readouterr().err == f"snnjax: {MISTAKES[options]}\n"


def test_processes_that_cannot_be_joined_are_said_in_one_line(tmp_path, capsys) -> None:
    # JAX runs already, so it is too late.
    assert cli.main(["train", *TINY, "--out", str(tmp_path), "--processes", "2"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("snnjax: train: `processes` must be known to JAX, got '") and err.count("\n") == 1
    assert err.endswith("Pass --coordinator, --processes and --process.\n")
