"""The results page: its content for several runs, and that the page in the documentation is up to date."""

import argparse
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest

from snnjax import leaky_readout, network
from snnjax.train import TASKS, FitResult, read_runs, results_page
from snnjax.train.results import record_run, write_run
from tests.benchmarks.trained import reproduce
from tests.project.architecture import ROOT

RUN = {
    "task": "digits",
    "network": "8",
    "epochs": 2,
    "validation_samples": 9,
    "parameters": 1234,
    "kernels": "avx2",
    "seed": 0,
    "cpu_seconds": 50.0,
    "peak_memory": 3 * 2**20,
    "energy": {"spiking": 2000.0, "memory": 1800.0, "once": 500.0, "every_step": 9000.0},
    "test": {
        "accuracy": 0.9,
        "activity": [0.02, 0.1],
        "dropped_share": [0.0, 0.01],
        "effective_acs": 2e6,
        "effective_macs": 1e6,
        "dense_operations": 6e6,
    },
}
OTHER = RUN | {
    "seed": 1,
    "cpu_seconds": 70.0,
    "test": RUN["test"] | {"accuracy": 0.8, "activity": [0.04, 0.1]},
}


def rows(runs: list[dict[str, Any]]) -> list[str]:
    return [line for line in results_page(runs).splitlines() if line.startswith("| digits")]


def test_page_has_means_and_spread_over_seeds() -> None:
    assert rows([RUN, OTHER]) == [
        "| digits | 8 | 85.00 ± 7.07 % | 2 | best of 2 epochs on 9 validation samples | 1,234 | 3.0 %, 10.0 % "
        "| 0.00 %, 1.00 % | 3 M, 50.0 % | 2 µJ, 90 % memory; int8 0.5 µJ once, 9 µJ every step | 60 s | 3 MiB | avx2 |"
    ]
    assert (
        " | 3 M, 50.0 % | not measured | 60 s" in rows([RUN | {"energy": None}, OTHER | {"energy": None}])[0]
    )


def test_runs_that_are_not_alike_are_not_averaged() -> None:
    assert [row.split(" | ")[2] for row in rows([RUN, OTHER | {"kernels": "neon"}])] == ["90.00 %", "80.00 %"]


def test_runs_of_other_settings_are_not_averaged(tmp_path: Path) -> None:
    """A quick look at few samples beside two whole runs, one of which is given by two places."""
    net, tested = network(3, [], leaky_readout(2)), RUN["test"]
    settings = TASKS["digits"]
    whole = [replace(settings, training=replace(settings.training, seed=seed)) for seed in (0, 1)]
    result = FitResult(net.init(jax.random.key(0)), {}, 1, [{"seconds": 2.0}], False)
    for number, own in enumerate([*whole, replace(settings, samples=60)]):
        run = record_run(own, net, result, tested, validation_samples=9)
        assert 0 < run["energy"]["memory"] < run["energy"]["spiking"]
        (tmp_path / str(number)).mkdir()
        write_run(tmp_path / str(number), run)
    runs = read_runs([tmp_path, tmp_path / "1"])
    assert len(runs) == 3
    assert [row.split(" | ")[3] for row in rows(runs)] == ["2", "1"]


def test_folds_and_their_rule_are_said() -> None:
    folds = [run | {"fold": run["seed"], "selection": "last"} for run in (RUN, OTHER)]
    (row,) = rows(folds)
    assert row.startswith("| digits, 2 folds | 8 | 85.00 ± 7.07 % | 2 | last of 2 epochs | 1,234 |")
    assert "| mean of the last 1 of 2 epochs |" in rows([RUN | {"selection": "average"}])[0]
    usual = RUN | {"selection": "last", "fold": None}
    assert [each.split(" | ")[0] for each in rows([*folds, usual, OTHER])] == ["| digits, 2 folds"] + 2 * [
        "| digits"
    ]


def test_reproduction_takes_the_paths_of_recordings() -> None:
    options = argparse.Namespace(only=None, nmnist=Path("events.npz"), speech=None, cifar10=None)
    wanted = reproduce.names(options)
    assert {"nmnist", "nmnist-folds", "digits"} <= set(wanted)
    assert not {"speech", "speech-folds", "spar"} & set(wanted)
    assert list(reproduce.seeds("nmnist-folds", 5)) == list(range(10)) and list(
        reproduce.seeds("qtdb", 2)
    ) == [0, 1]
    usual = ["--task", "nmnist", "--model", "conv", "--seed", "3", "--data", "events.npz"]
    assert reproduce.asks("nmnist", 3, options) == usual
    assert reproduce.asks("nmnist-folds", 3, options) == [*usual[:6], "--fold", "3", *usual[6:]]
    assert reproduce.asks("qtdb", 1, options) == ["--task", "qtdb", "--seed", "1"]
    assert list(reproduce.seeds("cifar10", 5)) == [0, 1]  # hours each
    assert reproduce.names(argparse.Namespace(only=["spar"])) == ("spar",)


def test_parts_that_differ_between_seeds_are_given_as_a_range() -> None:
    (row,) = rows([RUN, OTHER | {"validation_samples": 12}])
    assert "| 85.00 ± 7.07 % | 2 | best of 2 epochs on 9 to 12 validation samples |" in row


@pytest.mark.parametrize(
    "change, message",
    [
        ({"kernels": None}, "have kernels as str, got None"),
        ({"seed": 0.5}, "have seed as int, got 0.5"),
        ({"seed": True}, "have seed as int, got True"),
        ({"peak_memory": "much"}, "have peak_memory as int, float or NoneType, got 'much'"),
        ({"test": [0.9]}, "have test as dict, got [0.9]"),
        ({"test": {}}, "have accuracy as int or float, got none"),
        ({"test": RUN["test"] | {"activity": [0.1, "a"]}}, "have activity as list, got [0.1, 'a']"),
        ({"test": RUN["test"] | {"dense_operations": 0}}, "have positive dense_operations, got 0"),
    ],
)
def test_damaged_records_are_refused(change: dict[str, Any], message: str) -> None:
    text = f"results_page: `runs` must {message}. Pass run.json files that `snnjax train` wrote."
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        results_page([RUN | change])


def test_what_a_run_does_not_know_is_not_measured() -> None:
    assert "| not measured | not measured |" in rows([RUN | {"cpu_seconds": None, "peak_memory": None}])[0]


def test_documented_page_is_that_of_the_records() -> None:
    page = (ROOT / "docs/explanation/results.md").read_text()
    assert page == reproduce.page()


def test_reproduction_says_how_long_it_will_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "RECORDS", tmp_path / "runs.jsonl")
    reproduce.RECORDS.touch()
    reproduce.keep([{"run": "digits"} | run for run in (OTHER, RUN | {"cpu_seconds": 7.0})])
    reproduce.keep([{"run": "digits"} | RUN])  # once more, with other seconds
    assert [run["seed"] for run in reproduce.recorded()] == [0, 1]
    expected = "about 2 minutes of CPU time where the records were made"
    assert reproduce.announce(["digits", "digits"]) == expected
    assert reproduce.announce(["digits", "qtdb"]) == (
        "about 1 minutes of CPU time where the records were made, besides those of qtdb, which are not recorded"
    )
