"""The build of the compiled kernels: always present if possible, safe on any machine, exporting only handlers."""

import os
import re
import shutil
import subprocess
import sys
import tomllib

from snnjax import _targets
from tests.project import exports
from tests.project.architecture import ROOT

LIBRARY = ROOT / "snnjax" / "_cpu_kernels.so"


def output(*command, **environment):
    known = {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, env=known, capture_output=True, text=True, check=True)
    return done.stdout


def too_large_instructions(disassembly):
    """Functions that use registers of an instruction set that is not in their names."""
    found, function = set(), ""
    for line in disassembly.splitlines():
        if header := re.fullmatch(r"[0-9a-f]+ <(.*)>:", line):
            function = header[1]
        elif (register := re.search(r"%([yz])mm", line)) and not (
            "avx512" in function or ("avx2" in function and register[1] == "y")
        ):
            found.add(function)
    return sorted(found)


# Types of static objects that have no destructor.
STAYING = (
    r"(?:const )?(?:bool|Index|std::mutex|NamedValue|ShardingsExtension|FieldRecord|ffi::TypeId|"
    r"snnjax::pjrt::Table)$"
)


def mortal_objects(code):
    """Static objects within functions whose destructors run while other threads may still use them."""
    declared = re.findall(r"^ +static (?!constexpr)([^()&*=;{\n]+) (\w+)(?:;| =|\{)", code, re.MULTILINE)
    return [name for kind, name in declared if not re.match(STAYING, kind)]


def test_static_objects_outlive_all_threads():
    """Those of a pool, or of a queue of programs, may still run when the process ends: `static auto& x = *new X`."""
    assert mortal_objects("  static Spares all;\n") == ["all"]
    assert mortal_objects("  static const std::map<int, int> all = {\n") == ["all"]
    assert mortal_objects("  static auto& all = *new Spares;\n  static const bool has = true;\n") == []
    sources = [
        path for path in (ROOT / "xla_ext").rglob("*.?pp") if not {"tests", "calibration"} & {*path.parts}
    ]
    assert len(sources) > 100
    assert {path.name: found for path in sources if (found := mortal_objects(path.read_text()))} == {}


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def unsafe_steps(workflow):
    """The steps of jobs that hold a token which run a command, or an action that may change."""
    jobs = re.split(r"^  (?=[a-z-]+:$)", workflow.partition("\njobs:\n")[2], flags=re.MULTILINE)
    steps = [
        line
        for job in jobs
        if "id-token: write" in job
        for line in re.findall(r"^ +(?:- )?((?:run|uses):.*)", job, flags=re.MULTILINE)
    ]
    return [line for line in steps if not re.fullmatch(r"uses: \S+@[0-9a-f]{40} # v[0-9.]+", line)]


def test_jobs_that_hold_a_token_run_fixed_actions_alone():
    """A package installed there, or a tag that somebody moves, could publish in our name."""
    tool = "\njobs:\n  publish:\n    permissions:\n      id-token: write\n    steps:\n      - "
    assert unsafe_steps(tool + "run: pip install uv\n") == ["run: pip install uv"]
    assert unsafe_steps(tool + "uses: actions/checkout@v4\n") == ["uses: actions/checkout@v4"]
    assert any("id-token: write" in path.read_text() for path in WORKFLOWS)
    assert [step for path in WORKFLOWS for step in unsafe_steps(path.read_text())] == []


def test_what_workflows_make_is_there():
    makefile = (ROOT / "Makefile").read_text()
    targets = {
        name for names in re.findall(r"^([a-z0-9 -]+):", makefile, re.MULTILINE) for name in names.split()
    }
    made = {name for path in WORKFLOWS for name in re.findall(r"run: make ([a-z-]+)", path.read_text())}
    for names in re.findall(r"target: \[(.*)\]", (ROOT / ".github/workflows/nightly.yml").read_text()):
        made |= set(names.split(", "))
    assert {"test", "test-wheel", "fuzz", "ipu-model-tsan"} <= made
    assert made <= targets


if shutil.which("g++") and shutil.which("cmake"):  # elsewhere only the references can be tested

    def test_library_is_there_where_it_can_be_built():
        """A build that fails falls back to the references in silence, but not here."""
        assert _targets.missing() is None

    def test_library_shows_its_handlers_alone():
        lines = output("nm", "--dynamic", "--defined-only", str(LIBRARY)).splitlines()
        assert {line.split()[-1] for line in lines} == exports.exported()

    def test_library_needs_no_cpp_runtime():
        """The machine that runs a wheel may have an older one than the machine that built it."""
        needed = re.findall(r"NEEDED +(\S+)", output("objdump", "--private-headers", str(LIBRARY)))
        assert needed
        assert not [name for name in needed if re.match("libstdc|libgcc|libpython", name)]

    def test_larger_instructions_stay_in_their_namespaces():
        """An inline function shared with them would fail on a machine without AVX."""
        listing = output("objdump", "--disassemble", "--demangle", "--no-show-raw-insn", str(LIBRARY))
        assert too_large_instructions(listing) == []

    def test_library_of_a_newer_jaxlib_is_not_registered(monkeypatch):
        monkeypatch.setattr(_targets, "_api_version", lambda: (0, 1))
        sentence = _targets.missing.__wrapped__()
        assert sentence.startswith(f"{LIBRARY} was built for XLA FFI 0.")
        assert ", and jaxlib has 0.1: in a clone, build it with `make kernels`" in sentence

    def test_environment_names_the_library_to_load(tmp_path):
        other = shutil.copy(LIBRARY, tmp_path / "other.so")
        program = """
import sys
from snnjax import _targets
sys.stdout.write(f"{_targets.missing()} {'other.so' in open('/proc/self/maps').read()}")
"""
        assert output(sys.executable, "-c", program, SNNJAX_CPU_KERNELS=str(other)) == "None True"


def test_wheels_are_built_with_the_oldest_headers_supported():
    """Kernels run in the jaxlib of their headers and in newer ones, not in older ones."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for package in ("jax", "jaxlib"):
        built, supported = (
            next(line for line in lines if re.match(rf"{package}\W", line))
            for lines in (project["build-system"]["requires"], project["project"]["dependencies"])
        )
        major, minor = map(int, re.match(rf"{package}>=(\d+)\.(\d+),", supported).groups())
        excluded = "".join(re.findall(r",!=[\d.]+", supported))
        assert built == f"{package}>={major}.{minor},<{major}.{minor + 1}{excluded}"


LISTING = """
0000000000001000 <snnjax::{}::sumRows(long)>:
    1000:	vmovups {}(%rdi),%xmm0
    1008:	vaddps %{}mm0,%{}mm1,%{}mm2
"""


def test_check_of_instructions_finds_what_does_not_belong():
    def found(namespace, register):
        return too_large_instructions(LISTING.format(namespace, 0, *register * 3))

    assert found("avx512", "z") == found("avx2", "y") == found("portable", "x") == []
    assert found("avx2", "z") == ["snnjax::avx2::sumRows(long)"]
    assert found("portable", "y") == ["snnjax::portable::sumRows(long)"]
