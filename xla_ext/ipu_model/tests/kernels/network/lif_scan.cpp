// Neurons over all steps: against their equations, and the same bits in blocks of one step.
#include "kernels/network/neurons.hpp"
#include "poplar_kernels/conventions.hpp"

namespace {

using namespace kernels;

// In blocks of one step.
States stepped(const ipu_model::CodeletLibrary& library, const Problem& p) {
  Alone vertex(library, "snnjax::LifScan<" + p.instance() + ",true>");
  p.setCommon(vertex, {"bias", "decay", "gain", "threshold"});
  vertex.edge("membranes", p.history()).edge("counts", std::vector<float>(kBatch * p.n)).state("keep_history", true);
  setOffered(vertex.state("num_steps", 1U), p, kBatch);
  if (p.kind.second) {
    vertex.edge("w", p.history()).state("keep_second", true);
    vertex.state("raises", p.kind.raises);
  }
  States all;
  const unsigned pairs = (p.n + 1) / 2;
  all.offered.resize(p.current.size());
  all.marks.resize(kBatch * kSteps * pairs);
  for (unsigned t = 0; t < kSteps; ++t) {
    vertex.edge("current", stepOf(p.current, t, p.n)).edge("block", std::vector<unsigned>{t}).run();
    const auto offered = vertex.get<float>("offered");
    const auto marks = vertex.get<unsigned>("marks");
    for (unsigned i = 0; i < offered.size(); ++i) all.offered[(i / p.n * kSteps + t) * p.n + i % p.n] = offered[i];
    for (unsigned i = 0; i < marks.size(); ++i) all.marks[(i / pairs * kSteps + t) * pairs + i % pairs] = marks[i];
  }
  all.v = vertex.get<float>("membranes");
  if (p.kind.second) all.w = vertex.get<float>("w");
  all.counts = vertex.get<float>("counts");
  return all;
}

// Plain LIF; those with a second state kernels_second_state holds to its equations.
void checkMembranes(const Problem& p, const States& states) {
  for (unsigned i = 0; i < p.current.size(); ++i) {
    const unsigned b = i / p.n / kSteps, t = i / p.n % kSteps, j = i % p.n, at = (t * kBatch + b) * p.n + j;
    const float before = states.v[at], threshold = p.constants.at("threshold")[j];
    const bool fires = before > threshold;
    const float u = p.kind.reset == 0 && fires ? before - threshold : p.kind.reset == 1 && fires ? 0.0f : before;
    const float after = 0.5f * u + 0.25f * (p.current[i] + p.constants.at("bias")[j]);
    CHECK_EQUAL(states.v[at + kBatch * p.n], t < kLengths[b] ? after : before);
    CHECK_EQUAL(states.offered[i], t < kLengths[b] ? after : before);
    const unsigned marks = states.marks[(b * kSteps + t) * ((p.n + 1) / 2) + j / 2] << j % snnjax::kNeuronsOfMark;
    const bool inside = t < kLengths[b];
    CHECK_EQUAL(marks >> 31, inside && after > threshold ? 1 : 0);
    CHECK_EQUAL(marks >> (31 - snnjax::kNeuronsOfMark) & 1, inside && after > p.constants.at("bias")[j] ? 1 : 0);
  }
}

void testForward(const ipu_model::CodeletLibrary& library, const Problem& p) {
  const States scan = scanned(library, p), step = stepped(library, p);
  if (!p.kind.second) checkMembranes(p, scan);
  CHECK(scan.v == step.v);
  CHECK(scan.w == step.w);
  CHECK(scan.counts == step.counts);
  CHECK(scan.offered == step.offered);
  CHECK(scan.marks == step.marks);
}

void testBackward(const ipu_model::CodeletLibrary& library, const Problem& p, bool learns) {
  const States states = scanned(library, p);
  const std::vector<float> g_spikes = Draw(8).row(p.current.size());
  const std::string name = "snnjax::LifGradientScan<" + p.instance() + (learns ? ",true>" : ",false>");
  Alone scan(library, name), step(library, name);
  const auto results = setGradient(scan, p, states, learns);
  setGradient(step, p, states, learns);
  for (Alone* vertex : {&scan, &step}) {
    if (p.kind.second) vertex->state("raises", p.kind.raises);
    if (!p.kind.second && !learns) vertex->state("starts", vertex == &scan);
  }
  if (!p.kind.second && !learns) {  // what it starts from is not what is there
    for (const char* sum : {"g_v", "g_bias"}) scan.edge(sum, std::vector<float>(kBatch * p.n, 5.0f));
  }
  scan.edge("g_spikes", g_spikes).edge("g_current", std::vector<float>(p.current.size(), 3.0f)).run(p.n % 4 == 0);
  step.edge("g_current", std::vector<float>(kBatch * p.n)).state("num_steps", 1U);
  const auto g_current = scan.get<float>("g_current");
  for (unsigned t = kSteps; t-- > 0;) {
    step.edge("g_spikes", stepOf(g_spikes, t, p.n)).edge("block", std::vector<unsigned>{t}).run();
    CHECK(step.get<float>("g_current") == stepOf(g_current, t, p.n));
  }
  for (const std::string& result : results) CHECK(scan.get<float>(result) == step.get<float>(result));
}

void testReadout(const ipu_model::CodeletLibrary& library, unsigned n) {
  const Problem p({n, false, false, 0, 0, true});
  Alone forward(library, "snnjax::LeakyScan");
  for (const char* name : {"bias", "decay", "gain"}) forward.edge(name, p.constants.at(name));
  forward.edge("lengths", kLengths).edge("current", p.current).edge("membranes", p.history());
  forward.edge("block", std::vector<unsigned>{0})
      .state("num_steps", kSteps)
      .state("batch", kBatch)
      .state("neurons", n)
      .run();
  const auto v = forward.get<float>("membranes");
  for (unsigned b = 0; b < kBatch; ++b) {
    for (unsigned i = 0; i < kSteps * n; ++i) {
      const unsigned t = i / n, j = i % n;
      const float before = v[(t * kBatch + b) * n + j],
                  sum = p.current[(b * kSteps + t) * n + j] + p.constants.at("bias")[j];
      CHECK_EQUAL(v[((t + 1) * kBatch + b) * n + j], t < kLengths[b] ? 0.5f * before + 0.25f * sum : before);
    }
  }
  for (bool learns : {false, true}) {
    Alone backward(library, std::string("snnjax::LeakyGradientScan<") + (learns ? "true>" : "false>"));
    const auto g_output = Draw(3).row(p.current.size());
    const auto zero = std::vector<float>(kBatch * n);
    for (const char* name : {"decay", "gain"}) backward.edge(name, p.constants.at(name));
    backward.edge("block", std::vector<unsigned>{0})
        .edge("lengths", kLengths)
        .edge("g_output", g_output)
        .edge("g_v", zero)
        .edge("g_bias", std::vector<float>(kBatch * n, 5.0f))
        .state("starts", !learns);
    backward.edge("g_current", p.current).state("num_steps", kSteps).state("batch", kBatch).state("neurons", n);
    if (learns) backward.edge("membranes", v).edge("g_decay", zero).edge("g_gain", zero);
    backward.run();
    const auto g_current = backward.get<float>("g_current");
    std::vector<float> g_v(kBatch * n), g_decay = g_v, g_gain = g_v, g_bias(kBatch * n, learns ? 5.0f : 0.0f);
    for (unsigned i = 0; i < kBatch * n; ++i) {
      const unsigned b = i / n, j = i % n;
      for (unsigned t = kSteps; t-- > 0;) {
        const unsigned at = (b * kSteps + t) * n + j;
        const bool inside = t < kLengths[b];
        const float g = g_v[i] + g_output[at], before = v[(t * kBatch + b) * n + j],
                    after = v[((t + 1) * kBatch + b) * n + j];
        CHECK_EQUAL(g_current[at], inside ? 0.25f * g : 0.0f);
        g_bias[i] += g_current[at];
        g_v[i] = inside ? 0.5f * g : g;
        if (inside) g_decay[i] += g * before, g_gain[i] += g * (after - 0.5f * before) / 0.25f;
      }
    }
    CHECK(backward.get<float>("g_v") == g_v);
    CHECK(backward.get<float>("g_bias") == g_bias);
    if (learns) CHECK(backward.get<float>("g_decay") == g_decay);
    if (learns) CHECK(backward.get<float>("g_gain") == g_gain);
  }
}

// Workers share the pairs of one sample: six take as long as one.
void testCost(const ipu_model::CodeletLibrary& library) {
  const auto cyclesOf = [&](unsigned n) {
    Alone vertex(library, "snnjax::LifScan<false,true>");
    for (const char* name : {"bias", "decay", "gain", "threshold", "second_threshold"}) {
      vertex.edge(name, std::vector<float>(n));
    }
    vertex.edge("lengths", std::vector<unsigned>{kSteps})
        .edge("block", std::vector<unsigned>{0})
        .state("num_steps", kSteps)
        .state("batch", 1U)
        .state("neurons", n);
    vertex.edge("current", std::vector<float>(kSteps * n)).edge("membranes", std::vector<float>((kSteps + 1) * n));
    vertex.edge("counts", std::vector<float>(n)).edge("offered", std::vector<float>(kSteps * n));
    vertex.edge("marks", std::vector<unsigned>(kSteps * n)).state("offered_stride", n).state("keep_history", true);
    return vertex.state("reset", static_cast<unsigned char>(0)).run().cycles();
  };
  CHECK_EQUAL(cyclesOf(12), cyclesOf(2));
  CHECK(cyclesOf(14) > cyclesOf(12));
}

}  // namespace

int main(int argc, char** argv) {
  return runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (const Kind& kind :
         {Kind{4, false, false, 0, 0, true}, Kind{6, false, false, 1, 1, false}, Kind{2, false, false, 2, 5, true},
          Kind{4, true, true, 0, 0, false}, Kind{2, true, true, 1, 2, true}, Kind{12, true, true, 0, 6, true}}) {
      const Problem problem(kind);
      testForward(library, problem);
      for (bool learns : {false, true}) testBackward(library, problem, learns);
    }
    for (unsigned n : {2U, 6U, 12U}) testReadout(library, n);
    testCost(library);
  });
}
