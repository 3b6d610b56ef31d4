"""The plugin's own declarations of PJRT's interface, beside tables that others made from PJRT's header."""

import array
import ctypes
import importlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from snnjax_jax_plugin import _library, _wire

from tests.ipu.device.on_device import in_process
from tests.project.architecture import ROOT

# The version that the tables describe; later ones only append to each structure and to the list of functions.
tables: Any = pytest.importorskip("pypjrt._abi.pjrt_0_114")
HEADERS = ("abi.hpp", "abi_programs.hpp")
SLOTS_OF_OUR_VERSION = 131  # 0.96

# Structures that have other names here, and a union.
OTHER_NAMES = {
    "Arguments": None,
    "Api": "PJRT_Api",
    "Extension": "PJRT_Extension_Base",
    "Version": "PJRT_Api_Version",
    "NamedValue": "PJRT_NamedValue",
    "Program": "PJRT_Program",
    "ExecuteOptions": "PJRT_ExecuteOptions",
    "LogicalDeviceIds": "PJRT_LogicalDeviceIds",
    "ShardingsExtension": "PJRT_Shardings_Extension",
    "ShardingsExecutableParameterShardingsArgs": "PJRT_Shardings_PJRT_Executable_ParameterShardings_Args",
    "ShardingsExecutableOutputShardingsArgs": "PJRT_Shardings_PJRT_Executable_OutputShardings_Args",
}
OTHER_FIELDS = {
    ("PJRT_NamedValue", "_anon5"): "int64_value",
    ("PJRT_Api", "PJRT_Error_Destroy"): "functions",
    ("PJRT_Shardings_Extension", "PJRT_Shardings_PJRT_Executable_ParameterShardings"): "parameter_shardings",
    ("PJRT_Shardings_Extension", "PJRT_Shardings_PJRT_Executable_OutputShardings"): "output_shardings",
}


def own_structures() -> list[str]:
    """The structures that the headers define."""
    text = "".join((ROOT / "xla_ext" / "pjrt" / "interface" / header).read_text() for header in HEADERS)
    return re.findall(r"^struct (\w+)(?: : \w+)? \{", text, re.MULTILINE)


def their_structure(own: str):
    """``BufferDeviceArgs`` is ``PJRT_Buffer_Device_Args``; underscores within names are not ours."""
    if own in OTHER_NAMES:
        name = OTHER_NAMES[own]
        return name and getattr(tables, name)
    flat = {f"{name.removeprefix('PJRT_').replace('_', '')}Args": name for name in tables.SLOT}
    return getattr(tables, f"{flat[own]}_Args")


def assertions(own: str) -> list[str]:
    """Every field that begins within our structure has its place and size in theirs."""
    theirs = their_structure(own)
    if theirs is None:
        return []
    lines = [f"static_assert(sizeof({own}) <= {ctypes.sizeof(theirs)});"]
    for name, _ in theirs._fields_:
        field = getattr(theirs, name)
        our_name = OTHER_FIELDS.get((theirs.__name__, name), name)
        if theirs is tables.PJRT_Api and name.startswith("PJRT_") and our_name == name:
            continue
        place = f"offsetof({own}, {our_name}) == {field.offset} && sizeof({own}::{our_name}) == {field.size}"
        if our_name == "functions":
            place = f"offsetof({own}, functions) == {tables.VTABLE_OFFSET}"
        lines.append(
            f"template <class T = {own}> constexpr bool {own}_{name}() {{ if constexpr (sizeof(T) > {field.offset}) "
            f"return {place.replace(own, 'T')}; else return true; }}\nstatic_assert({own}_{name}());"
        )
    return lines


def compiles(lines: list[str], folder: Path) -> str:
    """The compiler's output for a file that includes the headers and contains these lines."""
    source = folder / "abi.cpp"
    includes = [f'#include "pjrt/interface/{header}"' for header in HEADERS]
    source.write_text("\n".join([*includes, "using namespace snnjax::pjrt;", *lines]))
    command = (
        "c++",
        "-std=c++20",
        "-fsyntax-only",
        "-Wno-invalid-offsetof",
        f"-I{ROOT / 'xla_ext'}",
        str(source),
    )
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="no compiler")


