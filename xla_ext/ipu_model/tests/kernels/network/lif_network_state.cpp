// The spikes that a recurrent layer carries, and their gradient, against dense arrays.
#include <cmath>

#include "kernels/alone.hpp"
#include "kernels/lists/lists.hpp"

namespace {

using namespace kernels;

constexpr unsigned kSteps = 3, kRows = 9, kNeurons = 23, kCapacity = 7, kStride = 16;

// Sequences that end after each number of steps, one of them beyond the last.
std::vector<unsigned> someLengths() {
  std::vector<unsigned> lengths(kRows);
  for (unsigned b = 0; b < kRows; ++b) lengths[b] = b % (kSteps + 2);
  return lengths;
}

Alone& connect(Alone& vertex, const std::vector<unsigned short>& lists) {
  vertex.edge("list", lists).edge("lengths", someLengths()).state("rows", kRows).state("stride", kStride);
  return vertex.state("capacity", kCapacity).state("num_neurons", kNeurons).state("num_steps", kSteps);
}

// The record of a sequence's last step.
unsigned lastRecord(unsigned b) { return (std::min(someLengths()[b], kSteps) - 1) * kRows + b; }

void testLastSpikes(const ipu_model::CodeletLibrary& library) {
  Draw draw(3);
  const auto lists = hostileLists<unsigned short>(draw, kSteps * kRows, kStride, kCapacity, kNeurons);
  std::vector<float> expected = draw.row(kRows * kNeurons);
  Alone vertex(library, "snnjax::LastSpikes");
  connect(vertex, lists).edge("last", expected).run();
  for (unsigned b = 0; b < kRows; ++b) {
    if (someLengths()[b] == 0) continue;  // those before the first step stay
    std::fill_n(&expected[b * kNeurons], kNeurons, 0.0f);
    for (unsigned id : spikesOf(lists, lastRecord(b), kStride, kCapacity)) {
      if (id < kNeurons) expected[b * kNeurons + id] = 1.0f;
    }
  }
  CHECK(vertex.get<float>("last") == expected);
}

void testLastSpikesGradient(const ipu_model::CodeletLibrary& library) {
  Draw draw(4);
  const auto lists = hostileLists<unsigned short>(draw, kSteps * kRows, kStride, kCapacity, kNeurons);
  std::vector<float> g = draw.row(kRows * kNeurons), listed(kRows * kNeurons);
  Alone vertex(library, "snnjax::LastSpikesGradient");
  connect(vertex, lists).edge("g", g).edge("g_listed", std::vector<float>(kRows * kNeurons, 9.0f)).run(true);
  for (unsigned b = 0; b < kRows; ++b) {
    if (someLengths()[b] == 0) continue;  // handed through
    for (unsigned id : listedOf(lists, lastRecord(b), kStride, kCapacity)) {
      if (id < kNeurons) listed[b * kNeurons + id] = g[b * kNeurons + id];
    }
    std::fill_n(&g[b * kNeurons], kNeurons, 0.0f);
  }
  CHECK(vertex.get<float>("g_listed") == listed);
  CHECK(vertex.get<float>("g") == g);
}

void testLastGradient(const ipu_model::CodeletLibrary& library, unsigned n) {
  constexpr unsigned char kTriangle = 2;
  Draw draw(n);
  const auto v = draw.row(kRows * n), g_spikes = draw.row(kRows * n), threshold = draw.row(n);
  std::vector<float> g_last = draw.row(kRows * n), g_threshold = draw.row(kRows * n);
  Alone vertex(library, "snnjax::LifLastGradient<false>");
  vertex.edge("g_spikes", g_spikes).edge("threshold", threshold).edge("membranes", v).edge("g_last", g_last);
  vertex.edge("g_threshold", g_threshold).state("batch", kRows).state("neurons", n).state("surrogate", kTriangle);
  vertex.state("slope", 0.5f).run();
  for (unsigned i = 0; i < kRows * n; ++i) {
    const float g = g_spikes[i] * std::max(0.0f, 1.0f - 0.5f * std::abs(v[i] - threshold[i % n]));
    g_last[i] += g;
    g_threshold[i] -= g;
  }
  CHECK(vertex.get<float>("g_last") == g_last);
  CHECK(vertex.get<float>("g_threshold") == g_threshold);
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    testLastSpikes(library);
    testLastSpikesGradient(library);
    for (unsigned n : {2U, 4U, 6U}) testLastGradient(library, n);
  });
}
