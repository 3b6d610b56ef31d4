#include "list_products.hpp"

#include <algorithm>

namespace snnjax {
namespace {

constexpr Index kSlotsPerTask = 1 << 15;  // fewer are listed sooner than another thread is woken

std::size_t size(Index count) { return static_cast<std::size_t>(count); }

// Rows that one thread lists, if each has so many entries at most.
Index rowsPerTask(Index longest) { return std::max<Index>(1, kSlotsPerTask / std::max<Index>(longest, 1)); }

Index tasksFor(Index rows, Index longest) { return (rows + rowsPerTask(longest) - 1) / rowsPerTask(longest); }

// The threads for so many products of two numbers: few take less time than waking another thread.
Threads threadsFor(Index products, const Threads& threads) {
  constexpr Index kWorthWaking = 400'000;
  return products < kWorthWaking ? Threads({}, 1) : threads;
}

using Floats = std::vector<float>;

// Rows of a result that are summed at once.
constexpr Index kRowsAtOnce = 64;
// Columns of a matrix that is read where it lies: as many as a kernel keeps in registers, so that a multiple of them
// does not change how the columns of a row are summed.
constexpr Index kColumnsInPlace = 256;
// Rows of the matrix that are read side by side.
constexpr std::uint32_t kIdsAtOnce = 16;
// From so many uses of each row of the matrix on, it pays to copy its columns close together.
constexpr double kUsesToPack = 8.0;
// A dense product needs lists and a matrix of so many rows to be fast, and above this share of entries it is the faster
// one (measured between 0.35 and 0.4 for 1024 x 1024 and 4096 x 4096 weights).
constexpr Index kLeastDenseRows = 8;
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

// The sums of a part on their way to the result: in place if they can be written there as `padded` columns of float32.
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
        packed_(static_cast<std::size_t>(threads.count())) {}

  void run() {
    const auto entries = static_cast<double>(lists_.entries()), inputs = static_cast<double>(matrix_.inputs);
    const Index rows = std::min(lists_.rows(), lists_.width());
    if (rows >= kLeastDenseRows && entries > kDenseEntries * static_cast<double>(lists_.rows()) * inputs) {
      runDense();
    } else if (entries > kUsesToPack * inputs) {
      runPacked();
    } else {
      runInPlace();
    }
  }

 private:
  // Some rows and columns of the matrix, close together as float32.
  struct Packed {
    PackedWeights weights;
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
    if (lists_.rows() == 1) return runOneRow();
    cut(0, lists_.rows(), kColumnsInPlace, [&](const Part& all, Packed&) {
      all.eachBlock([&](const Part& part) {
        Target target(out_, matrix_.outputs, part, part.columns);
        sumInPlace(part, Block(lists_, part).rows, kNoStart, target.rows(part.first_row));
        target.finish();
      });
    });
  }

  // Of a single row, each listed row of the matrix is read once: a few at a time, as far as one thread goes, so that
  // the hardware sees them coming.
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
    if (numbers.is_bfloat16) {
      const auto* first = numbers.bfloat16() + part.first_column;
      kernels().sumRowsBfloat16(rows, part.rows, {first, matrix_.outputs}, part.columns, start, out);
    } else {
      const float* first = numbers.float32() + part.first_column;
      kernels().sumRows(rows, part.rows, {first, matrix_.outputs}, part.columns, start, out);
    }
  }

  // Copies `count` rows of the matrix from `first` on.
  void pack(const Part& part, Index first, Index count, Packed& packed) const {
    packed.weights.resize(count, roundUp(part.columns, kernels().lanes));
    const Numbers from = matrix_.numbers.from(first * matrix_.outputs);
    packColumns({from, count, matrix_.outputs}, part.first_column, part.columns, packed.weights);
  }

  void runPacked() {
    cut(0, lists_.rows(), columnsOfTile(matrix_.outputs, matrix_.inputs), [&](const Part& all, Packed& packed) {
      if (packed.first_column != all.first_column) pack(all, 0, matrix_.inputs, packed);
      packed.first_column = all.first_column;
      const Rows<const float> weights = packed.rows();
      all.eachBlock([&](const Part& part) {
        Target target(out_, matrix_.outputs, part, weights.stride);
        const Block block(lists_, part);
        kernels().sumRows(block.rows, part.rows, weights, weights.stride, kNoStart, target.rows(part.first_row));
        target.finish();
      });
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
      }
      target.finish();
    });
  }

  const ListedRows& lists_;
  const Weights& matrix_;
  const WritableNumbers& out_;
  const Threads& threads_;
  std::vector<Packed> packed_;  // one a thread
};

