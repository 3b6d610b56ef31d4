// What popc.py and the loader of libraries refuse, and what they say.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "check.hpp"
#include "codelets/codelet_library.hpp"
#include "codelets/process.hpp"
#include "codelets/vertex_name.hpp"

namespace {

using namespace ipu_model;
namespace fs = std::filesystem;

// A variable of the environment that has another value for as long as this lives.
class Changed {
 public:
  Changed(const char* name, const std::string& value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Changed() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

// Writes a source and compiles it; what is refused does not depend on optimisations, which take time.
std::shared_ptr<const CodeletLibrary> compileText(const TemporaryFolder& folder, const std::string& name,
                                                  const std::string& text) {
  const fs::path path = folder.path() / name;
  std::ofstream(path) << text;
  return CodeletLibrary::compile({path}, {"-O0"});
}

const std::string kBegin =
    "#include <poplar/Vertex.hpp>\nusing namespace poplar;\nclass A : public Vertex {\n public:\n";

void testSources(const TemporaryFolder& folder) {
  const std::string wrong =
      check::messageOf([&] { compileText(folder, "wrong.cpp", kBegin + "bool compute() { return missing; } };"); });
  CHECK(wrong.find("popc: `wrong.cpp` must compile, got:") != wrong.npos);
  CHECK(wrong.find("wrong.cpp:5:25: error") != wrong.npos);
  CHECK_THROWS(compileText(folder, "open.cpp",
                           "extern \"C\" int fast(int);\n" + kBegin +
                               "Output<int> x; bool compute() { x = fast(1); return true; } };"),
               "undefined reference to `fast'\n");
  CHECK_THROWS(compileText(folder, "assembly.cpp", kBegin + "void compute() { asm volatile(\"f32v2gina $a0:1\"); } };"),
               "assembly.cpp:5` must be C++, got assembly. Keep assembly within #ifdef __IPU__");
  CHECK_THROWS(compileText(folder, "vertex.S", ".globl x\n"), "popc: `vertex.S` must be C++, got assembly of the IPU.");
  CHECK_THROWS(compileText(folder, "worker.cpp", kBegin + "void compute(unsigned) {} };"),
               "compute of a MultiVertex must take the worker's number");
  CHECK_THROWS(compileText(folder, "element.cpp",
                           "struct Pair { int a, b; };\n#include <poplar/Vertex.hpp>\n"
                           "struct A : poplar::Vertex { poplar::Input<poplar::Vector<Pair>> x; void compute() {} };"),
               "the elements of an edge must have a type that a tensor can have");
  CHECK_THROWS(compileText(folder, "size.cpp",
                           kBegin + "Input<Vector<int, VectorLayout::ONE_PTR>> x; Output<int> n;\n"
                                    "void compute() { *n = int(x.size()); } };"),
               "has no member named");
  CHECK_THROWS(compileText(folder, "input.cpp", kBegin + "Input<Vector<int>> x; void compute() { x[0] = 1; } };"),
               "read-only");
  CHECK_THROWS(CodeletLibrary::compile({folder.path() / "none.cpp"}),
               "none.cpp` must be a file, got none of that name.");
}

void testLibraries(const TemporaryFolder& folder) {
  std::ofstream(folder.path() / "text.gp") << "no library";
  CHECK_THROWS(CodeletLibrary::load(folder.path() / "text.gp"), "text.gp` must be a library of codelets, got: ");
  CHECK_THROWS(CodeletLibrary::load(folder.path() / "none.gp"), "none.gp` must be a library of codelets, got: ");
}

void testTools(const TemporaryFolder& folder) {
  {
    const Changed python("SNNJAX_PYTHON", "/no/such/python");
    CHECK_THROWS(compileText(folder, "fine.cpp", kBegin + "void compute() {} };"),
                 "`/no/such/python` must be a program");
  }
  CHECK(compileText(folder, "fine.cpp", kBegin + "void compute() {} };")->find("A") != nullptr);
}

// The library and the compiler of codelets lie beside the running library, or where the environment says.
void testPlaces(const TemporaryFolder& folder) {
  {
    const Changed codelets("SNNJAX_IPU_CODELETS", folder.path() / "none.gp");
    CHECK_THROWS(CodeletLibrary::builtIn(), "none.gp` must be a library of codelets, got: ");
  }
  CHECK(CodeletLibrary::builtIn()->find("snnjax::LoadBlock<float>") != nullptr);
  std::ofstream(folder.path() / "other.py") << "raise SystemExit('another popc')";
  const Changed popc("SNNJAX_POPC", folder.path() / "other.py");
  CHECK_THROWS(compileText(folder, "place.cpp", kBegin + "void compute() {} };"), "addCodelets: another popc");
}

void testFlags(const TemporaryFolder& folder) {
  const fs::path path = folder.path() / "flags.cpp";
  std::ofstream(path)
      << "#include <poplar/Vertex.hpp>\ntemplate <int n> struct A : poplar::Vertex { void compute() {} };\n"
         "template struct A<NUMBER>;\n";
  CHECK(CodeletLibrary::compile({path}, {"-DNUMBER=3", "-O0"})->find("A<3>") != nullptr);
  CHECK(CodeletLibrary::compile({path}, {"-DNUMBER=4", "-O0"})->find("A<4>") != nullptr);
}

// A text is compiled once, whatever file it is written to, and a process keeps the libraries that it used last. A
// script that copies stands in for the compiler: a shell's starts at once.
void testLibrariesKept(const TemporaryFolder& folder) {
  const std::string text = "#include <poplar/Vertex.hpp>\nstruct A : poplar::Vertex { void compute() {} };\n";
  const auto made = CodeletLibrary::compileText(text, {"-O0"});
  CHECK(made->find("A") != nullptr);
  std::ofstream(folder.path() / "made.gp", std::ios::binary) << made->contents();
  std::ofstream(folder.path() / "copy.sh") << "cp " << folder.path() / "made.gp" << " \"$2\"\n";  // popc -o file
  const Changed python("SNNJAX_PYTHON", "/bin/sh"), popc("SNNJAX_POPC", folder.path() / "copy.sh");
  const std::weak_ptr<const CodeletLibrary> first = CodeletLibrary::compileText("0"),
                                            other = CodeletLibrary::compileText("1");
  CHECK(first.lock() != other.lock());
  CHECK(CodeletLibrary::compileText("0", {"-DB"}) != first.lock());
  for (int number = 2; number <= 64; ++number) {
    CodeletLibrary::compileText(std::to_string(number));
    CHECK_EQUAL(CodeletLibrary::compileText("0"), first.lock());
  }
  CHECK(!first.expired());
  CHECK(other.expired());
}

void testNames() {
  CHECK_EQUAL(normalVertexName("Foo< unsigned,::half, 3u >"), "Foo<unsigned int,half,3>");
  CHECK_EQUAL(normalVertexName("a::{anonymous}::B<unsigned long, long int, unsigned short int, _Float16>"),
              "a::B<unsigned long,long,unsigned short,half>");
  CHECK_EQUAL(normalVertexName("unsigned"), "unsigned int");
  CHECK_EQUAL(normalVertexName("A<a::b<unsigned char>::c, 0x1fu>"), "A<a::b<unsigned char>::c,0x1fu>");
  CHECK_EQUAL(normalVertexName(""), "");
}

}  // namespace

int main() {
  const TemporaryFolder folder("codelets-errors");
  testSources(folder);
  testLibraries(folder);
  testTools(folder);
  testPlaces(folder);
  testFlags(folder);
  testLibrariesKept(folder);
  testNames();
  return check::failures;
}
