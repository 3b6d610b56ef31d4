#include "elementwise/chain_source.hpp"

#include <algorithm>
#include <cstdint>
#include <sstream>

namespace snnjax::elementwise {
namespace {

// A worker's share is whole units: 64 bits of words, two words of bytes where rows are narrower.
constexpr unsigned kWordUnit = 2, kNarrowUnit = 8;

const char* typeOf(const ChainField& field) {
  return field.width == 4 ? "unsigned" : field.width == 2 ? "unsigned short" : "unsigned char";
}

std::string fieldsText(const ChainCode& code) {
  std::ostringstream text;
  for (const ChainField& field : code.fields) {
    const char* const access = !field.is_written ? "In" : field.is_read ? "InOut" : "Out";
    text << "  " << access << "<" << typeOf(field) << "> " << field.name << ";\n";
  }
  return text.str();
}

std::string computeText(const ChainCode& code, const ChainCost& cost, unsigned unit) {
  std::ostringstream text;
  text << "  bool compute(unsigned worker) {\n    using namespace chain;\n";
  for (std::size_t i = 0; i < code.fields.size(); ++i) {
    const ChainField& field = code.fields[i];
    text << "    " << (field.is_written ? "" : "const ") << typeOf(field) << "* const p" << i << " = &" << field.name
         << "[0];\n";
  }
  for (const std::string& line : code.before) text << "    " << line << "\n";
  text << "    return inFours<" << cost.at_once << ">(count, worker, " << unit << ", [=](auto n, unsigned i) {\n";
  for (const ChainLine& line : code.lines) text << "      " << line.text << "\n";
  text << "    });\n  }\n";
  return text.str();
}

// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv
std::string nameOf(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char each : text) hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3u;
  std::ostringstream name;
  name << "Chain" << std::hex << hash;
  return name.str();
}

}  // namespace

ChainSource chainSource(const std::vector<ElementwiseProgram::Step>& steps,
                        const std::vector<ElementwiseProgram::Operand>& inputs, const std::vector<unsigned>& outputs) {
  const ChainCost cost = chainCost(steps, inputs, outputs);
  ChainCode code = chainCode(steps, inputs, outputs, cost.at_once);
  const bool narrow = std::any_of(code.fields.begin(), code.fields.end(), [](const auto& f) { return f.width < 4; });
  const unsigned unit = narrow ? kNarrowUnit : kWordUnit;
  const std::string fields = fieldsText(code), compute = computeText(code, cost, unit);
  const std::string name = nameOf(fields + compute);
  std::ostringstream text;
  text << "#include \"" << kChainHeader << "\"\n\nnamespace snnjax {\n\nclass " << name
       << " : public poplar::MultiVertex {\n public:\n"
       << fields << "  unsigned count;\n\n"
       << compute << "};\n\n#ifndef __IPU__\ninline std::uint64_t workerCycles(const " << name
       << "& vertex, unsigned worker) {\n  return chain::costInFours(vertex.count, worker, " << unit << ", {"
       << cost.pointers << ", " << cost.four << ", " << cost.two << ", " << cost.one
       << "});\n}\n#endif\n\n}  // namespace snnjax\n";
  return {name, text.str(), std::move(code.fields)};
}

}  // namespace snnjax::elementwise
