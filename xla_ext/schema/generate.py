"""Writes the C++ of the tables of own ops (snnjax/_schema.py): structures, their leaves, a codelet with the digest.

python generate.py ../snnjax tables.hpp tables.cpp neurons.hpp
"""

import runpy
import sys
import types
import typing
from pathlib import Path
from typing import Annotated, Any, NamedTuple

PACKAGE = types.ModuleType("snnjax")  # without running its __init__, which imports JAX
PACKAGE.__path__ = [sys.argv[1]]
sys.modules["snnjax"] = PACKAGE

from snnjax import _neuron_table, _schema  # noqa: E402

MAX_RANK = 4


class Leaf(NamedTuple):
    """One array of a root, or one for each layer."""

    name: str  # on the wire
    place: str  # in C++
    is_layered: bool
    arrays: Any  # of the table
    within: str  # of a record that may be absent; or ""
    others: int = 0  # leaves behind it that stand for it together


def pascal(name: str) -> str:
    """``neurons_or_1`` -> ``kNeuronsOr1``."""
    return "k" + enumerator(name)


def enumerator(name: str) -> str:
    """``straight_through`` -> ``StraightThrough``."""
    return "".join(part.capitalize() for part in name.replace(".", "_").split("_"))


def is_record(kind: Any) -> bool:
    """Whether it is a record, and no array."""
    return isinstance(kind, type) and hasattr(kind, "_fields")


def parts_of(kind: Any) -> tuple[Any, bool, bool]:
    """A record or an array, whether there is one for each layer, and whether it may be absent."""
    if typing.get_origin(kind) is tuple:
        return typing.get_args(kind)[0], True, False
    options = [each for each in typing.get_args(kind) if is_record(each)]
    return (options[0], False, True) if options else (kind, False, False)


class Table:
    """The table of an op."""

    def __init__(self, op: str) -> None:
        found = runpy.run_path(str(Path(sys.argv[1], _schema.TABLES[op])))
        self.op, self.roots, self.static = op, found["ROOTS"], found["STATIC"]
        self.widest, self.carried = found.get("WIDEST_VECTOR"), found.get("CARRIED")

    def records(self) -> list[type]:
        """All records that are its own, each behind those that it consists of."""
        found: list[type] = []

        def visit(record: type) -> None:
            for kind in self.fields(record).values():
                part = parts_of(kind)[0]
                if is_record(part):
                    visit(part)
            if record not in (*found, *_neuron_table.RECORDS):
                found.append(record)

        for root in self.roots:
            visit(root)
        return found

    def fields(self, record: type) -> dict[str, Any]:
        """The annotations of a record by field; a product has its own arrays, and no others, in place of `OWN`."""
        found = {}
        for field, kind in _schema.fields(record).items():
            (arrays,) = getattr(kind, "__metadata__", (None,))
            if getattr(arrays, "numbers", "") != "own":
                found[field] = kind
            elif own := _schema.PRODUCTS[self.op].get(field.removeprefix("g_")):
                in_form = own if arrays.form == "own" else own._replace(form=arrays.form)
                found[field] = typing.Annotated[Any, in_form]
        return found

    def neuron_state(self) -> dict[str, Any]:
        """Those arrays of the carried state that the equation of neurons steps: sums of each neuron."""
        fields = self.fields(self.carried) if self.carried else {}
        own = {name: kind.__metadata__[0] for name, kind in fields.items()}
        return {
            name: each
            for name, each in own.items()
            if each.numbers == "sums" and each.axes == ("batch_or_0", "neurons")
        }

    def leaves(
        self, record: type, name: str = "", place: str = "", layered: bool = False, within: str = ""
    ) -> list[Leaf]:
        """The arrays of a record in the order of its fields."""
        found: list[Leaf] = []
        for field, kind in self.fields(record).items():
            part, repeats, may_lack = parts_of(kind)
            there = f"{place}{field}" + ("[layer]" if repeats else "")
            if is_record(part):
                inside = f"{name}{field}".removeprefix("operands.") if may_lack else within
                found += self.leaves(part, f"{name}{field}.", f"{there}.", layered or repeats, inside)
            else:
                found += self._forms(
                    part.__metadata__[0], f"{name}{field}", there, layered or repeats, within
                )
        return found

    def _forms(self, arrays: Any, name: str, place: str, layered: bool, within: str) -> list[Leaf]:
        """The leaves of one field."""
        if arrays.form == "ids":
            return [Leaf(f"{name}.ids", place, layered, arrays, within)]
        if arrays.form == "array":
            return [Leaf(name, place, layered, arrays, within)]
        form = _schema.FORMS[arrays.form]
        found = [Leaf(name, f"{place}.array", layered, arrays, within, len(form))]
        for own, (numbers, axes) in form.items():
            gradient = arrays.gradient if arrays.form == "events" and own == "values" else "none"
            axes = arrays.axes[-1:] if axes == ("last",) else axes or arrays.axes
            like = arrays._replace(numbers=numbers, axes=axes, gradient=gradient, given="optional")
            found.append(Leaf(f"{name}.{own}", f"{place}.{own}", layered, like, within))
        return found

    def switches(self) -> list[str]:
        """What decides whether arrays are there, by name."""
        leaves = [leaf for root in self.roots for leaf in self.leaves(root)]
        relations = [leaf.arrays.given.split(" ")[-1] for leaf in leaves]
        return sorted({*relations, *(leaf.within for leaf in leaves)} - {"always", "optional", ""})


