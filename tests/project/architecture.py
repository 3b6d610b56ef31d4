"""The structural rules of the project, each a function of a file's path and text that returns the violations."""

import ast
import fnmatch
import functools
import graphlib
import importlib
import inspect
import io
import pkgutil
import posixpath
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]

# In each of these packages a module may import modules of a lower row, or further right in its own row.
LAYERS = {
    "snnjax": (
        ("__init__", "__main__"),
        ("cli", "ipu", "nir", "neurobench", "train", "plot", "data", "circuits"),
        ("_plots", "models"),
        ("fixed_point",),
        ("online", "quantisation", "losses", "metrics", "graph", "encoding"),
        ("blocks",),
        ("neurons",),
        ("ops", "event_times", "plasticity", "_plasticity", "_rewiring"),
        ("_delayed_synapses",),
        ("_compare", "_quantised"),
        ("_synapses",),
        ("_sparse_spikes", "surrogates"),
        ("_compiler_options", "_dispatch", "_batching", "_sharding", "_platforms", "_targets", "_write"),
        ("_arguments", "_check"),
        ("_types", "_neuron_table", "_schema", "_jax_compat", "_lazy"),
    ),
    "snnjax.ipu": (
        ("__init__",),
        ("session", "_training", "_custom_op"),
        ("profiles",),
        ("device",),
        ("lowering",),
    ),
    "snnjax.ipu.lowering": (
        ("__init__", "module"),
        ("walk", "partition"),
        ("rules", "passes"),
        ("folding", "pairs", "views"),
        ("operation", "builder"),
        ("donation", "errors", "locations", "plan", "sharding"),
        ("types",),
    ),
    "snnjax.ipu.profiles": (
        ("__init__", "sweep"),
        ("measure",),
        ("profile",),
        ("page", "figures", "tables", "svg", "text"),
        ("costs",),
        ("limits", "parts"),
        ("energy", "steps", "tiles", "units"),
    ),
    "snnjax_jax_plugin": (("__init__",), ("_library", "_rules"), ("_jax_private", "_wire")),
}
ORDERS = {package: [name for row in rows for name in row] for package, rows in LAYERS.items()}
ORDER = ORDERS["snnjax"]

TOP_LEVEL = {
    *("snnjax", "xla_ext", "poplar_kernels", "tests", "notebooks", "docs"),
    *("pyproject.toml", "Makefile", ".ci", ".github", ".gitignore"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "LICENSE"),
}

# Slow to import, or not installed with the library: imported by the functions that use them.
HEAVY = {"optax", "matplotlib", "h5py", "nir", "neurobench", "safetensors", "torch", "tqdm"}
# Parts of JAX that change without notice, and the only layers that may use them.
PRIVATE = ("jax._src", "jaxlib", "jax.core", "jax.interpreters", "jax.extend")
KNOWS_PRIVATE = {"_jax_compat"}
# In each of these places a folder may include headers of a lower row, or further right or left in its own; "." are the
# files beside the folders. Tensors, graphs and programs of the model refer to one another, as they do in Poplar.
INCLUDE_LAYERS = {
    "poplar_kernels": (
        ("network",),
        ("products",),
        ("lists",),
        ("movement",),
        ("reductions",),
        ("elementwise",),
        (".",),
    ),
    "xla_ext/builders": (("network",), (".",), ("layout",)),
    "xla_ext/cpu": (
        ("simulation",),
        ("network",),
        ("products",),
        ("delays",),
        ("synapses",),
        ("lists",),
        ("kernels", "."),
    ),
    "xla_ext/ipu_model": (
        ("calibration",),
        ("poplibs",),
        ("engine",),
        ("device",),
        ("graph", "tensor", "program"),
        ("codelets",),
        ("costs",),
        ("chips",),
    ),
    "xla_ext/ipu_model/engine": ((".",), ("profile",), ("run",), ("compiler",), ("executable",)),
    "xla_ext/pjrt": ((".",), ("programs",), ("arrays",), ("devices",), ("interface",)),
}
# Where a compiler looks for the headers of ours, besides the folder of the file.
INCLUDE_FOLDERS = ("xla_ext", "xla_ext/ipu_model", "")
# The model knows nothing of what runs on it.
BEYOND_THE_MODEL = ('"builders/', '"poplar_kernels/', '"../')
# The headers that any file of xla_ext/cpu may include: the standard library, those in its folder, and the one that it
# shares with the codelets.
COMMON_HEADER = re.compile(
    r'<[a-z_]+>|"[a-z_]+\.hpp"|"schema/[a-z_]+\.hpp"|"poplar_kernels/conventions\.hpp"'
)
# Those for handlers: XLA's FFI, the error of all C++, what says which instructions there are; those for `system.cpp`.
HANDLER_HEADER = re.compile(
    r'"xla/ffi/api/ffi\.h"|"\.\./error\.hpp"|<sys/syscall\.h>|<(unistd|cpuid)\.h>'
    r'|"cpu/([a-z]+/)?[a-z_]+\.hpp"'  # `upward_includes` has the order of the folders
)
SYSTEM_HEADER = re.compile(r"<sys/(mman|sysctl)\.h>|<(malloc|sched|unistd|windows)\.h>")
# Those for files that are compiled once per instruction set.
KERNEL_HEADER = re.compile(r'<(immintrin|arm_neon)\.h>|"kernels/[a-z_]+\.hpp"|"\.\./kernels\.hpp"')

