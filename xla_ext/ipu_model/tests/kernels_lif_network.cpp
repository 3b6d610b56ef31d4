// The codelets of lif_network, forward and backward, each alone against the equations of
// snnjax/ops/_lif_network/layer.py.
#include "kernels_alone.hpp"
#include "kernels_lists.hpp"

namespace {

using namespace kernels;

constexpr unsigned kSteps = 3, kBatch = 8, kInputs = 40, kCapacity = 7, kStride = 12;
constexpr unsigned kTime = 1, kDelay = 2;  // vertices run at time 1 in iteration 3
constexpr float kThreshold = 1.0f, kSecond = 0.5f, kSlope = 2.0f;

struct Layer {
  unsigned neurons;
  std::vector<float> bias, decay, gain, threshold, second, membranes, counts;
  std::vector<unsigned> lengths;

  explicit Layer(unsigned n, Draw& draw)
      : neurons(n),
        bias(draw.row(n)),
        decay(n, 0.5f),
        gain(n, 0.25f),
        threshold(n, kThreshold),
        second(n, kSecond),
        membranes(draw.row((kSteps + 1) * kBatch * n)),
        counts(kBatch * n, 2.0f),
        lengths(kBatch, kSteps) {
    lengths[3] = kTime;  // at its end already
  }

