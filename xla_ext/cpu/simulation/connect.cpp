// The target of `connect`: the synapses of projections between populations, drawn in place and by all threads. Each
// sender draws its own into a scratch of a few thousand, and counts them by delay to where they belong.
#include "cpu/call.hpp"
#include "random.hpp"
#include "segments.hpp"

namespace snnjax::connect {
namespace {

using schema::Axis;

enum Rule : std::int32_t { kUniform, kDistinct, kInDegree, kOneToOne };

// A row of the table of projections (snnjax/ops/connect.py).
struct Projection {
  std::int32_t first_source, sources, first_target, targets, receptor, rule, without_self;
  std::int32_t first_quantile, quantiles, first_late, late, first_cell;
};
constexpr Index kColumns = sizeof(Projection) / sizeof(std::int32_t);
constexpr Index kPair = 2;
constexpr Index kSendersPerTask = 64;

struct Static : NoLayers {
  explicit Static(const Attributes&) {}

  void fix(schema::Lengths& lengths) const { lengths.fix(Axis::kPair, kPair), lengths.fix(Axis::kColumns, kColumns); }
};

using ConnectCall = Call<Operands<Operand>, Results<Result>, Static>;

struct Drawn {
  std::uint32_t place;
  float weight;
  std::uint16_t delay;
};

class Connection {
 public:
  explicit Connection(const ConnectCall& call)
      : from_(call.from),
        to_(call.to),
        blocks_(from_.ends.length(0)),
        neurons_(from_.ends.length(1)),
        stride_((neurons_ + blocks_ - 1) / blocks_),
        projections_(from_.projections.at<const Projection>(0)),
        late_(from_.late.at<std::uint16_t>(0)) {
    const auto* const words = from_.key.at<std::uint32_t>(0);
    key_ = {words[0], words[1]};
    for (Index k = 0; k < from_.projections.length(0); ++k) check(projections_[k]);
    const auto* const end = late_ + from_.late.length(0);
    longest_ = late_ == end ? 0 : *std::max_element(late_, end);
  }

  // The synapses of some senders to all blocks.
  void draw(Index first, Index end) const {
    std::vector<Drawn> drawn;
    std::vector<Index> places(static_cast<std::size_t>(longest_ + 2));
    for (Index source = first; source < end; ++source) {
      for (Index block = 0; block < blocks_; ++block) {
        drawn.clear();
        drawRow(block, source, drawn);
        place(block * neurons_ + source, drawn, places);
      }
    }
  }

  Index neurons() const { return neurons_; }

 private:
  static void refuse(const char* name, const char* expected) {
    Attributes::refusal("connect")(name, expected, "others");
  }

  void check(const Projection& of) const {
    const auto within = [](Index first, Index count, Index all) {
      return first >= 0 && count >= 0 && first + count <= all;
    };
    if (!within(of.first_source, of.sources, neurons_) || !within(of.first_target, of.targets, neurons_) ||
        !within(of.receptor, 1, stride_ == 0 ? 1 : kPlaces / stride_) ||
        !within(of.first_quantile, of.quantiles, from_.quantiles.length(0)) || of.quantiles < 1 ||
        !within(of.first_late, of.late, from_.late.length(0)) || of.late < 1 ||
        !within(of.first_cell, blocks_ * (Index{of.sources} + 1), from_.firsts.length(0))) {
      refuse("projections", "name what there is");
    }
  }

  void drawRow(Index block, Index source, std::vector<Drawn>& drawn) const {
    const Words key = threefry(key_, static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(block));
    for (Index k = 0; k < from_.projections.length(0); ++k) {
      const Projection& of = projections_[k];
      const Index own = source - of.first_source;
      if (own < 0 || own >= of.sources) continue;
      const auto* const cell = from_.firsts.at<std::int32_t>(0) + of.first_cell + block * (Index{of.sources} + 1) + own;
      drawCell(k, block, source, key, cell[0], cell[1], drawn);
    }
  }

  // The first place of a number from which on those of a block are counted.
  Index local(Index neuron, Index block) const { return (neuron - block + blocks_ - 1) / blocks_; }

