// Lists of spikes as results hold them: the leaves of `SparseSpikes`.
#pragma once

#include "ffi.hpp"
#include "spike_rows.hpp"

namespace snnjax {

// uint16 where the id of an unused slot, `neurons`, fits into it: as in snnjax/sparse_spikes.py.
inline ffi::DataType idType(Index neurons) { return neurons <= kMaxShortNeurons ? ffi::U16 : ffi::S32; }

struct IdArray {
  void* data;
  Index neurons;

  void set(Index place, Index id) const {
    if (neurons <= kMaxShortNeurons) {
      static_cast<std::uint16_t*>(data)[place] = static_cast<std::uint16_t>(id);
    } else {
      static_cast<std::int32_t*>(data)[place] = static_cast<std::int32_t>(id);
    }
  }
};

// Writes one list: the spikes with value 1, then the neurons near the threshold with value 0, then unused slots; at
// most `capacity` are marked. Yields how many there are.
inline Index writeList(const std::uint64_t* spikes, const std::uint64_t* near, Index neurons, Index capacity, Index row,
                       IdArray ids, Numbers values) {
  Index slot = 0;
  for (const std::uint64_t* bits : {spikes, near}) {
    const float value = bits == spikes ? 1.0F : 0.0F;
    for (Index word = 0; word < (neurons + 63) / 64; ++word) {
      for (std::uint64_t rest = bits[word]; rest != 0 && slot < capacity; rest &= rest - 1) {
        ids.set(row * capacity + slot, word * 64 + __builtin_ctzll(rest));
        values.write(row * capacity + slot++, 1, &value);
      }
    }
  }
  constexpr float kUnused = 0.0F;
  for (Index rest = slot; rest < capacity; ++rest) {
    ids.set(row * capacity + rest, neurons);
    values.write(row * capacity + rest, 1, &kUnused);
  }
  return slot;
}

}  // namespace snnjax
