#include "list_products.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace snnjax {
namespace {

// Rows of a result that are summed at once.
constexpr Index kRowsAtOnce = 64;
// From this many rows on each thread has some, whatever their number.
constexpr Index kLongResult = 8 * kRowsAtOnce;
// Columns of a matrix that is read in place: as many as a kernel keeps in registers, so that a multiple of them does
// not change how the columns of a row are summed.
constexpr Index kColumnsInPlace = 256;
// Rows of the matrix that are read side by side.
constexpr std::uint32_t kIdsAtOnce = 16;
// Above this share of entries a dense product is faster (measured between 0.35 and 0.4 for 1024 x 1024 and 4096 x 4096
// weights).
constexpr double kDenseEntries = 0.38;
// Numbers in the dense form of some lists, and rows of the matrix that are multiplied at once.
constexpr Index kDenseNumbers = Index{1} << 20;
constexpr Index kDepthAtOnce = 1024;

constexpr Rows<const float> kNoStart{nullptr, 0};

// A tile of columns and a range of rows of the result.
struct Part {
  Index first_column, columns, first_row, rows;

  // Calls work(part) for some rows at a time.
  template <typename Work>
  void eachBlock(Work work) const {
    for (Index r = 0; r < rows; r += kRowsAtOnce) {
      work(Part{first_column, columns, first_row + r, std::min(kRowsAtOnce, rows - r)});
    }
  }
};

// The sums of a part: in place if they can be written to the result as `padded` columns of float32.
class Target {
 public:
  Target(const WritableNumbers& out, Index stride, const Part& part, Index padded)
      : out_(out), stride_(stride), part_(part), padded_(padded) {
    if (out.is_bfloat16 || part.columns != padded) scratch_ = Borrowed<float>(part.rows * padded);
  }

  Rows<float> rows(Index first_row) {
    if (scratch_) return {scratch_.data() + (first_row - part_.first_row) * padded_, padded_};
    return {out_.float32() + first_row * stride_ + part_.first_column, stride_};
  }

  void finish() const {
    for (Index r = 0; scratch_ && r < part_.rows; ++r) {
      out_.write((part_.first_row + r) * stride_ + part_.first_column, part_.columns, scratch_.data() + r * padded_);
    }
  }

 private:
  WritableNumbers out_;
  Index stride_;
  Part part_;
  Index padded_;
  Borrowed<float> scratch_;
};

// Consecutive rows of lists, as the kernels take them.
struct Block {
  SpikeRow rows[kRowsAtOnce];

  Block(const ListedRows& lists, const Part& part) {
    for (Index r = 0; r < part.rows; ++r) rows[r] = lists.row(part.first_row + r);
  }
};

class Product {
 public:
  Product(const ListedRows& lists, const Weights& matrix, const WritableNumbers& out, const Threads& threads)
      : lists_(lists),
        matrix_(matrix),
        out_(out),
        threads_(threads),
        packed_(static_cast<std::size_t>(threads.count())) {
    if (!matrix.isInt8()) return;
    scale_.resize(static_cast<std::size_t>(strideOf(matrix.outputs)));
    matrix.scale.read(0, matrix.outputs, scale_.data());
  }

  void run() {
    const auto entries = static_cast<double>(lists_.entries()), inputs = static_cast<double>(matrix_.inputs);
    const Index rows = std::min(lists_.rows(), lists_.width());
    const bool is_whole = matrix_.isInt8() && !lists_.hasValues();  // sums of whole numbers: faster at any density
    if (!is_whole && rows >= kLeastDenseRows && entries > kDenseEntries * static_cast<double>(lists_.rows()) * inputs) {
      runDense();
    } else if (entries > WeightTile::kUsesToPack * inputs) {
      runPacked();
    } else {
      runInPlace();
    }
  }

 private:
  // Some rows and columns of the matrix, close together as float32, or as they are.
  struct Packed {
    PackedWeights weights;
    std::tuple<Borrowed<std::uint16_t>, Borrowed<std::int8_t>> as_they_are;  // bfloat16, int8
    Index first_column = -1;

    Rows<const float> rows() const { return {weights.rows().data, weights.columns()}; }
  };