@needs_compiler
def test_every_field_lies_where_it_does_in_pjrt(tmp_path: Path) -> None:
    structures = own_structures()
    assert len(structures) > 70
    assert compiles([line for own in structures for line in assertions(own)], tmp_path) == ""


@needs_compiler
def test_a_field_that_lies_elsewhere_is_found(tmp_path: Path) -> None:
    moved = "struct Moved : Arguments { Device* device; Buffer* buffer; };"
    lines = [line.replace("BufferDeviceArgs", "Moved") for line in assertions("BufferDeviceArgs")]
    assert "static assertion failed" in compiles([moved, *lines], tmp_path)


def test_functions_stand_in_the_order_of_the_table() -> None:
    text = (ROOT / "xla_ext" / "pjrt" / "interface" / "functions.hpp").read_text()
    theirs = sorted(tables.SLOT, key=tables.SLOT.__getitem__)[:SLOTS_OF_OUR_VERSION]
    assert re.findall(r'^    "(\w+)",$', text, re.MULTILINE) == [
        name.removeprefix("PJRT_") for name in theirs
    ]


def test_numbers_of_types_are_those_of_pjrt() -> None:
    text = (ROOT / "xla_ext" / "executor" / "plan" / "plan.hpp").read_text()
    enum = re.search(r"enum class Dtype[^{]*\{(.*?)\};", text, re.DOTALL)
    assert enum is not None
    ours = re.findall(r"^ *k(\w+)", enum[1], re.MULTILINE)
    theirs = [
        "PRED",
        "S8",
        "S16",
        "S32",
        "S64",
        "U8",
        "U16",
        "U32",
        "U64",
        "F16",
        "F32",
        "F64",
        "BF16",
        "C64",
    ]
    assert [getattr(tables, f"PJRT_Buffer_Type_{name}") for name in theirs] == list(range(1, len(ours) + 1))
    assert tables.PJRT_NamedValue_kInt64List == 2


# jaxlib, which brings no header of PJRT, says with each call how long it takes the structure of arguments to be.
SIZES = """
import ctypes, json, os
import jax, numpy
from jaxlib import xla_client
from pypjrt._abi import pjrt_0_114 as tables
from snnjax_jax_plugin import _wire

get = _wire.load().GetPjrtApi
get.restype = ctypes.c_void_p
table = get()
size = ctypes.c_size_t.from_address(table).value
listening = ctypes.create_string_buffer(ctypes.string_at(table, size), size)
Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
sizes, kept = {}, []

def listen(name, function):
    def call(arguments):
        sizes[name] = ctypes.c_size_t.from_address(arguments).value
        return function(arguments)
    kept.append(Function(call))
    return ctypes.cast(kept[-1], ctypes.c_void_p).value

for name, slot in tables.SLOT.items():
    place = tables.VTABLE_OFFSET + 8 * slot
    if place < size:
        entry = ctypes.c_void_p.from_buffer(listening, place)
        entry.value = listen(name, Function(entry.value))

capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
xla_client.load_pjrt_plugin_with_c_api("ipu", capsule(ctypes.addressof(listening), b"pjrt_c_api", None))
device = jax.devices("ipu")[0]
device.memory_stats()
x = jax.device_put(numpy.ones(3, "f4"), device)
compiled = jax.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile()
compiled.cost_analysis(), compiled.memory_analysis()
y = compiled(x)
assert x.is_deleted() and y.sum() == 6
print(json.dumps(sizes), flush=True)
os._exit(0)  # jaxlib still calls when Python is gone
"""
# jaxlib 0.10.2 is of version 0.112: fields that the version of the tables, 0.114, has and it lacks.
APPENDED_SINCE = {"PJRT_Device_MemoryStats"}


@pytest.mark.usefixtures("model")
def test_structures_of_the_installed_jaxlib_are_those_of_the_tables() -> None:
    sizes = json.loads(in_process(SIZES))
    assert len(sizes) > 50
    for name, size in sizes.items():
        theirs = getattr(tables, f"{name}_Args")
        fields = [getattr(theirs, field) for field, _ in theirs._fields_]
        ends = [field.offset + field.size for field in fields]
        assert size >= ends[-1] or (name in APPENDED_SINCE and size in ends), name


