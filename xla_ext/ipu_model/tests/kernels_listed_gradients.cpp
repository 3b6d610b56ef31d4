// What lists do to gradients: rows of weights, dot products, dense rows; and foreign lists in order.
#include "kernels_alone.hpp"
#include "kernels_lists.hpp"

namespace {

using namespace kernels;

constexpr unsigned kBatch = 8, kInputs = 40, kCapacity = 9, kStride = 16;

template <typename Id>
void testRows(const ipu_model::CodeletLibrary& library, const std::string& id, unsigned n) {
  Draw draw(n);
  const auto lists = hostileLists<Id>(draw, kBatch, kStride, kCapacity, kInputs);
  const auto g = draw.row(kBatch * n);
  auto expected = withZeroRow(draw.row(kInputs * n), n);
  Alone vertex(library, "snnjax::ListedRowsGradient<" + id + ">");
  vertex.edge("lists", lists)
      .edge("g_current", g)
      .edge("g_weights", expected)
      .edge("iteration", std::vector<unsigned>{4});
  vertex.state("num_steps", 5U).state("delay", 1U).state("batch", kBatch).state("stride", kStride);
  vertex.state("capacity", kCapacity).state("num_inputs", kInputs).state("neurons", n).run(n % 2 == 0);
  for (unsigned b = 0; b < kBatch; ++b) {
    for (unsigned row : spikesOf(lists, b, kStride, kCapacity)) {
      for (unsigned j = 0; row < kInputs && j < n; ++j) expected[row * n + j] += g[b * n + j];
    }
  }
  CHECK(vertex.get<float>("g_weights") == expected);
}

template <typename Id>
void testValuedRows(const ipu_model::CodeletLibrary& library, const std::string& id, unsigned n, unsigned stride) {
  Draw draw(n + 5U);
  const auto lists = hostileLists<Id>(draw, kBatch, kStride, kCapacity, kInputs);
  const auto g = draw.row(kBatch * n), values = draw.row(kBatch * kCapacity);
  auto expected = withZeroRow(draw.row(kInputs * n), n);
  Alone vertex(library, "snnjax::ValuedRowsGradient<" + id + ">");
  vertex.edge("lists", lists).edge("values", values).edge("g_current", g).edge("g_weights", expected);
  vertex.edge("iteration", std::vector<unsigned>{4}).state("num_steps", 5U).state("delay", 1U).state("batch", kBatch);
  vertex.state("stride", stride).state("capacity", kCapacity).state("num_inputs", kInputs).state("neurons", n);
  vertex.run(n % 2 == 0);
  for (unsigned b = 0; b < kBatch; ++b) {
    const auto ids = spikesOf(lists, stride == 0 ? 0 : b, kStride, kCapacity);
    for (unsigned k = 0; k < ids.size(); ++k) {
      for (unsigned j = 0; ids[k] < kInputs && j < n; ++j) {
        expected[ids[k] * n + j] += values[b * kCapacity + k] * g[b * n + j];
      }
    }
  }
  CHECK(vertex.get<float>("g_weights") == expected);
  vertex.edge("iteration", std::vector<unsigned>{0}).run();
  CHECK(vertex.get<float>("g_weights") == expected);  // outside of its time
}

// Ids in disorder may be missed, but nothing outside is touched (the guards of `Alone`), nor the rows of no id.
void testDisorder(const ipu_model::CodeletLibrary& library) {
  std::vector<unsigned short> lists(kBatch * kStride);
  Draw draw(77);
  for (auto& entry : lists) entry = static_cast<unsigned short>(draw.bits() >> 16);
  for (unsigned b = 0; b < kBatch; ++b) {
    for (unsigned k = 0; k < kCapacity; k += 2)
      lists[b * kStride + kHeader + k] = static_cast<unsigned short>(kInputs - k);
  }
  Alone rows(library, "snnjax::ListedRowsGradient<unsigned short>");
  rows.edge("lists", lists).edge("g_current", draw.row(kBatch * 2)).edge("iteration", std::vector<unsigned>{0});
  rows.edge("g_weights", std::vector<float>((kInputs + 1) * 2)).state("num_steps", 1U).state("delay", 0U);
  rows.state("batch", kBatch).state("stride", kStride).state("capacity", kCapacity).state("num_inputs", kInputs);
  rows.state("neurons", 2U).run();
  const auto g_weights = rows.get<float>("g_weights");
  CHECK(std::all_of(g_weights.begin(), g_weights.begin() + 60, [](float g) { return g == 0.0f; }));
  Alone scatter(library, "snnjax::ScatterList<unsigned short>");
  scatter.edge("list", lists).edge("values", draw.row(kBatch * kCapacity)).edge("iteration", std::vector<unsigned>{0});
  scatter.edge("row", std::vector<float>(kBatch * kInputs)).state("rows", kBatch).state("stride", kStride);
  scatter.state("capacity", kCapacity).state("columns", 4U).state("num_neurons", kInputs).state("num_steps", 1U);
  scatter.state("delay", 0U).run();
  scatter.get<float>("row");
}

void testDots(const ipu_model::CodeletLibrary& library, unsigned n) {
  Draw draw(n);
  const auto lists = hostileLists<unsigned short>(draw, kBatch, kStride, kCapacity, kInputs);
  const auto g = draw.row(kBatch * n);
  const auto weights = withZeroRow(draw.row<half>(kInputs * n), n);
  Alone vertex(library, "snnjax::ListedDots<half,unsigned short>");
  vertex.edge("lists", lists).edge("g_current", g).edge("weights", weights).edge("iteration", std::vector<unsigned>{1});
  vertex.edge("dots", std::vector<float>(kBatch * kCapacity, 3.0f)).state("num_steps", 5U).state("delay", 1U);
  vertex.state("batch", kBatch).state("stride", kStride).state("capacity", kCapacity).state("num_inputs", kInputs);
  vertex.state("neurons", n).run();
  std::vector<float> expected(kBatch * kCapacity);
  for (unsigned b = 0; b < kBatch; ++b) {
    const auto ids = listedOf(lists, b, kStride, kCapacity);
    for (unsigned k = 0; k < ids.size(); ++k) {
      for (unsigned j = 0; ids[k] < kInputs && j < n; ++j) {
        expected[b * kCapacity + k] += static_cast<float>(weights[ids[k] * n + j]) * g[b * n + j];
      }
    }
  }
  CHECK(vertex.get<float>("dots") == expected);  // eighths: sums are exact in any order
}

void testScatter(const ipu_model::CodeletLibrary& library, unsigned rows, unsigned columns) {
  constexpr unsigned kSteps = 3, kTime = 1;
  Draw draw(columns);
  const auto lists = hostileLists<unsigned short>(draw, kSteps * rows, kStride, kCapacity, kInputs);
  const auto values = draw.row(rows * kCapacity);
  std::vector<float> expected(rows * kInputs);
  for (unsigned b = 0; b < rows; ++b) {
    const auto ids = listedOf(lists, kTime * rows + b, kStride, kCapacity);
    for (unsigned k = 0; k < ids.size(); ++k) {
      if (ids[k] >= kInputs) continue;
      expected[(ids[k] / columns * rows + b) * columns + ids[k] % columns] = values[b * kCapacity + k];
    }
  }
  Alone vertex(library, "snnjax::ScatterList<unsigned short>");
  vertex.edge("list", lists).edge("values", values).edge("row", std::vector<float>(rows * kInputs, 8.0f));
  vertex.edge("iteration", std::vector<unsigned>{3}).state("rows", rows).state("stride", kStride);
  vertex.state("capacity", kCapacity).state("columns", columns).state("num_neurons", kInputs);
  vertex.state("num_steps", kSteps).state("delay", 2U).run();
  CHECK(vertex.get<float>("row") == expected);
  vertex.edge("iteration", std::vector<unsigned>{1}).run();
  CHECK(vertex.get<float>("row") == std::vector<float>(rows * kInputs));  // outside of its time
}

// Dense inputs as lists: what is not 0, NaN included, in its order.
void testListInputs(const ipu_model::CodeletLibrary& library, unsigned inputs, bool reverse) {
  constexpr unsigned kSteps = 3, kRows = 9, kTime = 1;
  const unsigned stride = kHeader + (inputs + 3) / 4 * 4;
  Draw draw(inputs);
  auto rows = draw.row(kSteps * kRows * inputs);
  for (unsigned i = 0; i < rows.size(); ++i) rows[i] = draw.below(4) == 0 ? rows[i] : i % 2 == 0 ? 0.0f : -0.0f;
  rows[kTime * kRows * inputs] = NAN;
  Alone vertex(library, "snnjax::ListInputs<unsigned short>");
  vertex.edge("history", rows).edge("lists", std::vector<unsigned short>(kRows * stride, 77));
  vertex.edge("values", std::vector<float>(kRows * inputs, 5.0f)).edge("iteration", std::vector<unsigned>{3});
  vertex.state("num_steps", kSteps).state("delay", 2U).state("rows", kRows).state("stride", stride);
  vertex.state("num_inputs", inputs).state("reverse", reverse).run(inputs % 2 == 0);  // in both directions time 1
  const auto lists = vertex.get<unsigned short>("lists");
  const auto values = vertex.get<float>("values");
  for (unsigned b = 0; b < kRows; ++b) {
    unsigned count = 0;
    for (unsigned i = 0; i < inputs; ++i) {
      const float value = rows[(kTime * kRows + b) * inputs + i];
      if (value == 0.0f) continue;
      CHECK_EQUAL(lists[b * stride + kHeader + count], i);
      CHECK(values[b * inputs + count] == value || value != value);
      ++count;
    }
    for (unsigned i = 0; i < 3; ++i) CHECK_EQUAL(lists[b * stride + i], count);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runForms(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (unsigned n : {1U, 2U, 4U, 5U, 8U, 14U}) {
      testRows<unsigned short>(library, "unsigned short", n);
      testRows<int>(library, "int", n);
      testDots(library, n);
      testValuedRows<unsigned short>(library, "unsigned short", n, kStride);
      testValuedRows<int>(library, "int", n, 0);
    }
    testScatter(library, 1, 40);
    testScatter(library, 1, 5);
    testScatter(library, 3, 2);
    testScatter(library, 8, 4);
    for (unsigned inputs : {1U, 6U, 31U}) {
      testListInputs(library, inputs, false);
      testListInputs(library, inputs, true);
    }
    testDisorder(library);
  });
}