  // Cuts some rows of the result into tiles of columns and, where these are few, into ranges of rows. Neither changes
  // the sum of an element.
  template <typename Work>
  void cut(Index first_row, Index rows, Index tile, Work work) {
    if (rows == 0) return;
    const Index tiles = (matrix_.outputs + tile - 1) / tile, threads = threads_.count();
    const Index ranges = tiles % threads == 0 || tiles >= 4 * threads ? 1 : threads;
    const Index range = roundUp((rows + ranges - 1) / ranges, kRowsAtOnce);
    const Index per_tile = (rows + range - 1) / range;
    threads_.run(tiles * per_tile, [&](Index task, Index worker) {
      const Index column = task / per_tile * tile, row = task % per_tile * range;
      const Part part{column, std::min(tile, matrix_.outputs - column), first_row + row, std::min(range, rows - row)};
      work(part, packed_[static_cast<std::size_t>(worker)]);
    });
  }

  void runInPlace() {
    // A sum in parts would round each of them.
    if (lists_.rows() == 1 && !matrix_.isInt8()) return runOneRow();
    cut(0, lists_.rows(), kColumnsInPlace, [&](const Part& all, Packed&) {
      all.eachBlock([&](const Part& part) {
        Target target(out_, matrix_.outputs, part, part.columns);
        sumInPlace(part, Block(lists_, part).rows, kNoStart, target.rows(part.first_row));
        target.finish();
      });
    });
  }

  // For a single row, each listed row of the matrix is read once: a few at a time within one thread, so that the
  // hardware can prefetch them.
  void runOneRow() {
    const Index each = roundUp((matrix_.outputs + threads_.count() - 1) / threads_.count(), kColumnsInPlace);
    cut(0, 1, std::max(each, kColumnsInPlace), [&](const Part& part, Packed&) {
      Target target(out_, matrix_.outputs, part, part.columns);
      const Rows<float> out = target.rows(0);
      SpikeRow rest = lists_.row(0);
      for (Rows<const float> start = kNoStart; start.data == nullptr || rest.count > 0; start = {out.data, 0}) {
        const SpikeRow some{rest.ids, rest.values, std::min(kIdsAtOnce, rest.count), false};
        sumInPlace(part, &some, start, out);
        rest = {rest.ids + some.count, rest.values == nullptr ? nullptr : rest.values + some.count,
                rest.count - some.count, false};
      }
      target.finish();
    });
  }

  void sumInPlace(const Part& part, const SpikeRow* rows, Rows<const float> start, Rows<float> out) const {
    const Numbers& numbers = matrix_.numbers;
    const auto sumOf = [&](const auto* all) {
      sum(part, rows, Rows{all + part.first_column, matrix_.outputs}, part.columns, start, out);
    };
    if (matrix_.isInt8()) return sumOf(matrix_.int8());
    numbers.is_bfloat16 ? sumOf(numbers.bfloat16()) : sumOf(numbers.float32());
  }

  void sum(const Part& part, const SpikeRow* rows, Rows<const float> weights, Index columns, Rows<const float> start,
           Rows<float> out) const {
    kernels().sumRows(rows, part.rows, weights, columns, start, out);
  }
  void sum(const Part& part, const SpikeRow* rows, Rows<const std::uint16_t> weights, Index columns,
           Rows<const float> start, Rows<float> out) const {
    kernels().sumRowsBfloat16(rows, part.rows, weights, columns, start, out);
  }
  void sum(const Part& part, const SpikeRow* rows, Rows<const std::int8_t> weights, Index columns,
           Rows<const float> start, Rows<float> out) const {
    kernels().sumRowsInt8(rows, part.rows, weights, columns, scaleOf(part), start, out);
  }

  const float* scaleOf(const Part& part) const { return scale_.data() + part.first_column; }

  // Copies `count` rows of the matrix from `first` on.
  void pack(const Part& part, Index first, Index count, Packed& packed) const {
    packed.weights.resize(count, roundUp(part.columns, kernels().lanes));
    packColumns(matrix_.fromRow(first, count), part.first_column, part.columns, packed.weights);
  }

  // The columns of a tile with `rows` rows of float32. Where all of them stay in the cache, a long result is written in
  // whole rows: threads that write parts of the same pages take up to twice as long.
  Index columnsToPack(Index rows) const {
    const Index all = roundUp(matrix_.outputs, kernels().lanes);
    const bool fits = rows * all * static_cast<Index>(sizeof(float)) <= bytesOfTile();
    return fits && lists_.rows() >= kLongResult ? all : columnsOfTile(matrix_.outputs, rows);
  }

