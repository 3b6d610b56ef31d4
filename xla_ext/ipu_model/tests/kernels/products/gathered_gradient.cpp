// The gradient of weights gathered by input, codelet by codelet, for lists that name inputs several times.
#include <map>

#include "kernels/alone.hpp"
#include "kernels/lists/lists.hpp"

namespace {

using namespace kernels;

using snnjax::kSharedInputs, snnjax::kSharedOfTile, snnjax::kShares;

constexpr unsigned kRows = 45, kInputs = 40, kCapacity = 9, kStride = 20;
// Rows that a worker adds up alone, and of the first group.
constexpr unsigned kLongest = 9, kOfGroup = 37;
constexpr unsigned kWords = (kInputs + 31) / 32, kRowWords = (kRows + 31) / 32, kRoom = kRowWords + 1;

struct Lists {
  std::vector<unsigned short> records;
  std::map<std::pair<unsigned, unsigned>, unsigned> times;  // how often a row lists an input
};

// Spikes of a few inputs, some of them again and again, one of all rows; gradient-only ids behind them.
Lists drawnLists(Draw& draw) {
  Lists lists = {std::vector<unsigned short>(kRows * kStride, kInputs), {}};
  for (unsigned row = 0; row < kRows; ++row) {
    unsigned short* const record = &lists.records[row * kStride];
    const unsigned spikes = 1 + draw.below(kCapacity);
    record[0] = static_cast<unsigned short>(spikes);
    record[1] = static_cast<unsigned short>(kCapacity);
    for (unsigned k = 0; k < kCapacity; ++k) record[kHeader + k] = static_cast<unsigned short>(draw.below(kInputs));
    for (unsigned k = 2; k < 5; ++k) record[kHeader + k] = record[kHeader + 1];
    record[kHeader] = 33;
    std::sort(record + kHeader, record + kHeader + spikes);
    for (unsigned k = 0; k < spikes; ++k) ++lists.times[{row, record[kHeader + k]}];
  }
  return lists;
}

// Bits by input of the rows that list it more than `level` times.
std::vector<unsigned> turnedOf(const ipu_model::CodeletLibrary& library, const Lists& lists, unsigned level,
                               bool& more) {
  Alone mask(library, "snnjax::MaskSpikes");
  mask.edge("list", lists.records).edge("masks", std::vector<unsigned>(kWords * kRows, 7U));
  mask.edge("more", std::vector<unsigned>{9}).edge("level", std::vector<unsigned>{level});
  mask.state("rows", kRows).state("stride", kStride).state("capacity", kCapacity).state("words", kWords);
  mask.state("num_inputs", kInputs).run();
  const auto masks = mask.get<unsigned>("masks");
  Alone any(library, "snnjax::AnyWord<unsigned int>");
  any.edge("in", std::vector<unsigned>{0, mask.get<unsigned>("more")[0]}).edge("any", std::vector<unsigned>{5});
  more = any.state("count", 2U).run().get<unsigned>("any")[0] == 1;
  std::vector<unsigned> turned(kWords * 32 * kRowWords);
  for (unsigned word = 0; word < kWords; ++word) {
    for (unsigned first = 0; first < kRows; first += 32) {
      const unsigned rows = std::min(32U, kRows - first);
      const auto from = masks.begin() + word * kRows + first;
      Alone turn(library, "snnjax::TurnMasks");
      turn.edge("masks", std::vector<unsigned>(from, from + rows)).edge("turned", std::vector<unsigned>(32, 5U));
      turn.state("rows", rows).run();
      const auto own = turn.get<unsigned>("turned");
      for (unsigned i = 0; i < 32; ++i) turned[(word * 32 + i) * kRowWords + first / 32] = own[i];
    }
  }
  turned.resize(kInputs * kRowWords);
  return turned;
}

// On one tile; those that it lays aside are summed for two groups of samples.
std::vector<float> gathered(const ipu_model::CodeletLibrary& library, const std::vector<unsigned>& records,
                            const std::vector<float>& g, const std::vector<float>& g_weights, unsigned level) {
  const auto n = static_cast<unsigned>(g.size() / kRows);
  Alone gather(library, "snnjax::GatherGradient");
  gather.edge("records", records).edge("g_current", g).edge("g_weights", g_weights);
  gather.edge("shared", std::vector<unsigned>(kShares * (1 + kSharedInputs), 9U));
  gather.edge("shared_bits", std::vector<unsigned>(kRowWords * kSharedOfTile, 9U))
      .edge("any", std::vector<unsigned>{0});
  gather.edge("level", std::vector<unsigned>{level}).state("inputs", kInputs).state("words", kRowWords);
  gather.state("room", kRoom)
      .state("rows", kRows)
      .state("neurons", n)
      .state("longest", kLongest)
      .state("always_adds", false);
  gather.run(n % 4 == 0);
  const auto shared = gather.get<unsigned>("shared");
  unsigned count = 0;
  for (unsigned worker = 0; worker < kShares; ++worker) count += shared[worker * (1 + kSharedInputs)];
  CHECK_EQUAL(gather.get<unsigned>("any")[0], count > 0 ? 1U : 0U);
  CHECK_EQUAL(count > 0, level == 0);
  const auto bits = gather.get<unsigned>("shared_bits");  // those of slots that are not used are any numbers
  std::vector<float> sums;
  for (const auto& [first, last] : {std::pair{0U, kOfGroup}, std::pair{kOfGroup, kRows}}) {
    const unsigned word = first / 32, behind = (last + 31) / 32;
    Alone sum(library, "snnjax::SumShared");
    sum.edge("shared", shared).edge("g_current", std::vector(g.begin() + first * n, g.begin() + last * n));
    sum.edge("shared_bits", std::vector(bits.begin() + word * kSharedOfTile, bits.begin() + behind * kSharedOfTile));
    sum.edge("sums", std::vector<float>(kSharedOfTile * n)).state("tiles", 1U).state("words", behind - word);
    sum.state("first", first % 32).state("rows", last - first).state("neurons", n).run();
    const auto own = sum.get<float>("sums");
    sums.insert(sums.end(), own.begin(), own.end());
  }
  Alone add(library, "snnjax::AddShared");
  add.edge("shared", shared).edge("sums", sums).edge("g_weights", gather.get<float>("g_weights"));
  add.edge("any", std::vector<unsigned>{1}).state("groups", 2U).state("neurons", n).run();
  CHECK_EQUAL(add.get<unsigned>("any")[0], 0U);
  return add.get<float>("g_weights");
}

void testGradient(const ipu_model::CodeletLibrary& library, unsigned n) {
  Draw draw(n);
  const Lists lists = drawnLists(draw);
  const auto g = draw.row(kRows * n);
  std::vector<float> g_weights(kInputs * n, 7.0f), expected(kInputs * n);
  for (const auto& [at, times] : lists.times) {
    for (unsigned j = 0; j < n; ++j) expected[at.second * n + j] += static_cast<float>(times) * g[at.first * n + j];
  }
  bool more = true;
  for (unsigned level = 0; more; ++level) {
    CHECK(level < kCapacity);
    const auto turned = turnedOf(library, lists, level, more);
    for (unsigned i = 0; i < kInputs * kRows; ++i) {
      const unsigned input = i / kRows, row = i % kRows;
      const auto found = lists.times.find({row, input});
      const bool is_marked = (turned[input * kRowWords + row / 32] >> (31 - row % 32) & 1) != 0;
      CHECK_EQUAL(is_marked, found != lists.times.end() && found->second > level);
    }
    Alone rows(library, "snnjax::ListRows");
    rows.edge("turned", turned).edge("records", std::vector<unsigned>(kInputs * (1 + kRoom), 3U));
    rows.state("inputs", kInputs).state("words", kRowWords).state("room", kRoom).run();
    g_weights = gathered(library, rows.get<unsigned>("records"), g, g_weights, level);
  }
  CHECK(g_weights == expected);  // eighths: sums are exact in any order
}

}  // namespace

int main(int argc, char** argv) {
  return kernels::runTest(argc, argv, [](const ipu_model::CodeletLibrary& library) {
    for (unsigned n : {2U, 6U, 12U}) testGradient(library, n);
  });
}
