#include "channel_gradient.hpp"

#include <algorithm>

namespace snnjax {
namespace {

// Parts of the rows and ranges of outputs, together: enough to occupy some threads.
constexpr Index kTasks = 16;

}  // namespace

ChannelGradient::ChannelGradient(const ListedRows& spikes, const std::vector<char>& apart,
                                 const ConvolutionShape& shape, const Threads& threads)
    : outputs_(shape),
      rows_(spikes.rows()),
      of_row_(shape.numOutputs()),
      groups_(static_cast<std::size_t>((rows_ + outputs_.images() - 1) / outputs_.images())) {
  const auto groups = static_cast<Index>(groups_.size());
  parts_ = std::clamp<Index>(kTasks / outputs_.ranges(), 1, std::max<Index>(groups, 1));
  threads.run(groups, [&](Index group, Index) {
    const Index first = group * outputs_.images(), count = std::min(outputs_.images(), rows_ - first);
    groups_[static_cast<std::size_t>(group)].sort(outputs_, spikes, first, count, apart);
  });
}

void ChannelGradient::sumPart(const Numbers& g, Index part, PaddedOutputs::Blocks blocks, float* sums) const {
  const auto groups = static_cast<Index>(groups_.size());
  std::fill_n(sums, blocks.count * outputs_.ofBlock(), 0.0F);
  Borrowed<float> read(blocks.count * outputs_.size());
  for (Index group = groups * part / parts_; group < groups * (part + 1) / parts_; ++group) {
    const Index first = group * outputs_.images(), count = std::min(outputs_.images(), rows_ - first);
    for (Index band = 0; band < outputs_.bands(); ++band) {
      outputs_.read(g, first * of_row_, count, band, blocks, read.data());
      const PatchPlaces spikes = groups_[static_cast<std::size_t>(group)].of(band);
      for (Index b = 0; b < blocks.count; ++b) {
        kernels().addPaddedGradients(outputs_.patch(), spikes, read.data() + b * outputs_.size(),
                                     sums + b * outputs_.ofBlock());
      }
    }
  }
}

void ChannelGradient::sum(const Numbers& g, float* sums, const Threads& threads) const {
  const Index ranges = outputs_.ranges(), of_block = outputs_.ofBlock(), of_part = outputs_.blocks() * of_block;
  Borrowed<float> packed(parts_ * of_part);
  threads.run(parts_ * ranges, [&](Index task, Index) {
    const Index part = task / ranges;
    const PaddedOutputs::Blocks blocks = outputs_.range(task % ranges);
    sumPart(g, part, blocks, packed.data() + part * of_part + blocks.first * of_block);
  });
  threads.run(outputs_.blocks(), [&](Index block, Index) {
    float* const to = packed.data() + block * of_block;
    for (Index part = 1; part < parts_; ++part) {
      for (Index i = 0; i < of_block; ++i) to[i] += to[part * of_part + i];
    }
  });
  outputs_.unpack(packed.data(), sums);
}

}  // namespace snnjax
