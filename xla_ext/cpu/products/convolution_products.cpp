#include "convolution_products.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "channel_gradient.hpp"
#include "transposed_convolution.hpp"

namespace snnjax {
namespace {

using Floats = std::vector<float>;

constexpr Index kRowsPerTask = 4;
// Above these shares of listed inputs a row takes the dense form: the crossovers of 3 x 3 kernels of 64 channels and
// 32 x 32 pixels, and of 256 and 8 x 8, measured on a Zen 5 with AVX-512 and with AVX2; without blocks, of 5 x 5
// kernels of 12 to 32 channels too, where those of cotangents with vectors that short are an estimate.
bool isWide() { return kernels().lanes >= 16; }
double denseProducts(const ConvolutionShape& shape) {
  if (!WinogradConvolution::takes(shape)) return 0.3;
  return isWide() ? 0.2 : 0.25;
}
double denseCotangents(const ConvolutionShape& shape) {
  if (!WinogradConvolution::takes(shape)) return isWide() ? 0.25 : 0.5;
  return isWide() ? 0.2 : 0.25;
}
// All sums are read and written for each row of an image: where it is short, this takes longer than the products.
double denseGradient(const ConvolutionShape& shape) {
  constexpr Index kShortRow = 16;
  if (shape.outWidth() < kShortRow) return 0.55;
  return isWide() ? 0.35 : 0.45;
}
// With fewer channels than this share of a vector most of a dense product is padding.
constexpr Index kLeastOfVector = 2;
// Limits on the number of parts that the weights' gradient is summed in, and on the numbers they hold.
constexpr Index kMostChunks = 16;
constexpr Index kRowsPerChunk = 16;
constexpr Index kMostSums = Index{1} << 24;

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

// The cost of the entries of some rows and their results, in products.
Index costOf(Index entries, Index rows, const ConvolutionShape& shape) {
  return entries * shape.numWeights() / (shape.channels * shape.stride_y * shape.stride_x) + rows * shape.numOutputs();
}

bool isAbove(double share, Index count, Index inputs) {
  return static_cast<double>(count) > share * static_cast<double>(inputs);
}

// Some numbers of an array as float32: in place, or in scratch.
const float* floatsOf(const Numbers& numbers, Index first, Index count, Floats& scratch) {
  if (!numbers.is_bfloat16) return numbers.float32() + first;
  scratch.resize(size(count));
  numbers.read(first, count, scratch.data());
  return scratch.data();
}

// Where `count` numbers of a result are computed: in place, or in scratch that `finish` writes.
class Target {
 public:
  Target(const WritableNumbers& out, Index first, Index count, Floats& scratch)
      : out_(out), first_(first), count_(count), scratch_(scratch) {
    if (out.is_bfloat16) scratch.resize(size(count));
  }
  float* data() const { return out_.is_bfloat16 ? scratch_.data() : out_.float32() + first_; }
  void finish() const {
    if (out_.is_bfloat16) out_.write(first_, count_, scratch_.data());
  }

 private:
  WritableNumbers out_;
  Index first_, count_;
  Floats& scratch_;
};

// Memory of one thread.
struct Worker {
  Floats image, g, out, all;
  DenseConvolution::Scratch scratch;
  TransposedConvolution::Scratch transposed;

  // A row in its dense form, in place or in `image`.
  const float* expand(const ListedRows& spikes, Rows<const float> in_place, Index row) {
    if (in_place.data != nullptr) return in_place.row(row);
    image.assign(size(spikes.width()), 0.0F);
    spikes.expand(row, 1, image.data());
    return image.data();
  }
};

// Weights in the form of patches.
struct Sparse {
  PatchWeights layout;
  ConvolutionPatches patches;
  Borrowed<float> packed;

  explicit Sparse(const ConvolutionShape& shape) : layout(shape), patches(layout, 0, shape.numOutputs()) {}
  Sparse(const ConvolutionShape& shape, const Numbers& weights) : Sparse(shape) {
    packed = Borrowed<float>(layout.size());
    layout.pack(weights, packed.data());
  }
};

// Calls work(row, worker) for all rows.
template <typename Work>
void eachRow(Index rows, const Threads& threads, Work work) {
  std::vector<Worker> workers(size(threads.count()));
  threads.run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](Index task, Index worker) {
    const Index first = task * kRowsPerTask;
    for (Index r = first; r < std::min(first + kRowsPerTask, rows); ++r) work(r, workers[size(worker)]);
  });
}

Index longest(const ListedRows& spikes) {
  Index most = 0;
  for (Index r = 0; r < spikes.rows(); ++r) most = std::max(most, spikes.count(r));
  return most;
}

