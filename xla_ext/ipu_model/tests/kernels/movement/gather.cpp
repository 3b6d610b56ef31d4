// The codelets of gather.cpp and scatter_rows.cpp alone.
#include <algorithm>
#include <poplar/HalfFloat.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/movement/gather_cycles.hpp"
#include "poplar_kernels/movement/scatter_rows_cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

constexpr unsigned kRows = 9, kFirstRow = 4, kCount = 17;

// Numbers of rows of which the table holds [4, 13): some below, above, and far out of range.
template <typename Id>
std::vector<Id> idsFor(Draw& draw) {
  std::vector<Id> ids(kCount);
  for (Id& id : ids) id = static_cast<Id>(draw.below(kRows + 2 * kFirstRow));
  ids[3] = static_cast<Id>(-1);
  ids[5] = static_cast<Id>(60000);
  return ids;
}

// The row in the table that an id names, or kRows.
template <typename Id>
unsigned rowOf(Id id) {
  const auto wide = static_cast<std::int64_t>(id) - kFirstRow;
  return wide < 0 || wide >= kRows ? kRows : static_cast<unsigned>(wide);
}

template <typename T, typename Id>
void testGather(const CodeletLibrary& library, const std::string& types, unsigned width) {
  Draw draw(width);
  const std::vector<T> table = draw.row<T>(kRows * width);
  const std::vector<Id> ids = idsFor<Id>(draw);
  Alone gather(library, "snnjax::Gather<" + types + ">");
  gather.edge("table", table).edge("ids", ids).edge("out", draw.row<T>(kCount * width)).state("rows", kRows);
  gather.state("width", width).state("count", kCount).state("first_row", kFirstRow);
  const std::vector<T> out = gather.run(true).template get<T>("out");
  for (unsigned i = 0; i < out.size(); ++i) {
    const unsigned row = rowOf(ids[i / width]);
    CHECK(out[i] == (row == kRows ? T(0) : table[row * width + i % width]));
  }
}

// Starts of windows of one row: those below 0 count from the end, then all are moved into the rows of all tables.
template <typename T, typename Start>
void testGatherAt(const CodeletLibrary& library, const std::string& types, unsigned width, unsigned from_end) {
  constexpr unsigned kLast = kFirstRow + kRows + 3;
  Draw draw(width + from_end);
  const std::vector<T> table = draw.row<T>(kRows * width);
  std::vector<Start> starts(kCount);
  for (Start& start : starts) start = static_cast<Start>(draw.below(2 * kLast) - (from_end > 0 ? kLast : 0));
  starts[2] = static_cast<Start>(0x80000000U);
  starts[3] = static_cast<Start>(0x7fffffff);
  Alone gather(library, "snnjax::GatherAt<" + types + ">");
  gather.edge("table", table).edge("starts", starts).edge("out", draw.row<T>(kCount * width)).state("rows", kRows);
  gather.state("width", width).state("count", kCount).state("first_row", kFirstRow);
  gather.state("last", kLast).state("from_end", from_end);
  const std::vector<T> out = gather.run(true).template get<T>("out");
  for (unsigned i = 0; i < out.size(); ++i) {
    const auto given = static_cast<std::int64_t>(starts[i / width]);
    const auto moved = std::clamp<std::int64_t>(given < 0 ? given + from_end : given, 0, kLast) - kFirstRow;
    CHECK(out[i] == (moved < 0 || moved >= kRows ? T(0) : table[static_cast<unsigned>(moved) * width + i % width]));
  }
}

template <typename T, typename Id>
void testScatter(const CodeletLibrary& library, const std::string& types, unsigned width) {
  Draw draw(width + 10);
  std::vector<T> expected = draw.row<T>(kRows * width);
  const std::vector<Id> ids = idsFor<Id>(draw);
  const std::vector<T> values = draw.row<T>(kCount * width);
  Alone scatter(library, "snnjax::ScatterRows<" + types + ">");
  scatter.edge("table", expected).edge("ids", ids).edge("values", values).state("rows", kRows);
  scatter.state("width", width).state("count", kCount).state("first_row", kFirstRow);
  for (unsigned i = 0; i < values.size(); ++i) {
    const unsigned row = rowOf(ids[i / width]);
    if (row == kRows) continue;
    expected[row * width + i % width] = values[i];
  }
  CHECK(scatter.run(true).template get<T>("table") == expected);
}

