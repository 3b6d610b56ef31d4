"""The error for unsupported programs."""

from collections.abc import Iterable

from snnjax.ipu.lowering.types import ArrayType


class Unsupported(Exception):
    """A program that an IPU cannot run."""


def refusal(op: str, types: Iterable[ArrayType], what: str, hint: str, where: str) -> Unsupported:
    """``fft of f32[8]: there is no fft on the IPU. Compute it on the CPU. (model.py:12 (step))``."""
    operands = ", ".join(map(str, types))
    place = f" ({where})" if where else ""
    return Unsupported(f"{op}{' of ' + operands if operands else ''}: {what}. {hint}.{place}")
