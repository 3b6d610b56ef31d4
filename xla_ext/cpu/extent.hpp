// How long the sequences of a batch are. Rows of time series are numbered step * batch + sample.
#pragma once

#include <algorithm>

#include "kernels.hpp"

namespace snnjax {

struct Extent {
  Index steps, batch;
  const std::int32_t* ends;  // [batch], in [0, steps]: the step behind the last one of each sample

  Index rows() const { return steps * batch; }
};

// Some steps of some samples of an extent.
struct Chunk {
  Index first_step, steps, first_sample, samples;

  Index firstRow(const Extent& extent) const { return first_step * extent.batch + first_sample; }
};

// An extent cut into chunks: samples into blocks, and their steps into equal parts.
struct Chunking {
  Extent extent;
  Index samples, steps;  // of a chunk; the last ones are smaller

  Index parts() const { return (extent.steps + steps - 1) / steps; }
  Index count() const { return (extent.batch + samples - 1) / samples * parts(); }
  // Which chunk begins with this step of the block of this sample.
  Index indexOf(Index step, Index sample) const { return sample / samples * parts() + step / steps; }
  Chunk at(Index index) const {
    const Index first_sample = index / parts() * samples, first_step = index % parts() * steps;
    return {first_step, std::min(steps, extent.steps - first_step), first_sample,
            std::min(samples, extent.batch - first_sample)};
  }
};

}  // namespace snnjax
