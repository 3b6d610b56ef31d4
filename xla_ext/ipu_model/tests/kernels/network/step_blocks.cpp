// Sums over rows, histories of blocks of steps, and the counter of loops.
#include "kernels/alone.hpp"

namespace {

using namespace kernels;

void testSumRows(const ipu_model::CodeletLibrary& library, unsigned rows, unsigned columns) {
  Draw draw(rows + columns);
  const auto in = draw.row(rows * columns);
  std::vector<float> expected(columns);
  for (unsigned i = 0; i < in.size(); ++i) expected[i % columns] += in[i];
  Alone vertex(library, "snnjax::SumRows");
  vertex.edge("in", in)
      .edge("out", std::vector<float>(columns, 1.0f))
      .state("rows", rows)
      .state("columns", columns)
      .run();
  CHECK(vertex.get<float>("out") == expected);
}

// Before the first block, and after the last one, are zeros.
template <typename T>
void testBlocks(const ipu_model::CodeletLibrary& library, const std::string& t, unsigned width) {
  constexpr unsigned kBlocks = 3;
  Draw draw(width);
  const auto history = draw.row<T>(kBlocks * width), row = draw.row<T>(width);
  for (unsigned block = 0; block < kBlocks + 2; ++block) {
    Alone load(library, "snnjax::LoadBlock<" + t + ">");
    load.edge("history", history).edge("row", row).edge("block", std::vector<unsigned>{block});
    load.state("num_blocks", kBlocks).state("width", width).state("back", 1U).run();
    std::vector<T> expected(width);
    for (unsigned i = 0; i < width && block > 0 && block <= kBlocks; ++i)
      expected[i] = history[(block - 1) * width + i];
    CHECK(load.template get<T>("row") == expected);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    testSumRows(library, 5, 1);
    testSumRows(library, 0, 4);
    testSumRows(library, 9, 30);
    for (unsigned width : {22U, 24U}) {  // rows that begin at 32 bits, or at 64
      testBlocks<float>(library, "float", width);
      testBlocks<unsigned short>(library, "unsigned short", width);
    }
    for (unsigned by : {1U, ~0U}) {
      Alone counter(library, "snnjax::Advance");
      counter.edge("counter", std::vector<unsigned>{41}).state("by", by).run();
      CHECK_EQUAL(counter.get<unsigned>("counter").front(), 41 + by);
    }
  });
}
