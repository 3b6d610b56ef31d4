// The codelets of lif_network for neurons with a second state, each alone against the equations of
// snnjax/ops/_lif_network/layer.py. What they share with plain LIF (lists, lengths, time) the tests of that hold.
#include "kernels/alone.hpp"
#include "kernels/network/neurons.hpp"
#include "poplar_kernels/network/cycles.hpp"

namespace {

using namespace kernels;

constexpr unsigned kSteps = 3, kBatch = 8;
constexpr unsigned kTime = 1;  // of a block of one step
constexpr double kSlope = 2.0, kNear = 1e-4;

// Of all neurons of a problem: [6, neurons], with one constant absent and, if nothing is raised, the last one too.
struct Constants {
  std::vector<float> decay, gain, threshold, second_threshold, second;

  Constants(unsigned n, bool raises, Draw& draw)
      : decay(n, 0.5f),
        gain(n, 0.25f),
        threshold(n, 1.0f),
        second_threshold(n, 0.5f),
        second(draw.row(snnjax::kSecondConstants * n)) {
    gain[n - 1] = 0.0f;  // the current reaches the second state alone
    for (unsigned j = 0; j < n; ++j) {
      at(snnjax::WDecay, j) = 0.75f;
      if (n > 2) at(snnjax::WMembrane, j) = 0.0f;
      at(snnjax::WGain, j) = j + 1 == n ? 0.5f : 0.0f;
      if (!raises) at(snnjax::ThresholdCoupling, j) = 0.0f;
    }
  }
  float& at(snnjax::GlifConstant constant, unsigned j) {
    return second[(constant - snnjax::WDecay) * decay.size() + j];
  }
  double at(snnjax::GlifConstant constant, unsigned j) const {
    return second[(constant - snnjax::WDecay) * decay.size() + j];
  }
};

struct States {
  double v, w;
};

struct Switches {
  int reset = 0, surrogate = 0;
  bool detach_reset = true, raises = true;
};

struct Problem {
  unsigned n;
  Switches switches;
  Constants constants;
  std::vector<float> v, w, bias;  // of all rows of a history
  std::vector<unsigned> lengths;

  Problem(unsigned neurons, Switches s, Draw& draw)
      : n(neurons),
        switches(s),
        constants(n, s.raises, draw),
        v(draw.row((kSteps + 1) * kBatch * n)),
        w(draw.row((kSteps + 1) * kBatch * n)),
        bias(draw.row(n)),
        lengths(kBatch, kSteps) {
    lengths[3] = kTime;
  }

