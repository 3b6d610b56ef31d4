"""The project keeps its structure: the rules of `architecture.py` hold, and each of them can fail."""

import ast
import subprocess
import sys
import tomllib

import pytest

import snnjax
from tests.project import architecture as rules

LIBRARY = rules.python_files("snnjax")
PLUGIN = rules.python_files("xla_ext/pjrt/snnjax_jax_plugin")
TESTS = rules.python_files("tests")
KERNELS = rules.files_in("xla_ext/cpu", suffixes=[".cpp", ".hpp"])

CODELETS = rules.files_in("poplar_kernels", suffixes=[".cpp", ".hpp"])
BUILDERS = rules.files_in("xla_ext/builders", suffixes=[".cpp", ".hpp"])
MODEL = rules.files_in("xla_ext/ipu_model", suffixes=[".cpp", ".hpp"])
ROOMS = [f"xla_ext/{name}" for name in ("custom_op", "elementwise", "executor", "pjrt", "planner")]
DEVICE = rules.files_in(*ROOMS, suffixes=[".cpp", ".hpp"])
# The modules that users find in the index.
MODULES = [
    alias.name
    for node in rules.nodes_of((rules.ROOT / "snnjax/__init__.py").read_text())
    if isinstance(node, ast.ImportFrom) and node.module == "snnjax"
    for alias in node.names
]
BESIDES = (
    *("xla_ext/ipu_model/tests/", "xla_ext/ipu_model/include/"),
    *("xla_ext/builders/tests/", "xla_ext/executor/tests/", "xla_ext/pjrt/tests/", "xla_ext/cpu/tests/"),
    *("xla_ext/planner/tests/", "xla_ext/custom_op/tests/"),
)


def read(path):
    return (rules.ROOT / path).read_text()


def keep(rule, files):
    """Fail with all violations of `rule` in `files`, pairs of a path and a text."""
    keep_all([rule], files)


def keep_all(all_rules, files):
    """The same of several rules, file by file, so that each file is parsed once (`architecture.nodes_of`)."""
    found = [
        f"{rule.__name__}: {line}" for path, text in files for rule in all_rules for line in rule(path, text)
    ]
    assert not found, "\n".join(found)


def contents(paths):
    return [(path, read(path)) for path in paths]


def text_files():
    for path in rules.tracked_files():
        try:
            yield path.relative_to(rules.ROOT).as_posix(), path.read_text()
        except UnicodeDecodeError:  # data and pictures
            continue


OF_LIBRARY = (
    *(rules.upward_imports, rules.private_jax, rules.compiled_code, rules.heavy_imports, rules.prints),
    *(rules.long_file, rules.long_functions, rules.core_of_the_ipu),
)


def test_library_keeps_its_rules():
    keep_all(OF_LIBRARY, contents(LIBRARY))


def test_plugin_keeps_its_layers():
    assert PLUGIN
    keep(rules.upward_imports, contents(PLUGIN))


@pytest.mark.parametrize("rule", [rules.long_file, rules.long_functions], ids=lambda rule: rule.__name__)
def test_tests_keep(rule):
    keep(rule, contents(TESTS))


@pytest.mark.parametrize(
    "rule",
    [rules.long_file, rules.foreign_includes, rules.upward_includes, rules.dropped_prefetches],
    ids=lambda rule: rule.__name__,
)
def test_kernels_keep(rule):
    assert KERNELS
    keep(rule, contents(path for path in KERNELS if not path.startswith(BESIDES)))


@pytest.mark.parametrize(
    "rule, paths",
    [
        (rules.long_file, [*CODELETS, *BUILDERS, *MODEL, *DEVICE]),
        (rules.beyond_the_sdk, [*CODELETS, *BUILDERS]),
        (rules.upward_includes, [*CODELETS, *BUILDERS, *MODEL, *DEVICE]),
        (rules.beyond_the_executor, DEVICE),
    ],
    ids=lambda argument: getattr(argument, "__name__", ""),
)
def test_poplar_code_keeps(rule, paths):
    assert paths
    keep(rule, contents(path for path in paths if not path.startswith(BESIDES)))


