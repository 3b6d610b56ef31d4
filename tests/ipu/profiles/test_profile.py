"""What a profile says: sums by phase, operation, line and tile, on numbers made by hand and on real programs."""

import json
import re
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from snnjax.ipu import Phases, read_profile
from snnjax.ipu.profiles.steps import parse
from snnjax.ipu.profiles.units import percent, quantity, size
from tests.ipu.device import cases
from tests.ipu.device.by_name import OnIpu
from tests.ipu.profiles import made

OPS = {"spike_matmul": {}, "select_spikes": {"capacity": 8}, "lif_network": {"capacity": 3}}


def test_time_by_phase() -> None:
    profile = made.profile()
    assert profile.phases == Phases(compute=600, exchange=200, sync=100, host=100)
    assert profile.cycles == 1000
    assert profile.seconds == 1e-3


def test_steps_stand_in_the_programs_order_without_what_never_ran() -> None:
    steps = made.profile().steps
    assert [step.name.split()[0] for step in steps] == ["x", "concatenate", "dot/products", "dot/sums", "add"]
    assert [step.kind for step in steps[:3]] == ["stream", "copy", "compute set"]
    assert steps[2].phases == Phases(400, 150, 40, 0)
    assert steps[2].balance == 0.75


@pytest.mark.parametrize("target_is_first", [False, True])
def test_steps_of_own_builders_belong_to_the_operation_beside_them(target_is_first: bool) -> None:
    target, dot = "snnjax_lif_network/operand (a.py:7)", "dot (a.py:8)"
    placed = (target, dot) if target_is_first else (dot, target)
    names = (placed[0], "forward/first", "copy", placed[1], dot, "fill", dot)
    sets = [made.compute_set(name, place, 100) for place, name in enumerate(names)]
    steps = made.profile(compute_sets=sets, copies=[], streams=[]).steps
    found = [(step.operation, step.where) for step in steps]
    assert found[1:3] == [("lif_network", "a.py:7")] * 2
    assert found[5] == ("fill", "")


def test_operations_sum_their_steps_and_leave_the_rest_to_control() -> None:
    operations = {each.name: each for each in made.profile().operations}
    assert list(operations) == ["dot", "x", "add", "concatenate", "control"]
    assert operations["dot"].phases == Phases(500, 150, 50, 0)
    assert operations["dot"].where == "net.py:3"
    assert (operations["dot"].executions, operations["dot"].tiles, operations["dot"].balance) == (2, 2, 0.75)
    assert operations["control"].phases == Phases(0, 0, 20, 0)


def test_copies_compute_on_no_tile() -> None:
    profile = made.profile()
    assert [(step.tiles, step.tile_cycles) for step in profile.steps if step.kind != "compute set"] == [
        (0, 0)
    ] * 2
    assert {each.name: each.tiles for each in profile.operations} == {
        "dot": 2,
        "add": 2,
        "x": 0,
        "concatenate": 0,
        "control": 0,
    }


def test_lines_sum_the_operations_on_them() -> None:
    lines = made.profile().lines
    assert {where: sum(phases) for where, phases in lines.items()} == {
        "net.py:3": 700,
        "net.py:4": 170,
        "": 130,
    }
    assert list(lines) == ["net.py:3", "net.py:4", ""]


def test_volumes_count_tiles_and_host_apart() -> None:
    profile = made.profile()
    assert profile.exchange == (128, 32, 8)
    assert profile.host_bytes == 64


def test_tiles_and_their_memory() -> None:
    profile = made.profile()
    assert profile.tile_utilisation.tolist() == [0.5, 0.25]
    assert profile.tile_memory.tolist() == [2048, 1024]
    assert profile.tile_memory_by_kind["buffers"].tolist() == [0, 512]
    assert profile.live_memory == ()


def test_partitions_that_wait_are_told_where_there_are_several() -> None:
    profile = made.profile(ipus=2, waiting=[100, 300])
    assert profile.waiting.tolist() == [100, 300]
    assert "Partitions wait for others 20.0 % of the time on average: 10.0 %, 30.0 %\n" in str(profile)
    assert (
        "<dt>partitions wait</dt><dd>20.0 %<small>for others; the longest 30.0 %</small></dd>"
        in profile.html()
    )
    many = str(made.profile(waiting=[500] * 26))
    assert f"on average: {', '.join(['50.0 %'] * 24)} and 2 more\n" in many
    assert "Partitions wait" not in str(made.profile()) and "partitions wait" not in made.profile().html()


