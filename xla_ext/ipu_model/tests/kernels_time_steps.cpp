// Sums over rows, histories, and the counter of time steps.
#include <poplar/HalfFloat.hpp>

#include "kernels_alone.hpp"

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

template <typename T>
void testSteps(const ipu_model::CodeletLibrary& library, const std::string& t, bool reverse) {
  constexpr unsigned kSteps = 3, kWidth = 22, kDelay = 2;
  Draw draw(kWidth);
  const auto history = draw.row<T>(kSteps * kWidth), row = draw.row<T>(kWidth);
  for (unsigned iteration = 0; iteration < 7; ++iteration) {
    const unsigned step = reverse ? kSteps - 1 - (iteration - kDelay) : iteration - kDelay;
    const bool runs = step < kSteps;
    Alone load(library, "snnjax::LoadStep<" + t + ">"), store(library, "snnjax::StoreStep<" + t + ">");
    for (Alone* vertex : {&load, &store}) {
      vertex->edge("history", history).edge("row", row).edge("iteration", std::vector<unsigned>{iteration});
      vertex->state("num_steps", kSteps).state("delay", kDelay).state("width", kWidth).state("reverse", reverse).run();
    }
    auto expected_row = row, expected_history = history;
    for (unsigned i = 0; runs && i < kWidth; ++i) {
      expected_row[i] = history[step * kWidth + i];
      expected_history[step * kWidth + i] = row[i];
    }
    CHECK(load.template get<T>("row") == expected_row);
    CHECK(store.template get<T>("history") == expected_history);
  }
  Alone copy(library, "snnjax::CopyRow<" + t + ">");
  copy.edge("in", row).edge("out", std::vector<T>(kWidth)).state("width", kWidth).run();
  CHECK(copy.template get<T>("out") == row);
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runForms(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    testSumRows(library, 5, 1);
    testSumRows(library, 0, 4);
    testSumRows(library, 9, 30);
    for (bool reverse : {false, true}) {
      testSteps<float>(library, "float", reverse);
      testSteps<half>(library, "half", reverse);
      testSteps<int>(library, "int", reverse);
      testSteps<unsigned short>(library, "unsigned short", reverse);
    }
    Alone counter(library, "snnjax::AddOne");
    CHECK(counter.edge("iteration", std::vector<unsigned>{41}).run().get<unsigned>("iteration").front() == 42);
  });
}