@pytest.mark.parametrize("rule", [rules.unfinished, rules.registry_hosts], ids=lambda rule: rule.__name__)
def test_all_text_keeps(rule):
    keep(rule, text_files())


@pytest.mark.parametrize("folder, paths", [("snnjax", LIBRARY), ("tests", TESTS)])
def test_annotations_that_say_nothing_stay_few(folder, paths):
    assert rules.bare_any("def f(x: Any, *y: list[Any]) -> Any: ...") == 2
    assert sum(rules.bare_any(text) for _, text in contents(paths)) <= rules.MAX_ANY[folder]


def test_index_only_re_exports():
    keep(rules.more_than_an_index, contents(["snnjax/__init__.py"]))


def test_public_names_are_few():
    names = rules.public_names(read("snnjax/__init__.py"))
    assert 0 < len(names) < rules.MAX_NAMES
    assert len(set(names)) == len(names)


def test_modules_are_attributes_of_the_index():
    """Those that type checkers see are imported when they are used, so the rest costs nothing."""
    program = """
import sys, snnjax
import snnjax.graph.network as module
assert module.Network is snnjax.Network
assert "snnjax.losses" not in sys.modules and "losses" in dir(snnjax)
for name in sys.argv[1:]:
    assert getattr(snnjax, name).__name__ == f"snnjax.{name}", name
try:
    snnjax.loses
except AttributeError as error:
    sys.stdout.write(f"{error}, {error.name}")
"""
    assert {"losses", "data", "train", "metrics", "online", "encoding"} <= set(MODULES)
    command = [sys.executable, "-c", program, *MODULES]
    done = subprocess.run(command, cwd=rules.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "module 'snnjax' has no attribute 'loses', loses"


def test_public_names_have_one_path():
    """Users find the names of the index and of its modules, each in one place; packages below it export nothing."""
    modules = [getattr(snnjax, name) for name in MODULES]
    assert rules.second_paths([snnjax, *modules]) == []
    assert [path for path in ("ops", "graph") if rules.public_names(read(f"snnjax/{path}/__init__.py"))] == []
    assert rules.second_paths([snnjax.losses, snnjax.losses])[0] == (
        "snnjax.losses.cross_entropy_sum is snnjax.losses.cross_entropy_sum"
    )


def test_modules_are_hidden_by_their_own_functions_alone():
    assert rules.shadowed_modules(snnjax) == []


def test_top_level_holds_the_fixed_entries():
    assert rules.foreign_top_level([path.name for path in rules.entries(rules.ROOT)]) == []


def test_folders_are_small():
    assert rules.crowded_folders("poplar_kernels", "xla_ext", "tests") == []
    assert rules.crowded_folders("xla_ext/custom_op", most=1)


def test_each_op_has_its_tests():
    cases = read("tests/cases.py")
    assert [lack for op in rules.ops() for lack in rules.missing_for_op(op, TESTS, cases)] == []
    assert "spike_matmul" in rules.ops()


def test_version_is_the_same_everywhere():
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    assert f"\nversion: {version}\n" in read("CITATION.cff")
    assert f"\n## [{version}]" in read("CHANGELOG.md")


def test_import_loads_nothing_heavy():
    program = "import sys, snnjax; sys.stdout.write(' '.join(set(sys.argv[1:]) & sys.modules.keys()))"
    command = [sys.executable, "-c", program, *rules.HEAVY]
    done = subprocess.run(command, cwd=rules.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == ""


LONG = "\n".join(f"    x = {n}" for n in range(rules.MAX_FUNCTION_LINES))


@pytest.mark.parametrize(
    "rule, path, source",
    [
        (rules.upward_imports, "snnjax/ops/spike.py", "from snnjax.neurons import lif"),
        (rules.upward_imports, "snnjax/ops/spike.py", "def f():\n    from snnjax import graph"),
        (rules.upward_imports, "snnjax/ops/spike.py", "from snnjax import lif_step"),
        (rules.upward_imports, "snnjax/neurons/lif.py", "import snnjax"),
        (rules.upward_imports, "snnjax/neurons/lif.py", "from . import adlif"),
        (rules.upward_imports, "snnjax/neurons/lif.py", "from snnjax.blocks.block import flat"),
        (rules.upward_imports, "snnjax/blocks/norm.py", "from snnjax.graph.network import Network"),
        (rules.upward_imports, "snnjax/graph/segments.py", "import snnjax.metrics"),
        (rules.upward_imports, "snnjax/_check.py", "from snnjax._sparse_spikes import SparseSpikes"),
        (rules.upward_imports, "snnjax/helpers.py", ""),
        (
            rules.upward_imports,
            "snnjax/ipu/lowering/operation.py",
            "from snnjax.ipu.lowering.walk import Walk",
        ),
        (rules.upward_imports, "snnjax/ipu/lowering/views.py", "from snnjax.ipu.lowering.rules import rule"),
        (
            rules.upward_imports,
            "snnjax/ipu/profiles/text.py",
            "def f():\n    from snnjax.ipu.profiles import profile",
        ),
        (rules.upward_imports, "snnjax/ipu/device/library.py", "from snnjax.ipu.profiles import measure"),
        (rules.upward_imports, "snnjax/ipu/shelf.py", ""),
        (
            rules.upward_imports,
            "xla_ext/pjrt/snnjax_jax_plugin/_wire.py",
            "from snnjax_jax_plugin import _library",
        ),
        (rules.core_of_the_ipu, "snnjax/ipu/device/own_ops.py", "from snnjax.surrogates import Surrogate"),
        (rules.private_jax, "snnjax/ops/spike.py", "from jax._src import core"),
        (rules.private_jax, "snnjax/ops/spike.py", "import jaxlib"),
        (rules.private_jax, "snnjax/network.py", "import jax\nx = jax.core.get_aval(1)"),
        (rules.private_jax, "snnjax/network.py", "from jax.interpreters import mlir"),
        (rules.private_jax, "snnjax/_dispatch.py", "from jax._src import core"),
        (rules.compiled_code, "snnjax/network.py", "from snnjax import _targets"),
        (rules.compiled_code, "snnjax/ops/spike.py", "from snnjax import _targets\n_targets.missing()"),
        (rules.compiled_code, "snnjax/ops/spike.py", "from snnjax._targets import missing"),
        (rules.compiled_code, "snnjax/ops/spike.py", "import jax\njax.ffi.ffi_call('x', ())"),
        (rules.compiled_code, "snnjax/ops/spike.py", "from jax.ffi import ffi_call"),
        (rules.foreign_includes, "xla_ext/cpu/products/products.cpp", "#include <immintrin.h>"),
        (rules.foreign_includes, "xla_ext/cpu/products/products.cpp", '#include "kernels/simd.hpp"'),
        (rules.foreign_includes, "xla_ext/cpu/products/products.cpp", '#include "../pjrt/shell.hpp"'),
        (rules.foreign_includes, "xla_ext/cpu/products/products.cpp", '#include "xla/service/executable.h"'),
        (rules.foreign_includes, "xla_ext/cpu/kernels.cpp", '#include "xla/ffi/api/ffi.h"'),
        (rules.foreign_includes, "xla_ext/cpu/kernels/rows.hpp", "#include <Python.h>"),
        (rules.foreign_includes, "xla_ext/cpu/kernels/rows.hpp", "#include <unistd.h>"),
        (rules.dropped_prefetches, "xla_ext/cpu/delays/delays.cpp", "  __builtin_prefetch(row);"),
        (rules.beyond_the_sdk, "poplar_kernels/dot.cpp", "#include <poplar/ipu/Model.hpp>"),
        (rules.beyond_the_sdk, "poplar_kernels/dot.cpp", "#include <popops/Reduce.hpp>"),
        (rules.beyond_the_sdk, "xla_ext/builders/loop.cpp", '#include "graph/graph_data.hpp"'),
        (rules.beyond_the_sdk, "xla_ext/builders/loop.cpp", "#include <ipu_model/profile.hpp>"),
        (rules.upward_includes, "xla_ext/ipu_model/costs/route.cpp", '#include "engine/plan.hpp"'),
        (rules.upward_includes, "xla_ext/ipu_model/calibration/report.cpp", '#include "builders/loop.hpp"'),
        (rules.upward_includes, "xla_ext/ipu_model/engine/run/run.cpp", '#include "../cpu/parallel.hpp"'),
        (rules.upward_includes, "xla_ext/ipu_model/shelf/run.cpp", ""),
        (
            rules.upward_includes,
            "xla_ext/ipu_model/engine/run/run.cpp",
            '#include "engine/profile/order.hpp"',
        ),
        (rules.upward_includes, "xla_ext/pjrt/devices/client.cpp", '#include "pjrt/programs/program.hpp"'),
        (rules.upward_includes, "xla_ext/builders/vertices.hpp", '#include "builders/network/rows.hpp"'),
        (rules.upward_includes, "poplar_kernels/lists/lists.hpp", '#include "../network/neuron.hpp"'),
        (rules.upward_includes, "poplar_kernels/numbers.hpp", '#include "lists/lists.hpp"'),
        (rules.upward_includes, "xla_ext/cpu/lists/marks.hpp", '#include "cpu/network/lif_layer.hpp"'),
        (rules.upward_includes, "xla_ext/cpu/memory.hpp", '#include "cpu/lists/marks.hpp"'),
        (rules.upward_includes, "xla_ext/cpu/shelf/marks.hpp", ""),
        (rules.beyond_the_executor, "xla_ext/executor/views.cpp", '#include "graph/graph_data.hpp"'),
        (rules.beyond_the_executor, "xla_ext/executor/views.cpp", "#include <ipu_model/profile.hpp>"),
        (rules.beyond_the_executor, "xla_ext/executor/ops/dot.cpp", '#include "pjrt/table.hpp"'),
        (rules.beyond_the_executor, "xla_ext/pjrt/devices/client.cpp", "#include <poplar/Graph.hpp>"),
        (rules.beyond_the_executor, "xla_ext/planner/product_plan.cpp", "#include <poplar/Graph.hpp>"),
        (rules.beyond_the_executor, "xla_ext/elementwise/program.cpp", '#include "executor/plan/plan.hpp"'),
        (rules.beyond_the_executor, "xla_ext/pjrt/devices/client.cpp", '#include "executor/lowering.hpp"'),
        (rules.beyond_the_executor, "xla_ext/custom_op/custom_op.cpp", '#include "executor/executable.hpp"'),
        (rules.heavy_imports, "snnjax/train.py", "import optax"),
        (
            rules.heavy_imports,
            "snnjax/plot.py",
            "try:\n    from matplotlib import pyplot\nexcept ImportError: ...",
        ),
        (rules.heavy_imports, "snnjax/plot.py", "class A:\n    import h5py"),
        (rules.more_than_an_index, "snnjax/__init__.py", "def f(): ..."),
        (rules.more_than_an_index, "snnjax/__init__.py", "x = 1"),
        (rules.prints, "snnjax/cli.py", "def f():\n    print(1)"),
        (rules.long_file, "snnjax/cli.py", "\n" * (rules.MAX_FILE_LINES + 1)),
        (rules.long_functions, "snnjax/cli.py", "def f():\n" + LONG),
        (rules.long_functions, "snnjax/cli.py", "class A:\n  def f(self):\n" + LONG),
        (rules.unfinished, "README.md", "# TO" + "DO: more"),
        (rules.registry_hosts, "README.md", f"https://{rules.REGISTRY_HOSTS[0]}/project"),
    ],
)
def test_rule_finds(rule, path, source):
    assert len(rule(path, source)) == 1


@pytest.mark.parametrize(
    "rule, path, source",
    [
        (rules.upward_imports, "snnjax/__init__.py", "from snnjax.graph import network"),
        (rules.upward_imports, "snnjax/ops/lif_network.py", "from snnjax.ops.spike import spike"),
        (rules.upward_imports, "snnjax/data/digits.py", "import numpy\nfrom snnjax import encoding"),
        (rules.upward_imports, "snnjax/cli.py", "from snnjax import train"),
        (rules.core_of_the_ipu, "snnjax/ipu/device/core.py", "from snnjax.surrogates import Surrogate"),
        (
            rules.core_of_the_ipu,
            "snnjax/ipu/session.py",
            "from snnjax._check import fail\nfrom snnjax import ipu",
        ),
        (rules.private_jax, "snnjax/_jax_compat.py", "from jax._src import core"),
        (rules.private_jax, "snnjax/_jax_compat.py", "import jaxlib"),
        (
            rules.compiled_code,
            "snnjax/ops/spike.py",
            "from snnjax import _targets\n_targets.call('x', [], [])",
        ),
        (rules.compiled_code, "snnjax/_targets.py", "import jax\njax.ffi.include_dir()"),
        (
            rules.foreign_includes,
            "xla_ext/cpu/products/products.cpp",
            '#include <vector>\n#include "products.hpp"',
        ),
        (rules.foreign_includes, "xla_ext/cpu/ffi.hpp", '#include "xla/ffi/api/ffi.h"'),
        (rules.foreign_includes, "xla_ext/cpu/kernels.cpp", '#include "kernels/simd.hpp"'),
        (rules.foreign_includes, "xla_ext/cpu/kernels/simd.hpp", "#include <immintrin.h>"),
        (
            rules.beyond_the_sdk,
            "poplar_kernels/dot.cpp",
            '#include <poplar/Vertex.hpp>\n#include "lists.hpp"',
        ),
        (
            rules.beyond_the_sdk,
            "xla_ext/builders/loop.cpp",
            "#include <popops/Reduce.hpp>\n#include <vector>",
        ),
        (rules.upward_includes, "xla_ext/ipu_model/engine/run/run.cpp", '#include "graph/graph_data.hpp"'),
        (rules.upward_includes, "xla_ext/cpu/network/lif_layer.hpp", '#include "cpu/lists/marks.hpp"'),
        (rules.heavy_imports, "snnjax/train.py", "def fit():\n    import optax"),
        (
            rules.more_than_an_index,
            "snnjax/__init__.py",
            '"""Index."""\nfrom snnjax import train\n__all__ = ["train"]',
        ),
        (rules.prints, "snnjax/cli.py", "def f(stream):\n    stream.write('print(1)')"),
        (
            rules.long_functions,
            "snnjax/cli.py",
            'def f():\n    """A.' + "\n" * 50 + '    """\n    # b\n\n    return 1',
        ),
    ],
)
def test_rule_lets_pass(rule, path, source):
    assert rule(path, source) == []


def test_imports_form_no_circle():
    assert rules.import_circles(dict(contents([*LIBRARY, *PLUGIN]))) == []


@pytest.mark.parametrize(
    "back",
    [
        "from snnjax.a import f",
        "import snnjax.a",
        "def g():\n    from snnjax import a",
        "if TYPE_CHECKING:\n    from snnjax.a import A",
    ],
)
def test_circle_of_imports_is_found(back):
    files = {"snnjax/a.py": "from snnjax import b", "snnjax/b.py": "import snnjax.c", "snnjax/c.py": back}
    (circle,) = rules.import_circles(files)
    modules = circle.split(" imports ")
    assert modules[0] == modules[-1]
    assert "snnjax.a imports snnjax.b" in " imports ".join(modules[:-1] * 2)
    assert rules.import_circles({**files, "snnjax/c.py": "from snnjax import a_helper"}) == []


def test_rules_on_several_files_find():
    assert rules.foreign_top_level([*rules.TOP_LEVEL - {"LICENSE"}, "setup.py"]) == ["LICENSE", "setup.py"]
    assert rules.missing_for_op("spike", ["tests/ops/test_spike.py"], "CASES = [Case('spike')]") == []
    assert rules.missing_for_op("spike", [], "CASES = []") == [
        "test_spike.py",
        "a row for spike in tests/cases.py",
    ]
    assert rules.public_names("from a import b as b, c as d, e\nimport f as f") == ["b", "f"]