# What the codelets and the builders may include: nothing that an SDK does not have.
CODELET_HEADER = re.compile(
    r'<[a-z_]+>|<poplar/[A-Za-z]+\.hpp>|<schema/neurons\.hpp>|"(\.\./([a-z]+/)?)?[a-z_]+\.hpp"'
)
BUILDER_HEADER = re.compile(
    r'<[a-z_]+>|<pop(lar|util|ops|lin|rand)/[A-Za-z]+\.hpp>|"(builders/([a-z]+/)?)?[a-z_]+\.hpp"'
    r'|"((\.\./)+error|poplar_kernels/conventions|planner/product_plan)\.hpp"'  # the planner only knows numbers
)

# The executor also compiles against an SDK, except for the one file that uses the model; the plugin does not use
# graphs: it compiles, runs and holds arrays through the executor.
EXECUTOR_HEADER = re.compile(
    r"<[a-z_]+>|<pop(lar|util|ops|lin|rand)/[A-Za-z]+\.hpp>"
    r'|"(builders|elementwise|executor|planner|schema)/[a-z_/]+\.hpp"'
)
# Elementwise programs are those of both executor and model: Poplar's headers, and the codelets' operations and costs.
ELEMENTWISE_HEADER = re.compile(
    r'<[a-z_]+>|<poplar/Graph\.hpp>|"elementwise/[a-z_]+\.hpp"'
    r'|"poplar_kernels/(elementwise/elementwise_chain_ops|issue_slots)\.hpp"'
)
# The planner only knows numbers: sizes, and the costs of codelets.
PLANNER_HEADER = re.compile(r'<[a-z_]+>|"planner/[a-z_]+\.hpp"|"poplar_kernels/[a-z]+/[a-z_]*cycles\.hpp"')
PLUGIN_HEADER = re.compile(
    r'<[a-z_]+>|<poplar/Target\.hpp>|"(export|floating_point)\.hpp"|"builders/error\.hpp"|"pjrt/[a-z_/]+\.hpp"|"executor/(executable|plan/plan)\.hpp"'
)
# The custom operation is built with an SDK: Poplar's headers, and the part of the executor that builds graphs.
CUSTOM_OP_HEADER = re.compile(
    r'<[a-z_]+>|<dlfcn\.h>|<pop(lar|util|ops|lin)/[A-Za-z]+\.hpp>|"executor/(plan_lowering|plan/plan)\.hpp"'
)
KNOWS_THE_MODEL = re.compile(r"<ipu_model/(profile|json)\.hpp>")

MAX_NAMES = 60
MAX_FILE_LINES = 600
# Of a folder of C++ or of tests.
MAX_ENTRIES = 29
MIRROR = "xla_ext/ipu_model/include/poplar"
MAX_FUNCTION_LINES = 40
# Annotations that are `Any` alone, in the library and in its tests: they tell a reader nothing that a name would not
# tell better (`snnjax/_types.py`). Lower it with each that goes.
MAX_ANY = {"snnjax": 520, "tests": 240}