def structure(table: Table, record: type) -> list[str]:
    """A record as a structure; tuples have an entry for each layer."""
    lines, layered = [], []
    inherited = table.neuron_state() if record is table.carried else {}
    for field, kind in table.fields(record).items():
        if field in inherited:
            continue
        part, repeats, _ = parts_of(kind)
        if is_record(part):
            item = f"{part.__name__}<Item>"
        else:
            form = part.__metadata__[0].form
            item = f"schema::{form.capitalize()}<Item>" if form in _schema.FORMS else "Item"
        lines.append(f"  {f'std::vector<{item}>' if repeats else item} {field};")
        layered += [f"{field}.resize(count);"] if repeats else []
        has_layers = is_record(part) and not repeats and any(leaf.is_layered for leaf in table.leaves(part))
        layered += [f"{field}.resize(count);"] if has_layers else []
    if layered:
        lines.append(f"\n  void resize(std::size_t count) {{\n    {' '.join(layered)}\n  }}")
    elif record in table.roots:
        lines.append("\n  void resize(std::size_t) {}")
    if record in table.roots:
        lines += root_of(table, record)
    places = sorted((leaf.place for leaf in table.leaves(record)), key=lambda place: place not in inherited)
    if inherited:
        lines.append(f"\n  static constexpr unsigned kArrays = {len(places)};")
    if inherited or record in _neuron_table.RECORDS:
        lines += access("unsigned", places)
    base = " : NeuronState<Item>" if inherited else ""
    return ["", "template <typename Item>", f"struct {record.__name__}{base} {{", *lines, "};"]


def root_of(table: Table, record: type) -> list[str]:
    """What a root has besides its fields: its leaves, and access to them."""
    leaves, known = table.leaves(record), []
    for switch in table.switches():
        own = [leaf for leaf in leaves if leaf.name == switch or leaf.name.startswith(f"{switch}.")]
        if own:
            is_layered = all(leaf.is_layered for leaf in own) and not switch.startswith("record")
            places = [leaf.place if is_layered else leaf.place.replace("[layer]", "[0]") for leaf in own]
            present = " || ".join(f"static_cast<bool>({place})" for place in places)
            known.append(f"      case schema::Switch::{pascal(switch)}: return {present};")
    return [
        f"\n  static constexpr std::array<schema::Leaf, {len(leaves)}> kLeaves{{{{",
        *(f"      {described(leaf)}," for leaf in leaves),
        "  }};\n",
        "  bool has(schema::Switch by, [[maybe_unused]] std::size_t layer) const {",
        "    switch (by) {",
        *known,
        "      default: return false;",
        "    }\n  }",
        *access(
            "std::size_t",
            [leaf.place for leaf in leaves],
            (", [[maybe_unused]] std::size_t layer", ", layer"),
        ),
    ]


