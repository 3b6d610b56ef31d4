// lif_step in all its conventions, against the equations of snnjax/ops/lif_step.py; the backward pass against their
// derivative by dual numbers, in which only spikes have a surrogate.
#include <poplar/HalfFloat.hpp>

#include "kernels_alone.hpp"

namespace {

using namespace kernels;

constexpr unsigned kRows = 7;
constexpr double kDecay = 0.5, kThreshold = 1.0, kGain = 0.75, kSlope = 2.0;

struct Convention {
  int reset, time;
  bool detach, from_old, inclusive;
};

// The arguments and results of one neuron.
struct Arguments {
  double v, current, decay = kDecay, threshold = kThreshold, gain = kGain;
};
struct Results {
  double v, spike;
};

double hard(double x, bool inclusive) { return (inclusive ? x >= 0 : x > 0) ? 1.0 : 0.0; }

double resetOf(double v, double spike, double threshold, int reset) {
  return reset == 0 ? v - threshold * spike : reset == 1 ? v * (1.0 - spike) : v;
}

Results step(const Arguments& a, const Convention& c) {
  const double charge = a.gain * a.current;
  if (c.time == 2) {
    const double m = a.decay * a.v + charge, spike = hard(m - a.threshold, c.inclusive);
    return {resetOf(m, spike, a.threshold, c.reset), spike};
  }
  const double before = hard(a.v - a.threshold, c.inclusive);
  const double v = c.time == 0 ? a.decay * resetOf(a.v, before, a.threshold, c.reset) + charge
                               : resetOf(a.decay * a.v + charge, before, a.threshold, c.reset);
  return {v, c.from_old ? before : hard(v - a.threshold, c.inclusive)};
}

// A number with its derivative, through which spikes pass with the surrogate's.
struct Dual {
  double x, d;
};
Dual operator+(Dual a, Dual b) { return {a.x + b.x, a.d + b.d}; }
Dual operator-(Dual a, Dual b) { return {a.x - b.x, a.d - b.d}; }
Dual operator*(Dual a, Dual b) { return {a.x * b.x, a.x * b.d + a.d * b.x}; }

Dual spikeOf(Dual x, bool inclusive) {
  const double scaled = 3.14159265358979324 / 2 * kSlope * x.x;
  return {hard(x.x, inclusive), x.d / (1.0 + scaled * scaled)};
}

Dual resetDual(Dual v, Dual spike, Dual threshold, const Convention& c) {
  if (c.detach) spike.d = 0.0;
  if (c.reset == 2) return v;
  return c.reset == 0 ? v - threshold * spike : v * (Dual{1.0, 0.0} - spike);
}

// The derivative of g_v * v_new + g_s * spike with respect to argument `of` (0 v, 1 current, 2 decay, 3 threshold, 4
// gain).
double derivative(const Arguments& a, const Convention& c, int of, double g_v, double g_s) {
  const auto dual = [&](double x, int i) { return Dual{x, i == of ? 1.0 : 0.0}; };
  const Dual v = dual(a.v, 0), decay = dual(a.decay, 2), threshold = dual(a.threshold, 3);
  const Dual charge = dual(a.gain, 4) * dual(a.current, 1);
  Dual v_new{}, spike{};
  if (c.time == 2) {
    const Dual m = decay * v + charge;
    spike = spikeOf(m - threshold, c.inclusive);
    v_new = resetDual(m, spike, threshold, c);
  } else {
    const Dual before = spikeOf(v - threshold, c.inclusive);
    v_new = c.time == 0 ? decay * resetDual(v, before, threshold, c) + charge
                        : resetDual(decay * v + charge, before, threshold, c);
    spike = c.from_old ? before : spikeOf(v_new - threshold, c.inclusive);
  }
  return g_v * v_new.d + g_s * spike.d;
}

void setConvention(Alone& vertex, const Convention& c, unsigned neurons) {
  vertex.edge("decay", std::vector<float>(neurons, static_cast<float>(kDecay)));
  vertex.edge("threshold", std::vector<float>(neurons, static_cast<float>(kThreshold)));
  vertex.edge("gain", std::vector<float>(neurons, static_cast<float>(kGain)));
  vertex.state("rows", kRows).state("neurons", neurons).state("reset", static_cast<unsigned char>(c.reset));
  vertex.state("reset_time", static_cast<unsigned char>(c.time)).state("spike_from_old", c.from_old);
  vertex.state("inclusive", c.inclusive);
}

template <typename T>
void testForward(const ipu_model::CodeletLibrary& library, const std::string& t, unsigned neurons,
                 const Convention& c) {
  Draw draw(neurons);
  const auto v = draw.row<T>(kRows * neurons), current = draw.row<T>(kRows * neurons);
  Alone vertex(library, "snnjax::LifStep<" + t + ">");
  setConvention(vertex, c, neurons);
  vertex.edge("v", v).edge("current", current).edge("v_new", std::vector<T>(v.size()));
  vertex.edge("spikes", std::vector<T>(v.size())).run(true);
  const auto v_new = vertex.template get<T>("v_new"), spikes = vertex.template get<T>("spikes");
  for (unsigned i = 0; i < v.size(); ++i) {
    const Results r = step({static_cast<float>(v[i]), static_cast<float>(current[i])}, c);  // exact: eighths
    CHECK(v_new[i] == static_cast<T>(r.v));
    CHECK(spikes[i] == static_cast<T>(r.spike));
  }
}

template <typename T>
void testBackward(const ipu_model::CodeletLibrary& library, const std::string& t, unsigned neurons,
                  const Convention& c) {
  Draw draw(neurons);
  const std::size_t size = kRows * neurons;
  const auto v = draw.row<T>(size), current = draw.row<T>(size), g_v_new = draw.row<T>(size), g_s = draw.row<T>(size);
  Alone vertex(library, "snnjax::LifStepBackward<" + t + ">");
  setConvention(vertex, c, neurons);
  vertex.edge("v", v).edge("current", current).edge("g_v_new", g_v_new).edge("g_spikes", g_s);
  vertex.edge("g_v", std::vector<T>(size)).edge("g_current", std::vector<T>(size));
  const char* const constants[] = {"g_decay", "g_threshold", "g_gain"};
  for (const char* name : constants) vertex.edge(name, std::vector<float>(6 * neurons, 9.0f));
  vertex.state("surrogate", static_cast<unsigned char>(1)).state("slope", static_cast<float>(kSlope));
  vertex.state("detach_reset", c.detach).run();
  const auto g_v = vertex.template get<T>("g_v"), g_current = vertex.template get<T>("g_current");
  std::vector<double> sums(3 * neurons);
  const double tolerance = sizeof(T) == 2 ? 0.02 : 1e-4;
  for (unsigned i = 0; i < size; ++i) {
    const Arguments a = {static_cast<float>(v[i]), static_cast<float>(current[i])};
    const double g = static_cast<float>(g_v_new[i]), s = static_cast<float>(g_s[i]);
    CHECK_NEAR(static_cast<double>(static_cast<float>(g_v[i])), derivative(a, c, 0, g, s), tolerance);
    CHECK_NEAR(static_cast<double>(static_cast<float>(g_current[i])), derivative(a, c, 1, g, s), tolerance);
    for (int k = 0; k < 3; ++k) sums[static_cast<unsigned>(k) * neurons + i % neurons] += derivative(a, c, 2 + k, g, s);
  }
  for (unsigned k = 0; k < 3; ++k) {
    const auto partials = vertex.get<float>(constants[k]);
    for (unsigned j = 0; j < neurons; ++j) {
      double total = 0.0;
      for (unsigned worker = 0; worker < 6; ++worker) total += partials[worker * neurons + j];
      CHECK_NEAR(total, sums[k * neurons + j], 1e-3);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runForms(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (int bits = 0; bits < 72; ++bits) {
      const Convention c = {bits % 3, bits / 3 % 3, bits / 9 % 2 == 0, bits / 18 % 2 == 1, bits / 36 % 2 == 1};
      if (c.time == 2 && c.from_old) continue;  // which the op refuses
      testForward<float>(library, "float", bits % 2 == 0 ? 4 : 5, c);
      testForward<half>(library, "half", bits % 2 == 0 ? 3 : 2, c);
      testBackward<float>(library, "float", bits % 2 == 0 ? 3 : 4, c);
      testBackward<half>(library, "half", bits % 2 == 0 ? 2 : 5, c);
    }
  });
}
