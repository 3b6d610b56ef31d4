// Steps of recurrent layers against the codelets of all steps, with what their spikes add to currents and gradients:
// the same bits. The lists that they read against the fair rule.
#include <algorithm>
#include <numeric>

#include "../../poplar_kernels/conventions.hpp"
#include "kernels_neurons.hpp"

namespace {

using namespace kernels;

constexpr unsigned kCapacity = 3, kRows = 9;

// The rows of weights that each sample reads in each step: of the first kCounts of a list.
struct Read {
  explicit Read(unsigned n) : weights(Draw(n).row((kRows + 1) * n)), first(Draw(n + 1).row(kBatch * n)) {
    Draw draw(n + 2);
    for (unsigned row = 0; row < kBatch * kSteps; ++row) {
      counts.push_back(draw.below(kCapacity + 1));
      for (unsigned k = 0; k < kCapacity; ++k) rows.push_back(draw.below(kRows));
    }
  }
  std::vector<float> weights, first;
  std::vector<unsigned> counts, rows;
};

// Currents with what is read.
Problem withRead(Problem p, const Read& read) {
  for (unsigned b = 0; b < kBatch; ++b) {
    for (unsigned t = 0; t < kSteps; ++t) {
      for (unsigned j = 0; j < p.n; ++j) {
        const unsigned row = b * kSteps + t;
        float sum = 0;
        for (unsigned k = 0; k < read.counts[row]; ++k) sum += read.weights[read.rows[row * kCapacity + k] * p.n + j];
        p.current[row * p.n + j] += t == 0 ? read.first[b * p.n + j] : sum;
      }
    }
  }
  return p;
}

void testForward(const ipu_model::CodeletLibrary& library, const Problem& p) {
  const Read read(p.n);
  const States scan = scanned(library, withRead(p, read));
  const unsigned pairs = p.n / 2, width = 1 + p.n;
  Alone vertex(library, "snnjax::LifRecurrentStep<float," + p.instance() + ">");
  p.setCommon(vertex, {"bias", "decay", "gain", "threshold"});
  vertex.edge("current", p.current).edge("weights", read.weights).edge("first", read.first);
  vertex.edge("membranes", p.history()).edge("counts", std::vector<float>(kBatch * p.n)).state("keep_history", true);
  vertex.edge("v", std::vector<float>(p.current.size())).edge("spikes", std::vector<unsigned>(kBatch * pairs));
  vertex.edge("sent", std::vector<unsigned>(kBatch * width)).state("sends_membranes", true).state("masks", 1U);
  vertex.state("stride", 1 + kCapacity);
  if (p.kind.second) {
    vertex.edge("w", p.history()).edge("raise", std::vector<float>(p.current.size())).state("keep_second", true);
    vertex.state("raises", p.kind.raises);
  }
  std::vector<float> counts(kBatch * p.n);
  for (unsigned t = 0; t < kSteps; ++t) {
    std::vector<unsigned> lists;
    for (unsigned b = 0; b < kBatch; ++b) {
      lists.push_back(read.counts[b * kSteps + t]);
      for (unsigned k = 0; k < kCapacity; ++k) lists.push_back(read.rows[(b * kSteps + t) * kCapacity + k] * p.n);
    }
    vertex.edge("lists", lists).edge("iteration", std::vector<unsigned>{t}).run(t % 2 == 0);
    Alone pack(library, "snnjax::PackSpikes");
    pack.edge("spikes", vertex.get<unsigned>("spikes")).edge("sent", vertex.get<unsigned>("sent"));
    pack.state("batch", kBatch).state("pairs", pairs).state("masks", 1U).state("width", width).run();
    const auto sent = pack.get<unsigned>("sent");
    const auto now = vertex.get<float>("counts"), v = vertex.get<float>("v");
    for (unsigned i = 0; i < now.size(); ++i) {
      const unsigned b = i / p.n, j = i % p.n;
      CHECK_EQUAL(sent[b * width] >> j & 1U, now[i] > counts[i] ? 1U : 0U);
      CHECK(std::memcmp(&sent[b * width + 1 + j], &v[(b * kSteps + t) * p.n + j], sizeof(float)) == 0);
    }
    counts = now;
  }
  CHECK(vertex.get<float>("membranes") == scan.v);
  CHECK(counts == scan.counts);
  CHECK(vertex.get<float>("v") == scan.selectable);
  if (p.kind.second) CHECK(vertex.get<float>("w") == scan.w);
}

// A row [kept, listed, true spikes, starts of shares, ids] that lists the own neurons 1 and 0 of the tile, and others.
std::vector<unsigned short> recordOf(unsigned first_id) {
  const auto id = [&](unsigned i) { return static_cast<unsigned short>(i); };
  return {1, 3, 1, 0, 0, 0, 0, 0, id(first_id + 1), id(first_id), id(first_id + 100), 0};
}

void testBackward(const ipu_model::CodeletLibrary& library, const Problem& p, bool learns) {
  constexpr unsigned kFirst = 40, kStride = 12, kParts = 2;
  std::vector<unsigned short> lists;
  for (unsigned row = 0; row < kBatch * kSteps; ++row) {
    const auto record = recordOf(row % kSteps == 2 ? 200 : kFirst);
    lists.insert(lists.end(), record.begin(), record.end());
  }
  Alone find(library, "snnjax::SlotsOfNeurons");
  std::vector<unsigned short> before(kBatch * (kSteps + 1) * p.n);
  for (unsigned i = 0; i < before.size(); ++i) before[i] = static_cast<unsigned short>(i % 5);
  find.edge("lists", lists).edge("slots", before);
  find.state("num_steps", kSteps).state("batch", kBatch).state("stride", kStride).state("capacity", kCapacity);
  find.state("first_id", kFirst).state("neurons", p.n).run();
  const auto slots = find.get<unsigned short>("slots");
  for (unsigned i = 0; i < slots.size(); ++i) {
    const unsigned b = i / p.n / (kSteps + 1), t = i / p.n % (kSteps + 1), j = i % p.n;
    const unsigned listed = t != 2 && j < 2 ? 1 - j : kCapacity;
    CHECK_EQUAL(slots[i], t < kSteps ? listed : before[b * (kSteps + 1) * p.n + j]);
  }
  const States states = scanned(library, p);
  std::vector<float> g_spikes = Draw(8).row(p.current.size());
  const std::vector<float> sums = Draw(9).row(kParts * kBatch * kCapacity);
  Alone step(library, "snnjax::LifRecurrentGradient<" + p.instance() + (learns ? ",true>" : ",false>"));
  const auto results = setGradient(step, p, states, learns);
  step.edge("g_spikes", g_spikes).edge("slots", slots).edge("sums", sums);
  step.edge("g_current", std::vector<float>(p.current.size(), 3.0f)).state("parts", kParts);
  step.state("capacity", kCapacity);
  if (p.kind.second) step.state("raises", p.kind.raises);
  for (unsigned t = 0; t < kSteps; ++t) step.edge("iteration", std::vector<unsigned>{t}).run(t % 2 == 0);
  for (unsigned i = 0; i < g_spikes.size(); ++i) {
    const unsigned b = i / p.n / kSteps, slot = slots[i + (b + 1) * p.n], at = b * kCapacity + slot;
    if (slot < kCapacity) g_spikes[i] += sums[at] + sums[kBatch * kCapacity + at];
  }
  Alone scan(library, "snnjax::LifGradientScan<" + p.instance() + (learns ? ",true>" : ",false>"));
  setGradient(scan, p, states, learns);
  if (p.kind.second) scan.state("raises", p.kind.raises);
  scan.edge("g_spikes", g_spikes).edge("g_current", std::vector<float>(p.current.size(), 3.0f)).run();
  CHECK(scan.get<float>("g_current") == step.get<float>("g_current"));
  for (const std::string& name : results) CHECK(scan.get<float>(name) == step.get<float>(name));
}

// Each listed id, hostile ones too, with the row that it names.
void testDots(const ipu_model::CodeletLibrary& library, unsigned n) {
  constexpr unsigned kStride = 16, kSlots = 7, kStep = 3;
  const auto weights = Draw(n).row((kRows + 1) * n), g = Draw(n + 1).row(kBatch * kSteps * n);
  std::vector<unsigned short> lists;
  for (unsigned row = 0; row < kBatch * kSteps; ++row) {
    for (unsigned value : {2U, row % 9, 2U, 0U, 0U, 0U, 0U, 0U, 0U, 8U, 3U, 60000U, 4U, 9U, 1U, 0U})
      lists.push_back(static_cast<unsigned short>(value));
  }
  Alone vertex(library, "snnjax::StepDots<float>");
  vertex.edge("lists", lists).edge("weights", weights).edge("g_current", g);
  vertex.edge("dots", std::vector<float>(kBatch * kSlots, 77.0f))
      .edge("iteration", std::vector<unsigned>{kSteps - 1 - kStep});
  vertex.state("num_steps", kSteps).state("batch", kBatch).state("stride", kStride).state("capacity", kSlots);
  vertex.state("num_inputs", kRows).state("neurons", n).run();
  const auto dots = vertex.get<float>("dots");
  for (unsigned b = 0; b < kBatch; ++b) {
    const unsigned row = b * kSteps + kStep, listed = std::min(kSlots, row % 9);
    for (unsigned k = 0; k < kSlots; ++k) {
      const unsigned id = std::min<unsigned>(lists[row * kStride + snnjax::kListHeader + k], kRows);
      float dot = 0;
      for (unsigned j = 0; j < n; ++j) dot += weights[id * n + j] * g[row * n + j];
      CHECK_EQUAL(dots[b * kSlots + k], k < listed ? dot : 77.0f);
    }
  }
}

// What a home lists of spikes that all blocks sent, a share of `rate` in 100, with membranes of so many different
// values.
void testLists(const ipu_model::CodeletLibrary& library, unsigned columns, unsigned rate, unsigned capacity,
               unsigned values) {
  const unsigned blocks = 23, masks = (columns + 31) / 32, width = masks + columns;
  const unsigned slots = (blocks + 5) / 6 * columns;
  Draw draw(columns + rate + values);
  std::vector<unsigned> sent(blocks * width), ids;
  std::vector<float> membranes(blocks * columns);
  for (unsigned id = 0; id < membranes.size(); ++id) {
    membranes[id] = static_cast<float>(draw.below(values)) / 8.0f - 2.0f;
    unsigned* const block = &sent[id / columns * width];
    std::memcpy(block + masks + id % columns, &membranes[id], sizeof(float));
    if (draw.below(100) >= rate) continue;
    block[id % columns / 32] |= 1U << id % columns % 32;
    ids.push_back(id);
  }
  Alone parts(library, "snnjax::ListSpikes");
  parts.edge("sent", sent).edge("parts", std::vector<unsigned>(6 * (1 + slots)));
  parts.edge("membranes", std::vector<float>(6 * slots)).state("sends_membranes", true);
  parts.state("blocks", blocks).state("columns", columns).state("masks", masks).state("slots", slots).run();
  Alone join(library, "snnjax::JoinSpikes");
  join.edge("parts", parts.get<unsigned>("parts")).edge("membranes", parts.get<float>("membranes"));
  join.edge("list", std::vector<unsigned>(1 + capacity)).state("slots", slots);
  join.state("capacity", capacity).state("columns", columns).run(true);
  std::ranges::sort(ids, [&](unsigned a, unsigned b) {
    if (membranes[a] != membranes[b]) return membranes[a] > membranes[b];
    return snnjax::hashOf(a) < snnjax::hashOf(b);
  });
  ids.resize(std::min<std::size_t>(ids.size(), capacity));
  auto list = join.get<unsigned>("list");
  CHECK_EQUAL(list[0], ids.size());
  list.resize(1 + ids.size());
  std::sort(list.begin() + 1, list.end());
  std::ranges::sort(ids);
  for (std::size_t k = 0; k < ids.size(); ++k) CHECK_EQUAL(list[1 + k], ids[k] * columns);
}

}  // namespace

int main(int argc, char** argv) {
  return runForms(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (const Kind& kind : {Kind{4, false, false, 0, 0, true}, Kind{2, false, false, 2, 5, true},
                             Kind{4, true, true, 0, 0, false}, Kind{12, true, true, 0, 6, true}}) {
      const Problem problem(kind);
      testForward(library, problem);
      for (bool learns : {false, true}) testBackward(library, problem, learns);
    }
    for (unsigned n : {2U, 6U, 10U, 12U}) testDots(library, n);
    for (unsigned columns : {2U, 12U, 40U}) {
      for (unsigned rate : {0U, 5U, 40U, 100U}) {
        testLists(library, columns, rate, 10, 1000);
        testLists(library, columns, rate, 30, 3);
        testLists(library, columns, rate, 2000, 5);
      }
    }
  });
}
