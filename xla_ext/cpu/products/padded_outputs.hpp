// Convolutions channel by channel: what the spikes of one channel reach of outputs, block by block.
//
// A block is one vector of each output pixel of some images, with pixels around them, so that every spike has a whole
// patch (`kernels/padded_patches.hpp`). Images are taken together, or divided into bands of rows, such that a block is
// about as large as the first-level cache.
#pragma once

#include <vector>

#include "convolution.hpp"
#include "cpu/lists/listed_rows.hpp"
#include "cpu/memory.hpp"

namespace snnjax {

class PaddedOutputs {
 public:
  explicit PaddedOutputs(const ConvolutionShape& shape);
  // Whether a geometry has this form: the patches of one group, side by side, of enough outputs to fill a vector.
  static bool takes(const ConvolutionShape& shape);

  PaddedPatch patch() const { return {shape_.kernel_height, shape_.kernel_width, y_.step * row_}; }
  Index channels() const { return shape_.channels; }
  Index blocks() const { return (shape_.channels_out + kernels().lanes - 1) / kernels().lanes; }
  Index images() const { return images_; }  // that are taken together
  Index bands() const { return bands_; }    // of an image; 1 if there are several images

  // Weights: [block, channel, row, column, lane], rows and columns in the order of the outputs, zeros behind the last.
  Index ofChannel() const { return shape_.kernel_height * shape_.kernel_width * kernels().lanes; }
  Index ofBlock() const { return shape_.channels * ofChannel(); }
  // sums = what is packed, as weights lie.
  void unpack(const float* packed, float* sums) const;

  // The numbers of a block of some images.
  Index size() const { return images_ * ofImage(); }
  // A range of blocks, which are read together: cache lines side by side.
  struct Blocks {
    Index first, count;
  };
  Index ranges() const { return (blocks() + together() - 1) / together(); }
  Blocks range(Index index) const { return {index * together(), std::min(together(), blocks() - index * together())}; }
  // to[blocks][size()] = a band of `images` images whose outputs begin at number `first`.
  void read(const Numbers& outputs, Index first, Index images, Index band, Blocks blocks, float* to) const;

  // Where the patch of a pixel begins in a block of one image, and in which band; one that no weight meets is in none.
  struct Place {
    std::uint32_t band, first;
  };
  static constexpr std::uint32_t kNoBand = UINT32_MAX;
  static constexpr Index kOutputsTogether = 64;  // that a range of blocks has
  const Place& place(Index pixel) const { return of_pixel_[static_cast<std::size_t>(pixel)]; }
  Index ofImage() const { return (lines_ + margin_) * row_; }  // numbers of a block

 private:
  void readRow(const Numbers& outputs, Index first, Index block, float* to) const;
  Index together() const { return std::max<Index>(1, kOutputsTogether / kernels().lanes); }
  // Calls visit(place among the weights, packed place, outputs) for every vector of weights.
  template <typename Visit>
  void eachVector(Visit visit) const;
  void setPlaces();

  ConvolutionShape shape_;
  PatchWeights layout_;
  PatchAxis y_, x_;
  Index margin_, row_;            // rows of outputs that a patch has beyond its first; numbers in a row of a block
  Index lines_, images_, bands_;  // rows of outputs in which patches of a band begin
  std::vector<Place> of_pixel_;
};

// The spikes of some images by band and channel.
class SpikesByChannel {
 public:
  // Of rows [first, first + count) of these lists; those that `apart` marks are left out.
  void sort(const PaddedOutputs& outputs, const ListedRows& spikes, Index first, Index count,
            const std::vector<char>& apart);

  PatchPlaces of(Index band) const;

 private:
  // A spike as it is listed: of which band and channel, and where its patch begins.
  struct Listed {
    std::uint32_t key, place;
    float value;
  };
  // Lists all in the order of the rows and counts them in `starts_`; returns their number.
  Index list(const PaddedOutputs& outputs, const ListedRows& spikes, Index first, Index count,
             const std::vector<char>& apart, Listed* listed);

  Index channels_ = 0;
  std::vector<std::uint32_t> starts_;
  Borrowed<std::uint32_t> places_;
  Borrowed<float> values_;
};

}  // namespace snnjax