  void runPacked() {
    if (matrix_.isInt8()) return runPackedAsTheyAre<std::int8_t>();
    if (matrix_.numbers.is_bfloat16) return runPackedAsTheyAre<std::uint16_t>();
    cut(0, lists_.rows(), columnsToPack(matrix_.inputs), [&](const Part& all, Packed& packed) {
      if (packed.first_column != all.first_column) pack(all, 0, matrix_.inputs, packed);
      packed.first_column = all.first_column;
      sumBlocks(all, packed.rows(), packed.weights.columns());
    });
  }

  template <typename T>
  void runPackedAsTheyAre() {
    constexpr Index kShare = sizeof(float) / sizeof(T);  // so many rows take the place of one of float32
    const Index tile = columnsToPack(roundUp(matrix_.inputs, kShare) / kShare);
    cut(0, lists_.rows(), tile, [&](const Part& all, Packed& packed) {
      auto& own = std::get<Borrowed<T>>(packed.as_they_are);
      const Index width = roundUp(all.columns, kernels().lanes);
      if (packed.first_column != all.first_column) {
        own = Borrowed<T>(matrix_.inputs * width);
        packAsTheyAre(matrix_, all.first_column, all.columns, width, own.data());
        packed.first_column = all.first_column;
      }
      sumBlocks(all, Rows{std::as_const(own).data(), width}, width);
    });
  }

  template <typename T>
  void sumBlocks(const Part& all, Rows<const T> weights, Index width) const {
    all.eachBlock([&](const Part& part) {
      Target target(out_, matrix_.outputs, part, width);
      sum(part, Block(lists_, part).rows, weights, width, kNoStart, target.rows(part.first_row));
      target.finish();
    });
  }

  void runDense() {
    const Index most = std::max(kRowsAtOnce, kDenseNumbers / lists_.width() / kRowsAtOnce * kRowsAtOnce);
    Borrowed<float> dense(std::min(most, lists_.rows()) * lists_.width());
    for (Index first = 0; first < lists_.rows(); first += most) {
      multiplyDense(first, std::min(most, lists_.rows() - first), dense.data());
    }
  }

  void multiplyDense(Index start, Index rows, float* dense) {
    const Index width = lists_.width();
    threads_.run((rows + kRowsAtOnce - 1) / kRowsAtOnce, [&](Index task, Index) {
      const Index first = task * kRowsAtOnce, count = std::min(kRowsAtOnce, rows - first);
      std::fill_n(dense + first * width, count * width, 0.0F);
      lists_.expand(start + first, count, dense + first * width);
    });
    cut(start, rows, columnsOfTile(matrix_.outputs, kDepthAtOnce), [&](const Part& all, Packed& packed) {
      Target target(out_, matrix_.outputs, all, roundUp(all.columns, kernels().lanes));
      bool is_finite = true;
      for (Index k = 0; k < width; k += kDepthAtOnce) {
        const Index depth = std::min(kDepthAtOnce, width - k);
        pack(all, k, depth, packed);
        const Rows<const float> own{dense + (all.first_row - start) * width + k, width}, weights = packed.rows();
        const Rows<float> out = target.rows(all.first_row);
        const Rows<const float> so_far{k > 0 ? out.data : nullptr, out.stride};
        is_finite &= kernels().multiplyRows(own, all.rows, depth, weights, weights.stride, so_far, out);
      }
      // A product of 0 with a number that is not finite may have entered the sums.
      if (!is_finite) {
        all.eachBlock([&](const Part& part) {
          sumInPlace(part, Block(lists_, part).rows, kNoStart, target.rows(part.first_row));
        });
      } else if (matrix_.isInt8()) {
        const Rows<float> out = target.rows(all.first_row);
        for (Index r = 0; r < all.rows; ++r) {
          for (Index c = 0; c < all.columns; ++c) out.row(r)[c] *= scaleOf(all)[c];
        }
      }
      target.finish();
    });
  }

  const ListedRows& lists_;
  const Weights& matrix_;
  const WritableNumbers& out_;
  const Threads& threads_;
  std::vector<Packed> packed_;  // one a thread
  std::vector<float> scale_;    // of int8 weights, padded to whole vectors
};

}  // namespace

void multiplyLists(const ListedRows& lists, const Weights& matrix, const WritableNumbers& out, const Threads& threads) {
  const Threads own = threadsFor((lists.entries() + lists.rows()) * matrix.outputs, threads);
  Product(lists, matrix, out, own).run();
}

}  // namespace snnjax
