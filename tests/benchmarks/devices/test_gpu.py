"""What `make gpu-compile` counts: in a module that a reader can count, and in networks if its packages are there."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.devices import gpu_compile
from tests.benchmarks.devices.gpu_counts import BRANCH, BYTES, GRAPH, LAUNCH, NODE, Counts, counts_of

MODULE = """
HloModule jit_step, is_scheduled=true

%body (state: (s32[], f32[8])) -> (s32[], f32[8]) {
  %state = (s32[], f32[8]{0}) parameter(0)
  %v = f32[8]{0} get-tuple-element(%state), index=1
  %i = s32[] get-tuple-element(%state), index=0
  %add = s32[] fusion(%i), kind=kLoop, calls=%one_more
  %gemm_fusion_dot = f32[8]{0} fusion(%v), kind=kCustom, calls=%dot
  ROOT %out = (s32[], f32[8]{0}) tuple(%add, %gemm_fusion_dot)
}

%long_body (state: (s32[], f32[8])) -> (s32[], f32[8]) {
  %state.1 = (s32[], f32[8]{0}) parameter(0)
  %v.1 = f32[8]{0} get-tuple-element(%state.1), index=1
  %a = f32[8]{0} fusion(%v.1), kind=kLoop, calls=%one_more
  %b = f32[8]{0} fusion(%a), kind=kLoop, calls=%one_more
  %c = f32[8]{0} fusion(%b), kind=kLoop, calls=%one_more
  %d = f32[8]{0} conditional(%p, %c, %c), branch_computations={%few, %many}
  %e = s32[] fusion(%d), kind=kLoop, calls=%one_more
  ROOT %out.1 = (s32[], f32[8]{0}) tuple(%e, %d)
}

%few (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %kept = f32[8]{0} copy(%x)
}

%many (y: f32[8]) -> f32[8] {
  %y = f32[8]{0} parameter(0)
  %sorted = f32[8]{0} fusion(%y), kind=kInput, calls=%one_more
  ROOT %cut = f32[8]{0} copy(%sorted)
}

ENTRY %main (w: f32[4,8], ids: u16[6]) -> f32[8] {
  %w = f32[4,8]{1,0} parameter(0)
  %ids = u16[6]{0} parameter(1)
  %listed = f32[8]{0} fusion(%w, %ids), kind=kLoop, calls=%one_more
  %first = (s32[], f32[8]{0}) tuple(%zero, %listed)
  %while.1 = (s32[], f32[8]{0}) while(%first), condition=%less, body=%body, backend_config={ROUNDS_10}
  %while.2 = (s32[], f32[8]{0}) while(%while.1), condition=%less, body=%long_body, backend_config={ROUNDS_3}
  ROOT %call = f32[8]{0} custom-call(%listed), custom_call_target="__cublas$lt$matmul"
}
"""
for _rounds in (3, 10):
    MODULE = MODULE.replace(f"ROUNDS_{_rounds}", f'"known_trip_count":{{"n":"{_rounds}"}}')

# Of 16 steps: two rounds of eight.
LIMITS = {"W3, full, dense": 120, "W2, batch 128, 10 %, dense": 180}


def test_counts_of_a_module() -> None:
    """A loop of two launches, one of five with a conditional, which is a graph, and two operations beside them."""
    bytes_of_list = 8 * 4 + 4 * 8 * 4 + 6 * 2
    loops = 10 * 2 * LAUNCH + 3 * (GRAPH + 5 * NODE + BRANCH)
    expected = Counts(2 + 10 * 2 + 3 * 5, 2, 3, 3, 10 + 1, 2 * NODE + loops, bytes_of_list)
    assert counts_of(MODULE) == expected


def test_estimate_is_the_larger_of_launches_and_bytes() -> None:
    assert Counts(nanoseconds=3_000_000, num_bytes=BYTES).milliseconds == 3
    assert Counts(nanoseconds=1, num_bytes=2_000_000 * BYTES).milliseconds == 2


def test_table_has_a_line_for_each_program() -> None:
    row = gpu_compile.Compiled("W3", 1, 2, 3, 4, 5, 6.5, 7, 8, 9.25, 10.0)
    *_, line = gpu_compile.as_markdown([row]).splitlines()
    assert line == "| W3 | 1 | 2 | 3 | 4 | 5 | 6.5 | 7 | 8 | 9.25 | 10.0 |"


@pytest.mark.skipif(not gpu_compile.PACKAGES.is_dir(), reason="needs the packages of `make gpu-compile`")
def test_counts_of_networks(tmp_path: Path) -> None:
    """More launches, a conditional in a loop, or spilled registers would be a loss."""
    gpu_compile.main(["--quick", "--out", str(tmp_path), "--only", *LIMITS])
    rows = {row["program"]: row for row in json.loads((tmp_path / "counts.json").read_text())}
    assert {name: row["launches"] for name, row in rows.items() if row["launches"] > LIMITS[name]} == {}
    assert all(row["in_loops"] == row["spilled"] == 0 for row in rows.values())
