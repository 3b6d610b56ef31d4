// The backward codelets of neurons, each alone against the equations of snnjax/ops/_lif_network/layer.py.
#include "kernels/alone.hpp"

namespace {

using namespace kernels;

constexpr unsigned kSteps = 3, kBatch = 8;
constexpr unsigned kTime = 1;  // of a block of one step
constexpr double kThreshold = 1.0, kSecond = 0.5, kDecay = 0.5, kGain = 0.25, kSlope = 2.0, kNear = 1e-5;

struct Switches {
  int reset = 0, surrogate = 0;
  bool detach_reset = true;
};

double surrogateAt(double x, int surrogate) {
  const double k = kSlope, pi = 3.14159265358979324;
  const auto sigmoid = [](double y) { return 1.0 / (1.0 + std::exp(-y)); };
  switch (surrogate) {
    case 0: return 1.0 / std::pow(1.0 + k * std::abs(x), 2);
    case 1: return 1.0 / (1.0 + std::pow(pi / 2 * k * x, 2));
    case 2: return std::max(0.0, 1.0 - k * std::abs(x));
    case 3: return std::exp(-std::pow(k * x, 2));
    case 4: return k * sigmoid(k * x) * sigmoid(-k * x);
    case 5: return std::abs(x) < 0.5 / k ? k : 0.0;
    default: return 1.0;
  }
}

// The cotangents of one neuron through reset and spike.
struct Gradient {
  double v, threshold;
};

Gradient throughReset(double g_u, double v, const Switches& s) {
  const double spike = v > kThreshold ? 1.0 : 0.0;
  if (s.reset == 2) return {g_u, 0.0};
  Gradient g = s.reset == 0 ? Gradient{g_u, -g_u * spike} : Gradient{g_u * (1.0 - spike), 0.0};
  if (s.detach_reset) return g;
  const double removed = s.reset == 0 ? kThreshold : v;
  const double through = -g_u * removed * surrogateAt(v - kThreshold, s.surrogate);
  return {g.v + through, g.threshold - through};
}

struct Problem {
  unsigned n;
  Switches switches;
  std::vector<float> g_spikes, g_counts, membranes, g_v, g_last;
  std::vector<unsigned> lengths;

  Problem(unsigned neurons, Switches s, Draw& draw)
      : n(neurons),
        switches(s),
        g_spikes(draw.row(kBatch * n)),
        g_counts(draw.row(kBatch * n)),
        membranes(draw.row((kSteps + 1) * kBatch * n)),
        g_v(draw.row(kBatch * n)),
        g_last(draw.row(kBatch * n)),
        lengths(kBatch, kSteps) {
    lengths[5] = kTime;
    membranes[(kTime + 1) * kBatch * n] = NAN;  // the first neuron of the first sample: no gradient through its spike
    g_spikes[0] = 0.0f;
  }

  double v(unsigned t, unsigned i) const { return membranes[t * kBatch * n + i]; }

  Gradient gradient(unsigned i) const {
    const double membrane = v(kTime + 1, i);
    const double g_s = g_spikes[i] + (membrane > kSecond ? g_counts[i] : 0.0f);
    const double through = g_s == 0.0 ? 0.0 : g_s * surrogateAt(membrane - kThreshold, switches.surrogate);
    const Gradient g = throughReset(g_v[i], membrane, switches);
    return {g_last[i] + g.v + through, g.threshold - through};
  }