# Assembled from parts, so that this file does not contain them.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("deb", "debian", "org"),
        ("conda", "anaconda", "org"),
    )
)
PICTURE = '"image/png": "'
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def ignored_names() -> list[str]:
    """The patterns of `.gitignore`, each of which is a plain name."""
    lines = (ROOT / ".gitignore").read_text().splitlines()
    return [".git", *(line for line in lines if line and not line.startswith("#"))]


def entries(folder: Path) -> list[Path]:
    """The entries of `folder` that git does not ignore."""
    patterns = ignored_names()
    paths = sorted(folder.iterdir())
    return [path for path in paths if not any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns)]


def tracked_files(folder: Path = ROOT) -> Iterator[Path]:
    """All files of the project that git does not ignore."""
    for path in entries(folder):
        if path.is_dir():
            yield from tracked_files(path)
        else:
            yield path


def files_in(*folders: str, suffixes: Sequence[str]) -> list[str]:
    """The paths of the files in `folders`, relative to the root, whose names end in one of `suffixes`."""
    files = (path for folder in folders for path in tracked_files(ROOT / folder))
    return [path.relative_to(ROOT).as_posix() for path in files if path.suffix in suffixes]


def python_files(*folders: str) -> list[str]:
    """The paths of the Python files in `folders`, relative to the root."""
    return files_in(*folders, suffixes=[".py"])


def layer_of(module: str, package: str = "snnjax") -> str:
    """``snnjax.ops.spike`` -> ``ops``, ``snnjax`` -> ``__init__``."""
    return module.removeprefix(package).lstrip(".").partition(".")[0] or "__init__"


def module_of(path: str) -> str:
    """``snnjax/ops/__init__.py`` -> ``snnjax.ops``."""
    name = path.removeprefix("xla_ext/pjrt/").removesuffix(".py").removesuffix("/__init__")
    return name.replace("/", ".")


@functools.lru_cache(maxsize=16)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a file, its module first; all rules for a file read those of one parse."""
    return tuple(ast.walk(ast.parse(source)))


def imports(source: str) -> Iterator[tuple[str, int]]:
    """Every imported dotted name with its line; ``from a import b`` gives ``a.b``."""
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def starts_with(name: str, prefix: str) -> bool:
    """``jax.core.Tracer`` starts with ``jax.core``, ``jax.corelib`` does not."""
    return name == prefix or name.startswith(prefix + ".")


def upward_imports(path: str, source: str) -> list[str]:
    """Imports within a package of modules that are not below the file's layer."""
    module = module_of(path)
    found = [
        f"{path}:{line}: relative import {name}" for name, line in imports(source) if name.startswith(".")
    ]
    for package, order in ORDERS.items():
        if not starts_with(module, package):
            continue
        importer = layer_of(module, package)
        if importer not in order:
            found.append(f"{path}: {importer} is in no layer")
            continue
        for name, line in imports(source):
            # `from snnjax import x` imports a module, or a name of the index, which is the top layer.
            layer = layer_of(name, package) if layer_of(name, package) in order else "__init__"
            if (
                starts_with(name, package)
                and layer != importer
                and order.index(layer) < order.index(importer)
            ):
                found.append(f"{path}:{line}: {importer} imports {name}")
    return found


def core_of_the_ipu(path: str, source: str) -> list[str]:
    """Imports in `snnjax/ipu` of more than the bottom of the library; one file says what else the IPU needs of it."""
    if path == "snnjax/ipu/device/core.py" or not path.startswith("snnjax/ipu/"):
        return []
    found = [(name, line) for name, line in imports(source) if starts_with(name, "snnjax")]
    return [
        f"{path}:{line}: {name}"
        for name, line in found
        if not starts_with(name, "snnjax.ipu")
        and layer_of(name) not in ("_check", "_jax_compat", "_types", "_write")
    ]


