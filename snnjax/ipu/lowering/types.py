"""Array types: names as in plans, numbers as in ``PJRT_Buffer_Type``, and their NumPy and MLIR equivalents."""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

# In the order of their numbers, from 1.
_NAMES = ("bool", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "bf16", "c64")
# Two float32 numbers; no instruction handles it (``pairs.py``).
COMPLEX = "c64"
_NUMPY = {
    "bool": np.bool_,
    **{f"s{bits}": getattr(np, f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": getattr(np, f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": getattr(np, f"float{bits}") for bits in (16, 32, 64)},
    "bf16": jnp.bfloat16,
    COMPLEX: np.complex64,
}
_DTYPES = {name: np.dtype(type_) for name, type_ in _NUMPY.items()}
_NAME_OF = {dtype: name for name, dtype in _DTYPES.items()}
# MLIR's names: i32 is signed, and i1 is a bool.
_OF_MLIR = {
    "i1": "bool",
    **{f"i{bits}": f"s{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    **{name: name for name in ("f16", "f32", "f64", "bf16")},
    "complex<f32>": COMPLEX,
}
# An IPU has no such registers; a program may contain these types if they can be folded at compile time.
WIDE = frozenset({"s64", "u64", "f64"})


class ArrayType(NamedTuple):
    """The type of an array of one partition."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def dtype_number(name: str) -> int:
    """The number of a dtype in ``PJRT_Buffer_Type``."""
    return _NAMES.index(name) + 1


def numbered(number: int) -> np.dtype:
    """The NumPy dtype with a number in ``PJRT_Buffer_Type``."""
    return _DTYPES[_NAMES[number - 1]]


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a plan's dtype."""
    return _DTYPES[name]


def name_of(dtype: np.dtype) -> str:
    """The plan's name for a NumPy dtype."""
    return _NAME_OF[dtype]


def of_mlir(element: str) -> str | None:
    """The dtype that MLIR calls `element`, or None if it is unknown."""
    return _OF_MLIR.get(element)


def is_floating(name: str) -> bool:
    """Whether a dtype is floating-point."""
    return name in ("f16", "f32", "f64", "bf16")


def register_of(name: str) -> str:
    """The type of a 32-bit slot for a dtype in an elementwise program: f32, s32 or u32."""
    if is_floating(name):
        return "f32"
    return "s32" if name.startswith("s") else "u32"


def bits_of(name: str) -> int:
    """The bits of an element; a bool takes a byte."""
    return _DTYPES[name].itemsize * 8