@pytest.fixture
def plugin(model: None):
    """The plugin as the client of another author sees it."""
    return importlib.import_module("pypjrt._loader").Plugin(_wire.path())


@pytest.mark.usefixtures("model")
def test_conformance(plugin) -> None:
    """The harness finds nothing that the plugin promises and does not keep."""
    conform = importlib.import_module("pypjrt.conform")
    _library.connect()
    report = conform.run(plugin, {"num_devices": 1, "num_tiles": 4})
    failed = [(check.id, check.detail) for check in report.checks if check.result is conform.Result.FAIL]
    assert failed == []
    passed = {check.id for check in report.checks if check.result is conform.Result.PASS}
    assert {"client.create", "buffer.from_host", "compile.serialize", "execute.single_device"} <= passed
    assert report.api_version == (0, 96)
    assert report.slots == SLOTS_OF_OUR_VERSION


@pytest.mark.usefixtures("model")
def test_bytes_of_no_program_and_of_other_ipus_are_refused(plugin) -> None:
    """Bytes reach the plugin as they are; jaxlib wraps them and would find some of this itself."""
    client_of = importlib.import_module("pypjrt.client").Client
    text = "module @m { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> } }"
    _library.connect()
    with (
        client_of(plugin, options={"num_tiles": 4}) as client,
        client_of(plugin, options={"num_tiles": 8}) as larger,
    ):
        program = client.compile(text).serialize()
        assert client.deserialize_executable(program).num_outputs == 1
        for given, to, said in (
            (b"", client, 'must begin with "snnjax program for IPUs mk2/4", got ""'),
            (b"no program", client, 'got "no program"'),
            (
                program,
                larger,
                'must begin with "snnjax program for IPUs mk2/8", got "snnjax program for IPUs mk2/4"',
            ),
            (program[:-9], client, "plan"),
            (program.replace(b"/4\n", b"/4\nX"), client, "plan"),
        ):
            with pytest.raises(Exception, match=re.escape(said)):
                to.deserialize_executable(given)


@pytest.mark.usefixtures("model")
def test_deleted_buffer_has_an_event_that_failed(plugin) -> None:
    """jaxlib ends the process where there is none."""
    errors = importlib.import_module("pypjrt.errors")
    client_of = importlib.import_module("pypjrt.client").Client
    with client_of(plugin, options={"num_tiles": 4}) as client, client.devices() as devices:
        buffer = client.buffer_from_host(array.array("f", [1.0, 2.0]), 11, [2], devices[0])
        plugin.call("PJRT_Buffer_Delete", plugin.args("PJRT_Buffer_Delete_Args", buffer=buffer.address))
        ready = plugin.args("PJRT_Buffer_ReadyEvent_Args", buffer=buffer.address)
        plugin.call("PJRT_Buffer_ReadyEvent", ready)
        with pytest.raises(errors.InvalidArgument, match="`buffer` must still be there"):
            plugin.call("PJRT_Event_Await", plugin.args("PJRT_Event_Await_Args", event=ready.event))
        plugin.call("PJRT_Event_Destroy", plugin.args("PJRT_Event_Destroy_Args", event=ready.event))
        buffer.close()


@pytest.mark.usefixtures("model")
def test_function_that_is_not_there_says_so(plugin) -> None:
    errors = importlib.import_module("pypjrt.errors")
    with pytest.raises(errors.Unimplemented, match="PJRT_Client_DmaMap is not there for the IPU"):
        plugin.call("PJRT_Client_DmaMap", plugin.args("PJRT_Client_DmaMap_Args"))


@pytest.mark.usefixtures("model")
def test_structure_that_ends_too_early_is_refused(plugin) -> None:
    """As that of a caller who is older than the last field that the plugin needs."""
    errors = importlib.import_module("pypjrt.errors")
    args = plugin.args("PJRT_Client_Create_Args")
    args.struct_size = 40
    with pytest.raises(errors.InvalidArgument, match="`struct_size` must be at least 72, got 40"):
        plugin.call("PJRT_Client_Create", args)