def import_circles(files: Mapping[str, str]) -> list[str]:
    """A circle of imports among files, paths with their texts; imports within functions and for types count too."""
    modules = {module_of(path): source for path, source in files.items()}

    def imported(source: str) -> Iterator[str]:
        for name, _ in imports(source):
            while name and name not in modules:
                name = name.rpartition(".")[0]
            if name:
                yield name

    try:
        graphlib.TopologicalSorter(
            {name: set(imported(source)) - {name} for name, source in modules.items()}
        ).prepare()
    except graphlib.CycleError as error:
        return [" imports ".join(error.args[1][::-1])]
    return []


def private_jax(path: str, source: str) -> list[str]:
    """Private names of JAX, imported or used as attributes."""
    if layer_of(module_of(path)) in KNOWS_PRIVATE:
        return []
    nodes = nodes_of(source)
    attributes = [(ast.unparse(node), node.lineno) for node in nodes if isinstance(node, ast.Attribute)]
    uses = {
        f"{path}:{line}: {prefix}"
        for name, line in [*imports(source), *attributes]
        for prefix in PRIVATE
        if starts_with(name, prefix) and name != "jax.core"
    }
    return sorted(uses)


def compiled_code(path: str, source: str) -> list[str]:
    """Uses of compiled code outside `_dispatch`, `_targets` and `ipu`."""
    own = layer_of(module_of(path))
    if own in ("_dispatch", "_targets", "ipu"):
        return []
    nodes = nodes_of(source)
    attributes = [(ast.unparse(node), node.lineno) for node in nodes if isinstance(node, ast.Attribute)]
    found = set()
    for name, line in [*imports(source), *attributes]:
        name = name.removeprefix("snnjax.")
        if starts_with(name, "jax.ffi"):
            found.add(f"{path}:{line}: jax.ffi")
        elif starts_with(name, "_targets") and not (
            own == "ops" and name in ("_targets", "_targets.call", "_targets.schema")
        ):
            found.add(f"{path}:{line}: {name}")
    return sorted(found)


def foreign_includes(path: str, source: str) -> list[str]:
    """Headers that a file of `xla_ext/cpu` may not include: kernels know no XLA, and only they intrinsics."""
    name = path.removeprefix("xla_ext/cpu/")
    is_kernel = name == "kernels.cpp" or name.startswith("kernels/")
    own = KERNEL_HEADER if is_kernel else SYSTEM_HEADER if name == "system.cpp" else HANDLER_HEADER
    return [
        f"{path}:{number}: {header}"
        for number, header in includes(source)
        if not (COMMON_HEADER.fullmatch(header) or own.fullmatch(header))
    ]


def dropped_prefetches(path: str, source: str) -> list[str]:
    """Prefetches in a file of `xla_ext/cpu` that GCC may drop: outside of kernels, `prefetch` keeps them."""
    if path == "xla_ext/cpu/memory.hpp" or path.startswith("xla_ext/cpu/kernels/"):
        return []
    lines = enumerate(source.splitlines(), 1)
    return [f"{path}:{number}: {line.strip()}" for number, line in lines if "__builtin_prefetch" in line]


def beyond_the_sdk(path: str, source: str) -> list[str]:
    """Headers in codelets and builders that only the model has: a Poplar SDK must be able to compile both."""
    allowed = CODELET_HEADER if path.startswith("poplar_kernels/") else BUILDER_HEADER
    found = [(number, header) for number, header in includes(source) if not allowed.fullmatch(header)]
    return [f"{path}:{number}: {header}" for number, header in found]


def beyond_the_executor(path: str, source: str) -> list[str]:
    """Headers that plugin, custom operation, executor, elementwise programs and planner must not include."""
    rooms = {
        "custom_op": CUSTOM_OP_HEADER,
        "elementwise": ELEMENTWISE_HEADER,
        "executor": EXECUTOR_HEADER,
        "pjrt": PLUGIN_HEADER,
        "planner": PLANNER_HEADER,
    }
    room = path.split("/")[1]
    allowed = rooms[room]
    found = [(number, header) for number, header in includes(source) if not allowed.fullmatch(header)]
    return [
        f"{path}:{number}: {header}"
        for number, header in found
        if room != "executor"
        or not (Path(path).stem == "model_profile" and KNOWS_THE_MODEL.fullmatch(header))
    ]