  bool inside(unsigned i) const { return kTime < lengths[i / n]; }
};

void connect(Alone& vertex, const Problem& p) {
  vertex.edge("g_spikes", p.g_spikes).edge("g_counts", p.g_counts).edge("decay", std::vector<float>(p.n, 0.5f));
  vertex.edge("gain", std::vector<float>(p.n, 0.25f)).edge("threshold", std::vector<float>(p.n, 1.0f));
  vertex.edge("second_threshold", std::vector<float>(p.n, 0.5f)).edge("lengths", p.lengths);
  vertex.edge("block", std::vector<unsigned>{kTime}).edge("membranes", p.membranes).edge("g_v", p.g_v);
  vertex.edge("g_last", p.g_last).edge("g_current", std::vector<float>(kBatch * p.n, 9.0f));
  vertex.edge("g_bias", std::vector<float>(kBatch * p.n, 1.0f));
  vertex.state("num_steps", 1U).state("batch", kBatch).state("neurons", p.n);
  vertex.state("reset", static_cast<unsigned char>(p.switches.reset)).state("detach_reset", p.switches.detach_reset);
  vertex.state("surrogate", static_cast<unsigned char>(p.switches.surrogate))
      .state("slope", static_cast<float>(kSlope));
}

void checkGradient(Alone& vertex, const Problem& p) {
  const auto g_v = vertex.get<float>("g_v"), g_current = vertex.get<float>("g_current");
  const auto g_bias = vertex.get<float>("g_bias"), g_last = vertex.get<float>("g_last");
  for (unsigned i = 0; i < kBatch * p.n; ++i) {
    const double g = p.inside(i) ? p.gradient(i).v : 0.0;
    if (std::isnan(g)) {  // through an attached reset of a NaN
      CHECK(std::isnan(g_v[i]));
      continue;
    }
    CHECK_NEAR(g_v[i], p.inside(i) ? kDecay * g : p.g_v[i], kNear);
    CHECK_NEAR(g_current[i], kGain * g, kNear);
    CHECK_NEAR(g_bias[i], 1.0 + kGain * g, kNear);
    CHECK_EQUAL(g_last[i], p.inside(i) ? 0.0f : p.g_last[i]);
  }
}

void testBackward(const ipu_model::CodeletLibrary& library, unsigned n, Switches switches) {
  Draw draw(n * 10U + static_cast<unsigned>(switches.surrogate));
  const Problem p(n, switches, draw);
  Alone vertex(library, "snnjax::LifGradientScan<false,false>");
  connect(vertex, p);
  checkGradient(vertex.state("starts", false).run(n % 2 == 0), p);
}

void testConstants(const ipu_model::CodeletLibrary& library, unsigned n, Switches switches) {
  Draw draw(n + 900U);
  Problem p(n, switches, draw);
  p.membranes[(kTime + 1) * kBatch * n] = 1.5f;
  Alone vertex(library, "snnjax::LifGradientScan<false,true>");
  connect(vertex, p);
  const std::vector<float> before(kBatch * n, 3.0f);
  vertex.edge("g_decay", before).edge("g_threshold", before).edge("g_gain", before).run();
  checkGradient(vertex, p);
  const auto g_decay = vertex.get<float>("g_decay"), g_threshold = vertex.get<float>("g_threshold");
  const auto g_gain = vertex.get<float>("g_gain");
  for (unsigned i = 0; i < kBatch * n; ++i) {
    const double old = p.v(kTime, i), spike = old > kThreshold ? 1.0 : 0.0;
    const double u = switches.reset == 0 ? old - kThreshold * spike : switches.reset == 1 ? old * (1.0 - spike) : old;
    const Gradient g = p.inside(i) ? p.gradient(i) : Gradient{0.0, 0.0};
    CHECK_NEAR(g_decay[i], 3.0 + g.v * u, 1e-4);
    CHECK_NEAR(g_threshold[i], 3.0 + g.threshold, 1e-4);
    CHECK_NEAR(g_gain[i], 3.0 + g.v * (p.v(kTime + 1, i) - kDecay * u) / kGain, 1e-3);
  }
}

void testFirst(const ipu_model::CodeletLibrary& library, unsigned n) {
  Draw draw(n);
  const Switches switches{0, 1, false};
  const Problem p(n, switches, draw);
  const std::vector<float> first(p.membranes.begin(), p.membranes.begin() + kBatch * n);
  Alone vertex(library, "snnjax::LifFirstGradient<false>");
  vertex.edge("g_v", p.g_v).edge("g_last", p.g_last).edge("threshold", std::vector<float>(n, 1.0f));
  vertex.edge("membranes", first).edge("g_first", std::vector<float>(kBatch * n));
  vertex.edge("g_threshold", std::vector<float>(kBatch * n, 1.0f)).state("batch", kBatch).state("neurons", n);
  vertex.state("reset", static_cast<unsigned char>(0)).state("surrogate", static_cast<unsigned char>(1));
  vertex.state("detach_reset", false).state("slope", static_cast<float>(kSlope)).run();
  const auto g_first = vertex.get<float>("g_first"), g_threshold = vertex.get<float>("g_threshold");
  for (unsigned i = 0; i < kBatch * n; ++i) {
    const Gradient g = throughReset(p.g_v[i], first[i], switches);
    CHECK_NEAR(g_first[i], p.g_last[i] + g.v, kNear);
    CHECK_NEAR(g_threshold[i], 1.0 + g.threshold, kNear);
  }
}

void testLeakyConstants(const ipu_model::CodeletLibrary& library, unsigned n) {
  Draw draw(n + 70U);
  Problem p(n, {}, draw);
  p.membranes[(kTime + 1) * kBatch * n] = 1.5f;
  const auto g_output = draw.row(kBatch * n);
  std::vector<float> gains(n, 0.25f);
  gains.back() = 0.0f;
  Alone vertex(library, "snnjax::LeakyGradientScan<true>");
  const std::vector<float> before(kBatch * n, 3.0f);
  vertex.edge("g_output", g_output).edge("decay", std::vector<float>(n, 0.5f)).edge("gain", gains);
  vertex.edge("lengths", p.lengths).edge("block", std::vector<unsigned>{kTime}).edge("g_v", p.g_v);
  vertex.edge("membranes", p.membranes).edge("g_decay", before).edge("g_gain", before);
  vertex.edge("g_current", before).edge("g_bias", before);
  vertex.state("num_steps", 1U).state("batch", kBatch).state("neurons", n).state("starts", false).run();
  const auto g_v = vertex.get<float>("g_v"), g_decay = vertex.get<float>("g_decay");
  const auto g_gain = vertex.get<float>("g_gain");
  for (unsigned i = 0; i < kBatch * n; ++i) {
    const double g = static_cast<double>(p.g_v[i]) + g_output[i], v = p.v(kTime, i);
    const double in_step = p.inside(i) ? g : 0.0, current = (p.v(kTime + 1, i) - kDecay * v) / kGain;
    CHECK_NEAR(g_v[i], p.inside(i) ? kDecay * g : g, kNear);
    CHECK_NEAR(g_decay[i], 3.0 + in_step * v, 1e-4);
    CHECK_NEAR(g_gain[i], i % n + 1 == n ? 3.0 : 3.0 + in_step * current, 1e-3);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (int surrogate = 0; surrogate < 7; ++surrogate) {
      testBackward(library, 2, {surrogate % 3, surrogate, surrogate % 2 == 0});
      testBackward(library, 4, {(surrogate + 1) % 3, surrogate, surrogate % 2 == 1});
    }
    for (unsigned n : {2U, 4U, 8U, 10U}) {
      testBackward(library, n, {0, 0, false});
      testConstants(library, n, {static_cast<int>(n % 3), 0, n < 4});
      testFirst(library, n);
      testLeakyConstants(library, n);
    }
  });
}