def access(kind: str, places: typing.Sequence[str], layer: tuple[str, str] = ("", "")) -> list[str]:
    """What finds a field by its number, and by that of a layer, declared and passed on."""
    declared, passed = layer
    cases = [f"      case {number}: return self.{place};" for number, place in enumerate(places)]
    return [
        f"\n  Item& at({kind} number{declared}) {{ return place(*this, number{passed}); }}",
        f"  const Item& at({kind} number{declared}) const {{ return place(*this, number{passed}); }}\n",
        " private:",
        "  template <typename Self>",
        f"  static auto& place(Self& self, {kind} number{declared}) {{",
        "    switch (number) {",
        *cases[:-1],
        f"      default: return self.{places[-1]};",
        "    }\n  }",
    ]


def described(leaf: Leaf) -> str:
    """A leaf as an initialiser."""
    *relation, switch = leaf.arrays.given.split(" ")
    given = pascal("_".join(relation)) if relation else pascal(switch)
    by = f"schema::Switch::{pascal(switch)}" if relation else "schema::Switch::kNone"
    axes = ", ".join(f"schema::Axis::{pascal(axis)}" for axis in leaf.arrays.axes)
    within = f"schema::Switch::{pascal(leaf.within or 'none')}"
    flag = "true" if leaf.is_layered else "false"
    gradient, numbers, rank = pascal(leaf.arrays.gradient), pascal(leaf.arrays.numbers), len(leaf.arrays.axes)
    return (
        f'{{"{leaf.name}", {flag}, schema::Numbers::{numbers}, {{{axes}}}, {rank}, '
        f"schema::Given::{given}, {by}, {within}, schema::Gradient::{gradient}, {leaf.others}}}"
    )


def numbers_of(record: type) -> list[str]:
    """Static values: a structure, and what fills one for each layer from arrays by name."""
    types = {bool: "bool", int: "std::int64_t", float: "float"}
    switches = {Annotated[int, name]: (name, f", k{name}s") for name in _neuron_table.SWITCHES}
    kinds = {name: switches.get(kind) or (types[kind], "") for name, kind in _schema.fields(record).items()}
    fields = [f"  {kind} {name};" for name, (kind, _) in kinds.items()]
    reads = [
        f'    from.read("{name}", all, &{record.__name__}::{name}{limit});'
        for name, (_, limit) in kinds.items()
    ]
    return [
        f"\nstruct {record.__name__} {{",
        *fields,
        "\n  template <typename From>",
        f"  static std::vector<{record.__name__}> read(From& from, std::size_t count) {{",
        f"    std::vector<{record.__name__}> all(count);",
        *reads,
        "    return all;\n  }",
        "  template <typename From>",
        f"  static {record.__name__} read(From& from) {{ return read(from, 1).front(); }}\n}};",
    ]


def enumeration(name: str, values: typing.Iterable[str]) -> str:
    """A scoped enumeration."""
    return f"enum class {name} {{ {', '.join(map(pascal, values))} }};"


def axis_form(axis: str) -> str:
    """``x_or_1`` as an initialiser: the axis x, or 1."""
    base, _, other = axis.partition("_or_")
    return f"{{Axis::{pascal(base)}, {other or -1}}}"


