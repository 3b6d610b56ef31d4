"""The platform `ipu` is there, behind the CPU, and whatever is wrong with it leaves other programs alone.

Most tests are a program in a process of its own: JAX sets up its platforms once.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import snnjax_jax_plugin
from snnjax_jax_plugin import _jax_private, _library

from tests.project.architecture import ROOT

SOME_WORK = "assert jax.jit(lambda x: x + 1)(jax.numpy.ones(2)).sum() == 4"
ASKED = """
try:
    jax.devices("ipu")
except RuntimeError as error:
    print(error)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder for the path of modules that says of the package what an installation of it would say."""
    entry_points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][
        "jax_plugins"
    ]
    info = tmp_path / "installed" / "snnjax_as_installed-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: snnjax_as_installed\nVersion: 0\n")
    lines = "".join(f"{name} = {module}\n" for name, module in entry_points.items())
    (info / "entry_points.txt").write_text(f"[jax_plugins]\n{lines}")
    plugin = ROOT / "xla_ext" / "pjrt" / "snnjax_jax_plugin"
    shutil.copytree(plugin, info.parent / plugin.name)
    return info.parent


def run(installed: Path, program: str, **environment: str) -> tuple[str, str]:
    """What a program that imports nothing but JAX writes: output, and warnings."""
    settings = ("SNNJAX_IPU", "JAX", "XLA")
    known = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    path = {"PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        (sys.executable, "-c", f"import jax\n{program}"),
        env={**known, **path, **environment},
        cwd=installed,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.mark.usefixtures("model")
def test_devices_are_listed_and_the_cpu_stays_the_default(installed: Path) -> None:
    program = f"{SOME_WORK}\nprint(jax.default_backend(), jax.devices(), jax.devices('ipu'))"
    output, warnings = run(installed, program)
    assert output == "cpu [CpuDevice(id=0)] [IpuDevice(id=0)]\n"
    assert warnings == ""


@pytest.mark.usefixtures("model")
def test_platform_can_be_chosen_as_the_default(installed: Path) -> None:
    output, _ = run(installed, "print(jax.default_backend(), jax.numpy.arange(3))", JAX_PLATFORMS="ipu,cpu")
    assert output == "ipu [0 1 2]\n"


def test_library_that_is_not_built_is_quietly_absent(installed: Path) -> None:
    """As in an editable install before `make kernels`."""
    elsewhere = "import pathlib, snnjax_jax_plugin._wire as m; m.path = lambda: pathlib.Path('/nowhere.so')"
    output, warnings = run(installed, f"{elsewhere}\n{SOME_WORK}\nprint(jax.devices()){ASKED}")
    assert output.splitlines() == [
        "[CpuDevice(id=0)]",
        f"Backend 'ipu' failed to initialize: {NO_FILE}. Available backends are ['cpu']",
    ]
    assert warnings == ""


@pytest.mark.usefixtures("model")
def test_client_that_fails_warns_once_and_the_cpu_works_on(installed: Path) -> None:
    program = f"{SOME_WORK}\nprint(jax.devices()){ASKED}"
    output, warnings = run(installed, program, SNNJAX_IPU_VERSION="mk9")
    devices, asked = output.splitlines()
    assert devices == "[CpuDevice(id=0)]"
    sentence = "INVALID_ARGUMENT: ipu: `version` must be mk1, mk2, bow or c600, got mk9."
    assert asked.startswith(f"Backend 'ipu' failed to initialize: {sentence}")
    assert warnings.count("Warning") == 1
    assert f"RuntimeWarning: The platform ipu is not there. {sentence}" in warnings


def test_package_that_cannot_be_imported_leaves_jax_alone(installed: Path) -> None:
    """Whatever it raises: a JAX of tomorrow may lack a name that snnjax uses."""
    broken = """
import sys
class Broken:
    def find_spec(self, name, *_):
        if name == "snnjax":
            raise AttributeError("module jax has no attribute core")
sys.meta_path.insert(0, Broken())
"""
    output, warnings = run(installed, f"{broken}{SOME_WORK}\nprint(jax.devices())")
    assert output == "[CpuDevice(id=0)]\n"
    assert warnings.count("Warning") == 1
    assert "The platform ipu is not there. AttributeError: module jax has no attribute core." in warnings


# Of snnjax, and of what `import jax` leaves for later: each takes milliseconds, and every JAX program would pay.
LOADED = """
import sys
def loaded():
    late = ("snnjax", "jax.extend", "jax.experimental")
    return sorted(name for name in sys.modules if name.split(".")[0] in late or name.startswith(late))
