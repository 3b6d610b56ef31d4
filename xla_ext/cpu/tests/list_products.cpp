// Products of lists without rows: XLA drops calls without a result, so no program reaches them. And rows with values
// beside rows of ones, which share these.
#include "cpu/products/list_products.hpp"

#include "check.hpp"

namespace {

// A row of ones that names neurons more often than there are any keeps all of its entries.
void rowsOfOnesAreListed() {
  using namespace snnjax;
  constexpr Index kNeurons = 2, kCapacity = 5;
  const Threads threads([](const Threads::Task&) {}, 1);
  const std::vector<std::uint16_t> ids{0, 1, 0, 1, 0, 1, 2, 2, 2, 2};
  const std::vector<float> values{1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 3.0F, 0.0F, 0.0F, 0.0F, 0.0F};
  const ListSource source(ids.data(), true, {const_cast<float*>(values.data()), false}, kCapacity, kNeurons);
  const ListedRows lists(source, 2, kNeurons, threads), by_neuron = lists.transposed();
  CHECK_EQUAL(lists.entries(), kCapacity + 1);
  CHECK_EQUAL(lists.start(1), kCapacity);
  for (Index k = 0; k < kCapacity; ++k) CHECK_EQUAL(lists.row(0).values[k], 1.0F);
  CHECK_EQUAL(lists.row(1).values[0], 3.0F);
  CHECK_EQUAL(by_neuron.count(0), 3);
  CHECK_EQUAL(by_neuron.row(1).values[2], 3.0F);
  CHECK_EQUAL(by_neuron.ids(1)[2], 1U);
}

}  // namespace

int main() {
  using namespace snnjax;
  rowsOfOnesAreListed();
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