class Dots {
 public:
  Dots(const ListedRows& lists, Index capacity, const Weights& matrix, const Numbers& g, const WritableNumbers& out,
       const Threads& threads)
      : lists_(lists), capacity_(capacity), matrix_(matrix), g_(g), out_(out), threads_(threads) {}

  void run() const {
    const auto entries = static_cast<double>(lists_.entries()), width = static_cast<double>(lists_.width());
    if (lists_.rows() >= kLeastDenseRows && entries > kDenseEntries * static_cast<double>(lists_.rows()) * width) {
      runDense();
    } else if (entries > kUsesByRow * width) {
      runByNeuron();
    } else {
      runByRow();
    }
  }

 private:
  // Up to so many uses of each row of the matrix, it is read once for every entry.
  static constexpr double kUsesByRow = 2.0;
  // All products need so many rows to be fast, and above this share of entries they are the faster ones (measured
  // between 0.2 and 0.3 for 1024 x 1024 and 4096 x 4096 weights).
  static constexpr Index kLeastDenseRows = 8;
  static constexpr double kDenseEntries = 0.25;
  static constexpr Index kNeuronsAtOnce = 32;
  static constexpr Index kRowsAtOnce = 32;
  static constexpr Index kDenseRows = 512;  // whose products with all neurons are kept

  // Calls work(first, count) for up to `some` of `all` at a time.
  template <typename Work>
  void each(Index all, Index some, Work work) const {
    threads_.run((all + some - 1) / some,
                 [&](Index task, Index) { work(task * some, std::min(some, all - task * some)); });
  }

  // Rows of float32: where they lie, or in scratch.
  const float* rowsOf(const Numbers& numbers, Index first, Index count, Floats& scratch) const {
    if (!numbers.is_bfloat16) return numbers.float32() + first * matrix_.outputs;
    scratch.resize(static_cast<std::size_t>(count * matrix_.outputs));
    numbers.read(first * matrix_.outputs, count * matrix_.outputs, scratch.data());
    return scratch.data();
  }

  // So few rows that every thread gets some.
  Index rowsAtOnce() const { return std::min(kRowsAtOnce, 1 + lists_.rows() / (4 * threads_.count())); }

  // Writes dot(k) into the slot of each entry k of a row, and 0 into all others.
  template <typename Dot>
  void writeRow(Index row, Floats& scratch, Dot dot) const {
    scratch.resize(static_cast<std::size_t>(out_.is_bfloat16 ? capacity_ : 0));
    float* slots = out_.is_bfloat16 ? scratch.data() : out_.float32() + row * capacity_;
    std::fill_n(slots, capacity_, 0.0F);
    for (Index k = 0; k < lists_.count(row); ++k) slots[lists_.slots(row)[k]] = dot(k);
    if (out_.is_bfloat16) out_.write(row * capacity_, capacity_, slots);
  }

  void runByRow() const {
    each(lists_.rows(), rowsAtOnce(), [&](Index first, Index count) {
      Floats g_scratch, scratch, dots;
      for (Index r = first; r < first + count; ++r) {
        dots.resize(static_cast<std::size_t>(lists_.count(r)));
        const float* g = rowsOf(g_, r, 1, g_scratch);
        matrix_.numbers.is_bfloat16 ? dotBfloat16(r, g, scratch, dots.data()) : dotFloat32(r, g, dots.data());
        writeRow(r, scratch, [&](Index k) { return dots[static_cast<std::size_t>(k)]; });
      }
    });
  }

  void dotFloat32(Index r, const float* g, float* dots) const {
    const Rows<const float> matrix{matrix_.numbers.float32(), matrix_.outputs};
    kernels().dotRows(lists_.ids(r), lists_.count(r), matrix, matrix_.outputs, g, dots);
  }