  bool inside(unsigned i) const { return kTime < lengths[i / n]; }
  States at(unsigned row, unsigned i) const { return {v[row * kBatch * n + i], w[row * kBatch * n + i]}; }
  double threshold(States s, unsigned i) const { return 1.0 + constants.at(snnjax::ThresholdCoupling, i % n) * s.w; }
  double spike(States s, unsigned i) const { return s.v > threshold(s, i) ? 1.0 : 0.0; }
  double afterReset(States s, unsigned i) const {
    if (switches.reset == 0) return s.v - threshold(s, i) * spike(s, i);
    return switches.reset == 1 ? s.v * (1.0 - spike(s, i)) : s.v;
  }
  States next(States s, unsigned i, double current) const {
    const unsigned j = i % n;
    const double w_new = constants.at(snnjax::WDecay, j) * s.w + constants.at(snnjax::WMembrane, j) * s.v +
                         constants.at(snnjax::WGain, j) * current + constants.at(snnjax::WJump, j) * spike(s, i);
    const double v_new = constants.decay[j] * afterReset(s, i) + constants.gain[j] * current;
    return {v_new + constants.at(snnjax::VCoupling, j) * w_new, w_new};
  }
};

void connectForward(Alone& vertex, const Problem& p, bool keep) {
  const unsigned row = kBatch * p.n;
  const auto history = [&](const std::vector<float>& all) {
    return keep ? all : std::vector<float>(all.begin() + kTime * row, all.begin() + (kTime + 1) * row);
  };
  vertex.edge("bias", p.bias).edge("decay", p.constants.decay).edge("gain", p.constants.gain);
  vertex.edge("threshold", p.constants.threshold).edge("lengths", p.lengths).edge("second", p.constants.second);
  vertex.edge("block", std::vector<unsigned>{kTime}).edge("membranes", p.v).edge("w", history(p.w));
  vertex.edge("counts", std::vector<float>(row, 2.0f)).edge("offered", std::vector<float>(row));
  vertex.edge("second_threshold", p.constants.second_threshold).state("offered_stride", p.n);
  vertex.edge("marks", std::vector<unsigned>(kBatch * ((p.n + 1) / 2), 9));
  vertex.state("num_steps", 1U).state("batch", kBatch).state("neurons", p.n);
  vertex.state("reset", static_cast<unsigned char>(p.switches.reset)).state("keep_history", true);
  vertex.state("keep_second", keep).state("raises", p.switches.raises);
}

// Eighths and their products: exact.
void checkForward(Alone& vertex, const Problem& p, const std::vector<float>& sum, bool keep) {
  connectForward(vertex, p, keep);
  vertex.run(p.n % 2 == 0);
  const auto membranes = vertex.get<float>("membranes"), counts = vertex.get<float>("counts"),
             offered = vertex.get<float>("offered"), w = vertex.get<float>("w");
  const auto marks = vertex.get<unsigned>("marks");
  const unsigned row = kBatch * p.n;
  for (unsigned i = 0; i < row; ++i) {
    const States old = p.at(kTime, i), stepped = p.next(old, i, sum[i] + p.bias[i % p.n]);
    const States expected = p.inside(i) ? stepped : old;
    CHECK_EQUAL(membranes[(kTime + 1) * row + i], expected.v);
    CHECK_EQUAL(w[keep ? (kTime + 1) * row + i : i], expected.w);
    CHECK_EQUAL(offered[i], expected.v);
    CHECK_EQUAL(counts[i], 2.0 + (p.inside(i) ? p.spike(expected, i) : 0.0));
    const unsigned j = i % p.n, own = marks[i / p.n * ((p.n + 1) / 2) + j / 2] << j % snnjax::kNeuronsOfMark;
    const bool fires = p.spike(expected, i) > 0, is_near = expected.v > p.threshold(expected, i) - 0.5;
    CHECK_EQUAL(own & snnjax::kFirstMark, p.inside(i) && fires ? snnjax::kFirstMark : 0);
    CHECK_EQUAL(own << snnjax::kNeuronsOfMark & snnjax::kFirstMark, p.inside(i) && is_near ? snnjax::kFirstMark : 0);
  }
}

void testForward(const ipu_model::CodeletLibrary& library, unsigned n, Switches switches) {
  Draw draw(n + 11U);
  const Problem p(n, switches, draw);
  const auto current = draw.row(kBatch * n);
  for (const bool keep : {false, true}) {
    Alone vertex(library, "snnjax::LifScan<true,true>");
    checkForward(vertex.edge("current", current), p, current, keep);
  }
}

double slopeAt(double x, int surrogate) {
  return surrogate == 0 ? 1.0 / std::pow(1.0 + kSlope * std::abs(x), 2) : std::max(0.0, 1.0 - kSlope * std::abs(x));
}

// What arrives from the step after a state, and directly.
struct Arriving {
  double g_u, g_w, g_v_direct, g_w_direct, g_s;
};

struct Cotangents {
  double v, w, threshold, current;
};

Cotangents throughState(const Problem& p, States s, unsigned i, Arriving g) {
  const unsigned j = i % p.n;
  const double limit = p.threshold(s, i), spike = p.spike(s, i), slope = slopeAt(s.v - limit, p.switches.surrogate);
  const double g_s = g.g_s + p.constants.at(snnjax::WJump, j) * g.g_w;
  double g_v = g.g_v_direct + g_s * slope + p.constants.at(snnjax::WMembrane, j) * g.g_w, g_threshold = -g_s * slope;
  g_v += p.switches.reset == 1 ? g.g_u * (1.0 - spike) : g.g_u;
  if (p.switches.reset == 0) g_threshold -= g.g_u * spike;
  if (p.switches.reset != 2 && !p.switches.detach_reset) {
    const double through = -g.g_u * (p.switches.reset == 1 ? s.v : limit) * slope;
    g_v += through;
    g_threshold -= through;
  }
  const double g_w = g.g_w_direct + p.constants.at(snnjax::WDecay, j) * g.g_w +
                     p.constants.at(snnjax::ThresholdCoupling, j) * g_threshold;
  return {g_v, g_w, g_threshold, 0.0};
}

// Gradients that arrive at a step, of all neurons.
struct Gradients {
  std::vector<float> g_spikes, g_counts, g_v, g_w, g_last, g_last_w;

