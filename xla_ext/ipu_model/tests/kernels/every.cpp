// Every codelet of ours: each has a cost, which is never nothing, and runs on the smallest of problems.
#include <set>

#include "kernels/alone.hpp"

namespace {

using namespace kernels;
using ipu_model::Direction;

// All sizes are 1 and all data 0, except where that makes no sense; rows that are added up have pairs of columns.
const std::map<std::string, unsigned> kStates = {
    {"neurons", 2},   {"outputs", 2}, {"columns", 2},    {"delay", 0},     {"stride", 8},
    {"stride_in", 8}, {"first", 0},   {"first_high", 0}, {"first_row", 0}, {"first_id", 0},
};
constexpr std::size_t kElements = 512;  // more than any field needs then

void setStates(Alone& vertex, const ipu_model::VertexType& type) {
  for (const ipu_model::FieldType& field : type.fields) {
    const auto known = kStates.find(field.name);
    const unsigned value = known == kStates.end() ? 1 : known->second;
    if (field.direction != Direction::State) {
      vertex.zeros(field.name, kElements);
    } else if (field.type == poplar::UNSIGNED_INT) {
      vertex.state(field.name, value);
    } else {
      vertex.zeroState(field.name);
    }
  }
}

void test(const ipu_model::CodeletLibrary& library) {
  std::set<std::string> names;
  for (const ipu_model::VertexType& type : library.vertexTypes()) {
    CHECK(names.insert(type.name).second);
    if (type.name.starts_with("snnjax::Tables_")) continue;  // says which tables the codelets are of, and never runs
    if (type.worker_cycles == nullptr) {
      check::that(false, "has a cost", __FILE__, __LINE__, type.name);
      continue;
    }
    Alone vertex(library, type.name);
    setStates(vertex, type);
    vertex.run();  // checks that each worker costs more than one slot
    const std::uint64_t first = vertex.cycles();
    CHECK_EQUAL(vertex.cycles(), first);  // reading a cost changes nothing
  }
  CHECK(names.size() > 250);
}

}  // namespace

int main(int argc, char** argv) {
  return runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) { test(library); });
}