def room_of(path: str, place: str) -> str:
    """The folder of `place` that a file lies in, "." beside them, nothing outside of `place`."""
    folder, inside, _ = path.removeprefix(f"{place}/").partition("/")
    return "" if not path.startswith(f"{place}/") else folder if inside else "."


def included(path: str, header: str) -> str:
    """The path of a header of ours from the root, as a compiler finds it by the include in the file `path`."""
    name = header.strip('"')
    for folder in INCLUDE_FOLDERS:
        if "/" in name and name[0] != "." and (ROOT / folder / name.split("/")[0]).is_dir():
            return posixpath.join(folder, name)
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def upward_includes(path: str, source: str) -> list[str]:
    """Headers of folders that are not below the file's own."""
    headers = [each for each in includes(source) if each[1].startswith('"')]
    found = []
    for place, layers in INCLUDE_LAYERS.items():
        rows = {room: row for row, rooms in enumerate(layers) for room in rooms}
        own = room_of(path, place)
        if own and own not in rows:
            return [f"{path}: {own} is in no layer"]
        for number, header in headers if own else []:
            upward = rows.get(room_of(included(path, header), place), len(rows)) < rows[own]
            if upward or (place == "xla_ext/ipu_model" and header.startswith(BEYOND_THE_MODEL)):
                found.append(f"{path}:{number}: {header}")
    return found


def crowded_folders(*folders: str, most: int = MAX_ENTRIES) -> list[str]:
    """Folders in `folders`, or these, with too many entries; that of Poplar's headers is as large as Poplar's."""
    places = sorted({path.parent for folder in folders for path in tracked_files(ROOT / folder)})
    counts = [(place.relative_to(ROOT).as_posix(), len(entries(place))) for place in places]
    return [f"{place}: {count} entries" for place, count in counts if count > most and place != MIRROR]


def includes(source: str) -> list[tuple[int, str]]:
    """The numbers of the lines that include, and what."""
    lines = enumerate(source.splitlines(), 1)
    return [(number, line.split()[1]) for number, line in lines if line.startswith("#include ")]


def heavy_imports(path: str, source: str) -> list[str]:
    """Imports of heavy modules that run when the file is imported."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    nodes = nodes_of(source)
    late = {id(inner) for node in nodes if isinstance(node, functions) for inner in ast.walk(node)}
    found = []
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in late:
            names = [imported for imported, _ in imports(ast.unparse(node))]
            found += [f"{path}:{node.lineno}: {name}" for name in names if name.split(".")[0] in HEAVY]
    return found


def index_statements(source: str) -> Iterator[ast.stmt]:
    """The statements of an index, with those for type checkers, who see all modules that it imports lazily."""
    for node in ast.parse(source).body:
        is_for_types = (
            isinstance(node, ast.If) and ast.unparse(node.test) == "_TYPE_CHECKING" and not node.orelse
        )
        yield from node.body if is_for_types else [node]


def more_than_an_index(path: str, source: str) -> list[str]:
    """What the index contains besides its docstring, re-exports, also for type checkers, and constants."""
    found = []
    for node in index_statements(source):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        constant = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("__all__", "__version__")
        if not (docstring or constant or isinstance(node, ast.Import | ast.ImportFrom)):
            found.append(f"{path}:{node.lineno}: {ast.unparse(node).splitlines()[0]}")
    return found


def public_names(source: str) -> list[str]:
    """The names that an index re-exports: those imported as themselves, ``from a import b as b``."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = (alias.name for node in nodes for alias in node.names if alias.asname == alias.name)
    return [name for name in names if not name.startswith("_")]


def names_of(module: ModuleType) -> dict[str, object]:
    """What users find in a module: what it re-exports, and the functions and classes that it defines."""
    own = {
        name: thing
        for name, thing in vars(module).items()
        if getattr(thing, "__module__", None) == module.__name__
        and inspect.isroutine(thing) | inspect.isclass(thing)
    }
    exported = {name: getattr(module, name) for name in public_names(inspect.getsource(module))}
    return {name: thing for name, thing in {**exported, **own}.items() if not name.startswith("_")}


