// Products of spike rows with weights, and the gradient of the weights: sparse or dense, whichever suits the measured
// density.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "cpu/delays/delays.hpp"
#include "cpu/kernels.hpp"
#include "cpu/lists/spike_rows.hpp"
#include "cpu/memory.hpp"
#include "cpu/numbers.hpp"
#include "schema/tables.hpp"

namespace snnjax {

// A weight matrix [inputs, outputs], row-major, as the user holds it: numbers, or int8 times the scale of each output.
struct Weights {
  Numbers numbers;
  Index inputs = 0, outputs = 0;
  Numbers scale = {};  // [outputs]; absent: `numbers` are what they say, otherwise int8

  bool isInt8() const { return static_cast<bool>(scale); }
  const std::int8_t* int8() const { return static_cast<const std::int8_t*>(numbers.data); }
  // Rows [first, first + count).
  Weights fromRow(Index first, Index count) const {
    const Index skipped = first * outputs;
    if (isInt8()) return {{int8() + skipped}, count, outputs, scale};
    return {numbers.from(skipped), count, outputs};
  }
  // `count` numbers from `first` on as float32; of int8 without their scale.
  void read(Index first, Index count, float* out) const {
    if (!isInt8()) return numbers.read(first, count, out);
    for (Index i = 0; i < count; ++i) out[i] = static_cast<float>(int8()[first + i]);
  }
};

inline Index roundUp(Index count, Index unit) { return (count + unit - 1) / unit * unit; }
// The stride of rows of this many numbers that are read in whole vectors.
inline Index strideOf(Index numbers) { return roundUp(numbers, lif_network::kWidestVector); }

// Bytes of one core's second-level cache that a tile of weights may take.
Index bytesOfTile();
// How many columns of a layer one thread takes at a time: whole words of 64 bits where there are more than 64 neurons,
// and so few that `rows_of_weights` rows of them stay in its second-level cache.
Index columnsOfTile(Index neurons, Index rows_of_weights);

// Some columns of weights, packed as float32: one row every `stride` numbers, padded with zeros to whole vectors. Rows
// a power of two apart would compete for a few cache sets.
class PackedWeights {
 public:
  // Allocates `rows` rows of `columns`, uninitialised.
  void resize(Index rows, Index columns);
  void clear(Index rows);
  Rows<float> rows() { return {memory_.data(), columns_}; }
  Rows<const float> rows() const { return {memory_.data(), columns_}; }
  Index columns() const { return columns_; }  // with padding

 private:
  Borrowed<float> memory_;
  Index size_ = 0, columns_ = 0;
};

// out[k] = weights[k][first : first + columns], padded.
void packColumns(const Weights& weights, Index first, Index columns, PackedWeights& out);
// The same as they are, of numbers of type T: rows of `width`.
template <typename T>
void packAsTheyAre(const Weights& weights, Index first, Index columns, Index width, T* out) {
  for (Index k = 0; k < weights.inputs; ++k, out += width) {
    std::copy_n(static_cast<const T*>(weights.numbers.data) + k * weights.outputs + first, columns, out);
    std::fill(out + columns, out + width, T{0});
  }
}
// out[k][n] = scale[n] * weights[first + k][n] for `rows` rows: what carries cotangents back to single inputs.
void packRows(const Weights& weights, Index first, Index rows, const float* scale, PackedWeights& out);
// What carries dense cotangents back to some inputs, out[r][k] = sum_n g[r][n] * scale[n] * weights[first + k][n]: the
// weights packed once in panels (see Kernels::multiplyPanels), in parts where that is faster.
class PanelProduct {
 public:
  // To inputs [first, first + rows), padded with zeros to `width`, of whole vectors. Where `rounds`, both factors may
  // be rounded to bfloat16.
  void pack(const Weights& weights, Index first, Index rows, Index width, const float* scale, bool rounds = false);
  // `scratch` is kept from call to call.
  void multiply(const RowBlocks& g, Rows<float> out, PackedWeights& scratch) const;

 private:
  Index depth_ = 0, width_ = 0;
  Index parts_ = 0;  // 0: of float32 numbers as they are
  PackedWeights panels_, split_;
};

// out[r] = start[r] + spikes[first_row + r] @ weights. An entry of 0 adds nothing, whatever its weights. `start` is
// shared by all rows (stride 0), `out` itself, or absent. All rows of one call take the same path: dense as soon as one
// of them is not listed. `scratch` is kept from call to call.
void multiply(const SpikeRows& spikes, Index first_row, Index rows, Rows<const float> weights, Index columns,
              Rows<const float> start, Rows<float> out, std::vector<float>& scratch);

// Some columns of the weights of a layer, for products with spikes. They are packed as they are, once their rows have
// been used so often that this pays: int8 takes a quarter of the cache of float32, bfloat16 half. Sums of int8 are
// exact and scaled once. Rows of spikes that are too full for a list yield the same from a float32 copy, which is made
// for them. No sum depends on where the weights are read.
class WeightTile {
 public:
  // From this many uses of each row, packing pays off: measured, see xla_ext/README.md.
  static constexpr double kUsesToPack = 8.0;