  Gradients(const Problem& p, Draw& draw)
      : g_spikes(draw.row(kBatch * p.n)),
        g_counts(draw.row(kBatch * p.n)),
        g_v(draw.row(kBatch * p.n)),
        g_w(draw.row(kBatch * p.n)),
        g_last(draw.row(kBatch * p.n)),
        g_last_w(draw.row(kBatch * p.n)) {}

  Cotangents through(const Problem& p, unsigned i) const {
    const States s = p.at(kTime + 1, i);
    const double near = p.threshold(s, i) - 0.5;  // the second threshold is raised likewise
    const double g_s = g_spikes[i] + (s.v > near ? g_counts[i] : 0.0f);
    Cotangents g = throughState(p, s, i, {g_v[i], g_w[i], g_last[i], g_last_w[i], g_s});
    const unsigned j = i % p.n;
    g.w += p.constants.at(snnjax::VCoupling, j) * g.v;
    g.current = p.constants.gain[j] * g.v + p.constants.at(snnjax::WGain, j) * g.w;
    return g;
  }
};

void connectBackward(Alone& vertex, const Problem& p, const Gradients& g, bool reads_second) {
  const std::vector<float> ones(kBatch * p.n, 1.0f);
  vertex.edge("g_spikes", g.g_spikes).edge("g_counts", g.g_counts).edge("decay", p.constants.decay);
  vertex.edge("gain", p.constants.gain).edge("threshold", p.constants.threshold).edge("lengths", p.lengths);
  vertex.edge("second_threshold", p.constants.second_threshold).edge("second", p.constants.second);
  vertex.edge("block", std::vector<unsigned>{kTime}).edge("membranes", p.v);
  vertex.edge("w", reads_second ? p.w : std::vector<float>()).edge("g_v", g.g_v).edge("g_w", g.g_w);
  vertex.edge("g_last", g.g_last).edge("g_last_w", g.g_last_w).edge("g_current", ones).edge("g_bias", ones);
  vertex.state("num_steps", 1U).state("batch", kBatch).state("neurons", p.n);
  vertex.state("reset", static_cast<unsigned char>(p.switches.reset)).state("detach_reset", p.switches.detach_reset);
  vertex.state("surrogate", static_cast<unsigned char>(p.switches.surrogate));
  vertex.state("slope", static_cast<float>(kSlope));
}

void checkBackward(Alone& vertex, const Problem& p, const Gradients& g) {
  vertex.run(p.n % 2 == 0);
  const auto g_v = vertex.get<float>("g_v"), g_w = vertex.get<float>("g_w"), g_last_w = vertex.get<float>("g_last_w");
  const auto g_current = vertex.get<float>("g_current"), g_bias = vertex.get<float>("g_bias");
  for (unsigned i = 0; i < kBatch * p.n; ++i) {
    const Cotangents expected = g.through(p, i);
    CHECK_NEAR(g_v[i], p.inside(i) ? 0.5 * expected.v : g.g_v[i], kNear);
    CHECK_NEAR(g_w[i], p.inside(i) ? expected.w : g.g_w[i], kNear);
    CHECK_NEAR(g_current[i], p.inside(i) ? expected.current : 0.0, kNear);
    CHECK_NEAR(g_bias[i], p.inside(i) ? 1.0 + expected.current : 1.0, kNear);
    CHECK_EQUAL(g_last_w[i], p.inside(i) ? 0.0f : g.g_last_w[i]);
  }
}

void testBackward(const ipu_model::CodeletLibrary& library, unsigned n, Switches switches) {
  Draw draw(n + 77U);
  const Problem p(n, switches, draw);
  const Gradients g(p, draw);
  Alone vertex(library, "snnjax::LifGradientScan<true,false>");
  connectBackward(vertex, p, g, switches.raises);
  checkBackward(vertex.state("raises", switches.raises), p, g);
}

void testConstants(const ipu_model::CodeletLibrary& library, unsigned n, Switches switches) {
  Draw draw(n + 5U);
  Problem p(n, switches, draw);
  const Gradients g(p, draw);
  const unsigned row = kBatch * n;
  const auto current = draw.row(row);
  for (unsigned i = 0; i < row; ++i) {  // the step that the vertex is told of has been done
    const States stepped = p.next(p.at(kTime, i), i, current[i]);
    p.v[(kTime + 1) * row + i] = static_cast<float>(stepped.v);
    p.w[(kTime + 1) * row + i] = static_cast<float>(stepped.w);
  }
  Alone vertex(library, "snnjax::LifGradientScan<true,true>");
  connectBackward(vertex, p, g, true);
  const std::vector<float> before(row, 3.0f);
  vertex.edge("g_decay", before).edge("g_threshold", before).edge("g_gain", before);
  vertex.edge("g_second", std::vector<float>(snnjax::kSecondConstants * row, 3.0f));
  checkBackward(vertex.state("raises", true), p, g);  // it reads second states
  const auto g_decay = vertex.get<float>("g_decay"), g_threshold = vertex.get<float>("g_threshold");
  const auto g_gain = vertex.get<float>("g_gain"), g_second = vertex.get<float>("g_second");
  for (unsigned i = 0; i < row; ++i) {
    const Cotangents own = p.inside(i) ? g.through(p, i) : Cotangents{};
    const States old = p.at(kTime, i), now = p.at(kTime + 1, i);
    CHECK_NEAR(g_decay[i], 3.0 + own.v * p.afterReset(old, i), kNear);
    CHECK_NEAR(g_threshold[i], 3.0 + own.threshold, kNear);
    CHECK_NEAR(g_gain[i], 3.0 + own.v * current[i], 1e-3);
    const double expected[] = {own.w * old.w,           own.w * old.v, own.w * current[i],
                               own.w * p.spike(old, i), own.v * now.w, own.threshold * now.w};
    for (unsigned k = 0; k < snnjax::kSecondConstants; ++k) CHECK_NEAR(g_second[k * row + i], 3.0 + expected[k], 1e-3);
  }
}

void testFirst(const ipu_model::CodeletLibrary& library, unsigned n, Switches switches) {
  Draw draw(n + 3U);
  const Problem p(n, switches, draw);
  const Gradients g(p, draw);
  const unsigned row = kBatch * n;
  const std::vector<float> ones(row, 1.0f);
  Alone vertex(library, "snnjax::LifFirstGradient<true>");
  vertex.edge("g_v", g.g_v).edge("g_w", g.g_w).edge("g_last", g.g_last).edge("g_last_w", g.g_last_w);
  vertex.edge("threshold", p.constants.threshold).edge("second", p.constants.second).zeros("g_first", row);
  vertex.edge("membranes", std::vector<float>(p.v.begin(), p.v.begin() + row)).zeros("g_first_w", row);
  vertex.edge("w", std::vector<float>(p.w.begin(), p.w.begin() + row)).edge("g_threshold", ones);
  vertex.edge("g_coupling", ones).state("batch", kBatch).state("neurons", n);
  vertex.state("reset", static_cast<unsigned char>(switches.reset)).state("detach_reset", switches.detach_reset);
  vertex.state("surrogate", static_cast<unsigned char>(switches.surrogate)).state("slope", static_cast<float>(kSlope));
  vertex.run();
  const auto g_first = vertex.get<float>("g_first"), g_first_w = vertex.get<float>("g_first_w");
  const auto g_threshold = vertex.get<float>("g_threshold"), g_coupling = vertex.get<float>("g_coupling");
  for (unsigned i = 0; i < row; ++i) {
    const States s = p.at(0, i);
    const Cotangents expected = throughState(p, s, i, {g.g_v[i], g.g_w[i], g.g_last[i], g.g_last_w[i], 0.0});
    CHECK_NEAR(g_first[i], expected.v, kNear);
    CHECK_NEAR(g_first_w[i], expected.w, kNear);
    CHECK_NEAR(g_threshold[i], 1.0 + expected.threshold, kNear);
    CHECK_NEAR(g_coupling[i], 1.0 + expected.threshold * s.w, kNear);
  }
}

void testLast(const ipu_model::CodeletLibrary& library, unsigned n) {
  Draw draw(n + 9U);
  const Problem p(n, {0, 2, true, true}, draw);
  const Gradients g(p, draw);
  const unsigned row = kBatch * n;
  const std::vector<float> ones(row, 1.0f);
  Alone vertex(library, "snnjax::LifLastGradient<true>");
  vertex.edge("g_spikes", g.g_spikes).edge("threshold", p.constants.threshold).edge("second", p.constants.second);
  vertex.edge("membranes", std::vector<float>(p.v.begin(), p.v.begin() + row)).edge("g_last", ones);
  vertex.edge("w", std::vector<float>(p.w.begin(), p.w.begin() + row)).edge("g_threshold", ones);
  vertex.edge("g_last_w", ones).edge("g_coupling", ones).state("batch", kBatch).state("neurons", n);
  vertex.state("surrogate", static_cast<unsigned char>(2)).state("slope", static_cast<float>(kSlope)).run();
  const auto g_last = vertex.get<float>("g_last"), g_last_w = vertex.get<float>("g_last_w");
  const auto g_threshold = vertex.get<float>("g_threshold"), g_coupling = vertex.get<float>("g_coupling");
  for (unsigned i = 0; i < row; ++i) {
    const States s = p.at(0, i);
    const double through = g.g_spikes[i] * slopeAt(s.v - p.threshold(s, i), 2);
    CHECK_NEAR(g_last[i], 1.0 + through, kNear);
    CHECK_NEAR(g_threshold[i], 1.0 - through, kNear);
    CHECK_NEAR(g_last_w[i], 1.0 - p.constants.at(snnjax::ThresholdCoupling, i % n) * through, kNear);
    CHECK_NEAR(g_coupling[i], 1.0 - through * s.w, kNear);
  }
}

// Figures that a reader can count.
using namespace snnjax::cycles;
static_assert(advanceSecond(false) == 15 && advanceSecond(true) == 15 + 4);
static_assert(secondGradient(false) == 18 && secondGradient(true) == 18 + 7);
static_assert(kSecondConstantsGradient == 8 + 6 + 10 + 4 + 18);
static_assert(firstSecondGradient(GradientSwitches{snnjax::None, snnjax::Boxcar, true}) == 9 + 1 + 3 + 7 + 6);
static_assert(kLastSecondGradient == 10);

// The second state costs something in each pair, more where it raises thresholds, and grows with the neurons.
void testCosts(const ipu_model::CodeletLibrary& library) {
  const auto costs = [&](unsigned n, bool raises) {
    Draw draw(n);
    const Problem p(n, {0, 0, true, raises}, draw);
    Alone vertex(library, "snnjax::LifScan<true,true>");
    connectForward(vertex.edge("current", std::vector<float>(kBatch * n)), p, true);
    return vertex.run().cycles();
  };
  for (unsigned n = 2; n < 40; n += 2) {
    CHECK(costs(n, true) > costs(n, false));
    CHECK(costs(n + 2, false) > costs(n, false));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (unsigned n : {2U, 4U, 6U, 8U}) {
      for (const bool raises : {false, true}) {
        const Switches switches = {static_cast<int>(n % 3), n % 2 == 0 ? 0 : 2, n < 3, raises};
        testForward(library, n, switches);
        testBackward(library, n, switches);
        testConstants(library, n, switches);
        testFirst(library, n, switches);
      }
      testLast(library, n);
    }
    testCosts(library);
  });
}
