// `dotLists`: the cotangents of the values of lists.
#include <algorithm>
#include <vector>

#include "list_products.hpp"

namespace snnjax {
namespace {

using Floats = std::vector<float>;

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
  // Up to this many uses of each row of the matrix, it is read once per entry.
  static constexpr double kUsesByRow = 2.0;
  // Above this share of entries computing all products is faster (measured between 0.2 and 0.3 for 1024 x 1024 and 4096
  // x 4096 weights).
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

  // Rows of float32: in place, or in scratch.
  const float* rowsOf(const Numbers& numbers, Index first, Index count, Floats& scratch) const {
    if (!numbers.is_bfloat16) return numbers.float32() + first * matrix_.outputs;
    scratch.resize(static_cast<std::size_t>(count * matrix_.outputs));
    numbers.read(first * matrix_.outputs, count * matrix_.outputs, scratch.data());
    return scratch.data();
  }

  // Few enough rows that every thread gets some.
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

  // products[r][k] = <matrix[k], g[start + r]>: the rows of the matrix, in place, times g transposed.
  void multiplyAll(Index start, Index rows, float* products) const {
    const Index width = lists_.width(), outputs = matrix_.outputs;
    std::vector<PanelProduct> columns(static_cast<std::size_t>((rows + kRowsAtOnce - 1) / kRowsAtOnce));
    each(rows, kRowsAtOnce, [&](Index first, Index count) {
      const Floats ones(static_cast<std::size_t>(outputs), 1.0F);
      columns[static_cast<std::size_t>(first / kRowsAtOnce)].pack({g_, lists_.rows(), outputs}, start + first, count,
                                                                  roundUp(count, kernels().lanes), ones.data());
    });
    each(width, kNeuronsAtOnce, [&](Index first, Index count) {
      PackedWeights split;
      Floats scratch, memory(static_cast<std::size_t>(kNeuronsAtOnce * kRowsAtOnce));
      const Rows<const float> matrix{rowsOf(matrix_.numbers, first, count, scratch), outputs};
      const Rows<float> part{memory.data(), kRowsAtOnce};
      for (Index r = 0; r < rows; r += kRowsAtOnce) {
        columns[static_cast<std::size_t>(r / kRowsAtOnce)].multiply({matrix, count}, part, split);
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

void dotLists(const ListedRows& lists, Index capacity, const Weights& matrix, const Numbers& g,
              const WritableNumbers& out, const Threads& threads) {
  const Threads own = threadsFor((lists.entries() + lists.rows()) * matrix.outputs, threads);
  Dots(lists, capacity, matrix, g, out, own).run();
}

}  // namespace snnjax