def test_live_memory_is_told_where_it_is_known() -> None:
    rows = [{"name": "dot (net.py:3)", "bytes": 96, "tile_bytes": 64}]
    assert made.profile(live_memory=rows).live_memory == (("dot (net.py:3)", 96, 64),)


@pytest.mark.parametrize("chip, watts", [("mk1", 157.5), ("mk2", 250.0), ("bow", 312.5), ("c600", 185.0)])
def test_energy_is_power_times_time(chip: str, watts: float) -> None:
    energy = made.profile(chip=chip, ipus=2, tiles_per_ipu=1).energy
    assert energy.watts == 2 * watts
    assert energy.joules == pytest.approx(2 * watts * 1e-3)
    assert energy.source


def test_unknown_codelets_are_not_among_those_with_a_cost() -> None:
    profile = made.profile(unknown_codelets=["Add<float>"])
    assert list(profile.codelets) == ["Dot<float>"]
    assert "Add<float>: of unknown cost, counted as 0 cycles" in str(profile)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("dot (a.py:1)", ("dot", "a.py:1")),
        ("dot/sum/reduce (a.py:1)", ("dot", "a.py:1")),
        ("forward/first", ("forward", "")),
        ("copy", ("copy", "")),
        ("", ("", "")),
        ("a (b.py:1), c (b.py:1)", ("a + c", "b.py:1")),
        ("a (b.py:1), a (b.py:2)", ("a", "")),
        ("strange (name", ("strange (name", "")),
        ("cast/x (a.py:7)/cast", ("cast", "a.py:7")),
        ("snnjax_spike_matmul/operand (a.py:7), copy", ("spike_matmul", "a.py:7")),
        ("<script>", ("<script>", "")),
    ],
)
def test_names_of_steps(name: str, expected: tuple[str, str]) -> None:
    assert parse(name) == expected


@given(st.text())
def test_any_name_is_read(name: str) -> None:
    operation, where = parse(name)
    assert where == "" or re.search(r":\d+$", where)
    assert operation or not name or "/" in name or "(" in name or name.startswith(" ")


def test_text_is_short_and_says_that_it_is_a_models() -> None:
    many = [made.compute_set(f"op{i} (a.py:{i})", i, 10) for i in range(100)]
    text = str(made.profile(compute_sets=many))
    assert text.startswith("IPU Model (not measured on hardware): 1 x mk2, 2 tiles each, 1.0 MHz\n")
    assert re.search(r"^  and \d+ more, ", text, re.MULTILINE)
    assert text.count("\n") < 60
    assert "Energy (an estimate): 250 mJ at 250 W" in text


def test_readable_numbers() -> None:
    assert [size(bytes_) for bytes_ in (0, 1023, 1024, 10_240, 638_976, 2**30)] == [
        *("0 bytes", "1023 bytes", "1.00 KiB", "10.0 KiB", "624 KiB", "1.00 GiB")
    ]
    assert [quantity(number, "s") for number in (0, 1.5e-10, 2e-9, 3e-6, 0.5, 4.0)] == [
        *("0 s", "0.15 ns", "2 ns", "3 us", "500 ms", "4 s")
    ]
    assert [percent(share) for share in (0, 0.0001, 0.5, 1)] == ["0.0 %", "0.01 %", "50.0 %", "100.0 %"]


def test_several_runs_are_told_apart() -> None:
    profile = made.profile(runs=4)
    assert profile.runs == 4 and made.profile().runs == 1
    each = "222 cycles, 222 us, 55.6 mJ on the chip; with the host 250 cycles, 250 us, 62.5 mJ\n"
    assert f"Time, a run, the mean of 4: {each}" in str(profile)
    assert (
        "<dt>on the chip, a run, the mean of 4</dt><dd>222 us<small>222 cycles</small></dd>" in profile.html()
    )
    for page in str(profile), profile.html():
        assert "All other figures are of the 4 runs together" in page
    assert "All other figures" not in str(made.profile()) + made.profile().html()
    one = "890 cycles, 890 us, 222 mJ on the chip; with the host 1,000 cycles, 1 ms, 250 mJ\n"
    assert f"Time, a run: {one}" in str(made.profile())


