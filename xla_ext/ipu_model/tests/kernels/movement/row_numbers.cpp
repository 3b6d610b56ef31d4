// RowNumbers alone, against the definition of a gather's and a scatter's first element.
#include "kernels/alone.hpp"
#include "poplar_kernels/movement/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

constexpr unsigned kNowhere = 0xffffffffU;

struct Table {
  std::vector<unsigned> limits, strides, from_end;
};

void testTable(const CodeletLibrary& library, const Table& table, unsigned count, unsigned window, bool is_signed,
               bool clamps) {
  const auto depth = static_cast<unsigned>(table.limits.size());
  Draw draw(count + window);
  std::vector<unsigned> starts(count * depth), bases(count), offsets(window);
  for (unsigned& start : starts) start = draw.below(3) == 0 ? draw.bits() : draw.below(16) - 8;
  for (unsigned& base : bases) base = draw.below(100);
  for (unsigned& offset : offsets) offset = draw.below(20);
  Alone rows(library, "snnjax::RowNumbers");
  rows.edge("starts", starts).edge("limits", table.limits).edge("strides", table.strides);
  rows.edge("from_end", table.from_end).edge("bases", bases);
  rows.edge("offsets", offsets).edge("numbers", std::vector<unsigned>(count * window)).state("count", count);
  rows.state("depth", depth).state("window", window).state("is_signed", is_signed).state("clamps", clamps);
  const std::vector<unsigned> numbers = rows.run(true).get<unsigned>("numbers");
  for (unsigned i = 0; i < count; ++i) {
    std::int64_t first = bases[i];
    bool inside = true;
    for (unsigned d = 0; d < depth; ++d) {
      const unsigned bits = starts[i * depth + d];
      const std::int64_t given = is_signed ? static_cast<std::int64_t>(static_cast<int>(bits)) : bits;
      const std::int64_t start = given < 0 ? given + table.from_end[d] : given;
      const std::int64_t moved = std::clamp<std::int64_t>(start, 0, table.limits[d]);
      inside = inside && (clamps || moved == start);
      first += moved * table.strides[d];
    }
    for (unsigned j = 0; j < window; ++j) {
      CHECK_EQUAL(numbers[i * window + j], inside ? static_cast<unsigned>(first) + offsets[j] : kNowhere);
    }
  }
}

void test(const CodeletLibrary& library) {
  for (const bool is_signed : {false, true}) {
    for (const bool clamps : {false, true}) {
      testTable(library, {{6}, {1}, {7}}, 17, 1, is_signed, clamps);
      testTable(library, {{4, 0, 7}, {40, 0, 3}, {0, 1, 8}}, 50, 3, is_signed, clamps);
      testTable(library, {{}, {}, {}}, 3, 2, is_signed, clamps);
    }
  }
  static_assert(snnjax::cycles::rowNumbers(10, 2, 1) == snnjax::cycles::rowNumbers(0, 2, 1) + 10 * (6 + 2 * 12 + 4));
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
