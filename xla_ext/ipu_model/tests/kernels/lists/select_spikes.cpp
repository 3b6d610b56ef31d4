// select_spikes: lists of parts and their union against the rule of snnjax/ops/select_spikes.py, sorted out in full.
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/alone.hpp"
#include "kernels/lists/lists.hpp"
#include "poplar_kernels/lists/selection.hpp"

namespace {

using namespace kernels;

constexpr unsigned kRows = 4, kNeurons = 49;
constexpr float kThreshold = 1.0f, kSecond = 0.5f;

// The ids of a group that stay, ascending: the largest membranes first, ties by hash.
std::vector<unsigned> cut(const float* v, std::vector<unsigned> ids, std::size_t slots) {
  std::sort(ids.begin(), ids.end(),
            [&](unsigned a, unsigned b) { return v[a] != v[b] ? v[a] > v[b] : snnjax::hashOf(a) < snnjax::hashOf(b); });
  if (ids.size() > slots) ids.resize(slots);
  std::sort(ids.begin(), ids.end());
  return ids;
}

struct Expected {
  std::vector<unsigned> spikes, near;
  std::size_t true_spikes;
};

Expected select(const float* v, unsigned neurons, std::size_t capacity) {
  std::vector<unsigned> spikes, near;
  for (unsigned j = 0; j < neurons; ++j) {
    if (v[j] > kThreshold) {
      spikes.push_back(j);
    } else if (v[j] > kSecond) {
      near.push_back(j);
    }
  }
  const std::size_t found = spikes.size();
  spikes = cut(v, spikes, capacity);
  return {spikes, cut(v, near, capacity - spikes.size()), found};
}

template <typename Id>
void checkRecord(const Id* record, const Expected& expected, unsigned stride, unsigned pad) {
  CHECK_EQUAL(static_cast<std::size_t>(record[0]), expected.spikes.size());
  CHECK_EQUAL(static_cast<std::size_t>(record[1]), expected.spikes.size() + expected.near.size());
  CHECK_EQUAL(static_cast<std::size_t>(record[2]), expected.true_spikes);
  auto ids = expected.spikes;
  ids.insert(ids.end(), expected.near.begin(), expected.near.end());
  ids.resize(stride - kHeader, pad);
  for (unsigned k = 0; k < ids.size(); ++k) CHECK_EQUAL(static_cast<unsigned>(record[kHeader + k]), ids[k]);
  std::vector<Id> starts(record, record + stride);
  writeStarts(starts.data(), static_cast<unsigned>(expected.spikes.size()), pad);
  CHECK(std::equal(starts.begin(), starts.begin() + kHeader, record));
}

// Membranes [rows, neurons]: many ties, NaN, infinities, and a row that never fires.
std::vector<float> membranes(Draw& draw) {
  auto v = draw.row(kRows * kNeurons);
  v[3] = NAN;
  v[4] = INFINITY;
  v[5] = -INFINITY;
  for (unsigned j = 0; j < kNeurons; ++j) v[kNeurons + j] = 2.0f;
  for (unsigned j = 0; j < kNeurons; ++j) v[2 * kNeurons + j] = -1.0f;
  for (unsigned j = 0; j < kNeurons; ++j) v[3 * kNeurons + j] = 0.75f + 0.25f * static_cast<float>(j) / kNeurons;
  return v;
}

// What blocks of neurons offer of v: [neurons / columns, rows, stride].
std::vector<float> offeredIn(const std::vector<float>& v, unsigned columns) {
  const unsigned blocks = (kNeurons + columns - 1) / columns, stride = snnjax::offeredStride(columns);
  std::vector<float> out(blocks * kRows * stride, 5.0f);
  for (unsigned row = 0; row < blocks * kRows; ++row) {
    std::vector<unsigned> words((columns + snnjax::kNeuronsOfMark - 1) / snnjax::kNeuronsOfMark);
    for (unsigned i = 0; i < columns; ++i) {
      const unsigned j = row / kRows * columns + i, mark = snnjax::kFirstMark >> i % snnjax::kNeuronsOfMark;
      const float membrane = j < kNeurons ? v[row % kRows * kNeurons + j] : 5.0f;  // beyond the neurons: would spike
      out[row * stride + i] = membrane;
      unsigned& word = words[i / snnjax::kNeuronsOfMark];
      word |= (membrane > kThreshold ? mark : 0U) | (membrane > kSecond ? mark >> snnjax::kNeuronsOfMark : 0U);
    }
    std::memcpy(&out[row * stride + columns], words.data(), words.size() * sizeof(unsigned));
  }
  return out;
}

// Lists from the candidates of a vertex, and what they drop.
template <typename Id>
std::pair<std::vector<Id>, std::vector<unsigned>> joined(const ipu_model::CodeletLibrary& library,
                                                         const std::string& id, const std::vector<Id>& parts,
                                                         const std::vector<float>& membranes, unsigned rows,
                                                         unsigned capacity, unsigned neurons) {
  Alone cuts(library, "snnjax::CutCandidates<" + id + ">"), lists(library, "snnjax::JoinCandidates<" + id + ">");
  for (Alone* vertex : {&cuts, &lists}) {
    vertex->edge("lists", parts).edge("membranes", membranes).state("rows", rows).state("num_neurons", neurons);
  }
  cuts.edge("cuts", std::vector<unsigned>(rows * snnjax::kCutWords)).edge("dropped", std::vector<unsigned>(rows, 1));
  cuts.edge("kept", std::vector<unsigned>(rows * snnjax::kKeptWords)).state("capacity", capacity);
  cuts.state("adds", true).run(true);
  const unsigned stride = snnjax::listStride(capacity);
  lists.edge("cuts", cuts.get<unsigned>("cuts")).edge("kept", cuts.get<unsigned>("kept"));
  lists.edge("list", std::vector<Id>(rows * stride, 7)).state("stride", stride).run(rows % 2 == 0);
  return {lists.get<Id>("list"), cuts.get<unsigned>("dropped")};
}

void testSelection(const ipu_model::CodeletLibrary& library, unsigned columns, unsigned capacity) {
  Draw draw(columns * 100U + capacity);
  const auto v = membranes(draw);
  const unsigned share = snnjax::neuronsOfShare(kNeurons), stride = snnjax::listStride(capacity);
  Alone all(library, "snnjax::SelectCandidates<unsigned short>"), marked(library, "snnjax::SelectMarked");
  all.edge("v", v).edge("threshold", std::vector<float>(kNeurons, kThreshold));
  all.edge("least", std::vector<float>(kNeurons, kSecond));
  marked.edge("offered", offeredIn(v, columns))
      .state("blocks", (kNeurons + columns - 1) / columns)
      .state("columns", columns)
      .state("stride", snnjax::offeredStride(columns));
  marked.state("share_blocks", share / columns).state("share_columns", share % columns);
  for (Alone* vertex : {&all, &marked}) {
    vertex->edge("lists", std::vector<unsigned short>(kRows * snnjax::kShares * snnjax::listStride(share), 7));
    vertex->edge("membranes", std::vector<float>(kRows * snnjax::kShares * share));
    vertex->state("rows", kRows).state("neurons", kNeurons).run();
    const auto [list, dropped] = joined(library, "unsigned short", vertex->get<unsigned short>("lists"),
                                        vertex->get<float>("membranes"), kRows, capacity, kNeurons);
    for (unsigned b = 0; b < kRows; ++b) {
      const Expected expected = select(&v[b * kNeurons], kNeurons, capacity);
      checkRecord(&list[b * stride], expected, stride, kNeurons);
      CHECK_EQUAL(dropped[b], 1 + expected.true_spikes - expected.spikes.size());
    }
  }
}

// The marks of pairs as words.
void testMarks(const ipu_model::CodeletLibrary& library, unsigned columns) {
  constexpr unsigned kMany = 15;
  const unsigned pairs = (columns + 1) / 2, stride = snnjax::offeredStride(columns);
  Draw draw(columns);
  std::vector<unsigned> marks(kMany * pairs);
  for (unsigned i = 0; i < marks.size(); ++i) marks[i] = draw.below(4) * (0x40004000U >> 2 * (i % pairs % 8));
  Alone vertex(library, "snnjax::PackMarks");
  vertex.edge("marks", marks).edge("offered", std::vector<float>(kMany * stride)).state("stride", stride);
  vertex.state("rows", kMany).state("neurons", columns).run();
  const auto offered = vertex.get<float>("offered");
  for (unsigned row = 0; row < kMany; ++row) {
    std::vector<unsigned> words((pairs + 7) / 8), found(words.size());
    for (unsigned pair = 0; pair < pairs; ++pair) words[pair / 8] |= marks[row * pairs + pair];
    std::memcpy(found.data(), &offered[row * stride + columns], words.size() * sizeof(unsigned));
    CHECK(found == words);
  }
}

// Records with false counts: nothing is read or written outside.
void testHostile(const ipu_model::CodeletLibrary& library) {
  Draw draw(5);
  constexpr unsigned kParts = snnjax::kShares, kSlots = snnjax::neuronsOfShare(kNeurons),
                     kPartStride = snnjax::listStride(kSlots), kCapacity = 5;
  const auto lists = hostileLists<int>(draw, kParts * kRows, kPartStride, kSlots, kNeurons);
  const auto list =
      joined(library, "int", lists, std::vector<float>(kParts * kRows * kSlots, NAN), kRows, kCapacity, kNeurons).first;
  for (unsigned b = 0; b < kRows; ++b) {
    CHECK(list[b * snnjax::listStride(kCapacity) + 1] <= static_cast<int>(kCapacity));
  }
}

template <typename W>
void testValues(const ipu_model::CodeletLibrary& library, const std::string& w, unsigned capacity) {
  constexpr unsigned kStride = 16;
  Draw draw(capacity);
  const auto lists = hostileLists<unsigned short>(draw, 7, kStride, capacity, kNeurons);
  Alone vertex(library, "snnjax::ListValues<" + w + ",unsigned short>");
  vertex.edge("lists", lists).edge("values", std::vector<W>(7 * capacity)).state("rows", 7U);
  vertex.state("stride", kStride).state("capacity", capacity).run();
  const auto values = vertex.template get<W>("values");
  for (unsigned b = 0; b < 7; ++b) {
    const std::size_t spikes = spikesOf(lists, b, kStride, capacity).size();
    for (unsigned k = 0; k < capacity; ++k) CHECK(values[b * capacity + k] == static_cast<W>(k < spikes ? 1.0f : 0.0f));
  }
}

template <typename T>
void testBackward(const ipu_model::CodeletLibrary& library, const std::string& t, unsigned neurons) {
  constexpr unsigned kCapacity = 6;
  Draw draw(neurons);
  std::vector<unsigned short> ids(kRows * kCapacity);
  for (auto& id : ids) id = static_cast<unsigned short>(draw.below(30));
  ids[0] = 65535;
  auto v = draw.row<T>(kRows * neurons), g = draw.row<T>(kRows * kCapacity);
  Alone vertex(library, "snnjax::SelectSpikesBackward<" + t + ",unsigned short>");
  vertex.edge("v", v).edge("threshold", std::vector<float>(neurons, kThreshold)).edge("ids", ids).edge("g_values", g);
  vertex.edge("g_v", std::vector<T>(kRows * neurons)).state("rows", kRows).state("neurons", neurons);
  vertex.state("capacity", kCapacity).state("surrogate", static_cast<unsigned char>(2));
  vertex.state("slope", 0.25f).run();  // a triangle of quarters: exact
  std::vector<float> expected(kRows * neurons);
  for (unsigned i = 0; i < kRows * kCapacity; ++i) {
    if (ids[i] >= neurons) continue;
    const unsigned at = i / kCapacity * neurons + ids[i];
    const float slope = std::max(0.0f, 1.0f - 0.25f * std::abs(static_cast<float>(v[at]) - kThreshold));
    expected[at] += static_cast<float>(g[i]) * slope;
  }
  const auto g_v = vertex.template get<T>("g_v");
  for (unsigned i = 0; i < expected.size(); ++i) CHECK_NEAR(static_cast<float>(g_v[i]), expected[i], 0.01f);
}

// More candidates in a row than a worker gathers: the search goes over the parts in every pass.
template <typename Id>
void testManyCandidates(const ipu_model::CodeletLibrary& library, const std::string& id, unsigned near) {
  constexpr unsigned kParts = snnjax::kShares, kSlots = 50, kPartStride = snnjax::listStride(kSlots), kCapacity = 100,
                     kStride = snnjax::listStride(kCapacity), kAll = kParts * kSlots;
  Draw draw(near);
  const std::vector<float> v = draw.row(kAll);  // by id: many ties
  std::vector<Id> lists(kParts * kPartStride);
  std::vector<float> of_listed(kAll);
  std::vector<unsigned> spikes, rest;
  for (unsigned p = 0; p < kParts; ++p) {
    Id* const record = &lists[p * kPartStride];
    record[0] = record[2] = static_cast<Id>(kSlots - near);
    record[1] = static_cast<Id>(kSlots);
    for (unsigned k = 0; k < kSlots; ++k) {
      const unsigned j = p * kSlots + k, slot = k < kSlots - near ? k : kSlots - 1 - (k - (kSlots - near));
      record[kHeader + slot] = static_cast<Id>(j);
      of_listed[p * kSlots + slot] = v[j];
      (k < kSlots - near ? spikes : rest).push_back(j);
    }
  }
  const auto [list, dropped] = joined(library, id, lists, of_listed, 1, kCapacity, kAll);
  const std::size_t found = spikes.size();
  spikes = cut(v.data(), spikes, kCapacity);
  const Expected expected = {spikes, cut(v.data(), rest, kCapacity - spikes.size()), found};
  checkRecord(list.data(), expected, kStride, kAll);
  CHECK_EQUAL(dropped[0], 1 + found - spikes.size());
}

// The cut of one group alone, where floats lie close, far apart, at both zeros, at infinities, or are all the same.
void testCut(unsigned kind, unsigned count) {
  Draw draw(kind * 1000 + count);
  std::vector<float> v = draw.row(count);
  for (unsigned k = 0; k < count; ++k) {
    const float sign = draw.below(2) == 0 ? -1.0f : 1.0f;
    if (kind == 1) v[k] = sign * std::exp(v[k] * 20.0f);
    if (kind == 2) v[k] = std::nextafter(k == 0 ? 1.0f : v[k - 1], 2.0f);
    if (kind == 3) v[k] = sign * 0.0f;
    if (kind == 4) v[k] = k % 7 == 0 ? INFINITY : k % 7 == 1 ? std::numeric_limits<float>::denorm_min() : v[k];
  }
  for (unsigned slots : {0U, 1U, count / 3, count - 1, count}) {
    unsigned passes = 0;
    const auto forEach = [&](auto&& body) {
      for (unsigned k = 0; k < count; ++k) body(v[k], k);
    };
    const auto countAbove = [&](float bound) {
      ++passes;
      return static_cast<unsigned>(std::ranges::count_if(v, [&](float x) { return x > bound; }));
    };
    unsigned walks = 0;
    const auto next = [&](float bound, bool above) {
      ++walks;
      const float found =
          above ? snnjax::nextBeyond<true>(v.data(), count, bound) : snnjax::nextBeyond<false>(v.data(), count, bound);
      float expected = above ? INFINITY : -INFINITY;
      for (const float x : v) {
        if (above ? x > bound && x < expected : x < bound && x > expected) expected = x;
      }
      CHECK_EQUAL(found, expected);
      return found;
    };
    const snnjax::Cut made = snnjax::findCut(count, slots, snnjax::extremesOf(forEach), countAbove, next, forEach);
    CHECK_EQUAL(made.counts, passes);
    CHECK_EQUAL(made.walks, walks);
    CHECK(made.counts <= 33 && made.walks <= snnjax::kFewBeyond && made.tie_passes <= 32);
    std::vector<unsigned> ids(count), kept;
    std::iota(ids.begin(), ids.end(), 0U);
    std::ranges::copy_if(ids, std::back_inserter(kept), [&](unsigned k) { return made.limit.keeps(v[k], k); });
    CHECK(kept == cut(v.data(), ids, slots));
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (unsigned kind = 0; kind < 5; ++kind) {
    for (unsigned count : {2U, 3U, 7U, 50U, 700U}) testCut(kind, count);
  }
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (unsigned near : {0U, 25U, 40U, 50U}) {
      testManyCandidates<unsigned short>(library, "unsigned short", near);
      testManyCandidates<int>(library, "int", near);
    }
    for (unsigned capacity : {0U, 1U, 5U, 8U, 30U, 50U}) testSelection(library, 50, capacity);
    for (unsigned columns : {1U, 2U, 4U, 6U, 22U}) testSelection(library, columns, 9);
    testSelection(library, 7, 60);
    for (unsigned columns : {2U, 4U, 6U, 8U, 16U, 22U}) testMarks(library, columns);
    testHostile(library);
    for (unsigned capacity : {1U, 4U, 7U}) {
      testValues<float>(library, "float", capacity);
      testValues<half>(library, "half", capacity);
    }
    testBackward<float>(library, "float", 5);
    testBackward<half>(library, "half", 5);
    testBackward<half>(library, "half", 8);
  });
}
