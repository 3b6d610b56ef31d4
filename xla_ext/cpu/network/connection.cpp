#include "connection.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "cpu/products/transposed_convolution.hpp"

namespace snnjax {
namespace {

constexpr Index kRowsPerTask = 16;
// Rows of cotangents up to which weights are read in place, if these have so many columns: packing them would take
// longer than the product.
constexpr Index kFewRows = 16, kLeastColumns = 64;
// Rows of a dense product: enough to reuse a strip of weights often while it is in the first-level cache.
constexpr Index kRowsAtOnce = 128;
// Above this share of inputs the cotangents of all of them are computed at once: an estimate, not measured.
constexpr double kListedShare = 0.3;

// The product of few rows of cotangents with weights of float32 in place: each row of these is read once.
void sendBackInPlace(const SendBack& of, Index stride, float* out, const Threads& threads) {
  const Index inputs = of.weights.inputs, outputs = of.weights.outputs, tile = columnsOfTile(inputs, outputs);
  std::array<std::uint32_t, kFewRows> ids{};
  std::iota(ids.begin(), ids.end(), 0U);
  std::vector<float> scaled(static_cast<std::size_t>(of.rows * outputs));
  for (Index r = 0; r < of.rows; ++r) {
    kernels().affine(of.g.row(r), of.gain, nullptr, outputs, scaled.data() + r * outputs);
  }
  threads.run((inputs + tile - 1) / tile, [&](Index task, Index) {
    std::array<float, kFewRows> dots{};
    for (Index k = task * tile; k < std::min((task + 1) * tile, inputs); ++k) {
      const float* row = of.weights.numbers.float32() + k * outputs;
      kernels().dotRows(ids.data(), of.rows, {scaled.data(), outputs}, outputs, row, dots.data());
      for (Index r = 0; r < of.rows; ++r) out[r * stride + k] = dots[static_cast<std::size_t>(r)];
    }
  });
}

// The product of rows of cotangents with dense weights; the stride includes the padding of the last tile to whole
// vectors.
void sendThroughWeights(const SendBack& of, Index stride, float* out, const Threads& threads) {
  if (isReadInPlace(of.weights, of.rows)) return sendBackInPlace(of, stride, out, threads);
  const Index inputs = of.weights.inputs, tile = columnsOfTile(inputs, of.weights.outputs);
  threads.run((inputs + tile - 1) / tile, [&](Index task, Index) {
    const Index first = task * tile, columns = std::min(tile, inputs - first);
    PanelProduct product;
    PackedWeights scratch;
    product.pack(of.weights, first, columns, roundUp(columns, kernels().lanes), of.gain);
    for (Index start = 0; start < of.rows; start += kRowsAtOnce) {
      const Index count = std::min(kRowsAtOnce, of.rows - start);
      product.multiply({{of.g.row(start), of.g.stride}, count}, {out + start * stride + first, stride}, scratch);
    }
  });
}

// The inputs of a convolution that listed neurons of a row reach, each once.
class ListedInputs {
 public:
  explicit ListedInputs(const SendBack& of) : of_(of), marks_(static_cast<std::size_t>(wordsOf(of.weights.inputs))) {
    neurons_.resize(static_cast<std::size_t>(of.listed.words() * 64) + kListSlack);
    ids_.resize(static_cast<std::size_t>(of.weights.inputs) + kListSlack);
  }

  Index list(Index row) {
    const Index width = of_.listed.words() * 64;
    const std::uint32_t count = kernels().listBits(of_.listed.row(row), width, neurons_.data());
    std::fill(marks_.begin(), marks_.end(), std::uint64_t{0});
    for (std::uint32_t k = 0; k < count; ++k) {
      const Index neuron = neurons_[k], input = of_.pooling == nullptr ? neuron : of_.pooling->window(neuron);
      if (input >= 0) marks_[static_cast<std::size_t>(input / 64)] |= std::uint64_t{1} << (input % 64);
    }
    return kernels().listBits(marks_.data(), of_.weights.inputs, ids_.data());
  }
  const std::uint32_t* ids() const { return ids_.data(); }

