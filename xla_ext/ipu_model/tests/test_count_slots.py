"""What instructions weigh, and that counted code does what it did."""

import subprocess
import sys
from pathlib import Path

import pytest

CODELETS = Path(__file__).parents[1] / "codelets"
sys.path.insert(0, str(CODELETS))

import count_slots  # noqa: E402


def slots(*instructions: str) -> int:
    """Of one basic block."""
    text = "".join(f"\t{each}\n" for each in instructions)
    counted = count_slots.count_slots(text)
    added = [
        line for line in counted.splitlines() if line.startswith("\tleaq\t") and line.endswith("(%r10), %r10")
    ]
    assert counted.endswith(text) and len(added) <= 1
    return int(added[0].split()[1].partition("(")[0]) if added else 0


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("movss\t(%rdi,%rax,4), %xmm0", 1),  # a load
        ("movss\t%xmm0, (%rdi)", 1),
        ("movw\t%ax, (%rdi)", 4),  # a store of 16 bits reads the word, and merges
        ("movl\t%ecx, 4(%rsp)", 0),  # saved around a call that the IPU does not make
        ("movl\t%ecx, %eax", 0),
        ("movl\t$7, %eax", 1),
        ("addss\t%xmm1, %xmm0", 1),
        ("mulss\t.LC0(%rip), %xmm0", 1),  # the constant stays in a register
        ("mulps\t%xmm1, %xmm0", 1),  # of two floats
        ("divss\t%xmm1, %xmm0", 10),
        ("sqrtss\t%xmm1, %xmm0", 10),
        ("addsd\t%xmm1, %xmm0", 40),  # doubles in software
        ("idivl\t%ecx", 40),
        ("addl\t$1, (%rdi)", 3),  # load, add, store
        ("leaq\t(%rdi,%rax,4), %rdx", 0),  # an address
        ("imull\t%ecx, %eax", 1),
        ("pxor\t%xmm0, %xmm0", 0),
        ("pushq\t%rbx", 1),
        ("call\texpf@PLT", 6),
        ("call\tsomething@PLT", 1),
    ],
)
def test_weight_of_instruction(instruction: str, expected: int):
    assert slots(instruction) == expected


def test_floats_find_a_place_beside_loads_and_branches():
    dot = ["movss\t(%rdi,%rax), %xmm0", "mulss\t(%rsi,%rax), %xmm0", "addq\t$4, %rax", "addss\t%xmm0, %xmm1"]
    assert slots(*dot) == 3


def test_loop_moves_pointers_and_counters_on_for_nothing():
    loop = ".L3:\n\tmovss\t(%rdi), %xmm0\n\taddq\t$4, %rdi\n\tleal\t1(%rcx), %ecx\n\tcmpq\t%rax, %rdi\n\tjne\t.L3\n"
    assert "leaq\t2(%r10)" in count_slots.count_slots(loop)  # the load and the branch


def test_size_of_a_copy_counts():
    assert "shrq\t$2, %r10" in count_slots.count_slots("\tjmp\tmemcpy@PLT\n")


def test_counted_code_computes_the_same(tmp_path: Path):
    source, assembly, program = tmp_path / "a.cpp", tmp_path / "a.s", tmp_path / "a"
    source.write_text(
        """
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>
extern "C" { __attribute__((tls_model("initial-exec"), visibility("hidden"))) __thread std::uint64_t COUNTER = 0; }
int main() {
  std::vector<int> sorted{5, 3, 9, 1, 7}, copy(5);
  for (unsigned i = 0; i < 5; ++i) {
    for (unsigned k = 1; k < 5; ++k) {
      if (sorted[k - 1] > sorted[k]) std::swap(sorted[k - 1], sorted[k]);
    }
  }
  std::memcpy(copy.data(), sorted.data(), sorted.size() * sizeof(int));
  for (int each : copy) std::printf("%d ", each / 2);
  std::printf("%d", COUNTER > 100);
}
""".replace("COUNTER", count_slots.COUNTER)
    )
    command = ["g++", "-fPIC", *count_slots.FLAGS]
    subprocess.run([*command, "-S", source, "-o", assembly], check=True)
    assembly.write_text(count_slots.count_slots(assembly.read_text()))
    subprocess.run([*command, assembly, "-o", program], check=True)
    assert subprocess.run([program], capture_output=True, check=True, text=True).stdout == "0 1 2 3 4 1"
