"""The guard of the benchmarks finds slowdowns, and reports what it cannot compare."""

import json

import pytest

from tests.benchmarks import __main__ as benchmarks
from tests.benchmarks import compare, report
from tests.benchmarks.tables import Table

MACHINE = {"processor": "made up", report.KERNELS: "avx2"}
COLUMN, EVENTS = "training step", "snnjax, events"
PLAIN_SECONDS = (4.0, 3.9, 4.1, 4.0, 4.2)
# Their times: a ratio of 2, and ratios a tenth lower and a little higher.
KEPT, SLIGHTLY_SLOWER, SLOWER = 2.0, 2.1, 2.3


@pytest.fixture(autouse=True)
def expected(monkeypatch, tmp_path):
    """The folder of stored ratios, empty."""
    folder = tmp_path / "expected"
    monkeypatch.setattr(compare, "EXPECTED", folder)
    return folder


def results(seconds, name=EVENTS, section="W3", machine=MACHINE):
    """The results of a run in which one of our alternatives took this long."""
    rounds = {"plain JAX, a": PLAIN_SECONDS, "plain JAX, b": [9.0] * 5, name: [seconds] * 5}
    cells = {(COLUMN, alternative): [*values] for alternative, values in rounds.items()}
    memory = Table("memory", cells, unit="MB", section=section)
    tables = [Table(f"{section}, small", cells, section=section), memory]
    return {**report.content(tables), "machine": machine}


def written(path, content):
    path.write_text(json.dumps(content))
    return str(path)


def compare_runs(monkeypatch, tmp_path, *seconds):
    """The exit status of a comparison whose runs, one after the other, take so long; and the sections of each run."""
    runs, asked = iter(seconds), []

    def run(plan, names, folder):
        asked.append([*names])
        return results(next(runs))

    monkeypatch.setattr(benchmarks, "run", run)
    monkeypatch.setattr(report, "machine", lambda: MACHINE)
    return benchmarks.main(["--compare", "--out", str(tmp_path)]), asked


def test_ratios_are_kept_by_section(expected):
    compare.keep(results(KEPT, section="W3"))
    path = compare.keep(results(1.5, section="W2", machine={**MACHINE, "processor": "another"}))
    kept = json.loads(path.read_text())
    assert path == expected / "avx2.json"
    assert [*kept] == ["W2", "W3"]
    assert kept["W2"]["machine"]["processor"] == "another"
    # Neither plain JAX nor megabytes, with three digits.
    assert kept["W2"]["ratios"] == {"W2, small": {COLUMN: {EVENTS: 2.67}}}
    assert kept["W3"] == {"machine": MACHINE, "ratios": {"W3, small": {COLUMN: {EVENTS: 2.0}}}}


def test_loss_is_found_when_it_is_measured_twice(monkeypatch, tmp_path, capsys):
    compare.keep(results(KEPT))
    status, asked = compare_runs(monkeypatch, tmp_path, SLOWER, SLOWER)
    assert (status, asked) == (1, [["W3"], ["W3"]])
    said = capsys.readouterr().out
    assert f"| {COLUMN} | {EVENTS} | 2.00x | 1.74x (1.74 to 1.78) | -13 % LOST |" in said
    assert "1 of 1 ratios lost more than 10 %, 0 are missing." in said


def test_noise_is_measured_again_and_forgiven(monkeypatch, tmp_path, capsys):
    compare.keep(results(KEPT))
    status, asked = compare_runs(monkeypatch, tmp_path, SLOWER, SLIGHTLY_SLOWER)
    assert (status, len(asked)) == (0, 2)
    assert "| -5 % |" in capsys.readouterr().out


@pytest.mark.parametrize("seconds", [1.0, KEPT, SLIGHTLY_SLOWER])
def test_what_is_no_loss_is_measured_once(monkeypatch, tmp_path, seconds):
    compare.keep(results(KEPT))
    assert compare_runs(monkeypatch, tmp_path, seconds) == (0, [["W3"]])


def test_missing_and_new_rows_are_said(tmp_path, capsys):
    """An earlier run cannot be measured again."""
    compare.keep(results(KEPT))
    compare.keep(results(KEPT, section="W2"))  # was not measured: nothing to say
    path = written(tmp_path / "results.json", results(KEPT, name="snnjax, lists"))
    assert benchmarks.main(["--compare", "--results", path]) == 1
    said = capsys.readouterr().out
    assert f"| {COLUMN} | {EVENTS} | 2.00x |  | missing |" in said
    assert f"| {COLUMN} | snnjax, lists |  | 2.00x (2.00 to 2.05) | new |" in said
    assert "0 of 2 ratios lost more than 10 %, 1 are missing." in said


def test_another_machine_is_said(tmp_path, capsys):
    compare.keep(results(KEPT))
    now = results(KEPT, machine={**MACHINE, "processor": "another"})
    assert benchmarks.main(["--compare", "--results", written(tmp_path / "results.json", now)]) == 0
    assert "- W3 was kept with processor made up, now another." in capsys.readouterr().out


def test_nothing_kept_is_said_before_anything_is_measured(monkeypatch, tmp_path, expected, capsys):
    assert compare_runs(monkeypatch, tmp_path) == (2, [])
    assert capsys.readouterr().err == (
        f"benchmarks: `--compare` must find {expected}/avx2.json, got no such file. "
        "Measure it with `make bench-keep` on a machine that does nothing else.\n"
    )


def test_results_that_are_not_there(tmp_path, capsys):
    path = tmp_path / "none.json"
    assert benchmarks.main(["--keep", "--results", str(path)]) == 2
    assert capsys.readouterr().err == (
        f"benchmarks: `--results` must be a file that a run wrote, got {path}. Write one with `make bench`.\n"
    )


def test_tiny_sizes_are_not_kept(capsys):
    with pytest.raises(SystemExit):
        benchmarks.main(["--keep", "--quick"])
    assert "--keep takes the full sizes: leave --quick out" in capsys.readouterr().err


def test_ratios_without_kernels_are_refused(tmp_path, expected, capsys):
    machine = {**MACHINE, report.KERNELS: "There is no library"}
    path = written(tmp_path / "results.json", results(KEPT, machine=machine))
    assert benchmarks.main(["--keep", "--results", path]) == 2
    assert capsys.readouterr().err == (
        "benchmarks: `CPU kernels` must be loaded, got 'There is no library'. "
        "Compile them with `make kernels`.\n"
    )
    assert not expected.exists()


def test_kept_ratios_stand_in_their_sections():
    """Those of the project, as far as they are measured."""
    for path in compare.Path(compare.__file__).with_name("expected").glob("*.json"):
        kept = json.loads(path.read_text())
        assert {*kept} <= {*benchmarks.sections.SECTIONS}
        assert all(each["machine"][report.KERNELS] == path.stem for each in kept.values())
        assert all(ratio > 0 for _, ratio in compare.cells_kept(kept, [*kept]))
