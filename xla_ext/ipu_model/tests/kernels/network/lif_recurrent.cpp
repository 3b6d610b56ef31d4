// Steps of recurrent layers against the codelets of all steps, with what their spikes add to currents and gradients:
// the same bits. The lists that they read against the fair rule.
#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/network/neurons.hpp"
#include "poplar_kernels/conventions.hpp"

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

// The first row of each sample is in its first part.
std::vector<unsigned> rankedLists(const Read& read, const Problem& p, unsigned t) {
  constexpr unsigned kStride = 2 + kCapacity;
  std::vector<unsigned> lists(kBatch * 2 * kStride, 77);
  for (unsigned b = 0; b < kBatch; ++b) {
    const unsigned count = read.counts[b * kSteps + t];
    unsigned* to = &lists[b * 2 * kStride];
    for (unsigned k = 0; k < count; ++k) {
      to[k == 0 ? 0 : kStride + k - 1] = (1 + read.rows[(b * kSteps + t) * kCapacity + k]) * p.n;
    }
    to[count > 0 ? 1 : 0] = 0;
    to[kStride + (count > 0 ? count - 1 : 0)] = 0;
  }
  return lists;
}

// The same rows of three blocks, one of which lists another one that comes last by the fair rule.
std::vector<unsigned> blockLists(const Read& read, const Problem& p, unsigned t) {
  constexpr unsigned kSlots = kCapacity + 1, kStride = 1 + 2 * kSlots;
  std::vector<unsigned> lists(3 * kBatch * kStride);
  for (unsigned b = 0; b < kBatch; ++b) {
    const unsigned count = read.counts[b * kSteps + t];
    const auto list = [&](unsigned block, unsigned k, unsigned row, unsigned key) {
      unsigned* const to = &lists[(block * kBatch + b) * kStride];
      to[k] = (1 + row) * p.n;
      to[1 + kSlots + k] = key;
    };
    for (unsigned k = 0; k < count; ++k) {
      list(k == 0 ? 0 : 2, k == 0 ? 0 : k - 1, read.rows[(b * kSteps + t) * kCapacity + k], 900 - k);
    }
    if (count == kCapacity) list(0, 1, 7, 10);  // one too many, offered before others
  }
  return lists;
}

void testForward(const ipu_model::CodeletLibrary& library, const Problem& p, bool selects) {
  const Read read(p.n);
  const States scan = scanned(library, withRead(p, read));
  Alone vertex(library, "snnjax::LifRecurrentStep<float," + p.instance() + (selects ? ",true,true>" : ",false,true>"));
  p.setCommon(vertex, {"bias", "decay", "gain", "threshold"});
  vertex.edge("current", p.current).edge("weights", read.weights).edge("first", read.first);
  vertex.edge("membranes", p.history()).edge("counts", std::vector<float>(kBatch * p.n)).state("keep_history", true);
  setOffered(vertex, p, kBatch * kSteps);
  vertex.edge("iterations", std::vector<unsigned>(6));
  if (selects) {
    vertex.edge("kept", std::vector<unsigned>(6 * (1 + 2 * kCapacity))).state("limit", kCapacity);
    vertex.state("parts", 3U).state("stride", 1 + 2 * (kCapacity + 1));
  } else {
    vertex.edge("sent", std::vector<float>(kBatch * p.n)).state("parts", 2U).state("stride", 2 + kCapacity);
  }
  if (p.kind.second) {
    vertex.edge("w", p.history()).state("keep_second", true);
    vertex.state("raises", p.kind.raises);
  }
  std::vector<float> counts(kBatch * p.n);
  for (unsigned t = 0; t < kSteps; ++t) {
    vertex.edge("lists", selects ? blockLists(read, p, t) : rankedLists(read, p, t)).run(t % 2 == 0);
    const auto now = vertex.get<float>("counts"), v = vertex.get<float>("offered");
    const auto sent = selects ? std::vector<float>() : vertex.get<float>("sent");
    for (unsigned i = 0; i < sent.size(); ++i) {
      const unsigned b = i / p.n, j = i % p.n;
      CHECK_EQUAL(sent[i], now[i] > counts[i] ? v[(b * kSteps + t) * p.n + j] : 0.0f);
      CHECK_EQUAL(std::bit_cast<unsigned>(sent[i]) != 0, now[i] > counts[i]);
    }
    counts = now;
  }
  CHECK(vertex.get<float>("membranes") == scan.v);
  CHECK(counts == scan.counts);
  CHECK(vertex.get<float>("offered") == scan.offered);
  CHECK(vertex.get<unsigned>("marks") == scan.marks);
  if (p.kind.second) CHECK(vertex.get<float>("w") == scan.w);
}

