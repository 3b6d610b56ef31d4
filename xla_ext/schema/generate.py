"""Writes the C++ of an op's table of arrays and numbers (snnjax/ops/_lif_network/records.py): structures, their leaves.

python generate.py records.py lif_network.hpp
"""

import hashlib
import runpy
import sys
import typing
from pathlib import Path
from typing import Any, NamedTuple


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
    return "k" + "".join(part.capitalize() for part in name.replace(".", "_").split("_"))


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

    def __init__(self, path: str) -> None:
        found = runpy.run_path(path)
        self.roots, self.numbers, self.axes = found["ROOTS"], found["NUMBERS"], found["AXES"]
        self.static, self.fields, self.forms = found["STATIC"], found["fields"], found["FORMS"]
        self.widest = found["WIDEST_VECTOR"]
        self.digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]  # as in snnjax/_targets.py

    def records(self) -> list[type]:
        """All records, each behind those that it consists of."""
        found: list[type] = []

        def visit(record: type) -> None:
            for kind in self.fields(record).values():
                part = parts_of(kind)[0]
                if is_record(part):
                    visit(part)
            if record not in found:
                found.append(record)

        for root in self.roots:
            visit(root)
        return found

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
        form = self.forms[arrays.form]
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
    for field, kind in table.fields(record).items():
        part, repeats, _ = parts_of(kind)
        if is_record(part):
            item = f"{part.__name__}<Item>"
        else:
            form = part.__metadata__[0].form
            item = f"{form.capitalize()}<Item>" if form in table.forms else "Item"
        lines.append(f"  {f'std::vector<{item}>' if repeats else item} {field};")
        layered += [f"{field}.resize(count);"] if repeats else []
        has_layers = is_record(part) and not repeats and any(leaf.is_layered for leaf in table.leaves(part))
        layered += [f"{field}.resize(count);"] if has_layers else []
    if layered:
        lines.append(f"\n  void resize(std::size_t count) {{\n    {' '.join(layered)}\n  }}")
    if record in table.roots:
        lines += root_of(table, record)
    return ["", "template <typename Item>", f"struct {record.__name__} {{", *lines, "};"]


def root_of(table: Table, record: type) -> list[str]:
    """What a root has besides its fields: its leaves, and access to them."""
    leaves = table.leaves(record)
    cases = [f"      case {number}: return self.{leaf.place};" for number, leaf in enumerate(leaves)]
    known = []
    for switch in table.switches():
        own = [leaf for leaf in leaves if leaf.name == switch or leaf.name.startswith(f"{switch}.")]
        if own:
            is_layered = all(leaf.is_layered for leaf in own) and not switch.startswith("record")
            places = [leaf.place if is_layered else leaf.place.replace("[layer]", "[0]") for leaf in own]
            present = " || ".join(f"static_cast<bool>({place})" for place in places)
            known.append(f"      case Switch::{pascal(switch)}: return {present};")
    return [
        f"\n  static constexpr std::array<Leaf, {len(leaves)}> kLeaves{{{{",
        *(f"      {described(leaf)}," for leaf in leaves),
        "  }};\n",
        "  Item& at(std::size_t leaf, std::size_t layer) { return place(*this, leaf, layer); }",
        "  const Item& at(std::size_t leaf, std::size_t layer) const { return place(*this, leaf, layer); }\n",
        "  bool has(Switch by, [[maybe_unused]] std::size_t layer) const {",
        "    switch (by) {",
        *known,
        "      default: return false;",
        "    }\n  }",
        "\n private:",
        "  template <typename Self>",
        "  static auto& place(Self& self, std::size_t leaf, [[maybe_unused]] std::size_t layer) {",
        "    switch (leaf) {",
        *cases[:-1],
        f"      default: return self.{leaves[-1].place};",
        "    }\n  }",
    ]


def described(leaf: Leaf) -> str:
    """A leaf as an initialiser."""
    *relation, switch = leaf.arrays.given.split(" ")
    given = pascal("_".join(relation)) if relation else pascal(switch)
    by = f"Switch::{pascal(switch)}" if relation else "Switch::kNone"
    axes = ", ".join(f"Axis::{pascal(axis)}" for axis in leaf.arrays.axes)
    within = f"Switch::{pascal(leaf.within or 'none')}"
    flag = "true" if leaf.is_layered else "false"
    gradient = pascal(leaf.arrays.gradient)
    return (
        f'{{"{leaf.name}", {flag}, Numbers::{pascal(leaf.arrays.numbers)}, {{{axes}}}, {len(leaf.arrays.axes)}, '
        f"Given::{given}, {by}, {within}, Gradient::{gradient}, {leaf.others}}}"
    )


def numbers_of(table: Table, record: type) -> list[str]:
    """Static values: a structure, and what fills one for each layer from arrays by name."""
    types = {bool: "bool", int: "std::int64_t", float: "float"}
    kinds = table.fields(record)
    fields = [f"  {types[kind]} {name};" for name, kind in kinds.items()]
    reads = [f'    from.read("{name}", all, &{record.__name__}::{name});' for name in kinds]
    return [
        f"\nstruct {record.__name__} {{",
        *fields,
        "\n  template <typename From>",
        f"  static std::vector<{record.__name__}> read(From& from, std::size_t count) {{",
        f"    std::vector<{record.__name__}> all(count);",
        *reads,
        "    return all;\n  }\n};",
    ]


def header(table: Table) -> str:
    """The text of the header."""

    def enumeration(name: str, values: typing.Iterable[str]) -> str:
        return f"enum class {name} {{ {', '.join(map(pascal, values))} }};"

    lines = [
        "// Generated by xla_ext/schema/generate.py.",
        "#pragma once\n",
        "#include <array>\n#include <cstddef>\n#include <cstdint>\n#include <string_view>\n#include <vector>\n",
        "namespace snnjax::lif_network {\n",
        f'inline constexpr std::string_view kDigest = "{table.digest}";',
        f"inline constexpr std::int64_t kWidestVector = {table.widest};\n",
        enumeration("Numbers", table.numbers),
        enumeration("Axis", table.axes),
        enumeration("Given", ("always", "optional", "with", "without")),
        enumeration("Gradient", ("none", "wanted", "always")),
        enumeration("Switch", ("none", *table.switches())),
        "\nstruct Leaf {",
        "  std::string_view name;",
        "  bool is_layered;  // one for each layer",
        "  Numbers numbers;",
        "  std::array<Axis, 3> axes;",
        "  std::size_t rank;",
        "  Given given;",
        "  Switch by;",
        "  Switch within;  // the record that it belongs to, if that may be absent",
        "  Gradient gradient;",
        "  std::size_t others;  // leaves behind it that stand for it together",
        "};",
    ]
    for form, others in table.forms.items():
        names = ", ".join(("array", *others))
        lines += ["", "template <typename Item>", f"struct {form.capitalize()} {{", f"  Item {names};", "};"]
    for record in table.records():
        lines += structure(table, record)
    for record in table.static:
        lines += numbers_of(table, record)
    return "\n".join([*lines, "\n}  // namespace snnjax::lif_network\n"])


if __name__ == "__main__":
    source, target = sys.argv[1:]
    Path(target).write_text(header(Table(source)))
