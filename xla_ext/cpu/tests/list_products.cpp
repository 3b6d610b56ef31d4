// Products of lists without rows: XLA drops calls without a result, so no program reaches them.
#include "cpu/products/list_products.hpp"

#include "check.hpp"

int main() {
  using namespace snnjax;
  constexpr Index kNeurons = 4, kOutputs = 300;  // two tiles of columns and three threads: the rows are cut as well
  const Threads threads([](const Threads::Task&) {}, 3);
  std::vector<float> matrix(kNeurons * kOutputs, 1.0F), out{-1.0F};
  const ListSource none(nullptr, true, {nullptr, false}, 2, kNeurons);
  const Weights weights{{matrix.data(), false}, kNeurons, kOutputs};
  multiplyLists(ListedRows(none, 0, kNeurons, threads), weights, {out.data(), false}, threads);
  dotLists(ListedRows(none, 0, threads), 2, weights, {nullptr, false}, {out.data(), false}, threads);
  CHECK_EQUAL(out[0], -1.0F);
  return check::failures;
}