// A row [kept, listed, true spikes, starts of shares, ids] that lists the own neurons 1 and 0 of the tile, and others.
// Its spike is of the second share.
std::vector<unsigned short> recordOf(unsigned first_id) {
  const auto id = [&](unsigned i) { return static_cast<unsigned short>(i); };
  return {1, 3, 1, 0, 1, 1, 1, 1, id(first_id + 1), id(first_id), id(first_id + 100), 0};
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
  find.state("first_id", kFirst).state("neurons", p.n).state("first_share", 1U).state("last_share", 1U).run();
  const auto slots = find.get<unsigned short>("slots");
  for (unsigned i = 0; i < slots.size(); ++i) {
    const unsigned b = i / p.n / (kSteps + 1), t = i / p.n % (kSteps + 1), j = i % p.n;
    const unsigned listed = t != 2 && j < 2 ? 1 - j : kCapacity;
    CHECK_EQUAL(slots[i], t < kSteps ? listed : before[b * (kSteps + 1) * p.n + j]);
  }
  const States states = scanned(library, p);
  std::vector<float> g_spikes = Draw(8).row(p.current.size());
  const auto slotOf = [&](unsigned i) { return slots[i + (i / p.n / kSteps + 1) * p.n]; };
  for (unsigned i = 0; i < g_spikes.size(); ++i) {  // others are quiet
    g_spikes[i] = i / p.n % 3 == 0 && slotOf(i) < kCapacity ? g_spikes[i] : 0.0f;
  }
  const std::vector<float> sums = Draw(9).row(kParts * kBatch * kCapacity);
  Alone step(library, "snnjax::LifRecurrentGradient<" + p.instance() + (learns ? ",true>" : ",false>"));
  const auto results = setGradient(step, p, states, learns);
  step.edge("g_spikes", g_spikes).edge("slots", slots).edge("sums", sums);
  step.edge("g_current", std::vector<float>(p.current.size(), 3.0f)).state("parts", kParts);
  step.state("capacity", kCapacity);
  if (p.kind.second) step.state("raises", p.kind.raises);
  step.edge("iterations", std::vector<unsigned>(6));
  for (unsigned t = 0; t < kSteps; ++t) step.run(t % 2 == 0);
  for (unsigned i = 0; i < g_spikes.size(); ++i) {
    const unsigned slot = slotOf(i), at = i / p.n / kSteps * kCapacity + slot;
    if (slot < kCapacity) g_spikes[i] += sums[at] + sums[kBatch * kCapacity + at];
  }
  Alone scan(library, "snnjax::LifGradientScan<" + p.instance() + (learns ? ",true>" : ",false>"));
  setGradient(scan, p, states, learns);
  if (p.kind.second) scan.state("raises", p.kind.raises);
  if (!p.kind.second && !learns) scan.state("starts", false);
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
      .edge("iterations", std::vector<unsigned>(6, kSteps - 1 - kStep));
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

// The parts of a sample in one list: as they are joined, if they are not too many, or as they are ranked.
struct Parts {
  std::vector<unsigned> joined, ranked;
  unsigned columns, slots, limit;
};
void testMerge(const ipu_model::CodeletLibrary& library, const Parts& parts, const std::vector<unsigned>& ids,
               const std::vector<unsigned>& kept) {
  const auto merge = [&](Alone& vertex, const std::vector<unsigned>& rows) {
    const auto count = static_cast<unsigned>(rows.size() / (1 + parts.slots));
    vertex.edge("rows", rows).edge("list", std::vector<unsigned>(parts.limit + 1, 77)).state("parts", count);
    vertex.state("slots", parts.slots).state("limit", parts.limit).run();
    std::vector<unsigned> merged;
    for (const unsigned row : vertex.get<unsigned>("list")) {
      if (row == 0) break;
      merged.push_back(row / parts.columns - 1);
    }
    return merged;
  };
  Alone joined(library, "snnjax::MergeSpikes<false>");
  joined.edge("too_many", std::vector<unsigned>{77});
  const std::vector<unsigned> all = merge(joined, parts.joined);
  CHECK_EQUAL(joined.get<unsigned>("too_many")[0], ids.size() > parts.limit ? 1U : 0U);
  if (ids.size() <= parts.limit) CHECK(all == ids);
  Alone ranked(library, "snnjax::MergeSpikes<true>");
  CHECK(merge(ranked, parts.ranked) == kept);
}

// What a block lists of each sample's neurons that are marked, a share of `rate` in 100 of them: the first ones by the
// fair rule. The marks are packed behind the membranes.
void testBlock(const ipu_model::CodeletLibrary& library, unsigned columns, unsigned rate, unsigned slots,
               unsigned values) {
  constexpr unsigned kSamples = 7, kFirst = 40, kStep = 1;
  const unsigned pairs = columns / 2, stride = snnjax::offeredStride(columns), rows = kSamples * kSteps;
  Draw draw(columns + rate + slots);
  std::vector<float> v(rows * stride);
  std::vector<unsigned> marks(rows * pairs), words(rows * snnjax::markWords(columns));
  std::vector<std::vector<unsigned>> ids(kSamples);
  for (unsigned row = 0; row < rows; ++row) {
    for (unsigned j = 0; j < columns; ++j) {
      v[row * stride + j] = static_cast<float>(draw.below(values)) / 8.0f - 2.0f;
      if (draw.below(2) > 0) v[row * stride + j] *= v[row * stride + j] == 0.0f ? -1.0f : 1.0f;  // either zero
      const bool fires = draw.below(100) < rate, is_near = draw.below(2) > 0;
      const unsigned mark = snnjax::kFirstMark >> j % 16;
      const unsigned own = (fires ? mark : 0) | (is_near ? mark >> 16 : 0);
      marks[row * pairs + j / 2] |= own;
      words[row * snnjax::markWords(columns) + j / 16] |= own;
      if (fires && row % kSteps == kStep) ids[row / kSteps].push_back(j);
    }
  }
  Alone vertex(library, "snnjax::ListBlock");
  vertex.edge("marks", marks).edge("offered", v).edge("iterations", std::vector<unsigned>(6, kStep));
  vertex.edge("lists", std::vector<unsigned>(kSamples * (1 + 2 * slots), 77)).state("num_steps", kSteps);
  vertex.state("batch", kSamples).state("neurons", columns).state("offered_stride", stride);
  vertex.state("slots", slots).state("first_id", kFirst).run(true);
  const auto lists = vertex.get<unsigned>("lists");
  const auto offered = vertex.get<float>("offered");
  for (unsigned b = 0; b < kSamples; ++b) {
    const unsigned row = b * kSteps + kStep;
    for (unsigned word = 0; word < snnjax::markWords(columns); ++word) {
      CHECK_EQUAL(std::bit_cast<unsigned>(offered[row * stride + columns + word]),
                  words[row * snnjax::markWords(columns) + word]);
    }
    std::vector<unsigned> kept;
    for (const unsigned* at = &lists[b * (1 + 2 * slots)]; *at != 0; ++at) kept.push_back(*at / columns - 1 - kFirst);
    std::ranges::sort(ids[b], [&](unsigned i, unsigned j) {
      const float a = v[row * stride + i], other = v[row * stride + j];
      return a != other ? a > other : snnjax::hashOf(kFirst + i) < snnjax::hashOf(kFirst + j);
    });
    ids[b].resize(std::min<std::size_t>(ids[b].size(), slots));
    std::ranges::sort(ids[b]);
    std::ranges::sort(kept);
    CHECK(kept == ids[b]);
  }
}

// What is kept of the spikes of a sample, a share of `rate` in 100 of its neurons, with membranes of so many different
// values: each part of the blocks lists its own, in few slots, and ranks them among all.
void testLists(const ipu_model::CodeletLibrary& library, unsigned columns, unsigned rate, unsigned capacity,
               unsigned values) {
  constexpr unsigned kBlocks = 5, kParts = 4;
  const unsigned neurons = kBlocks * columns, shared = (neurons / 2 + 5) / 6 * 2;
  const unsigned slots = (std::min(capacity, neurons) + 1) / 2 * 2;
  Draw draw(columns + rate + values);
  std::vector<unsigned> ids, rows, ranked, kept;
  std::vector<float> membranes(kParts * neurons), joined;
  for (unsigned id = 0; id < membranes.size(); ++id) {
    membranes[id] = static_cast<float>(draw.below(values)) / 8.0f - 2.0f;
    if (draw.below(100) < rate) ids.push_back(id);
  }
  std::vector<float> sent(membranes.size());
  for (const unsigned id : ids) sent[id] = membranes[id] == 0.0f ? -0.0f : membranes[id];
  for (unsigned part = 0; part < kParts; ++part) {
    Alone found(library, "snnjax::ListSpikes");
    const auto first = sent.begin() + part * neurons;
    found.edge("sent", std::vector<float>(first, first + neurons))
        .edge("rows", std::vector<unsigned>(6 * (1 + shared)));
    found.edge("membranes", std::vector<float>(6 * shared)).state("pairs", neurons / 2).state("columns", columns);
    found.state("first_id", part * neurons).state("slots", shared).run();
    Alone join(library, "snnjax::JoinSpikes");
    join.edge("rows", found.get<unsigned>("rows")).edge("membranes", found.get<float>("membranes"));
    join.edge("joined_rows", std::vector<unsigned>(1 + slots)).edge("joined", std::vector<float>(slots));
    join.state("slots", shared).state("capacity", slots).state("columns", columns).run(true);
    for (const unsigned row : join.get<unsigned>("joined_rows")) rows.push_back(row);
    for (const float v : join.get<float>("joined")) joined.push_back(v);
  }
  for (unsigned part = 0; part < kParts; ++part) {
    Alone rank(library, "snnjax::RankSpikes");
    rank.edge("rows", rows).edge("membranes", joined).edge("list", std::vector<unsigned>(1 + slots));
    rank.state("parts", kParts).state("own", part).state("slots", slots).state("limit", capacity);
    rank.state("columns", columns).run(true);
    const auto list = rank.get<unsigned>("list");
    ranked.insert(ranked.end(), list.begin(), list.end());
    for (const unsigned row : list) {
      if (row == 0) break;
      kept.push_back(row / columns - 1);
    }
  }
  testMerge(library, {rows, ranked, columns, slots, capacity}, ids, kept);
  std::ranges::sort(ids, [&](unsigned a, unsigned b) {
    if (membranes[a] != membranes[b]) return membranes[a] > membranes[b];
    return snnjax::hashOf(a) < snnjax::hashOf(b);
  });
  ids.resize(std::min<std::size_t>(ids.size(), capacity));
  std::ranges::sort(ids);
  std::ranges::sort(kept);
  CHECK(kept == ids);
}

}  // namespace