def test_first_run_is_told_apart() -> None:
    profile = made.profile(first_run={"cycles": [1, 2, 3, 4], "host_bytes": 2048})
    assert profile.first_run == (Phases(1, 2, 3, 4), 2048)
    assert "Time, a warm run: 890 cycles" in str(profile)
    assert "is not counted: 10 cycles, 4 of them with the host, which moved 2.00 KiB\n" in str(profile)
    assert made.profile().first_run is None


def test_energy_of_the_chip_leaves_out_the_host() -> None:
    profile = made.profile()
    assert (profile.chip_cycles, profile.chip_seconds) == (890, 8.9e-4)  # without the sync of the stream
    assert profile.chip_energy.joules == pytest.approx(0.89 * profile.energy.joules)
    for text in (str(profile), " ".join(profile.html().split())):
        assert (
            "The power is taken as constant, so sparsity saves energy only by the time that it saves" in text
        )


def test_limits_are_the_losses_of_the_average_tile() -> None:
    limits = made.profile().limits
    assert [(limit.name, limit.cycles) for limit in limits] == [
        ("waiting", 225.0),  # 600 of compute, of which the tiles are busy for 500 and 250
        ("exchange", 200),
        ("sync", 100),
        ("host", 100),
    ]
    assert sum(limit.share for limit in limits) + made.profile().tile_utilisation.mean() == pytest.approx(1)
    assert [limit.where for limit in limits] == [
        "dot (net.py:3), where dot/products computes on 2 of 2 tiles",
        "dot (net.py:3), of 96 bytes",
        "dot (net.py:3), in 4 steps",
        "x, of 64 bytes",
    ]
    for limit in limits:
        assert (
            f"  {limit.name} {percent(limit.share)}: {limit.meaning}, most of it in {limit.where}. "
            in str(made.profile())
        )
    nothing = made.profile(
        cycles=dict.fromkeys(("compute", "exchange", "sync", "host", "total"), 0),
        tiles=[dict.fromkeys(made.MEMORY, 0) | {"cycles": 0}],
        compute_sets=[],
        copies=[],
        streams=[],
    )
    assert nothing.limits == ()


def test_tiles_that_take_no_part_are_told() -> None:
    assert made.profile().idle_tiles == 0
    assert "the busiest 50.0 %; all 2 take part\n" in str(made.profile())
    tiles = [{**tile, "cycles": cycles} for tile, cycles in zip(made.data()["tiles"], (500, 0), strict=True)]
    assert "the busiest 50.0 %; 1 of 2 take no part\n" in str(made.profile(tiles=tiles))


def test_streams_have_the_names_of_arguments_and_results() -> None:
    names = ("argument 0", "argument 1", "kept argument 0", "result 0", "result 1", "argument 7")
    streams = [made.copy(name, place, host_cycles=1) for place, name in enumerate(names)]
    named = {"arguments": ["params['layer_0/connection'].weights", ""], "results": ["result[0]"]}
    steps = made.profile(streams=streams, compute_sets=[], copies=[], **named).steps
    assert [(step.operation, step.where) for step in steps] == [
        ("argument params['layer_0/connection'].weights", ""),
        ("argument 1", ""),
        ("kept argument params['layer_0/connection'].weights", ""),
        ("result[0]", ""),
        ("result 1", ""),
        ("argument 7", ""),
    ]


@pytest.mark.parametrize(
    "program, name",
    [("jit_step", "step"), ("jit__lambda", "lambda (net.py:4)"), ("main", "main"), ("", "")],
)
def test_programs_have_the_name_of_the_function(program: str, name: str) -> None:
    assert made.profile(program=program).program == name
    assert f"hardware): {name + ' on ' if name else ''}1 x mk2" in str(made.profile(program=program))