template <typename T>
void testWindow(const CodeletLibrary& library, const std::string& type, unsigned width, unsigned offset,
                unsigned count) {
  Draw draw(offset);
  const std::vector<T> table = draw.row<T>(kRows * width);
  Alone slice(library, "snnjax::DynamicSlice<" + type + ">");
  slice.edge("table", table).edge("offset", std::vector<unsigned>{offset}).edge("out", std::vector<T>(count * width));
  slice.state("rows", kRows).state("width", width).state("count", count);
  const std::vector<T> out = slice.run(true).template get<T>("out");
  for (unsigned i = 0; i < out.size(); ++i) {
    CHECK(out[i] == table[(offset + i / width) % kRows * width + i % width]);
  }
}

void testCycles(const CodeletLibrary& library) {
  namespace cycles = snnjax::cycles;
  // Rows of 64 bits, of 32, and of three halves or bytes, each loaded, merged into a word and stored.
  static_assert(cycles::moved(16, 4, 16) == 8 * 3 && cycles::moved(3, 4, 3) == 3 * 3 && cycles::moved(4, 1, 4) == 3);
  static_assert(cycles::moved(3, 2, 3) == 3 * 6 && cycles::moved(3, 1, 3) == 3 * 6);
  static_assert(cycles::filled(16, 4, 16) == 8 * 2 && cycles::filled(3, 2, 3) == 3 * 5);
  static_assert(cycles::gatherRows(10, 16, 4) == 59 + 10 * (19 + 8 * 3));
  static_assert(cycles::sliceRows(10, 16, 4) == 39 + 10 * (24 + 8 * 3));
  static_assert(cycles::scatterRows(10, 0, 16, 4) == 82);
  static_assert(cycles::scatterRows(10, 10, 16, 4) == 32 + 10 * (11 + 3 * 8));
  // A worker pays for the ids of its own rows: worker 0 holds rows 0 and 1 of 9.
  Alone scatter(library, "snnjax::ScatterRows<float,int>");
  scatter.edge("table", std::vector<float>(kRows * 2)).edge("ids", std::vector<int>{0, 1, 8, 2, -1, 9});
  scatter.edge("values", std::vector<float>(12)).state("rows", kRows);
  scatter.state("width", 2u).state("count", 6u).state("first_row", 0u).run();
  CHECK_EQUAL(scatter.cycles(0), cycles::scatterRows(6, 2, 2, 4));
  CHECK_EQUAL(scatter.cycles(5), cycles::scatterRows(6, 1, 2, 4));
}

void test(const CodeletLibrary& library) {
  for (const unsigned width : {1u, 3u, 8u}) {
    testGather<float, int>(library, "float,int", width);
    testGather<half, unsigned short>(library, "half,unsigned short", width);
    for (const unsigned from_end : {0u, 13u}) {
      testGatherAt<unsigned, int>(library, "unsigned int,int", width, from_end);
      testGatherAt<unsigned short, unsigned>(library, "unsigned short,unsigned int", width, 0);
    }
    testScatter<float, unsigned short>(library, "float,unsigned short", width);
    testScatter<int, unsigned>(library, "int,unsigned", width);
    testScatter<half, int>(library, "half,int", width);
    testScatter<unsigned char, int>(library, "unsigned char,int", width);
    for (const unsigned offset : {0u, 5u, 8u, 100u}) {
      testWindow<float>(library, "float", width, offset, 4);
      testWindow<half>(library, "half", width, offset, kRows);
    }
  }
  testCycles(library);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runForms(argc, argv, test); }
