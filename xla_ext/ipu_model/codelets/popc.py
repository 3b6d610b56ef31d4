"""Compiles codelets for the IPU Model: ``popc.py -o out.gp [-I folder] [-D name=value] a.cpp b.cpp``.

The model's counterpart of the vendor's tool of this name. A .gp is a shared library here: each source is included by a
glue file, written from what find_vertices.py finds, which describes its vertex classes (vertex_type.hpp). Beside
`<name>.cpp` may stand `<name>_cycles.hpp`, which is included after it: the costs of its vertices.
"""

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from find_vertices import Instance, Source

HERE = Path(__file__).resolve().parent
# As codelets see the model: its headers are those of a system, without warnings.
INCLUDES = ["-isystem", str(HERE.parent / "include"), "-isystem", str(HERE.parent)]
# No contraction to fused operations: the same bits on every machine.
FLAGS = [
    *("-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-D__POPC__"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"),
    "-Wno-attributes=poplar::",  # [[poplar::constraint]] places data in memory elements, which the host has not
]
# Fields may be private, and the glue has to reach them.
GLUE_FLAGS = ["-fno-access-control"]
ENTRY = "ipu_model_vertex_types"
CAST = re.compile(r"\breinterpret_cast\s*<")
ASSEMBLY = re.compile(r"\b(?=(?:asm|__asm__|__asm)\s*(?:\(|\w|$))(?<!\")")
# Clang's short vectors, as a type is named by them: GCC counts bytes where Clang counts elements.
VECTOR = r"__attribute__\s*\(\(\s*(?:__)?ext_vector_type(?:__)?\s*\((?P<size>[^()]*)\)\s*\)\)"
TYPEDEF = re.compile(rf"\btypedef\s+(?P<type>[\w:]+(?:\s+[\w:]+)*?)\s+(?P<name>\w+)\s+{VECTOR}\s*;")
USING = re.compile(rf"\busing\s+(?P<name>\w+)\s*=\s*(?P<type>[\w:]+(?:\s+[\w:]+)*?)\s+{VECTOR}\s*;")


class PopcError(RuntimeError):
    """What stands in the way, as one message to the user."""


def run(command: Sequence[str], must: str, hint: str) -> str:
    """Runs a compiler and returns its output; raises `PopcError` with its message."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise PopcError(
            f"popc: `{command[0]}` must be installed, got no such program. "
            "Install a C++20 compiler such as g++ 12, or name yours in CXX."
        ) from None
    if result.returncode != 0:
        raise PopcError(f"popc: {must}, got:\n{result.stderr.strip()}\n{hint}")
    return result.stdout


def for_the_host(preprocessed: str) -> str:
    """The text with what the vendor's compiler takes and the host's does not: in codelets, not in system headers."""
    from find_vertices import mark_own_lines

    return "\n".join(line_for_the_host(line) if own else line for line, own in mark_own_lines(preprocessed))


def line_for_the_host(line: str) -> str:
    """One line of a codelet. Supervisor code is marked by an attribute; casts.hpp has the functions."""
    line = CAST.sub("ipu_model::reinterpretCast<", line).replace('target("supervisor")', "")
    line = ASSEMBLY.sub("::ipu_model::assemblyOfTheIpu(); ", line)
    line = USING.sub(vector_of_bytes, TYPEDEF.sub(vector_of_bytes, line))
    if "ext_vector_type" in line:
        raise PopcError(
            f"popc: `{line.strip()}` must be a typedef of a short vector on one line, of an element other than long, "
            "got ext_vector_type elsewhere. Write `typedef float name __attribute__((ext_vector_type(2)));`, "
            "or take float2 and its like from <ipudef.h>."
        )
    return line


def vector_of_bytes(found: "re.Match[str]") -> str:
    """A short vector as the host's compiler declares it; one of long is left, as a long has 32 bits on the IPU."""
    element, name, size = found["type"], found["name"], found["size"]
    if "long" in element.split():
        return found[0]
    return f"using {name} = {element} __attribute__((vector_size(({size}) * sizeof({element}))));"


def compiler_words(command: str) -> list[str]:
    """The words of a compiler's command, split as a shell splits them: it may be ``ccache g++``."""
    try:
        return shlex.split(command) or ["g++"]
    except ValueError as error:
        raise PopcError(
            f"popc: `CXX` must be words of a shell, got {command!r} ({error}). Quote paths that have spaces."
        ) from None


class Compiler:
    """The host's compiler with the flags of one call of popc."""

    def __init__(self, flags: Sequence[str], cache: Path | None) -> None:
        compiler = compiler_words(os.environ.get("CXX", ""))
        self.command = [*compiler, *FLAGS, *INCLUDES, *flags]
        self.cache = cache
        version = run([*compiler, "--version"], "the compiler must say its version", "Name another in CXX.")
        self.is_gcc = "clang" not in version

    def preprocess(self, source: Path, *flags: str) -> str:
        """The text of a source after the preprocessor, with line markers."""
        return run(
            [*self.command, *flags, "-E", str(source)],
            f"`{source.name}` must pass the preprocessor",
            "Folders of headers are given by -I, macros by -D.",
        )

    def compile(self, glue: Path, source: Path, found: "Source") -> Path:
        """The object file of a glue file; that of an earlier call if the preprocessed text is the same.

        GCC says besides which classes it saw: a vertex class among them that was not `found` is an error.
        """
        command = [*self.command, *GLUE_FLAGS]
        text = for_the_host(self.preprocess(glue, *command[len(self.command) :]))
        text = text.replace(f"{glue.parent}/", "")  # a folder of another name at each call
        key = hashlib.sha256("\0".join([*command, text]).encode()).hexdigest()
        built = (self.cache or glue.parent) / f"{key}.o"
        if not built.exists():
            preprocessed, dump = glue.with_suffix(".ii"), glue.with_suffix(".classes")
            compiled = glue.with_suffix(".o")
            preprocessed.write_text(text)
            dumps = [f"-fdump-lang-class={dump}"] if self.is_gcc else []
            run(
                [*command, *dumps, "-c", "-o", str(compiled), str(preprocessed)],
                f"`{source.name}` must compile",
                "Codelets are C++ for the host here, C++20 unless -std says otherwise; "
                "what only an IPU has belongs within #ifdef __IPU__.",
            )
            if self.is_gcc:
                found.check_against(dump.read_text())
            copied = built.with_suffix(f".{os.getpid()}.o")
            shutil.copy(compiled, copied)
            copied.replace(built)  # whole at once: others may be linking it
        return built

    def link(self, objects: Sequence[Path], out: Path, folder: Path) -> None:
        """Links the library, of which only the entry can be seen; what it does not define is an error."""
        linked, exports = out.with_name(f".{out.name}.{os.getpid()}"), folder / "exports.map"
        exports.write_text(f"{{ global: {ENTRY}; local: *; }};\n")
        options = ["-shared", "-Wl,-z,defs", f"-Wl,--version-script={exports}"]
        run(
            [*self.command, *options, *map(str, objects), "-o", str(linked)],
            f"`{out.name}` must define all that its codelets call",
            "A function in assembly takes a form in C++ beside it.",
        )
        linked.replace(out)  # whole at once: others may be loading it


def describe_instance(instance: "Instance", number: int) -> tuple[str, str]:
    """The glue of one class: its definition, and the call of it."""
    text, members = instance.text, "\n".join(f"  IPU_MODEL_FIELD({name})" for name in instance.members)
    fields, function = f"IpuModelFields{number}", f"ipuModelDescribe{number}"
    inside = "".join(f"namespace {name} {{ " for name in instance.namespaces)
    qualified = "::".join([*instance.namespaces, text]).replace('"', '\\"')
    has_constructor = "true" if instance.has_constructor else "false"
    calls = "\n".join(f"    add_{name}(description, 0);" for name in instance.members)
    definition = f"""{inside}
struct {fields} {{
{members}
  template <typename V> static void add(ipu_model::Description<V>& description) {{
{calls}
    static_cast<void>(description);
  }}
}};
static void {function}(std::vector<ipu_model::VertexType>& types) {{
  ipu_model::describe<{text}, {fields}, {has_constructor}>(types, "{qualified}", {instance.source_bytes});
}}
{"}" * len(instance.namespaces)}
"""
    return definition, "::".join([*instance.namespaces, function]) + "(types);"


def cycles_of(source: Path) -> Path:
    """The file with the costs of a source's vertices."""
    return source.with_name(f"{source.stem}_cycles.hpp")


def write_glue(
    source: Path, instances: Sequence["Instance"], function: str, glue: Path, entry: str = ""
) -> None:
    """Writes the file that includes `source` and describes its vertex classes; `entry` goes to its end."""
    cycles = cycles_of(source)
    headers = [source, cycles] if cycles.exists() else [source]
    includes = "\n".join(f'#include "{header.resolve()}"' for header in headers)
    parts = [describe_instance(instance, number) for number, instance in enumerate(instances)]
    definitions = "".join(definition for definition, _ in parts)
    calls = "\n  ".join(call for _, call in parts)
    glue.write_text(
        f"""#include "codelets/casts.hpp"
{includes}
#include "codelets/glue.hpp"
{definitions}
void {function}(std::vector<ipu_model::VertexType>& types) {{
  {calls}
  static_cast<void>(types);
}}
{entry}""",
        encoding="utf-8",
    )


def function_name(number: int) -> str:
    """Of the function that describes the classes of one source."""
    return f"ipu_model_describe_{number}"


def entry_text(sources: int) -> str:
    """The one function of the library that can be seen from outside."""
    functions = [function_name(number) for number in range(sources)]
    declarations = "\n".join(
        f"void {function}(std::vector<ipu_model::VertexType>&);" for function in functions
    )
    calls = "\n  ".join(f"{function}(types);" for function in functions)
    return f"""{declarations}
extern "C" __attribute__((visibility("default"))) void {ENTRY}(std::vector<ipu_model::VertexType>& types) {{
  {calls}
}}
"""


def build_source(sources: Sequence[Path], number: int, compiler: Compiler, folder: Path) -> Path:
    """Compiles one of the sources with its glue, the first with the library's entry; returns the object file."""
    from find_vertices import find_vertices

    source = sources[number]
    if source.suffix.lower() == ".s":
        raise PopcError(
            f"popc: `{source.name}` must be C++, got assembly of the IPU. "
            "Leave it out, and give a form in C++ of the codelets that call it."
        )
    glue, entry = folder / f"glue_{number}.cpp", entry_text(len(sources)) if number == 0 else ""
    found = find_vertices(compiler.preprocess(source))
    write_glue(source, found.instances(), function_name(number), glue, entry)
    return compiler.compile(glue, source, found)


def build(options: argparse.Namespace, flags: Sequence[str], folder: Path) -> None:
    """Compiles the sources in `folder`, several at a time, and links them to the library."""
    compiler = Compiler(flags, options.cache)
    sources = options.sources
    with ThreadPoolExecutor(options.processes) as pool:
        jobs = [
            pool.submit(build_source, sources, number, compiler, folder) for number in range(len(sources))
        ]
        built = [job.result() for job in jobs]
    compiler.link(built, options.out, folder)


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options of popc, and those that are the compiler's."""
    parser = argparse.ArgumentParser(prog="popc.py", description="Compiles codelets for the IPU Model.")
    parser.add_argument("sources", nargs="+", type=Path, metavar="source")
    parser.add_argument("-o", dest="out", required=True, type=Path, help="the library to write, out.gp")
    parser.add_argument("--cache", type=Path, help="a folder that keeps compiled files for the next call")
    parser.add_argument(
        "-j", dest="processes", type=int, default=1, help="how many files to compile at a time"
    )
    parser.add_argument("-I", dest="folders", action="append", default=[], metavar="folder")
    parser.add_argument("-D", dest="macros", action="append", default=[], metavar="macro")
    parser.add_argument("-std", dest="standards", action="append", default=[], metavar="c++17")
    parser.add_argument("-O", dest="levels", action="append", default=[], metavar="level")
    parser.add_argument("-W", dest="warnings", action="append", default=[], metavar="warning")
    parser.add_argument("-f", dest="features", action="append", default=[], metavar="feature")
    parser.add_argument("--target", help="the chip, as the vendor's takes it: the host's code is one for all")
    parser.add_argument("-g", dest="symbols", action="store_true", help="with symbols for a debugger")
    parser.add_argument(
        "--flag", dest="flags", action="append", default=[], help="for the compiler: --flag=-O1"
    )
    options = parser.parse_args(arguments)
    named = {"-I": options.folders, "-D": options.macros, "-O": options.levels, "-std=": options.standards}
    named |= {"-W": options.warnings, "-f": options.features}
    flags = [f"{name}{value}" for name, values in named.items() for value in values]
    return options, [*flags, *(["-g"] if options.symbols else []), *options.flags]


def main(arguments: Sequence[str]) -> int:
    """The command line; returns its exit status."""
    options, flags = parse(arguments)
    if options.cache:
        options.cache.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            build(options, flags, Path(folder))
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"popc: `{error.name}` must be installed, got no such module. "
            "Install tree-sitter and tree-sitter-cpp for the Python that SNNJAX_PYTHON names.\n"
        )
        return 1
    except (PopcError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
