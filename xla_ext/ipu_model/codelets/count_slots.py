"""Has compiled codelets count what they would cost a worker of the IPU: issue slots, block by block.

The assembly that GCC writes for an x86-64 host is read in basic blocks. Each instruction is weighed as the instruction
of an IPU that does its work, and each block begins by adding its slots to a counter of the thread. `FLAGS` keep the
loops those of a scalar machine. The result is an estimate: README.md says what it was compared with.

The rules are those of poplar_kernels/issue_slots.hpp: a bundle holds one main instruction (integers, load, store,
branch) and one aux instruction (floats), and half of the shorter of the two streams finds a place beside the other.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

COUNTER = "ipu_model_counted_slots"  # that of glue.hpp
# Scalar code, in which two registers are free that every call may overwrite.
FLAGS = [
    *("-O2", "-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fno-unroll-loops", "-fno-peel-loops"),
    *("-fno-tree-loop-distribute-patterns", "-mstringop-strategy=libcall", "-fcf-protection=none"),
    *("-fno-stack-protector", "-fno-stack-clash-protection"),
    *("-ffixed-r10", "-ffixed-r11", "-DIPU_MODEL_COUNTS_SLOTS"),
]
# Adds to the counter. No flag changes, so that it may stand between a comparison and its branch.
_ADD = """\tmovq\t{counter}@gottpoff(%rip), %r11
\tmovq\t%fs:(%r11), %r10
\tleaq\t{slots}(%r10), %r10
\tmovq\t%r10, %fs:(%r11)
"""
# A slot for every four bytes that the call will touch: loads and stores of 8. Flags do not live across a call.
_ADD_SIZE = """\tmovq\t{counter}@gottpoff(%rip), %r11
\tmovq\t%rdx, %r10
\tshrq\t$2, %r10
\taddq\t%fs:(%r11), %r10
\tmovq\t%r10, %fs:(%r11)
"""

# Slots of what an IPU has no single instruction for: issue_slots.hpp, with its sources.
_INVERSE, _EXPONENTIAL, _ROOT, _QUOTIENT, _DIVISION, _SHORT_STORE = 6, 6, 10, 10, 40, 4
_SOFTWARE = 40  # assumed: doubles, and functions that the IPU computes step by step
_FUNCTIONS = {
    **dict.fromkeys(("expf", "exp2f", "logf", "log2f", "tanhf"), _EXPONENTIAL),
    "powf": 2 * _EXPONENTIAL + 1,
    "sqrtf": _ROOT,
    **dict.fromkeys(("__extendhfsf2", "__truncsfhf2", "floorf", "ceilf", "truncf", "roundf", "rintf"), 1),
    **dict.fromkeys(("sinf", "cosf", "tanf", "asinf", "acosf", "atanf", "atan2f", "fmodf"), _SOFTWARE),
    **dict.fromkeys(("exp", "log", "pow", "sqrt", "sin", "cos", "tan", "tanh", "fmod"), _SOFTWARE),
}
_BYTES = ("memcpy", "memmove", "memset")

_LABEL = re.compile(r"(?P<name>[.\w$]+):")
_INSTRUCTION = re.compile(
    r"\t(?:(?:rep|repz|repnz|lock|notrack)\s+)?(?P<name>[a-z]\w*)(?:\s+(?P<operands>.*))?"
)
_COMMENT = re.compile(r"\s*#.*")
_SCALAR = re.compile(
    r"(?:v?(?:add|sub|mul|min|max|cmp\w*|and|andn|or|xor|unpck[lh]|shuf|u?comi)[sp]s|p(?!ush|op)[a-z]+)"
)
_DOUBLE = re.compile(r"(?:add|sub|mul|div|sqrt|min|max|cmp\w*|u?comi)[sp]d|cvt\w*sd\w*")
_FREE = {
    *("nop", "nopw", "nopl", "endbr64", "data16", "leave", "ud2"),
    *("cltq", "cqto", "cltd", "cwtl", "movslq", "movsbl", "movswl"),
}
# Integers of an IPU have 32 bits: those of 64 are addresses, which its loads and stores add up by themselves.
_ADDRESS = re.compile(r"(?:add|sub|lea|sal|shl|neg)q|(?:inc|dec)q")
_STEP = re.compile(r"(?:add|sub|inc|dec)[lq]")
_PLAIN = re.compile(r"-?\w*\(%\w+\)")  # an address without an index
_ENDS = re.compile(r"j\w+|ret|ud2")


@dataclass
class _Instruction:
    name: str
    operands: list[str]

    @property
    def memory(self) -> str | None:
        """The operand in memory, if there is one."""
        return next((each for each in self.operands if "(" in each), None)

    @property
    def is_conditional_jump(self) -> bool:
        return self.name.startswith("j") and self.name != "jmp"


@dataclass
class _Block:
    """Instructions that run one after the other."""

    place: int  # line of the first one
    instructions: list[_Instruction] = field(default_factory=list)
    closes_loop: bool = False

    def slots(self) -> int:
        """What it takes a worker."""
        main = aux = 0
        for index, instruction in enumerate(self.instructions):
            if self.closes_loop and _moves_on(instruction):
                continue
            if _compares(instruction) and self._branches_at(index + 1) and _with_zero(instruction):
                continue
            of_main, of_aux = _weigh(instruction)
            main, aux = main + of_main, aux + of_aux
        return max(main, aux) + min(main, aux) // 2

    def _branches_at(self, index: int) -> bool:
        return index < len(self.instructions) and self.instructions[index].is_conditional_jump


def count_slots(assembly: str) -> str:
    """The assembly with code that counts at the beginning of each basic block."""
    lines = assembly.splitlines(keepends=True)
    added = [""] * len(lines)
    for block in _blocks(lines):
        if slots := block.slots():
            added[block.place] = _ADD.format(counter=COUNTER, slots=slots)
    for place, line in enumerate(lines):
        call = _parse(line)
        if call and call.name in ("call", "jmp") and _target(call) in _BYTES:
            added[place] += _ADD_SIZE.format(counter=COUNTER)
    return "".join(before + line for before, line in zip(added, lines, strict=True))


def _blocks(lines: list[str]) -> Iterator[_Block]:
    seen: set[str] = set()  # labels before the line: a jump to one of them goes back
    block: _Block | None = None
    for place, line in enumerate(lines):
        if label := _LABEL.match(line):
            seen.add(label["name"])
            if block:
                yield block
            block = None
        elif instruction := _parse(line):
            block = block or _Block(place)
            block.instructions.append(instruction)
            if _ENDS.fullmatch(instruction.name):
                block.closes_loop = instruction.is_conditional_jump and instruction.operands[0] in seen
                yield block
                block = None
    if block:
        yield block


def _parse(line: str) -> _Instruction | None:
    """The instruction of a line; None for a directive, a label or nothing."""
    found = _INSTRUCTION.fullmatch(_COMMENT.sub("", line).rstrip())
    if not found:
        return None
    # Commas within brackets are those of an address.
    operands = re.findall(r"(?:[^,()\s]|\([^()]*\))+", found["operands"] or "")
    return _Instruction(found["name"], operands)


def _weigh(instruction: _Instruction) -> tuple[int, int]:
    """Slots of the main and of the aux stream."""
    name, memory = instruction.name, instruction.memory
    if _is_free(instruction):
        return 0, 0
    if name in ("call", "jmp") and (function := _FUNCTIONS.get(_target(instruction))):
        return 0, function
    if name == "call":
        return 1, 0  # its instructions count themselves
    stores = memory is not None and memory == instruction.operands[-1] and not _compares(instruction)
    moved = (_store(instruction) if stores else 1) if memory and not name.startswith("lea") else 0
    if name.startswith(("mov", "pinsr")):
        return moved or int(any(each.startswith("$") for each in instruction.operands)), 0
    if memory and memory.endswith("(%rip)"):
        moved = 0  # a constant, which an IPU keeps in a register
    main, aux = _arithmetic(name)
    changes_memory = stores and not name.startswith("set")
    return main + moved + (1 if changes_memory else 0), aux


def _is_free(instruction: _Instruction) -> bool:
    """Whether the IPU does without: it has 32 bits, a register that is always 0, and all functions in its own set."""
    name, memory = instruction.name, instruction.memory
    if memory is None or name.startswith("lea"):
        return name in _FREE or _ADDRESS.fullmatch(name) is not None or _same_registers(instruction)
    # What the host saves around functions that are one instruction there.
    return name.startswith(("mov", "pinsr")) and memory.endswith("(%rsp)")


def _arithmetic(name: str) -> tuple[int, int]:
    """The same, without what goes to and from memory."""
    if name.startswith(("div", "sqrt", "rcp", "rsqrt")) and name.endswith("ss"):
        return 0, {"d": _QUOTIENT, "s": _ROOT, "r": _INVERSE}[name[0]]
    if name.startswith(("div", "sqrt")) and name.endswith("ps"):
        return 0, _QUOTIENT
    if name.startswith(("idiv", "div")) and name[-1] in "lqwb":
        return _DIVISION, 0
    if _DOUBLE.fullmatch(name):
        return _SOFTWARE, 0
    if name.startswith("cvt") or _SCALAR.fullmatch(name):
        return 0, 1
    return 1, 0


def _store(instruction: _Instruction) -> int:
    """Slots of a store: one of less than 32 bits reads the word, and merges."""
    source = instruction.operands[0]
    is_short = instruction.name.endswith(("b", "w")) or re.fullmatch(
        r"%(?:[a-d][lhx]|[sd]il?|r\d+[bw])", source
    )
    return _SHORT_STORE if is_short else 1


def _compares(instruction: _Instruction) -> bool:
    return re.fullmatch(r"(?:cmp|test)[bwlq]", instruction.name) is not None


def _with_zero(instruction: _Instruction) -> bool:
    """Whether a comparison is with 0, which the IPU's branches make by themselves."""
    return _same_registers(instruction) or instruction.operands[0] == "$0"


def _moves_on(instruction: _Instruction) -> bool:
    """Whether this moves a counter on, asks for the last round, or rereads a pointer that another compiler keeps.

    The IPU's loads and stores move pointers on, and brnzdec a counter. That pointers are reread is due to
    -fno-strict-aliasing, and that bounds are compared in memory as well.
    """
    name, memory, operands = instruction.name, instruction.memory, instruction.operands
    if _compares(instruction):
        return True
    if name == "leal":
        return _PLAIN.fullmatch(operands[0]) is not None
    if name == "movq":
        return (
            memory == operands[0]
            and _PLAIN.fullmatch(memory) is not None
            and not operands[1].startswith("%xmm")
        )
    return (
        _STEP.fullmatch(name) is not None and memory is None and (len(operands) == 1 or operands[0][0] == "$")
    )


def _same_registers(instruction: _Instruction) -> bool:
    operands = instruction.operands
    return (
        len(operands) == 2
        and operands[0] == operands[1]
        and instruction.name.startswith(("pxor", "xor", "test"))
    )


def _target(instruction: _Instruction) -> str:
    """The function that is called or, at the end of another, jumped to."""
    return instruction.operands[0].partition("@")[0] if instruction.operands else ""