  void dotBfloat16(Index r, const float* g, Floats& scratch, float* dots) const {
    for (Index k = 0; k < lists_.count(r); ++k) {
      constexpr std::uint32_t kFirst = 0;
      const Rows<const float> row{rowsOf(matrix_.numbers, lists_.ids(r)[k], 1, scratch), 0};
      kernels().dotRows(&kFirst, 1, row, matrix_.outputs, g, dots + k);
    }
  }

  // Each row of the matrix is read once, for all rows in which it is listed.
  void runByNeuron() const {
    Borrowed<std::uint32_t> places;
    const ListedRows by_neuron = lists_.transposed(&places);
    Floats g_scratch;
    const Rows<const float> g{rowsOf(g_, 0, lists_.rows(), g_scratch), matrix_.outputs};
    Borrowed<float> dots(lists_.entries());
    each(lists_.width(), kNeuronsAtOnce, [&](Index first, Index count) {
      Floats scratch;
      for (Index k = first; k < first + count; ++k) {
        const Index entries = by_neuron.count(k);
        if (entries == 0) continue;
        const float* row = rowsOf(matrix_.numbers, k, 1, scratch);
        kernels().dotRows(by_neuron.ids(k), entries, g, matrix_.outputs, row, dots.data() + by_neuron.start(k));
      }
    });
    each(lists_.rows(), rowsAtOnce(), [&](Index first, Index count) {
      Floats scratch;
      for (Index r = first; r < first + count; ++r) {
        const std::uint32_t* own = places.data() + lists_.start(r);
        writeRow(r, scratch, [&](Index k) { return dots[own[k]]; });
      }
    });
  }

  void runDense() const {
    Borrowed<float> products(std::min(kDenseRows, lists_.rows()) * lists_.width());
    for (Index start = 0; start < lists_.rows(); start += kDenseRows) {
      const Index rows = std::min(kDenseRows, lists_.rows() - start);
      multiplyAll(start, rows, products.data());
      each(rows, rowsAtOnce(), [&](Index first, Index count) {
        Floats scratch;
        for (Index r = first; r < first + count; ++r) {
          const float* own = products.data() + r * lists_.width();
          writeRow(start + r, scratch, [&](Index k) { return own[lists_.ids(start + r)[k]]; });
        }
      });
    }
  }

  // products[r][k] = <matrix[k], g[start + r]>: the rows of the matrix, where they lie, times g transposed.
  void multiplyAll(Index start, Index rows, float* products) const {
    const Index width = lists_.width(), outputs = matrix_.outputs;
    std::vector<PackedWeights> columns(static_cast<std::size_t>((rows + kRowsAtOnce - 1) / kRowsAtOnce));
    each(rows, kRowsAtOnce, [&](Index first, Index count) {
      PackedWeights& own = columns[static_cast<std::size_t>(first / kRowsAtOnce)];
      own.resize(outputs, roundUp(count, kernels().lanes));
      const Floats ones(static_cast<std::size_t>(outputs), 1.0F);
      packPanels({g_, lists_.rows(), outputs}, start + first, count, ones.data(), own);
    });
    each(width, kNeuronsAtOnce, [&](Index first, Index count) {
      Floats scratch, memory(static_cast<std::size_t>(kNeuronsAtOnce * kRowsAtOnce));
      const Rows<const float> matrix{rowsOf(matrix_.numbers, first, count, scratch), outputs};
      const Rows<float> part{memory.data(), kRowsAtOnce};
      for (Index r = 0; r < rows; r += kRowsAtOnce) {
        const PackedWeights& own = columns[static_cast<std::size_t>(r / kRowsAtOnce)];
        kernels().multiplyPanels({matrix, count}, outputs, own.rows().data, own.columns(), {nullptr, 0}, part);
        for (Index i = 0; i < std::min(kRowsAtOnce, rows - r); ++i) {
          for (Index k = 0; k < count; ++k) products[(r + i) * width + first + k] = part.row(k)[i];
        }
      }
    });
  }

  const ListedRows& lists_;
  Index capacity_;
  const Weights& matrix_;
  const Numbers& g_;
  const WritableNumbers& out_;
  const Threads& threads_;
};

}  // namespace

