// The code that is generated for elementwise programs, compiled, beside the codelet that interprets them.
#include "elementwise/chain_source.hpp"

#include <filesystem>
#include <fstream>
#include <set>

#include "chain_programs.hpp"
#include "check.hpp"
#include "codelets/process.hpp"

namespace {

using namespace snnjax::executor;
using namespace snnjax::elementwise;
using chains::Chain;
using chains::Place;
using ipu_model::CodeletLibrary;
using kernels::Alone;
using kernels::Draw;

constexpr char kKernels[] = "../../../poplar_kernels";  // from the folder in which tests run
constexpr unsigned kChains = 32, kPrinted = 960;        // random ones: compiled, and printed alone
constexpr unsigned kMost = 2999;                        // elements: pairs of all edges

// Rows of all widths: their elements' bits.
using Row = std::vector<unsigned>;
struct Rows {
  std::vector<Row> in, out;  // by input and by output
};

Rows rowsOf(const Chain& chain, unsigned count, Draw& draw) {
  Rows rows;
  const auto row = [&](const std::string& type, unsigned size) {
    Row all(size);
    for (unsigned& bits : all) bits = chains::elementOf(type, draw);
    return all;
  };
  for (const std::string& type : chain.out) rows.out.push_back(row(type, count));
  for (std::size_t i = 0; i < chain.in.size(); ++i) {
    rows.in.push_back(row(chain.in[i], chain.inputs[i].place == Place::kSingle ? 1 : count));
  }
  return rows;
}

template <class T>
std::vector<T> as(const Row& row) {
  std::vector<T> all;
  for (const unsigned bits : row) all.push_back(static_cast<T>(bits));
  return all;
}
template <class T>
Row of(Alone& vertex, const std::string& field) {
  const std::vector<T> all = vertex.get<T>(field);
  return Row(all.begin(), all.end());
}
Row got(Alone& vertex, const std::string& field, unsigned width) {
  if (width == 4) return of<unsigned>(vertex, field);
  return width == 2 ? of<unsigned short>(vertex, field) : of<unsigned char>(vertex, field);
}

const char* suffix(unsigned width) { return width == 4 ? "" : width == 2 ? "_halves" : "_bytes"; }

std::vector<Row> interpreted(const Chain& chain, const Rows& rows, unsigned count, const CodeletLibrary& library) {
  const ElementwiseProgram::Code code = chain.program().encoded(chain.inputs, chain.outputs);
  Alone vertex(library, "snnjax::MixedElementwiseChain");
  vertex.edge("program", code.words);
  for (const unsigned width : {4u, 2u, 1u}) {
    std::vector<Row> in, out;
    for (std::size_t i = 0; i < chain.in.size(); ++i) {
      const bool own = chain.inputs[i].place == Place::kRow || chain.inputs[i].place == Place::kSingle;
      if (own && chains::widthOf(chain.in[i]) == width) in.push_back(rows.in[i]);
    }
    for (std::size_t i = 0; i < chain.out.size(); ++i) {
      if (chains::widthOf(chain.out[i]) == width) out.push_back(rows.out[i]);
    }
    const auto set = [&]<class T>(T) {
      std::vector<std::vector<T>> all_in, all_out;
      for (const Row& row : in) all_in.push_back(as<T>(row));
      for (const Row& row : out) all_out.push_back(as<T>(row));
      vertex.rows(std::string("in") + suffix(width), all_in).rows(std::string("out") + suffix(width), all_out);
    };
    if (width == 4) set(0u);
    if (width == 2) set(static_cast<unsigned short>(0));
    if (width == 1) set(static_cast<unsigned char>(0));
  }
  const ChainCost cost = chainCost(chain.program().steps(), chain.inputs, chain.outputs);
  vertex.state("count", count).state("once", code.once).state("words", unsigned(code.words.size()));
  vertex.state("pointers", cost.pointers).state("four", cost.four).state("two", cost.two).state("one", cost.one);
  vertex.run();
  std::vector<Row> results;
  for (std::size_t i = 0; i < chain.out.size(); ++i) {
    const unsigned width = chains::widthOf(chain.out[i]), row = chain.outputs[i];
    const std::string number = row == 0 ? "" : "[" + std::to_string(row) + "]";
    results.push_back(got(vertex, std::string("out") + suffix(width) + number, width));
  }
  return results;
}

std::string outputName(const Chain& chain, std::size_t output) {
  return std::string("out") + suffix(chains::widthOf(chain.out[output])) + std::to_string(chain.outputs[output]);
}

std::vector<Row> generated(const Chain& chain, const Rows& rows, unsigned count, const CodeletLibrary& library) {
  const ChainSource source = chain.source();
  std::set<std::string> fields;
  for (const ChainField& field : source.fields) fields.insert(field.name);
  Alone vertex(library, "snnjax::" + source.name);
  const auto set = [&](const std::string& name, unsigned width, const Row& row) {
    if (fields.count(name) == 0) return;
    if (width == 4) vertex.edge(name, row);
    if (width == 2) vertex.edge(name, as<unsigned short>(row));
    if (width == 1) vertex.edge(name, as<unsigned char>(row));
  };
  for (std::size_t i = 0; i < chain.in.size(); ++i) {
    const unsigned width = chains::widthOf(chain.in[i]);
    const bool own = chain.inputs[i].place == Place::kRow || chain.inputs[i].place == Place::kSingle;
    if (own) set(std::string("in") + suffix(width) + std::to_string(chain.inputs[i].row), width, rows.in[i]);
  }
  for (std::size_t i = 0; i < chain.out.size(); ++i) {
    set(outputName(chain, i), chains::widthOf(chain.out[i]), rows.out[i]);
  }
  vertex.state("count", count).run();
  std::vector<Row> results;
  for (std::size_t i = 0; i < chain.out.size(); ++i) {
    results.push_back(got(vertex, outputName(chain, i), chains::widthOf(chain.out[i])));
  }
  return results;
}

// One NaN is like another: C++ does not say which of two operands' it is that is passed on.
bool same(const std::string& type, unsigned a, unsigned b) {
  const auto isNan = [&](unsigned bits) {
    const float x = std::bit_cast<float>(chains::slotOf(type, bits));
    return chains::isReal(type) && x != x;
  };
  return a == b || (isNan(a) && isNan(b));
}

std::string textOf(const Chain& chain) {
  std::string text;
  for (std::size_t i = 0; i < chain.instruction.texts.size(); ++i) {
    text += chain.instruction.texts[i];
    for (const auto slot : chain.instruction.ints[i]) text += " " + std::to_string(slot);
    text += "\n";
  }
  return text + chain.source().text;
}

void compare(const Chain& chain, unsigned count, const CodeletLibrary& compiled, const CodeletLibrary& kernels) {
  Draw draw(count + 1);
  const Rows rows = rowsOf(chain, count, draw);
  const std::vector<Row> expected = interpreted(chain, rows, count, kernels);
  const std::vector<Row> actual = generated(chain, rows, count, compiled);
  for (std::size_t output = 0; output < expected.size(); ++output) {
    for (unsigned i = 0; i < count; ++i) {
      if (same(chain.out[output], actual[output][i], expected[output][i])) continue;
      check::that(false, textOf(chain).c_str(), __FILE__, __LINE__,
                  std::to_string(actual[output][i]) + ", not " + std::to_string(expected[output][i]) + ", element " +
                      std::to_string(i) + " of " + std::to_string(count) + " in output " + std::to_string(output));
      return;
    }
  }
}

void generatedCodeYieldsTheBitsOfTheInterpreter() {
  std::vector<Chain> all = chains::everyOperation();
  for (unsigned i = 0; i < kChains; ++i) all.push_back(chains::RandomChain(i).make());
  const ipu_model::TemporaryFolder folder("snnjax-chains");
  const std::filesystem::path path = folder.path() / "chains.cpp";
  std::set<std::string> written;
  {
    std::ofstream file(path);
    for (const Chain& chain : all) {
      const ChainSource source = chain.source();
      if (written.insert(source.name).second) file << source.text;
    }
  }
  const auto compiled = CodeletLibrary::compile({path}, {"-I" + std::filesystem::absolute(kKernels).string(), "-O1"});
  const auto kernels = CodeletLibrary::builtIn();
  for (const Chain& chain : all) {
    for (const unsigned count : {0u, 1u, 2u, 3u, 5u, 8u, 31u, kMost}) compare(chain, count, *compiled, *kernels);
  }
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// What is printed is what chainCost() counts: each line once, and the same lines for 4, 2 and 1 elements.
void printedLinesAreThoseThatCount() {
  for (unsigned seed = 0; seed < kPrinted; ++seed) {
    const Chain chain = chains::RandomChain(seed).make();
    const std::string text = chain.source().text;
    std::size_t at = text.find("inFours<"), lines = 0;
    const auto steps = chain.program().steps();
    for (const unsigned elements : {2u, 1u, 4u}) {
      const ChainCode code = chainCode(steps, chain.inputs, chain.outputs, elements);
      std::size_t next = at;
      for (const ChainLine& line : code.lines) {
        next = text.find("\n      " + line.text + "\n", next);
        CHECK(next != text.npos);
        CHECK(!line.stages.empty());
      }
      lines = code.lines.size();
    }
    CHECK_EQUAL(occurrences(text.substr(at), "\n      "), lines);
  }
}

// Each row is read once, if at all, and written once.
void rowsAreReadAndWrittenOnce() {
  for (unsigned seed = 0; seed < kPrinted; ++seed) {
    const Chain chain = chains::RandomChain(seed).make();
    const ChainSource source = chain.source();
    for (std::size_t i = 0; i < source.fields.size(); ++i) {
      const std::string pointer = "p" + std::to_string(i);
      const std::size_t loads = occurrences(source.text, "(n, " + pointer + " + i)"),
                        all = occurrences(source.text, ", " + pointer + " + i)");
      CHECK(loads <= 1);
      CHECK_EQUAL(all - loads, source.fields[i].is_written ? 1u : 0u);
    }
  }
}

Chain chainOf(const std::vector<std::pair<std::string, std::vector<std::int64_t>>>& lines,
              const std::vector<ElementwiseProgram::Operand>& inputs, const std::vector<unsigned>& outputs) {
  Chain chain;
  for (const auto& [text, slots] : lines) {
    chain.instruction.texts.push_back(text);
    chain.instruction.ints.push_back(slots);
  }
  chain.inputs = inputs;
  chain.outputs = outputs;
  return chain;
}

// The examples of the executor's README.
void theReadmeShowsWhatIsGenerated() {
  std::ifstream file("../../executor/README.md");
  const std::string readme(std::istreambuf_iterator<char>(file), {});
  const Chain sum = chainOf({{"load.f32", {0, 0}}, {"load.f32", {1, 1}}, {"add.f32", {2, 0, 1}}, {"store.f32", {0, 2}}},
                            {{Place::kRow, 0, 0}, {Place::kRow, 1, 0}}, {0});
  CHECK(readme.find("```cpp\n" + sum.source().text + "```") != readme.npos);
  // s = [v > 1], then v = 0.9 (v - s) + 0.1 current, which overwrites v; both are written, and s as floats.
  const Chain lif = chainOf({{"load.f32", {0, 0}},
                             {"load.f32", {1, 1}},
                             {"constant.f32", {2, 0x3f800000}},
                             {"gt.f32", {3, 0, 2}},
                             {"convert_s32_f32", {3, 3}},
                             {"subtract.f32", {0, 0, 3}},
                             {"constant.f32", {4, 0x3f666666}},
                             {"multiply.f32", {0, 4, 0}},
                             {"constant.f32", {5, 0x3dcccccd}},
                             {"multiply.f32", {1, 5, 1}},
                             {"add.f32", {0, 0, 1}},
                             {"store.f32", {0, 0}},
                             {"store.f32", {1, 3}}},
                            {{Place::kOutput, 0, 0}, {Place::kRow, 0, 0}}, {0, 1});
  const std::string text = lif.source().text;
  const std::size_t first = text.find("  bool compute"), last = text.find("};", first);
  CHECK(readme.find("```cpp\n" + text.substr(first, last - first) + "```") != readme.npos);
}

}  // namespace

int main() {
  generatedCodeYieldsTheBitsOfTheInterpreter();
  printedLinesAreThoseThatCount();
  rowsAreReadAndWrittenOnce();
  theReadmeShowsWhatIsGenerated();
  return check::failures == 0 ? 0 : 1;
}
