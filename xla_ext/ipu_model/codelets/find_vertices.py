"""Finds the classes of codelet sources that may be vertices: their names, members and instantiations.

The text is parsed after the preprocessor, so that macros which declare or instantiate vertices are seen through. Only
names are taken from here. What a class is (a vertex or not, a field or not, of which type) the C++ compiler says, when
it compiles the glue that popc.py writes (`glue.hpp`); so it does no harm to find too much.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_cpp

_PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))
_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)')
_SYSTEM_HEADER = "3"  # flag of a line marker, as GCC documents its preprocessor's output
# Attributes may hide a class from the parser: after its name, or several kinds in a row. Strings hold any bracket.
_STRING = r'"(?:[^"\\]|\\.)*"'
_ATTRIBUTE = re.compile(
    rf"\[\[(?:{_STRING}|[^\]\"])*\]\]|\b__attribute__\s*\(\((?:{_STRING}|[^()\"]|\((?:{_STRING}|[^()\"])*\))*\)\)"
)
# Explicit instantiations, a second way to find them beside the parser's; its declaration alone, `extern`, is none.
_INSTANTIATION = re.compile(r"(?<!\bextern)\s\btemplate\s+(?:class|struct)\s+([^;{}]+);")
# GCC's dump of classes: a paragraph each, with the name in its first line and a line for each base class.
_DUMPED_CLASS = re.compile(r"Class (?P<name>.+)\n(?P<lines>(?:.+\n)*)")
_ROOT = re.compile(r"^ *ipu_model::AnyVertex \(0x", re.MULTILINE)
_OWN_BASES = frozenset(
    ("ipu_model::AnyVertex", "poplar::Vertex", "poplar::MultiVertex", "poplar::SupervisorVertex")
)
_CLASSES = ("class_specifier", "struct_specifier")
_NAMES = ("type_identifier", "identifier")


class NotForTheHostError(ValueError):
    """A source that only an IPU could run."""


class LostVertexError(ValueError):
    """A vertex class that the compiler sees and the parser does not."""


@dataclass
class FoundClass:
    """A class with a definition: a vertex, a base of one, or neither."""

    namespaces: tuple[str, ...]
    name: str  # with the classes around it, and with its template arguments if it is a specialisation
    is_template: bool
    bases: list[str]  # every name in the list of base classes, template arguments included
    members: list[str]
    only_declares_constructor: bool
    source_bytes: int

    @property
    def plain_name(self) -> str:
        """The name without what stands around it and without template arguments."""
        return _plain(self.name)


@dataclass
class Instance:
    """A class that takes no more template arguments, to be described by the glue."""

    namespaces: tuple[str, ...]  # where the text means what it says
    text: str
    members: list[str]
    has_constructor: bool
    source_bytes: int


@dataclass
class Source:
    """What one source file, headers of its own included, declares."""

    classes: list[FoundClass] = field(default_factory=list)
    instantiations: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    aliases: dict[str, list[str]] = field(default_factory=dict)  # name -> names in its type

    def instances(self) -> list[Instance]:
        """The classes to describe: those derived from others that are no template, and the explicit instantiations."""
        derived = [found for found in self.classes if found.bases and not found.is_template]
        concrete = [(found.namespaces, found.name) for found in derived]
        unique = dict.fromkeys([*concrete, *self.instantiations])
        return [self._instance(namespaces, text) for namespaces, text in unique]

    def check_against(self, dump: str) -> None:
        """Raises `LostVertexError` if GCC's ``-fdump-lang-class`` has a vertex class that is not among `classes`."""
        found = {_bare("::".join([*known.namespaces, known.name])) for known in self.classes if known.bases}
        for dumped in _DUMPED_CLASS.finditer(dump):
            name = _bare(dumped["name"])
            local = "(" in name  # of a function: cannot be named by a program
            if _ROOT.search(dumped["lines"]) and not local and name not in found | _OWN_BASES:
                raise _lost(name)

    def _instance(self, namespaces: tuple[str, ...], text: str) -> Instance:
        plain = _plain(text)
        own = [found for found in self.classes if found.plain_name == plain]
        return Instance(
            namespaces=namespaces,
            text=text,
            members=list(dict.fromkeys(self._members(plain, set()))),
            has_constructor=not any(found.only_declares_constructor for found in own),
            source_bytes=max((found.source_bytes for found in own), default=0),
        )

    def _members(self, name: str, seen: set[str]) -> Iterator[str]:
        """The members of all classes of this name and of their bases, bases first."""
        if name in seen:
            return
        seen.add(name)
        own = [found for found in self.classes if found.plain_name == name]
        for base in [*self.aliases.get(name, []), *(base for found in own for base in found.bases)]:
            yield from self._members(base, seen)
        for found in own:
            yield from found.members