// The cotangents of inputs by the outputs of a row.
class Cotangents {
 public:
  Cotangents(const ConvolutionShape& shape, const Numbers& weights, Index most_listed)
      : shape_(shape), sparse_(shape, weights) {
    const bool pays = kLeastOfVector * shape.channels > kernels().lanes;
    if (pays && isDense(most_listed) && TransposedConvolution::takes(shape)) {
      dense_ = std::make_unique<TransposedConvolution>(shape, weights);
    }
  }

  // Of all inputs, whose ids these are.
  void dotAll(const std::vector<std::uint32_t>& ids, const float* g, float* out, Worker& own) const {
    if (dense_ != nullptr && dense_->multiply(g, out, own.transposed)) return;
    sparse_.patches.dot(ids.data(), static_cast<Index>(ids.size()), sparse_.packed.data(), g, out);
  }

  // Of some ids.
  void dot(const std::uint32_t* ids, Index count, const float* g, float* out, Worker& own) const {
    if (dense_ != nullptr && isDense(count)) {
      own.all.resize(size(shape_.numInputs()));
      if (dense_->multiply(g, own.all.data(), own.transposed)) {
        for (Index k = 0; k < count; ++k) out[k] = own.all[ids[k]];
        return;
      }
    }
    sparse_.patches.dot(ids, count, sparse_.packed.data(), g, out);
  }

 private:
  bool isDense(Index count) const { return isAbove(denseCotangents(shape_), count, shape_.numInputs()); }

  ConvolutionShape shape_;
  Sparse sparse_;
  std::unique_ptr<TransposedConvolution> dense_;
};

// The gradient of the weights by the rows that are not taken by channel: products of dense ones, patches of others.
class Gradient {
 public:
  Gradient(const ListedRows& spikes, Rows<const float> in_place, const ConvolutionShape& shape, const Numbers& g)
      : spikes_(spikes),
        in_place_(in_place),
        shape_(shape),
        g_(g),
        sparse_(shape),
        dense_(shape),
        apart_(size(spikes.rows()), 1) {
    if (!PaddedOutputs::takes(shape) || !areMany(spikes, shape)) return;
    for (Index r = 0; r < spikes.rows(); ++r) apart_[size(r)] = isDense(r) || !isFinite(spikes.row(r));
    takes_channels_ = std::find(apart_.begin(), apart_.end(), 0) != apart_.end();
  }

  bool takesChannels() const { return takes_channels_; }
  // Rows that are not taken by channel.
  const std::vector<char>& apart() const { return apart_; }

  Index chunks() const {
    const Index fitting = std::max<Index>(1, kMostSums / (2 * shape_.numWeights()));
    if (std::find(apart_.begin(), apart_.end(), 1) == apart_.end()) return 0;
    return std::clamp<Index>(spikes_.rows() / kRowsPerChunk, 1, std::min(kMostChunks, fitting));
  }

  // sums[weights as stored] = those of chunk `index` of `count`.
  void sum(Index index, Index count, Worker& own, float* sums) const {
    Floats patches(size(shape_.numWeights())), products;
    const Index first = spikes_.rows() * index / count, end = spikes_.rows() * (index + 1) / count;
    const Index outputs = shape_.numOutputs();
    for (Index r = first; r < end; ++r) {
      if (!apart_[size(r)]) continue;
      const float* g = floatsOf(g_, r * outputs, outputs, own.g);
      // 0 times what is not finite would not be 0.
      if (isDense(r) && areFinite(g, outputs)) {
        products.resize(size(dense_.size()));
        dense_.addGradient(own.expand(spikes_, in_place_, r), g, 0, outputs, products.data(), own.scratch);
      } else {
        sparse_.patches.addGradient(spikes_.row(r), patches.data(), g);
      }
    }
    sparse_.layout.unpack(patches.data(), {sums, false});
    if (!products.empty()) dense_.addTo(products.data(), sums);
  }

 private:
  bool isDense(Index row) const {
    return DenseConvolution::takes(shape_) && isAbove(denseGradient(shape_), spikes_.count(row), spikes_.width());
  }
  // Whether spikes reach outputs more often than there are any, all of which are read by channel.
  static bool areMany(const ListedRows& spikes, const ConvolutionShape& shape) {
    const Index outputs = shape.outHeight() * shape.outWidth();
    return spikes.entries() * shape.kernel_height * shape.kernel_width >= spikes.rows() * outputs;
  }
  static bool isFinite(const SpikeRow& row) { return row.values == nullptr || areFinite(row.values, Index{row.count}); }