ListedRows::ListedRows(const RowSource& source, Index rows, Index width, const Threads& threads)
    : ListedRows(rows, width, 0) {
  const Index room = roomFor(rows, source.longest());
  ids_ = Borrowed<std::uint32_t>(room);
  values_ = Borrowed<float>(room);
  std::vector<char> ones(size(rows));
  listAll(source.longest(), threads, [&](Index row, Index place) {
    bool all_ones = true;
    const std::uint32_t count = source.list(row, ids_.data() + place, values_.data() + place, &all_ones);
    ones[size(row)] = all_ones;
    return count;
  });
  all_ones_ = std::find(ones.begin(), ones.end(), 0) == ones.end();
  for (Index r = 0; r < rows && !all_ones_; ++r) {
    if (ones[size(r)]) std::fill_n(values_.data() + start(r), count(r), 1.0F);
  }
}

ListedRows::ListedRows(const ListSource& source, Index rows, const Threads& threads)
    : ListedRows(rows, source.width(), 0) {
  const Index room = roomFor(rows, source.capacity());
  ids_ = Borrowed<std::uint32_t>(room);
  slots_ = Borrowed<std::uint32_t>(room);
  listAll(source.capacity(), threads,
          [&](Index row, Index place) { return source.listSlots(row, ids_.data() + place, slots_.data() + place); });
}

Index ListedRows::roomFor(Index rows, Index longest) { return rows * longest + tasksFor(rows, longest) * kListSlack; }

template <typename List>
void ListedRows::listAll(Index longest, const Threads& threads, List list) {
  starts_.resize(size(rows_));
  counts_.resize(size(rows_));
  const Index each = rowsPerTask(longest);
  threads.run(tasksFor(rows_, longest), [&](Index task, Index) {
    const Index first = task * each;
    // What is written beyond the end of a list must not reach another task's.
    Index place = first * longest + task * kListSlack;
    for (Index r = first; r < std::min(first + each, rows_); ++r) {
      starts_[size(r)] = place;
      counts_[size(r)] = list(r, place);
      place += counts_[size(r)];
    }
  });
  for (const std::uint32_t count : counts_) entries_ += count;
}

ListedRows ListedRows::transposed(Borrowed<std::uint32_t>* places) const {
  ListedRows out(width_, rows_, entries_);
  out.all_ones_ = all_ones_;
  out.counts_.resize(size(width_));
  out.starts_.resize(size(width_));
  out.ids_ = Borrowed<std::uint32_t>(entries_);
  if (values_ && !all_ones_) out.values_ = Borrowed<float>(entries_);
  if (places != nullptr) *places = Borrowed<std::uint32_t>(rows_ == 0 ? 0 : start(rows_ - 1) + count(rows_ - 1));
  for (Index r = 0; r < rows_; ++r) {
    for (const std::uint32_t* id = ids(r); id != ids(r) + count(r); ++id) ++out.counts_[*id];
  }
  std::vector<Index> next(size(width_));
  for (Index k = 0, place = 0; k < width_; ++k) {
    out.starts_[size(k)] = next[size(k)] = place;
    place += out.counts_[size(k)];
  }
  for (Index r = 0; r < rows_; ++r) {
    for (Index i = start(r); i < start(r) + count(r); ++i) {
      const Index place = next[ids_[i]]++;
      out.ids_[place] = static_cast<std::uint32_t>(r);
      if (out.values_) out.values_[place] = values_[i];
      if (places != nullptr) (*places)[i] = static_cast<std::uint32_t>(place);
    }
  }
  return out;
}

void ListedRows::expand(Index first, Index rows, float* dense) const {
  for (Index r = 0; r < rows; ++r) {
    const SpikeRow listed = row(first + r);
    for (std::uint32_t k = 0; k < listed.count; ++k) {
      dense[r * width_ + listed.ids[k]] += listed.values == nullptr ? 1.0F : listed.values[k];
    }
  }
}

void multiplyLists(const ListedRows& lists, const Weights& matrix, const WritableNumbers& out, const Threads& threads) {
  const Threads own = threadsFor((lists.entries() + lists.rows()) * matrix.outputs, threads);
  Product(lists, matrix, out, own).run();
}

void dotLists(const ListedRows& lists, Index capacity, const Weights& matrix, const Numbers& g,
              const WritableNumbers& out, const Threads& threads) {
  const Threads own = threadsFor((lists.entries() + lists.rows()) * matrix.outputs, threads);
  Dots(lists, capacity, matrix, g, out, own).run();
}

}  // namespace snnjax