def _plain(name: str) -> str:
    """``a::Foo<b::Bar>`` -> ``Foo``."""
    return name.partition("<")[0].rpartition("::")[2].strip()


def _bare(name: str) -> str:
    """``n::{anonymous}::A<B<int> >::C`` -> ``n::A::C``."""
    inner = re.compile(r"<[^<>]*>")
    name = name.replace("{anonymous}::", "")
    while (shorter := inner.sub("", name)) != name:
        name = shorter
    return name.replace(" ", "").removeprefix("::")


def _lost(name: str) -> LostVertexError:
    return LostVertexError(
        f"popc: `{name}` must be written so that its source can be read without a compiler, got a vertex class that "
        "is seen by the compiler alone. Name its base class plainly, with no directive between `class` and `{`."
    )


def mark_own_lines(preprocessed: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is the source's own: neither a line marker nor of a system header.

    Markers within a file bear the flag of system headers as well, where a macro of one is expanded: still its own.
    """
    own, file = True, ""
    for line in preprocessed.splitlines():
        if marker := _MARKER.fullmatch(line):
            own = own if marker[2] == file else _SYSTEM_HEADER not in marker[3]
            file = marker[2]
        yield line, own and not marker


def own_lines(preprocessed: str) -> tuple[str, list[str]]:
    """The text without that of system headers, and for each line left where it comes from, as ``file:line``."""
    lines: list[str] = []
    origins: list[str] = []
    file, number = "", 0
    for line, own in mark_own_lines(preprocessed):
        if marker := _MARKER.fullmatch(line):
            file, number = marker[2], int(marker[1])
            continue
        if own:
            lines.append(line)
            origins.append(f"{file}:{number}")
        number += 1
    return "\n".join(lines), origins


def find_vertices(preprocessed: str) -> Source:
    """Parses a source as ``g++ -E`` gives it; raises `NotForTheHostError` where it holds assembly.

    Assembly in a template is let through: popc.py sees to it that only one never instantiated links. `LostVertexError`
    is raised where a template is instantiated in the text and not in what was parsed.
    """
    text, origins = own_lines(preprocessed)
    text = _ATTRIBUTE.sub(lambda found: "\n" * found[0].count("\n"), text)
    root = _PARSER.parse(text.encode()).root_node
    for node in _all_nodes(root):
        if node.type == "gnu_asm_expression" and not _in_template(node):
            raise NotForTheHostError(
                f"popc: `{origins[node.start_point.row]}` must be C++, got assembly. "
                "Keep assembly within #ifdef __IPU__, and give a form in C++ beside it."
            )
    source = Source()
    _visit(root, (), (), False, source)
    for found in source.classes:
        name = re.escape(found.plain_name)
        defined = re.search(rf"\b{name}\s*(<[^;{{}}]*>)?\s*::\s*{name}\s*\(\s*(void\s*)?\)", text)
        found.only_declares_constructor = found.only_declares_constructor and not defined
    instantiated = {_bare(name) for _, name in source.instantiations}
    for found in _INSTANTIATION.finditer(f"\n{text}"):
        if _bare(found[1]) not in instantiated:
            raise _lost(" ".join(found[1].split()))
    return source


def _in_template(node: tree_sitter.Node) -> bool:
    parent = node.parent
    while parent:
        parameters = (
            parent.child_by_field_name("parameters") if parent.type == "template_declaration" else None
        )
        if parameters and parameters.named_children:
            return True
        parent = parent.parent
    return False


def _all_nodes(root: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children)


def _visit(
    node: tree_sitter.Node,
    namespaces: tuple[str, ...],
    outer: tuple[str, ...],  # the classes that hold the node
    is_template: bool,
    source: Source,
) -> None:
    has_body = node.child_by_field_name("body") is not None
    match node.type:
        case "function_definition":
            return  # its local classes cannot be vertices
        case "namespace_definition":
            namespaces = (*namespaces, *_namespaces(node))
        case "template_declaration":
            parameters = node.child_by_field_name("parameters")
            is_template = is_template or bool(parameters and parameters.named_children)
        case "class_specifier" | "struct_specifier" if has_body and node.child_by_field_name("name"):
            outer = (*outer, _text(node.child_by_field_name("name")))
            source.classes.append(_found_class(node, namespaces, "::".join(outer), is_template))
        case "template_instantiation":
            kind = node.child_by_field_name("type")
            if kind and kind.type in _CLASSES:
                source.instantiations.append((namespaces, _text(kind.child_by_field_name("name"))))
            return
        case "alias_declaration" | "type_definition":
            _add_alias(node, source)
        case _:
            pass
    for child in node.children:
        _visit(child, namespaces, outer, is_template, source)


def _text(node: tree_sitter.Node | None) -> str:
    return " ".join(node.text.decode().split()) if node and node.text else ""


def _namespaces(node: tree_sitter.Node) -> list[str]:
    """The names of ``namespace a::b``; none for an unnamed one, whose names can be used around it."""
    name = _text(node.child_by_field_name("name"))
    return [part.strip().removeprefix("inline ") for part in name.split("::")] if name else []


def _names_within(node: tree_sitter.Node) -> Iterator[str]:
    if node.type in _NAMES:
        yield _text(node)
    for child in node.children:
        yield from _names_within(child)


def _found_class(
    node: tree_sitter.Node, namespaces: tuple[str, ...], name: str, is_template: bool
) -> FoundClass:
    clauses = [child for child in node.children if child.type == "base_class_clause"]
    body = node.child_by_field_name("body")
    declarations = body.children if body else []
    return FoundClass(
        namespaces=namespaces,
        name=name,
        is_template=is_template,
        bases=[base for clause in clauses for base in _names_within(clause)],
        members=[member for child in declarations for member in _declared_members(child)],
        only_declares_constructor=any(_declares_constructor(child, _plain(name)) for child in declarations),
        source_bytes=node.end_byte - node.start_byte,
    )


def _declared_members(node: tree_sitter.Node) -> Iterator[str]:
    """The data members of one declaration in a class: no function, nothing static, no array, pointer or reference."""
    static = any(child.type == "storage_class_specifier" for child in node.children)
    if node.type == "field_declaration" and not static:
        for declarator in node.children_by_field_name("declarator"):
            if declarator.type == "field_identifier":
                yield _text(declarator)


def _declares_constructor(node: tree_sitter.Node, name: str) -> bool:
    """Whether this is ``Name();``: declared without a body, not defaulted, without parameters."""
    declarator = node.child_by_field_name("declarator")
    return (
        node.type == "declaration"
        and declarator is not None
        and declarator.type == "function_declarator"
        and _text(declarator.child_by_field_name("declarator")) == name
        and not [child for child in node.children if child.type == "default_method_clause"]
        and _text(declarator.child_by_field_name("parameters")).replace(" ", "") in ("()", "(void)")
    )


def _add_alias(node: tree_sitter.Node, source: Source) -> None:
    kind = node.child_by_field_name("type")
    names = [_text(node.child_by_field_name("name") or node.child_by_field_name("declarator"))]
    if kind:
        source.aliases.setdefault(names[0], []).extend(_names_within(kind))
