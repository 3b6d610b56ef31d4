"""The user's source line of an operation, and the user's name of an argument, from MLIR's locations.

They are text such as ``"jit(f)/mul"(callsite("step"("/home/ada/model.py":12:8 to :20) at callsite(...)))``.
"""

import functools
import re
from pathlib import Path

from snnjax._jax_compat import ir

_FRAME = re.compile(r'(?:"((?:[^"\\]|\\.)*)"\()?"((?:[^"\\]|\\.)*)":(\d+):\d+')
_LIBRARY = str(Path(__file__).parents[2])


def _is_library(file: str) -> bool:
    """Whether a file is not the user's own; the script that starts an installed command counts as library."""
    return file.startswith(_LIBRARY) or "site-packages" in file or Path(file).parent.name == "bin"


@functools.lru_cache(maxsize=4096)
def user_line(location: str) -> str:
    """``model.py:12 (step)``: the innermost frame outside libraries, else the innermost one; empty if there is none."""
    frames = _FRAME.findall(location)
    if not frames:
        return ""
    function, file, line = next((frame for frame in frames if not _is_library(frame[1])), frames[0])
    place = f"{Path(file).name}:{line}"
    return f"{place} ({function})" if function else place


_REFERENCE = re.compile(r"snnjax_(\w+?)(_backward)?\.reference")


@functools.lru_cache(maxsize=4096)
def reference_in(location: str) -> str | None:
    """``lif_network``: the op of snnjax that an operation belongs to, if its reference runs; else None."""
    found = _REFERENCE.search(location)
    return found and found.group(1)


# In the name of an operation, which comes first; files have paths.
_OP = re.compile(r'(?:loc\()?"(?!/)[^"]*/snnjax_')


@functools.lru_cache(maxsize=4096)
def is_in_op(location: str) -> bool:
    """Whether an operation belongs to an op of snnjax in any form; functions that several call have the first one's."""
    return _OP.match(location) is not None


# A location that is a name alone, without a line.
_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"\)')


def name_of(location: ir.Location) -> str:
    """``params['layer_0'].weights``, of an argument that JAX has named; else empty."""
    found = _NAME.fullmatch(str(location))
    return found.group(1) if found else ""