before = loaded()
{}
print(*sorted({{*loaded()}} - {{*before}}))
"""
PLUGIN = " ".join(
    f"snnjax_jax_plugin{name}" for name in ("", "._jax_private", "._library", "._rules", "._wire")
)


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("program", ["jax.devices()", "jax.devices('ipu')", SOME_WORK])
def test_program_that_does_not_use_the_platform_imports_the_plugin_alone(
    installed: Path, program: str
) -> None:
    assert run(installed, LOADED.format(program)) == (f"{PLUGIN}\n", "")


@pytest.mark.usefixtures("model")
def test_first_program_for_the_platform_imports_the_lowering(installed: Path) -> None:
    work = "with jax.default_device(jax.devices('ipu')[0]): assert jax.numpy.ones(3).sum() == 3"
    output, _ = run(installed, LOADED.format(work))
    assert {"snnjax", "snnjax.ipu.lowering"} < {*output.split()}


def test_nothing_of_snnjax_is_imported_where_the_library_is_not_built(installed: Path) -> None:
    nowhere = "import pathlib, snnjax_jax_plugin._wire as m; m.path = lambda: pathlib.Path('/nowhere.so')"
    output, _ = run(installed, LOADED.format(f"{nowhere}\njax.devices()"))
    assert output == f"{PLUGIN}\n"


@pytest.mark.usefixtures("model")
def test_package_that_breaks_once_it_is_needed_is_said_by_the_program_that_needs_it(installed: Path) -> None:
    program = """
import sys
jax.devices("ipu")
sys.modules["snnjax"] = None
try:
    jax.jit(lambda x: x + 1)(jax.device_put(1.0, jax.devices("ipu")[0]))
except jax.errors.JaxRuntimeError as error:
    print(error)
"""
    output, _ = run(installed, program)
    expected = "INTERNAL: compile: `snnjax` must be a package that can be imported, got ModuleNotFoundError: "
    assert output.startswith(expected)
    assert output.endswith(". Install it again.\n")


@pytest.mark.usefixtures("model")
def test_platform_can_be_registered_and_clients_made_again(installed: Path) -> None:
    program = """
import gc, numpy
from jax.extend import backend
import snnjax_jax_plugin
snnjax_jax_plugin.initialize()
for _ in range(3):
    x = jax.device_put(numpy.arange(3.0, dtype="f4"), jax.devices("ipu")[0])
    assert x.sum() == 3
    del x
    backend.clear_backends()
    gc.collect()
print("done")
"""
    assert run(installed, program) == ("done\n", "")


NO_FILE = (
    "There is no /nowhere.so: in a clone, build it with `make kernels` (about 4 minutes on 2 cores); "
    "else install snnjax again where there is a C++20 compiler"
)
NUMBER = "ipu: `{}` must be an integer of at least 1{}, got '{}'. Unset it for {}"


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    "variable, value, sentence",
    [
        ("SNNJAX_IPU_MODEL", "/nowhere.so", NO_FILE),
        ("SNNJAX_IPU_MODEL", "/etc/passwd", "/etc/passwd cannot be loaded ("),
        ("SNNJAX_IPU_DEVICES", "many", NUMBER.format("SNNJAX_IPU_DEVICES", " and at most 64", "many", 1)),
        ("SNNJAX_IPU_DEVICES", "65", NUMBER.format("SNNJAX_IPU_DEVICES", " and at most 64", "65", 1)),
        ("SNNJAX_IPU_TILES", "-3", NUMBER.format("SNNJAX_IPU_TILES", "", "-3", "all")),
        (
            "SNNJAX_IPU_TILES",
            "1473",
            "INVALID_ARGUMENT: ipu: `num_tiles` must be at most the 1472 of mk2, got 1473. "
            "Set SNNJAX_IPU_TILES to fewer",
        ),
        (
            "SNNJAX_IPU_VERSION",
            "mk9",
            "INVALID_ARGUMENT: ipu: `version` must be mk1, mk2, bow or c600, got mk9. "
            "Set SNNJAX_IPU_VERSION to one of them",
        ),
    ],
)
def test_setting_that_cannot_be_is_said(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.warns(RuntimeWarning) as warnings, pytest.raises(RuntimeError) as error:
        snnjax_jax_plugin.make_client()
    assert str(error.value).startswith(sentence)
    assert str(warnings[0].message).startswith(f"The platform ipu is not there. {sentence}")


def test_version_of_jax_without_what_is_private_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(_: str) -> bool:
        raise AttributeError("module 'jax._src.xla_bridge' has no attribute 'is_known_platform'")

    monkeypatch.setattr(_jax_private, "is_known_platform", lacking)
    with pytest.warns(
        RuntimeWarning, match="The platform ipu is not there. AttributeError: module 'jax._src"
    ):
        snnjax_jax_plugin.initialize()


def test_settings_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _library.client_options() == {"num_devices": 1, "num_tiles": 0}
    for name, value in (("DEVICES", "3"), ("TILES", "8"), ("VERSION", "bow")):
        monkeypatch.setenv(f"SNNJAX_IPU_{name}", value)
    assert _library.client_options() == {"num_devices": 3, "num_tiles": 8, "version": "bow"}