  void drawCell(Index number, Index block, Index source, Words key, Index first, Index end,
                std::vector<Drawn>& drawn) const {
    const Projection& of = projections_[number];
    const Index start = local(of.first_target, block), targets = local(of.first_target + of.targets, block) - start;
    const bool is_own = of.without_self != 0 && source % blocks_ == block;
    const Index self = is_own ? source / blocks_ - start : -1;
    const bool skips = self >= 0 && self < targets;
    const auto choices = static_cast<std::uint32_t>(targets - (skips ? 1 : 0));
    const Index in_degree =
        targets > 0
            ? from_.firsts.at<std::int32_t>(0)[of.first_cell + block * (Index{of.sources} + 1) + of.sources] / targets
            : 0;
    const bool may_draw = of.rule == kInDegree   ? in_degree > 0 && end <= in_degree * targets && first >= 0
                          : of.rule == kDistinct ? end - first <= Index{choices}
                                                 : choices > 0;
    if (end > first && !may_draw) refuse("firsts", "leave targets for all synapses");
    if (end - first + std::ssize(drawn) >= kPlaces) refuse("firsts", "leave few synapses of a sender to a block");
    const Words permutation = of.rule == kInDegree ? threefry(key_, 0x80000000U + static_cast<std::uint32_t>(number),
                                                              static_cast<std::uint32_t>(block))
                                                   : Words{hashed(~static_cast<std::uint32_t>(number), key), key[1]};
    const float* const quantiles = from_.quantiles.at<float>(0) + of.first_quantile;
    const std::uint16_t* const late = late_ + of.first_late;
    const Index base = of.receptor * stride_ + start;
    for (Index k = first; k < end; ++k) {
      const auto counter = static_cast<std::uint32_t>(2 * drawn.size());
      std::uint32_t target = 0;
      switch (of.rule) {
        case kUniform: target = static_cast<std::uint32_t>(std::uint64_t{hashed(counter, key)} * choices >> 32); break;
        case kDistinct: target = permuted(static_cast<std::uint32_t>(k - first), choices, permutation); break;
        case kInDegree:
          target =
              permuted(static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(in_degree * targets), permutation) /
              static_cast<std::uint32_t>(in_degree);
          break;
        default:
          target = static_cast<std::uint32_t>(
              std::clamp<Index>(local(of.first_target + source - of.first_source, block) - start, 0, targets - 1));
      }
      if (skips && Index{target} >= self) ++target;
      const std::uint32_t bits = hashed(counter + 1, key);
      drawn.push_back({static_cast<std::uint32_t>(base + target),
                       quantiles[std::uint64_t{bits >> 16} * static_cast<std::uint32_t>(of.quantiles) >> 16],
                       late[std::uint64_t{bits & 0xffff} * static_cast<std::uint32_t>(of.late) >> 16]});
    }
  }

  // Sorts the synapses of a row by delay into their places, and lists its segments.
  void place(Index row, const std::vector<Drawn>& drawn, std::vector<Index>& places) const {
    const auto* const ends = from_.ends.at<std::int32_t>(0);
    const Index first = row == 0 ? 0 : ends[2 * row - 1], first_segment = row == 0 ? 0 : ends[2 * row - 2];
    const Index end = ends[2 * row + 1], end_segment = ends[2 * row];
    const auto count = static_cast<Index>(drawn.size());
    if (first < 0 || end - first != count || count >= kPlaces || end > to_.words.length(0) || first_segment < 0 ||
        end_segment > to_.segments.length(0)) {
      refuse("ends", "be those of the synapses of `firsts`");
    }
    std::fill(places.begin(), places.end(), 0);
    for (const Drawn& each : drawn) ++places[each.delay + 1U];
    auto* const segments = to_.segments.at<std::uint16_t>(0);
    Index segment = first_segment;
    for (Index delay = 0; delay <= longest_; ++delay) {
      const Index own = places[static_cast<std::size_t>(delay + 1)];
      places[static_cast<std::size_t>(delay + 1)] += places[static_cast<std::size_t>(delay)];
      if (own == 0) continue;
      if (segment >= end_segment) refuse("ends", "have a segment for each delay");
      segments[2 * segment] = static_cast<std::uint16_t>(delay);
      segments[2 * segment++ + 1] = static_cast<std::uint16_t>(own);
    }
    std::fill(segments + 2 * segment, segments + std::max(2 * segment, 2 * end_segment), std::uint16_t{0});
    const bool are_apart = static_cast<bool>(to_.weights);
    for (const Drawn& each : drawn) {
      const Index at = first + places[each.delay]++;
      if (are_apart) {
        to_.words.at<std::uint16_t>(0)[at] = static_cast<std::uint16_t>(each.place);
        to_.weights.at<float>(0)[at] = each.weight;
      } else {
        to_.words.at<std::uint32_t>(0)[at] = std::uint32_t{toBfloat16(each.weight)} << 16 | each.place;
      }
    }
  }

  const Operands<Operand>& from_;
  const Results<Result>& to_;
  const Index blocks_, neurons_, stride_;
  const Projection* projections_;
  const std::uint16_t* late_;
  Words key_;
  Index longest_;
};

void run(ConnectCall& call) {
  call.check();
  const auto& [from, to] = std::tie(call.from, call.to);
  const auto refuse = Attributes::refusal("connect");
  const Index blocks = from.ends.length(0), neurons = from.ends.length(1), rows = blocks * neurons;
  if (call.groups() != 1) refuse("groups", "be one", std::to_string(call.groups()));
  if (blocks < 1 || (neurons + blocks - 1) / blocks > kPlaces) refuse("ends", "be of blocks of at most 65536", "more");
  if (from.late.type() != ffi::U16 || to.segments.type() != ffi::U16) refuse("late", "be uint16", "others");
  if (static_cast<bool>(to.weights) != (to.words.type() == ffi::U16))
    refuse("words", "be 16 bits beside weights", "others");
  const auto* const ends = from.ends.at<std::int32_t>(0);
  if ((rows == 0 ? 0 : ends[2 * rows - 1]) != to.words.length(0))
    refuse("words", "be as many as `ends` says", std::to_string(to.words.length(0)));
  if ((rows == 0 ? 0 : ends[2 * rows - 2]) != to.segments.length(0)) {
    refuse("segments", "be as many as `ends` says", std::to_string(to.segments.length(0)));
  }
  const Connection connection(call);
  const Threads threads = threadsFor(4 * to.words.length(0), call.threads);
  threads.run((neurons + kSendersPerTask - 1) / kSendersPerTask, [&](Index task, Index) {
    connection.draw(task * kSendersPerTask, std::min(neurons, (task + 1) * kSendersPerTask));
  });
}

}  // namespace
}  // namespace snnjax::connect

SNNJAX_TARGET(snnjax_connect, "connect", snnjax::connect::run);