def second_paths(modules: Iterable[ModuleType]) -> list[str]:
    """Names by which something is found that has been found by another; modules are not counted."""
    found: dict[int, list[str]] = {}
    for module in modules:
        for name, thing in names_of(module).items():
            if not isinstance(thing, ModuleType):
                found.setdefault(id(thing), []).append(f"{module.__name__}.{name}")
    return [f"{name} is {paths[0]}" for paths in found.values() for name in paths[1:]]


def shadowed_modules(package: ModuleType) -> list[str]:
    """Modules that something else than their own content hides in their package, at any depth.

    ``import snnjax.neurons.lif as lif`` is the function that the file is named for; it must not be another.
    """
    found = []
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        parent, _, name = module.name.rpartition(".")
        if name != "__main__" and not name.startswith(("_cpu", "_ipu")):  # libraries without Python
            own = importlib.import_module(module.name)
            hides = getattr(importlib.import_module(parent), name)
            if hides is not own and getattr(hides, "__module__", None) != module.name:
                found.append(module.name)
    return found


def prints(path: str, source: str) -> list[str]:
    """Calls of `print`: the library is silent, the command line writes to its stream."""
    calls = (node for node in nodes_of(source) if isinstance(node, ast.Call))
    return [f"{path}:{node.lineno}" for node in calls if ast.unparse(node.func) == "print"]


def long_file(path: str, source: str) -> list[str]:
    """A file with too many lines."""
    lines = len(source.splitlines())
    return [f"{path}: {lines} lines"] if lines > MAX_FILE_LINES else []


def bare_any(source: str) -> int:
    """How many annotations are `Any` alone."""
    return len(re.findall(r"(?:: |-> )Any\b", source))


def code_lines(source: str) -> set[int]:
    """The numbers of the lines that hold code: neither blank, nor comment, nor docstring."""
    skipped = (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes_of(source):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return lines


def long_functions(path: str, source: str) -> list[str]:
    """Functions with too many lines of code, including the signature."""
    lines = code_lines(source)
    found = []
    for node in nodes_of(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = len(lines & set(range(node.lineno, node.end_lineno + 1)))
            if length > MAX_FUNCTION_LINES:
                found.append(f"{path}:{node.lineno}: {node.name} has {length} lines of code")
    return found


def unfinished(path: str, text: str) -> list[str]:
    """Marks of unfinished work; the letters of a picture in a notebook may be any."""
    lines = [each for each in enumerate(text.splitlines(), 1) if not each[1].lstrip().startswith(PICTURE)]
    return [f"{path}:{number}: {line.strip()}" for number, line in lines if UNFINISHED.search(line)]


def registry_hosts(path: str, text: str) -> list[str]:
    """Addresses of package registries: where packages come from is configured on the machine."""
    return [f"{path}: {host}" for host in REGISTRY_HOSTS if host in text]


def foreign_top_level(names: list[str]) -> list[str]:
    """Entries of the top level that are unexpected or missing."""
    return sorted(set(names) ^ TOP_LEVEL)


def ops() -> list[str]:
    """The ops: the public modules of `snnjax/ops`."""
    return [Path(path).stem for path in python_files("snnjax/ops") if "/_" not in path]


# Ops without a derivative: the properties in `tests/ops` are those of one, and their own file tests the others.
UNDIFFERENTIATED = ("connect", "simulate")


def missing_for_op(op: str, files: list[str], cases: str) -> list[str]:
    """What an op lacks in test `files` and in the table of cases."""
    words = {
        node.value if isinstance(node, ast.Constant) else getattr(node, "attr", getattr(node, "id", None))
        for node in ast.walk(ast.parse(cases))
        if isinstance(node, ast.Constant | ast.Attribute | ast.Name)
    }
    test = f"test_{op}.py"
    lacks = [] if any(path.startswith("tests/ops/") and Path(path).name == test for path in files) else [test]
    return lacks if op in words or op in UNDIFFERENTIATED else [*lacks, f"a row for {op} in tests/cases.py"]
