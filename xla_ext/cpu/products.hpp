// Products of spike rows with weights, forward and backward: sparse or dense, whichever the counted density favours.
#pragma once

#include <vector>

#include "kernels.hpp"
#include "memory.hpp"
#include "numbers.hpp"
#include "spare_memory.hpp"
#include "spike_rows.hpp"

namespace snnjax {

// A weight matrix [inputs, outputs], row-major, as the user holds it.
struct Weights {
  Numbers numbers;
  Index inputs = 0, outputs = 0;
};

inline Index roundUp(Index count, Index unit) { return (count + unit - 1) / unit * unit; }

// How many columns of a layer one thread takes at a time: whole words of 64 bits where there are more than 64 neurons,
// and so few that `rows_of_weights` rows of them stay in its second-level cache.
Index columnsOfTile(Index neurons, Index rows_of_weights);

// Some columns of weights, copied close together as float32: one row every `stride` numbers, padded with zeros to whole
// vectors. Rows that lie a power of two apart would share a few sets of the cache.
class PackedWeights {
 public:
  // Takes memory for `rows` rows of `columns`, which hold whatever they held before.
  void resize(Index rows, Index columns);
  void clear(Index rows);
  Rows<float> rows() const { return {memory_.data(), columns_}; }
  Index columns() const { return columns_; }  // with padding

 private:
  Borrowed<float> memory_;
  Index size_ = 0, columns_ = 0;
};

// out[k] = weights[k][first : first + columns], padded.
void packColumns(const Weights& weights, Index first, Index columns, PackedWeights& out);
// out[n][k] = scale[n] * weights[first + k][n] for `rows` rows: what carries cotangents back to these inputs.
void packTransposed(const Weights& weights, Index first, Index rows, const float* scale, PackedWeights& out);
// weights[k][first : first + columns] = from[k].
void unpackColumns(const PackedWeights& from, Index first, Index columns, const Weights& weights);

// out[r] = start[r] + spikes[first_row + r] @ weights. An entry of 0 adds nothing, whatever its weights. `start` is
// shared by all rows (stride 0), `out` itself, or absent. The rows of one call are multiplied alike: densely as soon as
// one of them is not listed. `scratch` is kept from call to call.
void multiply(const SpikeRows& spikes, Index first_row, Index rows, Rows<const float> weights, Index columns,
              Rows<const float> start, Rows<float> out, std::vector<float>& scratch);

}  // namespace snnjax
