// What precedes a layer: delays of its inputs, windows that pool them, and a convolution instead of dense weights.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cpu/delays/delays.hpp"
#include "cpu/lists/marks.hpp"
#include "cpu/lists/spike_rows.hpp"
#include "cpu/memory.hpp"
#include "cpu/parallel.hpp"
#include "cpu/products/convolution.hpp"
#include "cpu/products/products.hpp"

namespace snnjax {

// Windows side by side in an image; a remainder at its far edges belongs to none. One dimension is an image of height
// 1.
struct PoolingShape {
  Index height, width, channels;
  Index window_height, window_width;
  bool is_mean;

  Index outHeight() const { return height / window_height; }
  Index outWidth() const { return width / window_width; }
  Index numInputs() const { return height * width * channels; }
  Index numOutputs() const { return outHeight() * outWidth() * channels; }
  float scale() const { return is_mean ? 1.0F / static_cast<float>(window_height * window_width) : 1.0F; }
  bool isValid() const;
};

// The shapes of a connection; without pooling and convolution its weights are dense.
struct ConnectionShape {
  Index delay_rows = 0;  // the longest delay plus 1; 0: no delays
  std::optional<PoolingShape> pooling;
  std::optional<ConvolutionShape> convolution;
};

// Which window each input belongs to.
class Windows {
 public:
  explicit Windows(const PoolingShape& shape);

  Index numInputs() const { return shape_.numInputs(); }
  Index numOutputs() const { return shape_.numOutputs(); }
  float scale() const { return shape_.scale(); }
  Index window(Index input) const { return windows_[static_cast<std::size_t>(input)]; }  // -1: none
  // to[i] += scale * from[window of input first + i]: cotangents on their way back.
  void spread(const float* from, Index first, Index count, float* to) const;

 private:
  PoolingShape shape_;
  std::vector<std::int32_t> windows_;
};

// The rows of another source, pooled.
class PooledSource : public RowSource {
 public:
  PooledSource(const RowSource& from, const Windows& pooling) : from_(from), pooling_(pooling) {}
  std::uint32_t list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const override;
  Index longest() const override { return pooling_.numOutputs(); }
  void expand(Index row, float* dense) const override;

 private:
  const RowSource& from_;
  const Windows& pooling_;
};

// A convolution with its weights, packed once and read by all threads.
class PackedConvolution {
 public:
  PackedConvolution(const ConvolutionShape& shape, const Numbers& weights);

  const ConvolutionShape& shape() const { return shape_; }
  const PatchWeights& layout() const { return layout_; }
  const Numbers& weights() const { return weights_; }
  const float* packed() const { return packed_.data(); }

 private:
  ConvolutionShape shape_;
  Numbers weights_;
  PatchWeights layout_;
  Borrowed<float> packed_;
};

// Some of the outputs of a convolution, for one row of spikes after another.
class ConvolutionColumns {
 public:
  ConvolutionColumns(const PackedConvolution& convolution, Index first, Index columns);

  // out[columns] += the convolution of a row. An entry of 0 adds nothing, whatever its weights.
  void add(const SpikeRows& spikes, Index row, float* out);
  // packed += the gradient of the weights by g[columns].
  void addGradient(const SpikeRows& spikes, Index row, const float* g, float* packed) const;

 private:
  // The entries of a row that may meet the columns.
  SpikeRow meeting(const SpikeRows& spikes, const SpikeRow& row) const;
  bool addDense(const SpikeRows& spikes, Index row, float* out);

  const PackedConvolution& convolution_;
  Index first_, columns_;
  Index first_input_, end_input_;  // of the rows of the image that the columns see
  ConvolutionPatches patches_;
  // For rows too full to be listed; created on first use.
  std::unique_ptr<DenseConvolution> dense_;
  DenseConvolution::Scratch scratch_;
  std::vector<float> packed_, image_, out_;
};

// What a layer with pooling or convolution sends back: the cotangents of its weights' inputs.
struct SentBack {
  Rows<const float> g;                         // [rows, inputs of the weights]; data nullptr: nothing is sent
  std::shared_ptr<const Windows> pooling;      // of their inputs; may be absent
  const DelayedCotangents* delayed = nullptr;  // after delays, instead of both: those of what was sent

  explicit operator bool() const { return g.data != nullptr; }
  // to[i] += those of the neurons [first, first + count) before the connection.
  void addTo(Index row, Index first, Index count, float* to) const;
};

// What to send back. `listed` marks the neurons before the connection that take a cotangent; empty: all.
struct SendBack {
  Rows<const float> g;  // of the currents [rows, neurons]
  Index rows;
  const float* gain;  // of dense weights, to be multiplied with
  Weights weights;    // read where there is no convolution
  const PackedConvolution* convolution;
  const Windows* pooling;
  const GivenBits& listed;
  Index rows_behind = 0;  // of zeros
};
// Whether dense weights send back so few rows of cotangents that they are read in place.
bool isReadInPlace(const Weights& weights, Index rows);
// Rows `strideOf(weights.inputs)` apart; where few neurons are listed, only what reaches them is computed.
Borrowed<float> sendBack(const SendBack& of, const Threads& threads);

}  // namespace snnjax