 private:
  const SendBack& of_;
  std::vector<std::uint64_t> marks_;
  std::vector<std::uint32_t> neurons_, ids_;
};

// The transposed convolution, dense where the geometry has that form and most inputs take a cotangent.
class SendThroughConvolution {
 public:
  explicit SendThroughConvolution(const SendBack& of)
      : of_(of),
        inputs_(of.weights.inputs),
        patches_(of.convolution->layout(), 0, of.weights.outputs),
        all_(static_cast<std::size_t>(inputs_)) {
    for (Index i = 0; i < inputs_; ++i) all_[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(i);
    const ConvolutionShape& shape = of.convolution->shape();
    if (!TransposedConvolution::takes(shape)) return;
    dense_ = std::make_unique<TransposedConvolution>(shape, of.convolution->weights());
  }

  void run(Index stride, float* out, const Threads& threads) const {
    threads.run((of_.rows + kRowsPerTask - 1) / kRowsPerTask, [&](Index task, Index) {
      ListedInputs listed(of_);
      TransposedConvolution::Scratch scratch;
      std::vector<float> dots(static_cast<std::size_t>(inputs_));
      const Index first = task * kRowsPerTask;
      for (Index r = first; r < std::min(first + kRowsPerTask, of_.rows); ++r) {
        float* to = out + r * stride;
        const Index count = of_.listed ? listed.list(r) : inputs_;
        if (of_.listed && static_cast<double>(count) < kListedShare * static_cast<double>(inputs_)) {
          patches_.dot(listed.ids(), count, of_.convolution->packed(), of_.g.row(r), dots.data());
          for (Index k = 0; k < count; ++k) to[listed.ids()[k]] = dots[static_cast<std::size_t>(k)];
        } else if (dense_ == nullptr || !dense_->multiply(of_.g.row(r), to, scratch)) {
          patches_.dot(all_.data(), inputs_, of_.convolution->packed(), of_.g.row(r), to);
        }
      }
    });
  }

 private:
  const SendBack& of_;
  Index inputs_;
  ConvolutionPatches patches_;
  std::vector<std::uint32_t> all_;
  std::unique_ptr<TransposedConvolution> dense_;
};

}  // namespace

bool PoolingShape::isValid() const {
  constexpr Index kMost = Index{1} << 31;
  const bool positive = height > 0 && width > 0 && channels > 0 && window_height > 0 && window_width > 0;
  return positive && window_height <= height && window_width <= width && height < kMost && width < kMost / height &&
         channels < kMost / (height * width);
}

Windows::Windows(const PoolingShape& shape) : shape_(shape), windows_(static_cast<std::size_t>(shape.numInputs())) {
  std::size_t place = 0;
  for (Index y = 0; y < shape.height; ++y) {
    for (Index x = 0; x < shape.width; ++x) {
      const Index row = y / shape.window_height, column = x / shape.window_width;
      const bool is_used = row < shape.outHeight() && column < shape.outWidth();
      const Index first = (row * shape.outWidth() + column) * shape.channels;
      for (Index c = 0; c < shape.channels; ++c)
        windows_[place++] = static_cast<std::int32_t>(is_used ? first + c : -1);
    }
  }
}

void Windows::spread(const float* from, Index first, Index count, float* to) const {
  const float share = scale();
  Index i = 0;
  while (i < count) {  // pixel by pixel: its channels lie side by side on both sides
    const Index end = std::min(count, i + shape_.channels - (first + i) % shape_.channels);
    const Index start = window(first + i);
    for (Index k = i; start >= 0 && k < end; ++k) to[k] += share * from[start + k - i];
    i = end;
  }
}

std::uint32_t PooledSource::list(Index row, std::uint32_t* ids, float* values, bool* all_ones) const {
  std::vector<float> dense(static_cast<std::size_t>(pooling_.numOutputs()));
  expand(row, dense.data());
  return kernels().listNonZero(dense.data(), pooling_.numOutputs(), ids, values, all_ones);
}

void PooledSource::expand(Index row, float* dense) const {
  // Written before they are read: clearing them would take longer than the whole computation.
  const auto slots = static_cast<std::size_t>(from_.longest() + kListSlack);
  const auto ids = std::make_unique_for_overwrite<std::uint32_t[]>(slots);
  const auto values = std::make_unique_for_overwrite<float[]>(slots);
  bool all_ones = true;
  const std::uint32_t count = from_.list(row, ids.get(), values.get(), &all_ones);
  for (std::uint32_t k = 0; k < count; ++k) {
    const Index window = pooling_.window(ids[k]);
    if (window >= 0) dense[window] += pooling_.scale() * (all_ones ? 1.0F : values[k]);
  }
}

PackedConvolution::PackedConvolution(const ConvolutionShape& shape, const Numbers& weights)
    : shape_(shape), weights_(weights), layout_(shape), packed_(layout_.size()) {
  layout_.pack(weights, packed_.data());
}

ConvolutionColumns::ConvolutionColumns(const PackedConvolution& convolution, Index first, Index columns)
    : convolution_(convolution), first_(first), columns_(columns), patches_(convolution.layout(), first, columns) {
  const ConvolutionShape& shape = convolution.shape();
  const Index out_row = shape.outWidth() * shape.channels_out, row = shape.width * shape.channels;
  const Index top = first / out_row * shape.stride_y - shape.top;
  const Index bottom = (first + columns - 1) / out_row * shape.stride_y - shape.top + shape.spanY();
  const Index apart = shape.input_dilation_y;
  first_input_ = std::clamp<Index>(top / apart, 0, shape.height) * row;
  end_input_ = std::clamp<Index>((std::max<Index>(bottom, 0) + apart - 1) / apart, 0, shape.height) * row;
}

SpikeRow ConvolutionColumns::meeting(const SpikeRows& spikes, const SpikeRow& row) const {
  if (!spikes.isAscending()) return row;
  const std::uint32_t *end = row.ids + row.count, *first = std::lower_bound(row.ids, end, first_input_);
  end = std::lower_bound(first, end, end_input_);
  const float* values = row.values == nullptr ? nullptr : row.values + (first - row.ids);
  return {first, values, static_cast<std::uint32_t>(end - first), false};
}

void ConvolutionColumns::add(const SpikeRows& spikes, Index row, float* out) {
  const SpikeRow& listed = *spikes.row(row);
  if (!listed.is_dense) return patches_.add(meeting(spikes, listed), convolution_.packed(), out);
  if (!addDense(spikes, row, out)) patches_.add(ListedRow(spikes, row).row(), convolution_.packed(), out);
}

// The dense form is of whole pixels.
bool ConvolutionColumns::addDense(const SpikeRows& spikes, Index row, float* out) {
  const ConvolutionShape& shape = convolution_.shape();
  if (!DenseConvolution::takes(shape)) return false;
  if (dense_ == nullptr) {
    dense_ = std::make_unique<DenseConvolution>(shape);
    packed_.resize(static_cast<std::size_t>(dense_->size()));
    dense_->pack(convolution_.weights(), packed_.data());
  }
  const Index channels = shape.channels_out, first = first_ / channels * channels;
  const Index columns = roundUp(first_ + columns_, channels) - first;
  out_.resize(static_cast<std::size_t>(columns));
  const Rows<const float> image = spikes.dense(row, 1, image_);
  if (!dense_->multiply(image.data, packed_.data(), first, columns, out_.data(), scratch_)) return false;
  for (Index i = 0; i < columns_; ++i) out[i] += out_[static_cast<std::size_t>(first_ - first + i)];
  return true;
}

void ConvolutionColumns::addGradient(const SpikeRows& spikes, Index row, const float* g, float* packed) const {
  const SpikeRow& listed = *spikes.row(row);
  if (listed.is_dense) return patches_.addGradient(ListedRow(spikes, row).row(), packed, g);
  patches_.addGradient(meeting(spikes, listed), packed, g);
}

void SentBack::addTo(Index row, Index first, Index count, float* to) const {
  if (delayed != nullptr) return delayed->addTo(row / delayed->batch(), row % delayed->batch(), first, count, to);
  const float* from = g.row(row);
  if (pooling != nullptr) return pooling->spread(from, first, count, to);
  for (Index i = 0; i < count; ++i) to[i] += from[first + i];
}

bool isReadInPlace(const Weights& weights, Index rows) {
  return rows <= kFewRows && weights.outputs >= kLeastColumns && !weights.numbers.is_bfloat16 && !weights.isInt8();
}

Borrowed<float> sendBack(const SendBack& of, const Threads& threads) {
  const Index stride = strideOf(of.weights.inputs);
  Borrowed<float> out((of.rows + of.rows_behind) * stride);
  std::fill_n(out.data() + of.rows * stride, of.rows_behind * stride, 0.0F);
  if (of.convolution != nullptr) {
    SendThroughConvolution(of).run(stride, out.data(), threads);
  } else {
    sendThroughWeights(of, stride, out.data(), threads);
  }
  return out;
}

}  // namespace snnjax
