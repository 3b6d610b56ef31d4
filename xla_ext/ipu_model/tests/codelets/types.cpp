// What popc.py finds in codelets/codelets/shapes.cpp, and that vertices made from it connect, take state and compute.
#include <array>
#include <filesystem>
#include <poplar/VectorTypes.hpp>
#include <vector>

#include "check.hpp"
#include "codelets/codelet_library.hpp"

namespace {

using namespace ipu_model;

// One vertex of a type, alive as long as this is.
class Object {
 public:
  explicit Object(const VertexType& type) : type_(type), memory_(type.size + type.alignment) {
    void* start = memory_.data();
    std::size_t space = memory_.size();
    place_ = std::align(type.alignment, type.size, start, space);
    type_.construct(place_);
  }
  ~Object() { type_.destroy(place_); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  void connect(const char* field, std::vector<EdgeData> rows) { type_.field(field)->connect(place_, rows); }
  template <typename T, std::size_t n>
  void connect(const char* field, std::array<T, n>& row) {
    connect(field, {EdgeData{row.data(), n}});
  }
  template <typename T>
  void set(const char* field, T value) {
    type_.field(field)->set(place_, &value);
  }
  void compute(unsigned worker = 0) { type_.compute(place_, worker); }
  std::uint64_t cycles(unsigned worker = 0) const { return type_.worker_cycles(place_, worker); }
  std::uint64_t supervisorCycles() const { return type_.supervisor_cycles(place_); }

 private:
  const VertexType& type_;
  std::vector<std::byte> memory_;
  void* place_;
};

std::string fieldNames(const VertexType& type) {
  std::string names;
  for (const FieldType& field : type.fields) names += field.name + ' ';
  return names;
}

void testNames(const CodeletLibrary& library) {
  std::string names;
  for (const VertexType& type : library.vertexTypes()) names += type.name + '\n';
  CHECK_EQUAL(names,
              "Plain\nSpecial<int>\nNested\nWorkers\nSupervisor\n"
              "outer::inner::Derived<float,outer::inner::Op::Add,2>\n"
              "outer::inner::Derived<float,outer::inner::Op::Subtract,3,true>\n"
              "outer::inner::Derived<half,outer::inner::Op::Add,2>\n"
              "outer::inner::Derived<half,outer::inner::Op::Subtract,3,true>\n"
              "outer::inner::Derived<unsigned int,outer::inner::Op::Add,1>\n"
              "Special<float>\nSpecial<poplar::Vector<float>>\n");
  CHECK(library.find("outer::inner::Derived<unsigned, Op::Add, 1>") != nullptr);
  CHECK(library.find("::outer::inner::Derived<half,outer::inner::Op::Subtract,3u,true>") != nullptr);
  CHECK(library.find("Commented") == nullptr);
  CHECK(library.find("Helper") == nullptr);
  CHECK(library.find("outer::inner::Base<float>") == nullptr);
}

void testFields(const CodeletLibrary& library) {
  const VertexType& plain = *library.find("Plain");
  CHECK_EQUAL(fieldNames(plain), "hidden first second result count scale ");
  CHECK(plain.field("result")->direction == Direction::Output);
  CHECK_EQUAL(plain.field("result")->alignment, 8u);
  CHECK(plain.field("count")->direction == Direction::State);
  CHECK(plain.field("hidden")->type == poplar::FLOAT);
  CHECK_EQUAL(plain.field("hidden")->nesting, 0u);
  CHECK(plain.field("table") == nullptr);
  CHECK(plain.worker_cycles == nullptr);

  const VertexType& derived = *library.find("outer::inner::Derived<half,outer::inner::Op::Add,2>");
  CHECK_EQUAL(fieldNames(derived), "data state other bias ");
  CHECK(derived.field("data")->type == poplar::HALF);
  CHECK(derived.field("state")->direction == Direction::State);
  CHECK_EQUAL(derived.field("state")->nesting, 1u);
  CHECK(!derived.field("other")->sized);
  CHECK_EQUAL(derived.field("other")->tile_bytes, 2u);
  CHECK(derived.source_bytes > 100);

  CHECK_EQUAL(fieldNames(*library.find("Special<float>")), "general out ");
  CHECK_EQUAL(fieldNames(*library.find("Special<int>")), "out particular ");
  CHECK_EQUAL(fieldNames(*library.find("Special<poplar::Vector<float>>")), "out partial ");

  const VertexType& nested = *library.find("Nested");
  CHECK_EQUAL(nested.field("rows")->nesting, 2u);
  CHECK(nested.field("rows")->direction == Direction::InOut);
  CHECK_EQUAL(nested.field("rows")->alignment, 8u);
  CHECK(!nested.field("rows")->sized);
  CHECK(nested.field("list")->type == poplar::UNSIGNED_SHORT);
  CHECK_EQUAL(nested.field("scalars")->nesting, 2u);
  CHECK(nested.field("limit")->type == poplar::UNSIGNED_INT);
  CHECK(library.find("Workers")->multi);
  CHECK(library.find("Supervisor")->supervisor);
}

void testCompute(const CodeletLibrary& library) {
  std::array<float, 2> first{1, 2}, second{3, 4}, result{};
  std::array<float, 1> hidden{0.5f};
  Object plain(*library.find("Plain"));
  plain.connect("hidden", hidden);
  plain.connect("first", first);
  plain.connect("second", second);
  plain.connect("result", result);
  plain.set("count", 2u);  // the constructor is declared only: members begin as zeros
  plain.set("scale", 10.0f);
  plain.compute();
  CHECK_EQUAL(result[1], 22.5f);

  std::array<half, 2> data{1, 2}, other{3, 4}, state{100};
  Object derived(*library.find("outer::inner::Derived<half,outer::inner::Op::Subtract,3,true>"));
  derived.connect("data", data);
  derived.connect("other", other);
  derived.connect("state", state);
  derived.set("bias", half(0.5f));
  derived.compute();
  CHECK_EQUAL(float(data[1]), 90.5f);
  CHECK_EQUAL(derived.cycles(), 16u);
}

void testNested(const CodeletLibrary& library) {
  std::array<float, 2> row_a{1, 2}, row_b{3, 4};
  std::array<unsigned short, 3> list_a{5, 6, 7};
  std::array<unsigned short, 1> list_b{8};
  float scalars[2] = {0.25f, 0.5f};
  std::array<unsigned, 2> sizes{};
  std::array<unsigned, 1> limit{2};
  Object nested(*library.find("Nested"));
  nested.connect("rows", {{row_a.data(), 2}, {row_b.data(), 2}});
  nested.connect("list", {{list_a.data(), 3}, {list_b.data(), 1}});
  nested.connect("scalars", {{&scalars[0], 1}, {&scalars[1], 1}});
  nested.connect("sizes", sizes);
  nested.connect("limit", limit);
  nested.compute();
  CHECK_EQUAL(row_a[0], 4.25f);
  CHECK_EQUAL(row_b[0], 4.5f);
  CHECK_EQUAL(sizes[0], 13u);
  CHECK_EQUAL(sizes[1], 4u);
}

void testWorkers(const CodeletLibrary& library) {
  std::array<unsigned, 8> counts{};
  Object workers(*library.find("Workers"));
  workers.connect("counts", counts);
  workers.set("size", 8u);
  for (unsigned worker = 0; worker < 6; ++worker) workers.compute(worker);
  CHECK_EQUAL(counts[7], 1u);
  CHECK_EQUAL(workers.cycles(3), 308u);
  CHECK_EQUAL(workers.supervisorCycles(), 25u);

  std::array<bool, 1> flag{false};
  Object supervisor(*library.find("Supervisor"));
  supervisor.connect("flag", flag);
  supervisor.compute();
  CHECK(flag[0]);
}

}  // namespace

int main() {
  const std::filesystem::path source = std::filesystem::path(__FILE__).parent_path() / "codelets" / "shapes.cpp";
  const auto library = CodeletLibrary::compile({source});
  testNames(*library);
  testFields(*library);
  testCompute(*library);
  testNested(*library);
  testWorkers(*library);
  CHECK(CodeletLibrary::compile({source}) == library);
  return check::failures;
}
