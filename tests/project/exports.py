"""What a library of the CPU kernels for another system exports and needs, which can be read here and not run."""

import argparse
import sys
from pathlib import Path

from snnjax import _targets

# What every system of the kind has.
_OF_SYSTEM = ("libSystem", "KERNEL32", "api-ms-win-crt", "msvcrt", "ntdll")
# What linkers add: macOS' own two names, and operators `new` and `delete` of a C++ library that is linked statically.
_ADDED = ("_Zn", "_Zd", "_mh_dylib_header", "__dso_handle")


def exported() -> set[str]:
    """The names that Python looks up."""
    handlers = {f"{target}{stage}" for target in _targets.TARGETS for stage in ("", "_instantiate")}
    return handlers | {"snnjax_api_version", "snnjax_instruction_set", "snnjax_schema"}


def main() -> None:
    """Report a library; exit with 1 if it lacks a name, shows another one, or needs what a system may not have."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=Path)
    path = parser.parse_args().library
    import lief

    binary = lief.parse(path)
    if binary is None:
        sys.exit(f"{path}: not a library")
    is_macos = isinstance(binary, lief.MachO.Binary)
    names = {str(function.name).removeprefix("_" if is_macos else "") for function in _functions(binary)}
    names = {name for name in names if not name.startswith(_ADDED)}
    needed = [str(getattr(library, "name", library)) for library in binary.libraries]
    needed = [name for name in needed if name != path.name]  # macOS lists the library itself
    foreign = [name for name in needed if not name.rpartition("/")[2].startswith(_OF_SYSTEM)]
    faults = {
        "lacks": exported() - names,
        "shows": names - exported(),
        "needs": foreign,
    }
    sys.stdout.write(f"{path}: {len(names)} names, needs {', '.join(needed)}\n")
    if any(faults.values()):
        sys.exit("\n".join(f"{kind}: {', '.join(sorted(found))}" for kind, found in faults.items() if found))


def _functions(binary):
    if hasattr(binary, "get_export"):  # Windows
        return binary.get_export().entries
    return binary.exported_symbols


if __name__ == "__main__":
    main()