int main(int argc, char** argv) {
  return runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (const Kind& kind :
         {Kind{4, false, false, 0, 0, true}, Kind{2, false, false, 2, 5, true}, Kind{4, false, false, 1, 1, false},
          Kind{6, false, false, 1, 2, true}, Kind{4, true, true, 0, 0, false}, Kind{12, true, true, 0, 6, true}}) {
      const Problem problem(kind);
      for (bool selects : {false, true}) testForward(library, problem, selects);
      for (bool learns : {false, true}) testBackward(library, problem, learns);
    }
    Problem at_zero(Kind{4, false, false, 1, 0, true});  // neurons that fire with a membrane of 0
    at_zero.constants["gain"] = std::vector<float>(4);
    at_zero.first = std::vector<float>(kBatch * 4);
    at_zero.constants["threshold"] = std::vector<float>(4, -1.0f);
    testForward(library, at_zero, false);
    for (unsigned n : {2U, 6U, 10U, 12U}) testDots(library, n);
    for (unsigned columns : {2U, 12U, 40U}) {
      for (unsigned rate : {0U, 5U, 40U, 100U}) {
        testLists(library, columns, rate, 10, 1000);
        testLists(library, columns, rate, 30, 3);
        testLists(library, columns, rate, 2000, 5);
        for (unsigned slots : {1U, 3U, columns}) testBlock(library, columns, rate, slots, rate == 40 ? 3 : 1000);
      }
    }
  });
}
