// The codelets of gather.cpp and scatter.cpp alone.
#include <algorithm>

#include "kernels/alone.hpp"
#include "poplar_kernels/movement/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

constexpr unsigned kRows = 9, kFirstRow = 4, kCount = 17;

// Numbers of rows of which the table holds [4, 13): some below, above, and far out of range.
std::vector<unsigned> idsFor(Draw& draw) {
  std::vector<unsigned> ids(kCount);
  for (unsigned& id : ids) id = draw.below(kRows + 2 * kFirstRow);
  ids[3] = ~0U;
  ids[5] = 60000;
  return ids;
}

// The row in the table that an id names, or kRows.
unsigned rowOf(unsigned id) { return id < kFirstRow || id - kFirstRow >= kRows ? kRows : id - kFirstRow; }

template <typename T>
void testGather(const CodeletLibrary& library, const std::string& type, unsigned width) {
  Draw draw(width);
  const std::vector<T> table = draw.row<T>(kRows * width);
  const std::vector<unsigned> ids = idsFor(draw);
  Alone gather(library, "snnjax::Gather<" + type + ">");
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

template <typename T>
void testScatter(const CodeletLibrary& library, const std::string& type, unsigned width) {
  Draw draw(width + 10);
  std::vector<T> expected = draw.row<T>(kRows * width);
  const std::vector<unsigned> ids = idsFor(draw);
  const std::vector<T> values = draw.row<T>(kCount * width);
  Alone scatter(library, "snnjax::ScatterRows<" + type + ">");
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
  Alone scatter(library, "snnjax::ScatterRows<unsigned int>");
  scatter.edge("table", std::vector<unsigned>(kRows * 2)).edge("ids", std::vector<unsigned>{0, 1, 8, 2, ~0U, 9});
  scatter.edge("values", std::vector<unsigned>(12)).state("rows", kRows);
  scatter.state("width", 2u).state("count", 6u).state("first_row", 0u).run();
  CHECK_EQUAL(scatter.cycles(0), cycles::scatterRows(6, 2, 2, 4));
  CHECK_EQUAL(scatter.cycles(5), cycles::scatterRows(6, 1, 2, 4));
}

void test(const CodeletLibrary& library) {
  for (const unsigned width : {1u, 3u, 8u}) {
    testGather<unsigned>(library, "unsigned int", width);
    testGather<unsigned short>(library, "unsigned short", width);
    for (const unsigned from_end : {0u, 13u}) {
      testGatherAt<unsigned, int>(library, "unsigned int,int", width, from_end);
      testGatherAt<unsigned short, unsigned>(library, "unsigned short,unsigned int", width, 0);
    }
    testScatter<unsigned>(library, "unsigned int", width);
    testScatter<unsigned short>(library, "unsigned short", width);
    testScatter<unsigned char>(library, "unsigned char", width);
    for (const unsigned offset : {0u, 5u, 8u, 100u}) {
      testWindow<unsigned>(library, "unsigned int", width, offset, 4);
      testWindow<unsigned short>(library, "unsigned short", width, offset, kRows);
    }
  }
  testCycles(library);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