  const ListedRows& spikes_;
  Rows<const float> in_place_;
  ConvolutionShape shape_;
  Numbers g_;
  Sparse sparse_;
  DenseConvolution dense_;
  bool takes_channels_ = false;
  std::vector<char> apart_;
};

}  // namespace

void convolve(const ListedRows& spikes, Rows<const float> in_place, const ConvolutionShape& shape,
              const Numbers& weights, const WritableNumbers& out, const Threads& threads) {
  const Index outputs = shape.numOutputs();
  const Sparse sparse(shape, weights);
  const auto isDense = [&](Index count) { return isAbove(denseProducts(shape), count, spikes.width()); };
  std::unique_ptr<ImageConvolution> dense;
  if (isDense(longest(spikes)) && DenseConvolution::takes(shape)) {
    dense = std::make_unique<ImageConvolution>(shape, DenseConvolution::placesOf(shape), weights);
  }
  const Threads own_threads = threadsFor(costOf(spikes.entries(), spikes.rows(), shape), threads);
  eachRow(spikes.rows(), own_threads, [&](Index r, Worker& own) {
    const Target target(out, r * outputs, outputs, own.out);
    const bool done = dense != nullptr && isDense(spikes.count(r)) &&
                      dense->multiply(own.expand(spikes, in_place, r), target.data(), own.transposed.dense);
    if (!done) {  // or a product of 0 with a number that is not finite may have entered the sums
      std::fill_n(target.data(), outputs, 0.0F);
      sparse.patches.add(spikes.row(r), sparse.packed.data(), target.data());
    }
    target.finish();
  });
}

void convolveToSlots(const ListedRows& spikes, Index capacity, const ConvolutionShape& shape, const Numbers& weights,
                     const Numbers& g, const WritableNumbers& out, const Threads& threads) {
  const Index outputs = shape.numOutputs();
  const Cotangents cotangents(shape, weights, longest(spikes));
  eachRow(spikes.rows(), threadsFor(costOf(spikes.entries(), 0, shape), threads), [&](Index r, Worker& own) {
    const Target target(out, r * capacity, capacity, own.out);
    own.image.resize(size(spikes.count(r)));
    cotangents.dot(spikes.ids(r), spikes.count(r), floatsOf(g, r * outputs, outputs, own.g), own.image.data(), own);
    std::fill_n(target.data(), capacity, 0.0F);
    for (Index k = 0; k < spikes.count(r); ++k) target.data()[spikes.slots(r)[k]] = own.image[size(k)];
    target.finish();
  });
}

void convolveToInputs(Index rows, const ConvolutionShape& shape, const Numbers& weights, const Numbers& g,
                      const WritableNumbers& out, const Threads& threads) {
  const Index inputs = shape.numInputs(), outputs = shape.numOutputs();
  const Cotangents cotangents(shape, weights, inputs);
  std::vector<std::uint32_t> ids(size(inputs));
  std::iota(ids.begin(), ids.end(), 0U);
  eachRow(rows, threadsFor(costOf(rows * inputs, 0, shape), threads), [&](Index r, Worker& own) {
    const Target target(out, r * inputs, inputs, own.out);
    cotangents.dotAll(ids, floatsOf(g, r * outputs, outputs, own.g), target.data(), own);
    target.finish();
  });
}

void convolveToWeights(const ListedRows& spikes, Rows<const float> in_place, const ConvolutionShape& shape,
                       const Numbers& g, const WritableNumbers& out, const Threads& threads) {
  const Gradient gradient(spikes, in_place, shape, g);
  const Index chunks = gradient.chunks(), weights = shape.numWeights();
  Borrowed<float> sums((chunks + 1) * weights);
  const Threads own_threads = threadsFor(costOf(spikes.entries(), 0, shape), threads);
  if (gradient.takesChannels()) {
    ChannelGradient(spikes, gradient.apart(), shape, own_threads).sum(g, sums.data(), own_threads);
  } else {
    std::fill_n(sums.data(), weights, 0.0F);
  }
  std::vector<Worker> workers(size(own_threads.count()));
  own_threads.run(chunks, [&](Index chunk, Index worker) {
    gradient.sum(chunk, chunks, workers[size(worker)], sums.data() + (chunk + 1) * weights);
  });
  for (Index chunk = 1; chunk <= chunks; ++chunk) {
    const float* own = sums.data() + chunk * weights;
    for (Index i = 0; i < weights; ++i) sums[i] += own[i];
  }
  out.write(0, weights, sums.data());
}

}  // namespace snnjax
