// The codelets of windows.cpp alone: windows inside, at both ends, and starts that lie far outside.
#include "kernels/alone.hpp"
#include "poplar_kernels/movement/cycles.hpp"

namespace {

using namespace kernels;
using ipu_model::CodeletLibrary;

constexpr unsigned kRows = 9;

// The first row of the window, as dynamic slices of StableHLO move it into the table.
unsigned firstRow(unsigned start, bool is_signed, unsigned count) {
  const auto wide = is_signed ? static_cast<std::int64_t>(static_cast<int>(start)) : static_cast<std::int64_t>(start);
  return static_cast<unsigned>(std::clamp<std::int64_t>(wide, 0, kRows - count));
}

template <typename T>
void testWindow(const CodeletLibrary& library, const std::string& type, unsigned width, unsigned start, bool is_signed,
                unsigned count) {
  Draw draw(start + width);
  std::vector<T> table(kRows * width), values(count * width);
  for (T& x : table) x = static_cast<T>(draw.bits());
  for (T& x : values) x = static_cast<T>(draw.bits());
  const auto set = [&](Alone& vertex) -> Alone& {
    vertex.edge("table", table).edge("start", std::vector<unsigned>{start}).state("rows", kRows);
    return vertex.state("width", width).state("count", count).state("is_signed", is_signed);
  };
  Alone slice(library, "snnjax::SliceWindow<" + type + ">"), update(library, "snnjax::UpdateWindow<" + type + ">");
  const unsigned first = firstRow(start, is_signed, count) * width;
  const auto out = set(slice).edge("out", values).run(true).template get<T>("out");
  CHECK(std::equal(out.begin(), out.end(), table.begin() + first));
  const auto updated = set(update).edge("values", values).run(true).template get<T>("table");
  std::copy(values.begin(), values.end(), table.begin() + first);
  CHECK(updated == table);
}

void test(const CodeletLibrary& library) {
  for (const unsigned width : {1u, 3u, 4u, 6u, 8u, 13u}) {
    for (const unsigned start : {0u, 1u, 4u, 8u, 9u, 60000u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
      for (const unsigned count : {1u, 4u, kRows}) {
        for (const bool is_signed : {false, true}) {
          testWindow<unsigned>(library, "unsigned", width, start, is_signed, count);
          testWindow<unsigned short>(library, "unsigned short", width, start, is_signed, count);
          testWindow<unsigned char>(library, "unsigned char", width, start, is_signed, count);
        }
      }
    }
  }
  namespace cycles = snnjax::cycles;
  static_assert(cycles::window(48, 48, 4) == 43 + 24 * 3);
  static_assert(cycles::window(3, 3, 4) == 43 + 3 * 3);
  static_assert(cycles::window(5, 5, 2) == 43 + 5 * 6 && cycles::window(8, 8, 1) == 43 + 3);
}

}  // namespace

int main(int argc, char** argv) { return kernels::runTest(argc, argv, test); }