  std::size_t at(unsigned t, unsigned b, unsigned j) const { return (t * kBatch + b) * neurons + j; }
};

template <typename W>
std::vector<float> sums(const std::vector<unsigned short>& lists, const std::vector<W>& weights, unsigned n) {
  std::vector<float> out(kBatch * n);
  for (unsigned b = 0; b < kBatch; ++b) {
    for (unsigned id : spikesOf(lists, b, kStride, kCapacity)) {
      if (id >= kInputs) continue;
      for (unsigned j = 0; j < n; ++j) out[b * n + j] += static_cast<float>(weights[id * n + j]);
    }
  }
  return out;
}

float afterReset(float v, int reset) {
  const bool fires = v > kThreshold;
  if (reset == 0) return fires ? v - kThreshold : v;
  return reset == 1 && fires ? 0.0f : v;
}

// Connects the fields that all forward vertices share, runs, and compares the results with the equations.
void testAdvance(Alone& vertex, Layer layer, const std::vector<float>& sum, int reset) {
  const unsigned n = layer.neurons;
  vertex.edge("bias", layer.bias).edge("decay", layer.decay).edge("gain", layer.gain);
  vertex.edge("threshold", layer.threshold).edge("lengths", layer.lengths);
  vertex.edge("iteration", std::vector<unsigned>{kTime + kDelay}).edge("membranes", layer.membranes);
  vertex.edge("counts", layer.counts).edge("v", std::vector<float>(kBatch * n));
  vertex.state("num_steps", kSteps).state("delay", kDelay).state("batch", kBatch).state("neurons", n);
  vertex.state("reset", static_cast<unsigned char>(reset)).state("keep_history", true).run(n % 2 == 0);
  const auto membranes = vertex.get<float>("membranes"), counts = vertex.get<float>("counts"),
             v = vertex.get<float>("v");
  for (unsigned b = 0; b < kBatch; ++b) {
    for (unsigned j = 0; j < n; ++j) {
      const float old = layer.membranes[layer.at(kTime, b, j)];
      const bool inside = kTime < layer.lengths[b];
      const float expected = inside ? 0.5f * afterReset(old, reset) + 0.25f * (sum[b * n + j] + layer.bias[j]) : old;
      CHECK_EQUAL(membranes[layer.at(kTime + 1, b, j)], expected);
      CHECK_EQUAL(v[b * n + j], inside ? expected : -INFINITY);
      CHECK_EQUAL(counts[b * n + j], inside && expected > kThreshold ? 3.0f : 2.0f);
    }
  }
  vertex.edge("iteration", std::vector<unsigned>{kDelay - 1}).edge("v", std::vector<float>(kBatch * n, 7.0f)).run();
  CHECK(vertex.get<float>("v") == std::vector<float>(kBatch * n, 7.0f));  // before its first step
}

template <typename W>
void testForward(const ipu_model::CodeletLibrary& library, const std::string& w, unsigned n, int reset) {
  Draw draw(n + 100U);
  const Layer layer(n, draw);
  const auto lists = hostileLists<unsigned short>(draw, kBatch, kStride, kCapacity, kInputs);
  const auto weights = withZeroRow(draw.row<W>(kInputs * n), n);
  Alone vertex(library, "snnjax::LifForward<" + w + ",unsigned short,false>");
  vertex.edge("lists", lists).edge("weights", weights);
  vertex.state("stride", kStride).state("capacity", kCapacity).state("num_inputs", kInputs);
  testAdvance(vertex, layer, sums(lists, weights, n), reset);
  Alone update(library, "snnjax::LifUpdate<false>");
  update.edge("current", sums(lists, weights, n));
  testAdvance(update, layer, sums(lists, weights, n), reset);
}

// Own lists of the step before and a current from below; in the first step what the spikes before it add.
template <typename W>
void testRecurrent(const ipu_model::CodeletLibrary& library, const std::string& w, unsigned n) {
  Draw draw(n + 31U);
  const Layer layer(n, draw);
  const auto lists = hostileLists<unsigned short>(draw, kBatch, kStride, kCapacity, kInputs);
  const auto weights = withZeroRow(draw.row<W>(kInputs * n), n);
  const auto current = draw.row(kBatch * n), first = draw.row(kBatch * n);
  std::vector<float> sum = sums(lists, weights, n);
  for (unsigned i = 0; i < kBatch * n; ++i) sum[i] += current[i];
  Alone vertex(library, "snnjax::LifRecurrentForward<" + w + ",unsigned short,false>");
  vertex.edge("lists", lists).edge("weights", weights).edge("current", current).edge("first", first);
  vertex.state("stride", kStride).state("capacity", kCapacity).state("num_inputs", kInputs);
  testAdvance(vertex, layer, sum, static_cast<int>(n % 3));
  vertex.edge("iteration", std::vector<unsigned>{kDelay}).run();  // its first step: membranes are row 1
  const auto membranes = vertex.get<float>("membranes");
  for (unsigned b = 0; b < kBatch; ++b) {
    for (unsigned j = 0; j < n; ++j) {
      const float input = current[b * n + j] + first[b * n + j] + layer.bias[j];
      const float u = afterReset(layer.membranes[layer.at(0, b, j)], static_cast<int>(n % 3));
      CHECK_EQUAL(membranes[layer.at(1, b, j)], 0.5f * u + 0.25f * input);
    }
  }
}

// Currents alone, of spikes or of values; past the end of a sequence they stay. `stride` 0: one record for all.
template <typename W>
void testCurrent(const ipu_model::CodeletLibrary& library, const std::string& w, unsigned n, bool valued,
                 unsigned stride) {
  Draw draw(n + 57U);
  const auto lists = hostileLists<unsigned short>(draw, kBatch, kStride, kCapacity, kInputs);
  auto weights = withZeroRow(draw.row<W>(kInputs * n), n);
  auto values = draw.row(kBatch * kCapacity);
  for (unsigned k = 0; k < values.size(); k += 3) values[k] = 0.0f;
  std::vector<float> expected(kBatch * n, 5.0f);
  for (unsigned b = 0; b < kBatch; ++b) {
    const auto ids = spikesOf(lists, stride == 0 ? 0 : b, kStride, kCapacity);
    for (unsigned j = 0; b != 3 && j < n; ++j) {
      expected[b * n + j] = 0.0f;
      for (unsigned k = 0; k < ids.size(); ++k) {
        const float value = valued ? values[b * kCapacity + k] : 1.0f;
        if (ids[k] < kInputs) expected[b * n + j] += value * static_cast<float>(weights[ids[k] * n + j]);
      }
    }
  }
  std::vector<unsigned> lengths(kBatch, kSteps);
  lengths[3] = kTime;
  Alone vertex(library, (valued ? "snnjax::ValuedCurrent<" : "snnjax::ListedCurrent<") + w + ",unsigned short>");
  vertex.edge("lists", lists).edge("weights", weights).edge("lengths", lengths);
  if (valued) vertex.edge("values", values);
  vertex.edge("iteration", std::vector<unsigned>{kTime + kDelay}).edge("current", std::vector<float>(kBatch * n, 5.0f));
  vertex.state("num_steps", kSteps).state("delay", kDelay).state("batch", kBatch).state("stride", stride);
  vertex.state("capacity", kCapacity).state("num_inputs", kInputs).state("neurons", n).run(n % 2 == 0);
  CHECK(vertex.get<float>("current") == expected);  // products of eighths: exact in any order
}

// An input of 0 adds nothing, whatever its weight, and costs less.
void testZeroInput(const ipu_model::CodeletLibrary& library) {
  const std::vector<unsigned short> record = {2, 2, 2, 0, 0, 1, 2, 2};
  Alone vertex(library, "snnjax::ValuedCurrent<float,unsigned short>");
  vertex.edge("lists", record).edge("values", std::vector<float>{0.0f, 2.0f}).edge("lengths", std::vector<unsigned>{1});
  vertex.edge("weights", std::vector<float>{NAN, INFINITY, 1.0f, 3.0f, 0.0f, 0.0f});
  vertex.edge("iteration", std::vector<unsigned>{0}).edge("current", std::vector<float>(2)).state("num_steps", 1U);
  vertex.state("delay", 0U).state("batch", 1U).state("stride", 0U).state("capacity", 2U).state("num_inputs", 2U);
  vertex.state("neurons", 2U).run();
  CHECK(vertex.get<float>("current") == (std::vector<float>{2.0f, 6.0f}));
  const std::uint64_t one = vertex.cycles();
  vertex.edge("values", std::vector<float>{1.0f, 2.0f}).run();
  CHECK(vertex.cycles() > one);
}

void testInPlace(const ipu_model::CodeletLibrary& library) {
  Alone vertex(library, "snnjax::LifUpdate<false>");
  vertex.edge("current", std::vector<float>{4.0f, 8.0f})
      .edge("bias", std::vector<float>(2))
      .edge("v", std::vector<float>(2));
  vertex.edge("decay", std::vector<float>(2, 0.5f)).edge("gain", std::vector<float>(2, 0.5f));
  vertex.edge("threshold", std::vector<float>(2, 1.0f)).edge("lengths", std::vector<unsigned>{9});
  vertex.edge("iteration", std::vector<unsigned>{5}).edge("membranes", std::vector<float>{3.0f, 0.5f});
  vertex.edge("counts", std::vector<float>(2)).state("num_steps", 9U).state("delay", 0U).state("batch", 1U);
  vertex.state("neurons", 2U).state("reset", static_cast<unsigned char>(0)).state("keep_history", false).run();
  CHECK(vertex.get<float>("membranes") == (std::vector<float>{3.0f, 4.25f}));  // 0.5 * (3 - 1) + 2, 0.25 + 4
}

template <typename W>
void testLeaky(const ipu_model::CodeletLibrary& library, const std::string& w, unsigned n) {
  Draw draw(n + 7U);
  const Layer layer(n, draw);
  const auto lists = hostileLists<unsigned short>(draw, kBatch, kStride, kCapacity, kInputs);
  const auto weights = withZeroRow(draw.row<W>(kInputs * n), n);
  Alone vertex(library, "snnjax::LeakyForward<" + w + ",unsigned short>");
  vertex.edge("lists", lists).edge("weights", weights).edge("bias", layer.bias).edge("decay", layer.decay);
  vertex.edge("gain", layer.gain).edge("lengths", layer.lengths).edge("membranes", layer.membranes);
  vertex.edge("iteration", std::vector<unsigned>{kTime + kDelay}).state("num_steps", kSteps).state("delay", kDelay);
  vertex.state("batch", kBatch).state("stride", kStride).state("capacity", kCapacity).state("num_inputs", kInputs);
  vertex.state("neurons", n).state("keep_history", true).run();
  const auto membranes = vertex.get<float>("membranes"), sum = sums(lists, weights, n);
  for (unsigned b = 0; b < kBatch; ++b) {
    for (unsigned j = 0; j < n; ++j) {
      const float old = layer.membranes[layer.at(kTime, b, j)];
      const float expected = kTime < layer.lengths[b] ? 0.5f * old + 0.25f * (sum[b * n + j] + layer.bias[j]) : old;
      CHECK_EQUAL(membranes[layer.at(kTime + 1, b, j)], expected);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runForms(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (unsigned n : {1U, 2U, 3U, 4U, 6U, 8U, 22U}) {
      testForward<float>(library, "float", n, static_cast<int>(n % 3));
      testForward<half>(library, "half", n, static_cast<int>((n + 1) % 3));
      testLeaky<float>(library, "float", n);
      testLeaky<half>(library, "half", n);
    }
    for (unsigned n : {1U, 2U, 6U, 11U}) {
      testRecurrent<float>(library, "float", n);
      testRecurrent<half>(library, "half", n);
      for (const bool valued : {false, true}) {
        testCurrent<float>(library, "float", n, valued, kStride);
        testCurrent<half>(library, "half", n, valued, 0);
      }
    }
    testZeroInput(library);
    testInPlace(library);
  });
}