  // Columns [first, first + columns), padded with zeros to `width` where they are packed: at once if each row is known
  // to be used so often.
  void take(const Weights& weights, Index first, Index columns, Index width, double uses);
  // As `multiply` with the weights. Inline: a caller's arguments, once more copied, would wait for its stores.
  void multiply(const SpikeRows& spikes, Index first_row, Index rows, Rows<const float> start, Rows<float> out,
                std::vector<float>& scratch) {
    const SpikeRow* listed = spikes.row(first_row);
    const bool any_dense = std::any_of(listed, listed + rows, [](const SpikeRow& row) { return row.is_dense; });
    if (any_dense) return multiplyDense(spikes, first_row, rows, start, out, scratch);
    if (!is_packed_) count(listed, rows);
    if (weights_.isInt8()) {
      return kernels().sumRowsInt8(listed, rows, rowsAs<std::int8_t>(), read_, scale_.data(), start, out);
    }
    if (weights_.numbers.is_bfloat16) {
      return kernels().sumRowsBfloat16(listed, rows, rowsAs<std::uint16_t>(), read_, start, out);
    }
    kernels().sumRows(listed, rows, rowsAs<float>(), read_, start, out);
  }

 private:
  template <typename T>
  Rows<const T> rowsAs() const {
    return {static_cast<const T*>(data_), stride_};
  }
  // Counts the uses of rows that are read in place, and packs them when they have become many.
  void count(const SpikeRow* listed, Index rows);
  void pack();
  void packFloats();
  void multiplyDense(const SpikeRows& spikes, Index first_row, Index rows, Rows<const float> start, Rows<float> out,
                     std::vector<float>& scratch);
  void multiplyScaled(const SpikeRows& spikes, Index first_row, Index rows, Rows<const float> start, Rows<float> out,
                      std::vector<float>& scratch);

  Weights weights_;
  Index first_ = 0, columns_ = 0, width_ = 0;
  const void* data_ = nullptr;  // the numbers, in place or packed: columns that are read, and from row to row
  Index read_ = 0, stride_ = 0;
  double left_ = 0.0;  // entries until they are packed
  PackedWeights floats_;
  bool is_packed_ = false, has_floats_ = false;
  Borrowed<std::uint16_t> halves_;  // of bfloat16 weights, [inputs, width]
  Borrowed<std::int8_t> bytes_;     // of int8 weights, likewise, as the next two
  std::vector<float> scale_, sums_;
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
  // The chunk that starts at this step of this sample's block.
  Index indexOf(Index step, Index sample) const { return sample / samples * parts() + step / steps; }
  Chunk at(Index index) const {
    const Index first_sample = index / parts() * samples, first_step = index % parts() * steps;
    return {first_step, std::min(steps, extent.steps - first_step), first_sample,
            std::min(samples, extent.batch - first_sample)};
  }
};

// Rows of spikes grouped by the neuron that fired, which a weight gradient sums over.
//
// dweights[k] = sum of g[r] over the rows r that contain k. Summed row by row, every g[r] is accumulated many rows of
// the gradient, each read and written again; summed neuron by neuron, rows of g are only read, and the sum of one
// neuron stays in registers. Rows are taken in chunks whose g stays in the cache.
class TransposedSpikes {
 public:
  // The layout of a chunk's rows of g: one after another (step by step, the chunk's samples), or in place in the array
  // of all rows.
  enum class Layout { kPacked, kInPlace };

  // `spikes` must outlive this.
  TransposedSpikes(const SpikeLists& spikes, const Chunking& chunking, Layout layout, const Threads& threads);

  const Chunking& chunking() const { return chunking_; }
  Index width() const { return spikes_.width(); }

  // weights[k] += sum over the chunk's rows r of spikes[r][k] * g[r]; `g` begins with the chunk's first row. The first
  // chunk overwrites what was in `weights`.
  void accumulate(Index chunk, bool is_first, Rows<float> weights, Index columns, Rows<const float> g) const;

 private:
  struct Lists {
    std::vector<SpikeRow> neurons;          // of each neuron, the rows of g of the chunk in which it fired
    std::vector<std::uint32_t> dense_rows;  // rows of g whose spikes are not listed
    std::vector<Index> dense_spikes;        // and which spikes they belong to
    Borrowed<std::uint32_t> rows;           // what `neurons` point to
    Borrowed<float> values;                 // likewise, where some value is not 1
  };

  template <typename Visit>
  void visitRows(Index chunk, Visit visit) const;
  void fill(Index chunk);
  void addDense(const Lists& lists, Rows<float> weights, Index columns, Rows<const float> g) const;

  const SpikeLists& spikes_;
  const Chunking chunking_;
  const Layout layout_;
  std::vector<Lists> chunks_;
};

// The cotangents of delays, as sums over the columns of each tile.
class DelayGradient {
 public:
  DelayGradient() = default;
  DelayGradient(const Delays& delays, Index neurons)
      : delays_(&delays), tiles_((neurons + kTile - 1) / kTile), sums_(tiles_ * delays.inputs()) {}

  explicit operator bool() const { return delays_ != nullptr; }
  // Combines the sums of both shares (see SplitSource) into those of what arrived, and adds to the cotangents of the
  // delays.
  void fold(Rows<float> sums, Index first, Index columns, const Weights& weights, const float* gain);
  void write(const WritableNumbers& to) const;

 private:
  static constexpr Index kTile = 64;  // columns of a tile at least, where there is more than one

  const Delays* delays_ = nullptr;
  Index tiles_ = 0;
  Buffer<double> sums_;  // [tiles, inputs]
};

// The weight gradient of a layer from the cotangents of its membranes, times `gain`; adds what reaches the gain.
struct WeightGradient {
  const TransposedSpikes& spikes;
  Rows<const float> g_v;
  Weights weights;
  WritableNumbers g_weights;  // as the weights; absent: not needed
  const float* gain;
  double* sum_gain;       // [neurons]; nullptr: not needed
  DelayGradient* delays;  // nullptr: their shares are not separate
};
void computeWeightGradient(const WeightGradient& of, const Threads& threads);
// Of columns [first, first + columns), from the products summed without the gain.
void finishWeightGradient(Rows<float> sums, Index first, Index columns, const WeightGradient& of);

}  // namespace snnjax
