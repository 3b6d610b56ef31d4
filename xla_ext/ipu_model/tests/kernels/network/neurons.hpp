// Neurons over a few steps, for the tests of the codelets that advance them.
#pragma once

#include "kernels/alone.hpp"

namespace kernels {

constexpr unsigned kBatch = 3, kSteps = 5, kSecond = 6;
inline const std::vector<unsigned> kLengths = {5, 2, 0};

// What a switch may be.
struct Kind {
  unsigned n;
  bool second, raises;
  unsigned char reset, surrogate;
  bool detach;
};

// What costs of gradients read of a vertex.
struct GradientSwitches {
  unsigned char reset, surrogate;
  bool detach_reset;
};

// From [batch, num_steps, n] the row of a step: [batch, n].
inline std::vector<float> stepOf(const std::vector<float>& rows, unsigned t, unsigned n) {
  std::vector<float> step;
  for (unsigned b = 0; b < kBatch; ++b) {
    const auto first = rows.begin() + (b * kSteps + t) * n;
    step.insert(step.end(), first, first + n);
  }
  return step;
}

struct Problem {
  explicit Problem(const Kind& its_kind)
      : kind(its_kind),
        n(its_kind.n),
        draw(its_kind.n + 17U),
        current(draw.row(kBatch * kSteps * n)),
        first(draw.row(kBatch * n)) {
    for (const char* name : {"bias", "threshold"}) constants[name] = draw.row(n);
    constants["decay"] = std::vector<float>(n, 0.5f);
    constants["gain"] = std::vector<float>(n, 0.25f);
    second = draw.row(kSecond * n);
    for (float& each : second) each *= 0.125f;
  }
  std::string instance() const { return kind.second ? "true" : "false"; }
  std::vector<float> history() const {
    std::vector<float> rows((kSteps + 1) * kBatch * n);
    std::copy(first.begin(), first.end(), rows.begin());
    return rows;
  }
  void setCommon(Alone& vertex, std::initializer_list<const char*> names) const {
    for (const char* name : names) vertex.edge(name, constants.at(name));
    vertex.edge("lengths", kLengths).state("num_steps", kSteps).state("batch", kBatch).state("neurons", n);
    vertex.edge("block", std::vector<unsigned>{0}).state("reset", kind.reset);
    if (kind.second) vertex.edge("second", second);
  }

  Kind kind;
  unsigned n;
  Draw draw;
  std::vector<float> current, first, second;
  std::map<std::string, std::vector<float>> constants;
};

struct States {
  std::vector<float> v, w, counts, offered;
  std::vector<unsigned> marks;
};

// What a vertex that advances neurons offers in so many rows.
inline void setOffered(Alone& vertex, const Problem& p, unsigned rows) {
  vertex.edge("offered", std::vector<float>(rows * p.n)).state("offered_stride", p.n);
  vertex.edge("second_threshold", p.constants.at("bias")).edge("marks", std::vector<unsigned>(rows * ((p.n + 1) / 2)));
}

inline States scanned(const ipu_model::CodeletLibrary& library, const Problem& p) {
  Alone vertex(library, "snnjax::LifScan<" + p.instance() + ",true>");
  p.setCommon(vertex, {"bias", "decay", "gain", "threshold"});
  vertex.edge("current", p.current).edge("membranes", p.history()).edge("counts", std::vector<float>(kBatch * p.n));
  setOffered(vertex.state("keep_history", true), p, kBatch * kSteps);
  if (p.kind.second) {
    vertex.edge("w", p.history()).state("keep_second", true);
    vertex.state("raises", p.kind.raises);
  }
  vertex.run(p.n % 4 == 0);
  return {vertex.get<float>("membranes"), p.kind.second ? vertex.get<float>("w") : std::vector<float>(),
          vertex.get<float>("counts"), vertex.get<float>("offered"), vertex.get<unsigned>("marks")};
}

// The gradient codelet of all steps, or of one, with what they have in common.
inline std::vector<std::string> setGradient(Alone& vertex, const Problem& p, const States& states, bool learns) {
  Draw draw(5);
  p.setCommon(vertex, {"decay", "gain", "threshold"});
  std::vector<float> g_counts = draw.row(kBatch * p.n);
  g_counts[0] = g_counts[1] = 0.0f;  // of a pair
  vertex.edge("second_threshold", p.constants.at("bias")).edge("g_counts", g_counts);
  vertex.edge("membranes", states.v).edge("g_v", std::vector<float>(kBatch * p.n));
  vertex.edge("g_last", draw.row(kBatch * p.n)).edge("g_bias", std::vector<float>(kBatch * p.n));
  vertex.state("surrogate", p.kind.surrogate).state("detach_reset", p.kind.detach).state("slope", 2.0f);
  std::vector<std::string> results = {"g_v", "g_last", "g_bias"};
  if (p.kind.second) {
    vertex.edge("w", states.w).edge("g_w", std::vector<float>(kBatch * p.n)).edge("g_last_w", draw.row(kBatch * p.n));
    results.insert(results.end(), {"g_w", "g_last_w"});
  }
  if (!learns) return results;
  for (const char* name : {"g_decay", "g_threshold", "g_gain"}) {
    vertex.edge(name, std::vector<float>(kBatch * p.n));
    results.push_back(name);
  }
  if (p.kind.second) {
    vertex.edge("g_second", std::vector<float>(kSecond * kBatch * p.n));
    results.push_back("g_second");
  }
  return results;
}

}  // namespace kernels
