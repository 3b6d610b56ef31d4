// A readout's backward pass on the tiles of the neurons that it reads.
#include <poplar/Vertex.hpp>

#include "kernels/alone.hpp"
#include "poplar_kernels/conventions.hpp"
#include "poplar_kernels/products/cycles.hpp"

namespace {

using namespace kernels;

constexpr unsigned kRows = 15;

// Bits 31 - i of kept neurons and 15 - i of listed ones, beyond those that are readable too, in about a third of the
// rows.
std::vector<unsigned> drawnMasks(Draw& draw, unsigned neurons) {
  std::vector<unsigned> masks(snnjax::markWords(neurons) * kRows);
  for (unsigned& mask : masks) {
    if (draw.below(3) != 0) continue;
    const unsigned listed = draw.bits() & 0xffffU;
    mask = listed | (listed & draw.bits()) << 16;
  }
  return masks;
}

template <typename W>
void testGradient(const ipu_model::CodeletLibrary& library, const std::string& w, unsigned neurons, unsigned readable,
                  unsigned parts, unsigned columns, bool starts) {
  Draw draw(neurons + parts);
  const auto masks = drawnMasks(draw, neurons);
  const auto weights = draw.row<W>(parts * readable * columns);
  const auto g = draw.row(parts * kRows * columns);
  const unsigned matrix = parts * readable * columns;
  Alone vertex(library, "snnjax::ReadoutGradient<" + w + ">");
  vertex.edge("masks", masks).edge("weights", weights).edge("g_current", g);
  vertex.edge("g_spikes", std::vector<float>(kRows * neurons, 5.0f));
  vertex.edge("g_weights", std::vector<float>(snnjax::kShares * matrix, 1.0f))
      .state("rows", kRows)
      .state("starts", starts);
  vertex.state("neurons", neurons).state("readable", readable).state("parts", parts).state("columns", columns);
  vertex.run(neurons % 4 == 0);
  std::vector<float> g_spikes(kRows * neurons), g_weights(matrix, starts ? 0.0f : static_cast<float>(snnjax::kShares));
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned j = 0; j < readable; ++j) {
      const unsigned mask = masks[j / 16 * kRows + row];
      for (unsigned i = 0; i < parts * columns; ++i) {
        const unsigned at = (i / columns * readable + j) * columns + i % columns;
        const float other = g[(i / columns * kRows + row) * columns + i % columns];
        if ((mask >> (15 - j % 16) & 1) != 0) g_spikes[row * neurons + j] += static_cast<float>(weights[at]) * other;
        if ((mask >> (31 - j % 16) & 1) != 0) g_weights[at] += other;
      }
    }
  }
  CHECK(vertex.get<float>("g_spikes") == g_spikes);  // eighths: sums are exact in any order
  const auto of_workers = vertex.get<float>("g_weights");
  for (unsigned i = 0; i < matrix; ++i) {
    float sum = 0;
    for (unsigned worker = 0; worker < snnjax::kShares; ++worker) sum += of_workers[worker * matrix + i];
    CHECK_EQUAL(sum, g_weights[i]);
  }
}

// Figures that a reader can count: five parts of one pair, or one of five pairs.
using namespace snnjax::cycles;
static_assert(readoutDot(5, 2, 4, false) == 5 * (3 + 2) + 4 && readoutDot(1, 10, 4, false) == 3 + 5 * 3 + 4);
static_assert(readoutDot(5, 2, 2, false) == 5 * (3 + 3) + 4);
static_assert(readoutDot(5, 2, 4, true) == 5 * (3 + 4) + 4);  // a load and a store more
static_assert(readoutDot(5, 2, 2, true) == 5 * (4 + 5) + 4);  // a pointer besides

}  // namespace

int main(int argc, char** argv) {
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    testGradient<float>(library, "float", 6, 6, 5, 2, true);
    testGradient<float>(library, "float", 12, 7, 1, 10, false);
    testGradient<float>(library, "float", 34, 33, 2, 4, true);
    testGradient<half>(library, "half", 4, 3, 3, 4, false);
  });
}
