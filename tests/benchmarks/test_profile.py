"""The profile identifies the functions of the kernels by name, and says what prevents sampling."""

import re
import shutil
import stat
import subprocess

import jax
import pytest

from tests.benchmarks import phases, profile
from tests.benchmarks.phases import Frame, own_name, phase_of
from tests.ops.kernel_checks import needs_kernels
from tests.project.architecture import ROOT

LIBRARY = ROOT / "snnjax" / phases.LIBRARY
KERNELS = ROOT / "xla_ext" / "cpu" / "kernels.hpp"


def frames(*functions, library="/snnjax/_cpu_kernels.so"):
    return [Frame(function, library) for function in functions]


def stand_in(folder, lines):
    """A `perf` that runs `lines` of a shell."""
    path = folder / "perf"
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


if shutil.which("nm"):

    @pytest.fixture(scope="module")
    def names():
        """Of all functions in the library."""
        command = ["nm", "--demangle", str(LIBRARY)]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return {name for line in lines if " t " in line and (name := own_name(line.split(" t ")[1]))}

    @needs_kernels
    @pytest.mark.parametrize(
        "pattern",
        sorted({each for table in (phases.PHASES, phases.SHARED) for row in table.values() for each in row}),
    )
    def test_every_pattern_names_a_function(pattern, names):
        assert any(phases.phase_of_names([name], {"": [pattern]}) is not None for name in names)


def test_every_kernel_has_a_phase():
    """Those of the table of an instruction set."""
    kernels = re.findall(r"\(\*(\w+)\)\(", KERNELS.read_text())
    kernels = [name.removesuffix("Bfloat16") for name in kernels]
    assert len(kernels) > 10
    tables = {**phases.PHASES, "shared": phases.SHARED[phases.SUMS]}
    assert [name for name in kernels if phases.phase_of_names([name], tables) is None] == []


@pytest.mark.parametrize(
    "symbol, name",
    [
        ("void snnjax::avx2::stepRow<(snnjax::Reset)0, true>", "stepRow"),
        ("snnjax::(anonymous namespace)::PatchBackward::advance", "PatchBackward::advance"),
        (
            "std::_Function_handler<void (long, long), snnjax::runForward(snnjax::LayerForward&)::{lambda(long)#1}>",
            "runForward",
        ),
        (
            "snnjax::(anonymous namespace)::eachRow<snnjax::convolve(snnjax::ListedRows const&)::{lambda",
            "convolve",
        ),
        ("Eigen::ThreadPoolTempl<tsl::thread::EigenEnvironment>::WorkerLoop", None),
    ],
)
def test_functions_are_named_without_types(symbol, name):
    assert own_name(symbol) == name


@pytest.mark.parametrize(
    "stack, phase",
    [
        (frames("snnjax::avx2::sumRow<4>", "snnjax::avx2::sumRows", "snnjax::multiply"), phases.SUMS),
        (frames("snnjax::avx2::sumRows", "snnjax::TransposedSpikes::accumulate"), "gradients of weights"),
        (frames("snnjax::avx2::sumRows", "snnjax::runForward"), phases.SUMS),
        (
            frames("snnjax::avx2::multiplyTile", "snnjax::avx2::multiplyPanels"),
            "cotangents sent back densely",
        ),
        (
            [*frames("memmove", library="libc.so.6"), *frames("snnjax::finishWeightGradient")],
            "gradients of weights",
        ),
        (
            [
                *frames("clear_page", "asm_exc_page_fault", library="[kernel.kallsyms]"),
                *frames("snnjax::avx2::stepRow"),
            ],
            phases.PAGES,
        ),
        (frames("snnjax::Network::read"), phases.OTHER_KERNELS),
        (frames("[unknown]", library="/tmp/perf-12.map"), phases.COMPILED),
        (frames("Eigen::WorkerLoop", library="libjax_common.so"), phases.REST),
    ],
)
def test_stack_has_the_phase_of_its_innermost_function(stack, phase):
    assert phase_of(stack) == phase


SCRIPT = """
          12e1ff snnjax::avx512::sumRow<4, false, true, float> (/snnjax/_cpu_kernels.so)
           4637d snnjax::runBackward(snnjax::LayerBackward&)::{lambda(long)#1}::operator() (/snnjax/_cpu_kernels.so)
ffffffffffffffff [unknown] ([unknown])


    7f00deadbeef [unknown] (/tmp/perf-12.map)

"""


def test_stacks_are_read():
    first, second = phases.stacks(SCRIPT)
    assert [own_name(frame.function) for frame in first] == ["sumRow", "runBackward", None]
    assert second == [Frame("[unknown]", "/tmp/perf-12.map")]


@needs_kernels
def test_command_prints_a_share_of_each_phase(monkeypatch, tmp_path, capsys):
    """With a stand-in that samples always the same."""
    (tmp_path / "script").write_text(SCRIPT)
    stand_in(tmp_path, ['test "$1" = record && sleep 0.05', f'test "$1" = record || cat {tmp_path}/script'])
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with jax.numpy_dtype_promotion("standard"):  # which optax needs
        assert profile.main(["W3", "--quick"]) == 0
    said = capsys.readouterr().out
    assert "| % of the CPU time | training step | training step, lists of 10 % | inference |" in said
    assert f"| {phases.SUMS} | 50.0 | 50.0 | 50.0 |" in said
    assert f"| {phases.COMPILED} | 50.0 | 50.0 | 50.0 |" in said
    assert "| samples | 2 | 2 | 2 |" in said
    assert f"perf may not see the operating system here: a share of {phases.PAGES} is left out." in said


@pytest.mark.parametrize("workload", profile.WORKLOADS)
def test_every_workload_has_its_programs(workload):
    with jax.numpy_dtype_promotion("standard"):
        run, given = profile.program(profile.quick(), workload, *profile.COLUMNS[profile.INFERENCE])
        jax.block_until_ready(run(*given))


def test_perf_that_is_not_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert profile.main(["W3", "--quick"]) == 2
    assert capsys.readouterr().err == (
        "benchmarks: `perf` must be installed, got no such program. "
        "Install the tools of the Linux kernel: `linux-perf` on Debian, `linux-tools-generic` on Ubuntu.\n"
    )


@pytest.mark.parametrize(
    "lines, sentence",
    [
        (
            ["echo 'No permission' >&2", "exit 1"],
            "`perf` must be allowed to sample this process, got 'No permission'. "
            "Let it: `sysctl kernel.perf_event_paranoid=1`.",
        ),
        (
            ["true"],
            "`CPU kernels` must run, with the names of their functions, got 0 samples without. "
            "Build them with `make kernels`, which strips no names.",
        ),
    ],
    ids=["may not sample", "no names"],
)
def test_perf_that_tells_nothing(monkeypatch, tmp_path, lines, sentence):
    stand_in(tmp_path, lines)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(profile.Refusal) as refused:
        profile.profile((lambda: jax.numpy.zeros(()), ()), 0.0)
    assert str(refused.value) == f"benchmarks: {sentence}"
