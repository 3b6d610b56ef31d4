"""What the finder of vertices reads out of a preprocessed source."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("tree_sitter_cpp")
sys.path.insert(0, str(Path(__file__).parents[1] / "codelets"))
from find_vertices import LostVertexError, NotForTheHostError, find_vertices, own_lines


def instances(text: str) -> dict[str, list[str]]:
    """Every instance's name with its namespaces, and its members."""
    found = find_vertices(text).instances()
    return {"::".join([*instance.namespaces, instance.text]): instance.members for instance in found}


def test_class_gives_its_data_members_alone():
    text = """
    class A : public poplar::Vertex {
      poplar::Input<float> x, y;  // Input<float> commented;
      static constexpr unsigned k = 3; static int shared; int array[3]; float* pointer; int& reference;
      using T = int; enum Mode { P, Q }; struct Inner { int inside; }; int function(int) const;
     public:
      A() = default; A(int); bool compute() { int local = 0; return local == k; }
      unsigned count = 2; const float scale{0.5f};
    };"""
    assert instances(text) == {"A": ["x", "y", "count", "scale"]}


def test_namespaces_nested_unnamed_and_inline():
    text = """
    namespace a::b { inline namespace c { struct A : Vertex { int x; }; } namespace { struct B : Vertex {}; } }
    """
    assert instances(text) == {"a::b::c::A": ["x"], "a::b::B": []}


def test_template_is_an_instance_only_where_instantiated():
    text = """
    namespace n { template <typename T, unsigned n, bool b = true> class A : public Vertex { Input<T> x; };
    template class A<float, 3>; template class A<unsigned  int, 4, false>; extern template class A<int, 1>; }
    template struct n::A<half, 5>;
    """
    assert list(instances(text)) == ["n::A<float, 3>", "n::A<unsigned int, 4, false>", "n::A<half, 5>"]


def test_members_of_bases_come_first():
    text = """
    template <typename T> struct Base : Vertex { Input<T> a; };
    template <typename T> using Alias = Base<T>;
    struct Other { int b; };
    template <bool c> struct Derived : public std::conditional_t<c, Alias<float>, Other> { int d; };
    template struct Derived<true>;
    """
    assert instances(text)["Derived<true>"] == ["a", "b", "d"]


def test_specialisations_share_the_members_of_all():
    text = """
    template <typename T> struct A : Vertex { Input<T> general; };
    template <> struct A<int> : Vertex { Input<int> full; };
    template <typename T> struct A<T*> : Vertex { Input<T> partial; };
    template struct A<float>;
    """
    members = ["general", "full", "partial"]  # the compiler says which of them each has
    assert instances(text) == {"A<int>": members, "A<float>": members}


def test_classes_within_classes_and_functions():
    text = "struct Outer { struct A : Vertex { int x; }; }; void f() { struct Local : Vertex {}; }"
    assert instances(text) == {"Outer::A": ["x"]}


@pytest.mark.parametrize(
    "text, has_constructor",
    [
        ("struct A : Vertex { A(); };", False),
        ("struct A : Vertex { A() = default; };", True),
        ("struct A : Vertex { A() {} };", True),
        ("struct A : Vertex { A(); }; A::A() {}", True),
        ("struct A : Vertex { A(int); int x; };", True),
        ("template <class T> struct A : Vertex { A(); }; template struct A<int>;", False),
        (
            "template <class T> struct A : Vertex { A(); }; template <class T> A<T>::A() {} template struct A<int>;",
            True,
        ),
    ],
)
def test_constructor_declared_only(text: str, has_constructor: bool):
    (instance,) = find_vertices(text).instances()
    assert instance.has_constructor == has_constructor


def test_attributes_do_not_hide_a_class():
    text = """class [[poplar::constraint("elem(*x) != elem(*y)")]] A : public Vertex {
      Input<Vector<float>> x, y; bool compute() __attribute__((target("supervisor"))) { return true; } int z; };"""
    assert instances(text) == {"A": ["x", "y", "z"]}


@pytest.mark.parametrize(
    "head",
    [
        'class\n[[poplar::constraint("elem(*x[0]) != elem(*y)]]")]]\nA : public poplar::Vertex',
        "class __attribute__((aligned(8)))\nA : public Vertex",
        'class\n__attribute__((annotate("a)"), used))\nA\n: public Vertex',
        'struct A\n[[poplar::constraint("elem(*x) != elem(*y)")]]\n: Vertex',
        "class [[maybe_unused]]\n__attribute__((used)) A : public Vertex",
    ],
)
def test_attributes_on_lines_of_their_own(head: str):
    assert instances(f"{head} {{\npublic:\n  Input<float> x; Output<float> y; }};") == {"A": ["x", "y"]}


def test_text_of_system_headers_is_left_out():
    text = """# 1 "a.cpp"
struct A : Vertex {};
# 1 "/usr/include/b.hpp" 1 3
struct B : Vertex {};
# 3 "a.cpp" 2
struct C : Vertex {};
"""
    kept, origins = own_lines(text)
    assert kept == "struct A : Vertex {};\nstruct C : Vertex {};"
    assert origins == ["a.cpp:1", "a.cpp:3"]


def test_macro_of_a_system_header_stays_with_the_line_that_names_it():
    text = """# 1 "a.cpp"
struct A : Vertex { static constexpr float k =
# 1 "a.cpp" 3 4
(__builtin_inff ())
# 1 "a.cpp"
; };
"""
    assert own_lines(text)[0].count("__builtin_inff") == 1


@pytest.mark.parametrize("name", ["A", "n::A<float, B<int> >", "n::{anonymous}::A", "Outer::A"])
def test_vertex_class_that_only_the_compiler_sees_is_refused(name: str):
    dump = (
        f"Class {name}\n   size=1 align=1\n{name} (0x0x1) 0 empty\n ipu_model::AnyVertex (0x0x2) 0 empty\n\n"
    )
    bare = name.partition("<")[0].replace("{anonymous}::", "")
    head, _, last = bare.rpartition("::")
    source = f"template <typename T> struct {last} : Vertex {{}};"
    within = {"": source, "n": f"namespace n {{ {source} }}", "Outer": f"class Outer {{ {source} }};"}[head]
    find_vertices(within).check_against(dump)
    find_vertices("").check_against(dump.replace("AnyVertex", "Other"))
    find_vertices("").check_against(dump.replace(f"Class {name}", "Class function()::A"))
    for lost in ("", within.replace(": Vertex", "")):
        with pytest.raises(LostVertexError, match=f"popc: `{bare}` must be written"):
            find_vertices(lost).check_against(dump)


def test_instantiation_that_the_parser_loses_is_refused():
    text = "template <class T> struct A : Vertex { int x; };\n#pragma x\ntemplate class A<int>;"
    assert list(instances(text)) == ["A<int>"]
    with pytest.raises(LostVertexError, match="popc: `A<float>` must be written"):
        find_vertices("void f() { template class A<float>; }")


def test_assembly_is_refused_where_it_stands():
    text = '# 7 "a.cpp"\nstruct A : Vertex {\nvoid compute() { asm volatile("nop"); }\n};\n'
    with pytest.raises(NotForTheHostError, match=r"`a.cpp:8` must be C\+\+, got assembly"):
        find_vertices(text)


def test_assembly_in_a_template_is_left_to_the_linker():
    text = 'template <typename T> struct A : Vertex { int x; void compute() { asm volatile("nop"); } };'
    assert instances(f"{text} template struct A<int>;") == {"A<int>": ["x"]}
    with pytest.raises(NotForTheHostError, match="got assembly"):
        find_vertices(text.replace("typename T", ""))