def test_parts_of_the_network_are_its_layers_and_purposes() -> None:
    """A set that several share is divided as the cycles of its vertices are."""
    names = ("snnjax_lif_network/operand (a.py:7)", "forward/currents0", "forward/sum_dropped0")
    more = ("forward/readout1", "forward/first", "forward/strange")
    codelets = (
        {"RowsCurrent<float,int,true>": 9},
        {"SumDropped": 1},
        {"LeakyScan": 5},
        {"LifScan<false>": 30, "SelectMarked<int>": 60, "LeakyGradientScan<false>": 10},
        {"Other": 3},
    )
    sets = [
        made.compute_set(
            name,
            place + 1,
            100,
            sync_cycles=10,
            codelets=[made.codelet(f"snnjax::{kind}", 1, each, each) for kind, each in own.items()],
        )
        for place, (name, own) in enumerate(zip((*names[1:], *more), codelets, strict=True))
    ]
    profile = made.profile(compute_sets=sets, copies=[made.copy(names[0], 0, sync_cycles=5)], streams=[])
    assert [(part.layer, part.purpose, part.cycles) for part in profile.parts] == [
        ("", "copies", 5),
        ("layer 0", "weights", 110),
        ("layer 0", "lists", 110),
        ("readout", "neurons", 121),
        ("", "neurons", 33),
        ("", "lists", 66),
        ("", "other", 110),
    ]
    assert {(part.operation, part.where) for part in profile.parts} == {("lif_network", "a.py:7")}
    assert sum(part.cycles for part in profile.parts) == sum(step.cycles for step in profile.steps)
    assert "  lif_network, layer 0, weights " in str(profile)
    assert made.profile().parts == () and "Inside" not in str(made.profile())


@pytest.mark.parametrize("ending", [".json", ".txt", ".html"])
def test_saved_files(ending: str, tmp_path: Path) -> None:
    profile, path = made.profile(), tmp_path / f"run{ending}"
    profile.save(path)
    saved = path.read_text(encoding="utf-8")
    assert saved == {".json": profile.json, ".txt": str(profile), ".html": profile.html()}[ending]


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        made.profile().save(tmp_path / "run.pdf")
    assert str(error.value) == (
        "Profile.save: `path` must end in .html, .json or .txt, got '.pdf'. "
        "Save the figures of figures() with their savefig."
    )


@pytest.mark.parametrize("empty", [False, True])
def test_figures_say_that_nothing_was_measured(empty: bool, tmp_path: Path) -> None:
    changes: dict[str, Any] = (
        {"compute_sets": [], "copies": [], "streams": [], "codelets": []} if empty else {}
    )
    if empty:
        changes["cycles"] = dict.fromkeys(("compute", "exchange", "sync", "host", "total"), 0)
    figures = made.profile(**changes).figures()
    assert list(figures) == ["phases", "operations", "tiles", "memory"]
    for name, figure in figures.items():
        figure.savefig(tmp_path / f"{name}.png")
        assert "not measured on hardware" in figure.get_supxlabel()


@pytest.mark.usefixtures("ipus")
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("num_tiles, num_ipus", [(1, 1), (7, 2)])
def test_cycles_of_real_programs_add_up(op: str, num_tiles: int, num_ipus: int) -> None:
    """Every cycle of each phase belongs to one operation, and each line's share is that of its operations."""
    on_ipu = OnIpu(op, getattr(cases, op)(np.random.default_rng(1)), **OPS[op])
    compiled = on_ipu.compile(num_tiles, num_ipus)
    on_ipu.run(compiled)
    profile = read_profile(compiled)
    sums = [sum(column) for column in zip(*(each.phases for each in profile.operations), strict=True)]
    assert tuple(sums) == profile.phases
    assert all(cycles >= 0 for each in profile.operations for cycles in each.phases)
    assert sum(map(sum, profile.lines.values())) == profile.cycles
    assert [step.position for step in profile.steps] == sorted({step.position for step in profile.steps})
    assert profile.tile_utilisation.max() <= 1
    assert 0 < sum(step.tile_cycles for step in profile.steps) == profile.tile_cycles.sum()
    assert all(0 < each.balance <= 1 for each in profile.operations)
    assert json.loads(profile.json) == profile.data
    assert profile.html().count("<tr>") >= len(profile.operations) + len(profile.codelets)
