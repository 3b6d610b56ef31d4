// Dense rows of lists, their masks, and lists of dense inputs.
#include "kernels/alone.hpp"
#include "kernels/lists/lists.hpp"

namespace {

using namespace kernels;

constexpr unsigned kBatch = 8, kInputs = 40, kCapacity = 9, kStride = 20;

// Ids in disorder may be missed, but nothing outside is touched (the guards of `Alone`), nor the rows of no id.
void testDisorder(const ipu_model::CodeletLibrary& library) {
  std::vector<unsigned short> lists(kBatch * kStride);
  Draw draw(77);
  for (auto& entry : lists) entry = static_cast<unsigned short>(draw.bits() >> 16);
  for (unsigned b = 0; b < kBatch; ++b) {
    for (unsigned k = 0; k < kCapacity; k += 2)
      lists[b * kStride + kHeader + k] = static_cast<unsigned short>(kInputs - k);
  }
  Alone scatter(library, "snnjax::ScatterList");
  scatter.edge("list", lists).edge("values", draw.row(kBatch * kCapacity));
  scatter.edge("row", std::vector<float>(kBatch * kInputs)).state("rows", kBatch).state("stride", kStride);
  scatter.state("capacity", kCapacity).state("columns", 4U).state("num_neurons", kInputs).run();
  scatter.get<float>("row");
  Alone mask(library, "snnjax::MaskLists");
  mask.edge("list", lists).edge("masks", std::vector<unsigned>(kBatch * 10)).state("rows", kBatch);
  mask.state("stride", kStride).state("capacity", kCapacity).state("columns", 4U).state("blocks", 10U);
  mask.state("num_neurons", kInputs).run().get<unsigned>("masks");
}

// A bit for each listed neuron, and one for each spike; blocks may hold more neurons than there are.
void testMasks(const ipu_model::CodeletLibrary& library, unsigned rows, unsigned columns) {
  const unsigned blocks = kInputs / columns + 1, words = snnjax::markWords(columns);
  Draw draw(columns + 50U);
  const auto lists = hostileLists<unsigned short>(draw, rows, kStride, kCapacity, kInputs);
  std::vector<unsigned> expected(blocks * words * rows);
  for (unsigned b = 0; b < rows; ++b) {
    const auto mark = [&](const std::vector<unsigned>& ids, unsigned bits) {
      for (const unsigned id : ids) {
        if (id >= kInputs) continue;
        const unsigned column = id % columns;
        expected[(id / columns * words + column / 16) * rows + b] |= bits >> column % 16;
      }
    };
    mark(listedOf(lists, b, kStride, kCapacity), 1U << 15);
    mark(spikesOf(lists, b, kStride, kCapacity), 1U << 31);
  }
  Alone vertex(library, "snnjax::MaskLists");
  vertex.edge("list", lists).edge("masks", std::vector<unsigned>(expected.size(), 9U)).state("rows", rows);
  vertex.state("stride", kStride).state("capacity", kCapacity).state("columns", columns).state("blocks", blocks);
  vertex.state("num_neurons", kInputs).run();
  CHECK(vertex.get<unsigned>("masks") == expected);
}

void testScatter(const ipu_model::CodeletLibrary& library, unsigned rows, unsigned columns) {
  Draw draw(columns);
  const auto lists = hostileLists<unsigned short>(draw, rows, kStride, kCapacity, kInputs);
  const auto values = draw.row(rows * kCapacity);
  std::vector<float> expected(rows * kInputs);
  for (unsigned b = 0; b < rows; ++b) {
    const auto ids = listedOf(lists, b, kStride, kCapacity);
    for (unsigned k = 0; k < ids.size(); ++k) {
      if (ids[k] >= kInputs) continue;
      expected[(ids[k] / columns * rows + b) * columns + ids[k] % columns] = values[b * kCapacity + k];
    }
  }
  Alone vertex(library, "snnjax::ScatterList");
  vertex.edge("list", lists).edge("values", values).edge("row", std::vector<float>(rows * kInputs, 8.0f));
  vertex.state("rows", rows).state("stride", kStride).state("capacity", kCapacity).state("columns", columns);
  vertex.state("num_neurons", kInputs).run();
  CHECK(vertex.get<float>("row") == expected);
}

// Dense inputs as lists: what is not 0, NaN included, in its order.
void testListInputs(const ipu_model::CodeletLibrary& library, unsigned inputs) {
  constexpr unsigned kBlocks = 3, kRows = 9, kBlock = 1;
  const unsigned stride = kHeader + (inputs + 3) / 4 * 4;
  Draw draw(inputs);
  auto rows = draw.row(kBlocks * kRows * inputs);
  for (unsigned i = 0; i < rows.size(); ++i) rows[i] = draw.below(4) == 0 ? rows[i] : i % 2 == 0 ? 0.0f : -0.0f;
  rows[kBlock * kRows * inputs] = NAN;
  Alone vertex(library, "snnjax::ListInputs");
  vertex.edge("history", rows).edge("lists", std::vector<unsigned short>(kRows * stride, 77));
  vertex.edge("values", std::vector<float>(kRows * inputs, 5.0f)).edge("block", std::vector<unsigned>{kBlock});
  vertex.state("num_blocks", kBlocks).state("rows", kRows).state("stride", stride);
  vertex.state("num_inputs", inputs).run(inputs % 2 == 0);
  const auto lists = vertex.get<unsigned short>("lists");
  const auto values = vertex.get<float>("values");
  for (unsigned b = 0; b < kRows; ++b) {
    unsigned count = 0;
    for (unsigned i = 0; i < inputs; ++i) {
      const float value = rows[(kBlock * kRows + b) * inputs + i];
      if (value == 0.0f) continue;
      CHECK_EQUAL(lists[b * stride + kHeader + count], i);
      CHECK(values[b * inputs + count] == value || value != value);
      ++count;
    }
    for (unsigned i = 0; i < 3; ++i) CHECK_EQUAL(lists[b * stride + i], count);
    std::vector<unsigned short> record(&lists[b * stride], &lists[b * stride] + stride);
    writeStarts(record.data(), count, inputs);
    CHECK(std::equal(record.begin(), record.begin() + kHeader, &lists[b * stride]));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    testScatter(library, 1, 40);
    testScatter(library, 1, 5);
    testScatter(library, 3, 2);
    testScatter(library, 8, 4);
    for (unsigned columns : {2U, 6U, 18U, 40U}) testMasks(library, columns == 6 ? 1 : 7, columns);
    for (unsigned inputs : {1U, 6U, 31U}) testListInputs(library, inputs);
    testDisorder(library);
  });
}