def vocabulary(tables: typing.Sequence[Table]) -> list[str]:
    """What all tables use."""
    switches = sorted({switch for table in tables for switch in table.switches()})
    lines = [
        "\nnamespace snnjax::schema {\n",
        f'inline constexpr std::string_view kDigest = "{_schema.digest()}";',
        f"inline constexpr std::size_t kMaxRank = {MAX_RANK};\n",
        enumeration("Numbers", _schema.NUMBERS),
        enumeration("Axis", _schema.AXES),
        enumeration("Given", ("always", "optional", "with", "without")),
        enumeration("Gradient", ("none", "wanted", "always")),
        enumeration("Switch", ("none", *switches)),
        "\n// The length of an axis is that of another one, or this.",
        "struct AxisForm {",
        "  Axis base;",
        "  std::int64_t other;  // -1: none",
        "};",
        f"inline constexpr std::array<AxisForm, {len(_schema.AXES)}> kAxes{{{{",
        f"    {', '.join(map(axis_form, _schema.AXES))},",
        "}};",
        "constexpr AxisForm formOf(Axis axis) { return kAxes[static_cast<std::size_t>(axis)]; }",
        "\nstruct Leaf {",
        "  std::string_view name;",
        "  bool is_layered;  // one for each layer",
        "  Numbers numbers;",
        "  std::array<Axis, kMaxRank> axes;",
        "  std::size_t rank;",
        "  Given given;",
        "  Switch by;",
        "  Switch within;  // the record that it belongs to, if that may be absent",
        "  Gradient gradient;",
        "  std::size_t others;  // leaves behind it that stand for it together",
        "};",
    ]
    for form, others in _schema.FORMS.items():
        names = ", ".join(("array", *others))
        lines += ["", "template <typename Item>", f"struct {form.capitalize()} {{", f"  Item {names};", "};"]
    return [*lines, "\n}  // namespace snnjax::schema"]


def namespace(table: Table) -> list[str]:
    """The records of an op."""
    lines = [f"\nnamespace snnjax::{table.op} {{\n"]
    if table.widest is not None:
        lines.append(f"inline constexpr std::int64_t kWidestVector = {table.widest};")
    for record in table.records():
        lines += structure(table, record)
    for record in table.static:
        lines += numbers_of(record)
    return [*lines, f"\n}}  // namespace snnjax::{table.op}"]


def header() -> str:
    """The text of the header."""
    tables = [Table(op) for op in _schema.TABLES]
    lines = [
        "// Generated by xla_ext/schema/generate.py.",
        "#pragma once\n",
        "#include <array>\n#include <cstddef>\n#include <cstdint>\n#include <string_view>\n#include <vector>\n",
        '#include "schema/neurons.hpp"',
        *vocabulary(tables),
    ]
    for table in tables:
        lines += namespace(table)
    return "\n".join([*lines, ""])


def neurons() -> str:
    """The text of the header that codelets read too: of neurons and lists, without the standard library."""
    lines = ["// Generated by xla_ext/schema/generate.py.\n#pragma once\n\nnamespace snnjax {\n"]
    for name, values in _neuron_table.SWITCHES.items():
        lines.append(f"enum {name} : unsigned char {{ {', '.join(map(enumerator, values))} }};")
        lines.append(f"constexpr unsigned k{name}s = {len(values)};")
    table = Table("lif_network")
    for record in _neuron_table.RECORDS:
        lines += structure(table, record)
    states = list(table.neuron_state())
    fields = [f"  Item {state};" for state in states]
    lines += ["\ntemplate <typename Item>\nstruct NeuronState {", *fields, *access("unsigned", states), "};"]
    lines.append(f"constexpr unsigned kNeuronStates = {len(states)};")
    places = [leaf.name.rpartition(".")[2] for leaf in table.leaves(_neuron_table.RECORDS[-1])]
    names = ", ".join(map(enumerator, places))
    lines.append(f"\nenum GlifConstant : unsigned {{ {names} }};")
    lines.append(f"constexpr unsigned kGlifConstants = {len(places)};\n")
    first = 0
    for name, count in _neuron_table.LIST_HEADER.items():
        lines.append(f"constexpr unsigned {pascal(name)} = {first};")
        first += count
    lines.append(f"constexpr unsigned kListHeader = {first};")
    return "\n".join([*lines, "\n}  // namespace snnjax", ""])


def codelet() -> str:
    """The text of a vertex class that is named after the digest: a graph that knows it has codelets of these tables."""
    name = f"Tables_{_schema.digest()}"
    return (
        "// Generated by xla_ext/schema/generate.py.\n#include <poplar/Vertex.hpp>\n\nnamespace snnjax {\n"
        f"class {name} : public poplar::Vertex {{\n public:\n  bool compute() {{ return true; }}\n}};\n"
        "}  // namespace snnjax\n"
    )


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(header(), encoding="utf-8")
    Path(sys.argv[3]).write_text(codelet(), encoding="utf-8")
    Path(sys.argv[4]).write_text(neurons(), encoding="utf-8")
