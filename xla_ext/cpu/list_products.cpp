#include "list_products.hpp"

#include <algorithm>
#include <cstdlib>

namespace snnjax {
namespace {

double tunable(const char* name, double value) {
  const char* text = std::getenv(name);
  return text == nullptr ? value : std::atof(text);
}

const double kThreadWork = tunable("T_THREAD", 4e5);   // products of numbers below which one thread is faster
const double kPackUses = tunable("T_PACK", 4);
const double kDense = tunable("T_DENSE", 0.3);
const Index kWideTile = static_cast<Index>(tunable("T_WIDE", 512));
const Index kRowsAtOnce = 64;

// Sums of some rows and columns on their way to the result: in place where whole vectors of float32 fit there.
class Target {
 public:
  Target(const Numbers& out, Index stride, Index first, Index columns, Index padded, std::vector<float>& scratch)
      : out_(out), stride_(stride), first_(first), columns_(columns) {
    in_place_ = !out.is_bfloat16 && columns == padded;
    if (in_place_) return;
    scratch.resize(static_cast<std::size_t>(kRowsAtOnce * padded));
    rows_ = {scratch.data(), padded};
  }
  Rows<float> rows(Index first_row) const {
    if (!in_place_) return rows_;
    return {static_cast<float*>(out_.data) + first_row * stride_ + first_, stride_};
  }
  void finish(Index first_row, Index count) const {
    if (in_place_) return;
    for (Index r = 0; r < count; ++r) out_.write((first_row + r) * stride_ + first_, columns_, rows_.row(r));
  }

 private:
  Numbers out_;
  Index stride_, first_, columns_;
  bool in_place_ = false;
  Rows<float> rows_{nullptr, 0};
};

using Block = SpikeRow[kRowsAtOnce];

void fill(const ListedRows& lists, Index first, Index count, Block& block) {
  for (Index r = 0; r < count; ++r) block[r] = lists.row(first + r);
}

class Product {
 public:
  Product(const ListedRows& lists, const Weights& matrix, const Numbers& out, const Threads& threads)
      : lists_(lists), matrix_(matrix), out_(out), threads_(threads) {}

  void run() {
    const auto entries = static_cast<double>(lists_.entries());
    const double work = entries * static_cast<double>(matrix_.outputs);
    const Threads alone({}, 1);
    const Threads& threads = work < kThreadWork ? alone : threads_;
    const double uses = entries / static_cast<double>(std::max<Index>(matrix_.inputs, 1));
    if (lists_.rows() > 1 && entries > kDense * static_cast<double>(lists_.rows() * lists_.width())) {
      runDense(threads);
    } else if (tunable("T_BYN", 0) > 0 && lists_.rows() > 1) {
      runByNeuron(threads);
    } else if (uses >= kPackUses) {
      runPacked(threads);
    } else {
      runInPlace(threads);
    }
  }

 private:
  struct Worker {
    PackedWeights packed;
    Index packed_first = -1;
    std::vector<float> scratch;
  };

  // Cuts the result into tiles of columns and, where these are few, into ranges of rows.
  template <typename Work>
  void cut(Index tile, Index first_row, Index rows, const Threads& threads, Work work) {
    const Index tiles = (matrix_.outputs + tile - 1) / tile;
    const Index ranges = tiles >= threads.count() ? 1 : (threads.count() + tiles - 1) / tiles;
    const Index range = roundUp((rows + ranges - 1) / ranges, kRowsAtOnce);
    const Index per_tile = (rows + range - 1) / range;
    workers_.resize(static_cast<std::size_t>(threads.count()));
    threads.run(tiles * per_tile, [&](Index task, Index worker) {
      const Index first = task / per_tile * tile, start = task % per_tile * range;
      work(workers_[static_cast<std::size_t>(worker)], first, std::min(tile, matrix_.outputs - first), first_row + start,
           std::min(range, rows - start));
    });
  }

  void runInPlace(const Threads& threads) {
    cut(kWideTile, 0, lists_.rows(), threads, [&](Worker& worker, Index first, Index columns, Index row, Index rows) {
      const Target target(out_, matrix_.outputs, first, columns, columns, worker.scratch);
      Block block;
      for (Index r = row; r < row + rows; r += kRowsAtOnce) {
        const Index count = std::min(kRowsAtOnce, row + rows - r);
        fill(lists_, r, count, block);
        if (matrix_.numbers.is_bfloat16) {
          const auto* numbers = static_cast<const std::uint16_t*>(matrix_.numbers.data) + first;
          kernels().sumRowsBfloat16(block, count, {numbers, matrix_.outputs}, columns, {nullptr, 0}, target.rows(r));
        } else {
          kernels().sumRows(block, count, {matrix_.numbers.float32() + first, matrix_.outputs}, columns, {nullptr, 0},
                            target.rows(r));
        }
        target.finish(r, count);
      }
    });
  }

  void runByNeuron(const Threads& threads) {
    const ListedRows by = lists_.transposed();
    const Index ahead = static_cast<Index>(tunable("T_AHEAD", 4));
    cut(kWideTile, 0, lists_.rows(), threads, [&](Worker& worker, Index first, Index columns, Index row, Index rows) {
      static_cast<void>(row), static_cast<void>(rows), static_cast<void>(worker);
      float* out = static_cast<float*>(out_.data) + first;
      for (Index r = 0; r < lists_.rows(); ++r) std::fill_n(out + r * matrix_.outputs, columns, 0.0F);
      for (Index k = 0; k < lists_.width(); ++k) {
        if (k + ahead < lists_.width() && by.count(k + ahead) > 0) {
          const float* next = matrix_.numbers.float32() + (k + ahead) * matrix_.outputs + first;
          for (Index c = 0; c < columns; c += 16) __builtin_prefetch(next + c);
        }
        if (by.count(k) == 0) continue;
        const SpikeRow one = by.row(k);
        kernels().addRows(&one, 1, {out, matrix_.outputs}, columns, {matrix_.numbers.float32() + k * matrix_.outputs + first, 0});
      }
    });
  }

  const PackedWeights& pack(Worker& worker, Index first, Index columns) {
    if (worker.packed_first != first) {
      worker.packed.resize(matrix_.inputs, roundUp(columns, kernels().lanes));
      packColumns(matrix_, first, columns, worker.packed);
      worker.packed_first = first;
    }
    return worker.packed;
  }

  void runPacked(const Threads& threads) {
    const Index tile = columnsOfTile(matrix_.outputs, matrix_.inputs);
    cut(tile, 0, lists_.rows(), threads, [&](Worker& worker, Index first, Index columns, Index row, Index rows) {
      const PackedWeights& packed = pack(worker, first, columns);
      const Target target(out_, matrix_.outputs, first, columns, packed.columns(), worker.scratch);
      Block block;
      for (Index r = row; r < row + rows; r += kRowsAtOnce) {
        const Index count = std::min(kRowsAtOnce, row + rows - r);
        fill(lists_, r, count, block);
        kernels().sumRows(block, count, {packed.rows().data, packed.columns()}, packed.columns(), {nullptr, 0},
                          target.rows(r));
        target.finish(r, count);
      }
    });
  }

  void runDense(const Threads& threads) {
    constexpr Index kDenseRows = 512;
    const Index width = lists_.width(), tile = columnsOfTile(matrix_.outputs, matrix_.inputs);
    const Index most = std::min(kDenseRows, lists_.rows());
    const Buffer<float> dense(most * width);
    for (Index start = 0; start < lists_.rows(); start += most) {
      const Index own = std::min(most, lists_.rows() - start);
      threads.run((own + 7) / 8, [&](Index task, Index) {
        const Index first = task * 8, count = std::min<Index>(8, own - first);
        if (start > 0) std::fill_n(dense.data() + first * width, count * width, 0.0F);
        lists_.expand(start + first, count, dense.data() + first * width);
      });
      cut(tile, 0, own, threads, [&](Worker& worker, Index first, Index columns, Index row, Index rows) {
        const PackedWeights& packed = pack(worker, first, columns);
        const Target target(out_, matrix_.outputs, first, columns, packed.columns(), worker.scratch);
        const Rows<const float> weights{packed.rows().data, packed.columns()};
        Block block;
        for (Index r = row; r < row + rows; r += kRowsAtOnce) {
          const Index count = std::min(kRowsAtOnce, row + rows - r);
          const Rows<const float> own_dense{dense.data() + r * width, width};
          const Rows<float> to = target.rows(start + r);
          if (!kernels().multiplyRows(own_dense, count, width, weights, packed.columns(), {nullptr, 0}, to)) {
            // A product of 0 with a number that is not finite may have entered the sums.
            fill(lists_, start + r, count, block);
            kernels().sumRows(block, count, weights, packed.columns(), {nullptr, 0}, to);
          }
          target.finish(start + r, count);
        }
      });
    }
  }

  const ListedRows& lists_;
  const Weights& matrix_;
  const Numbers& out_;
  const Threads& threads_;
  std::vector<Worker> workers_;
};

class Dots {
 public:
  Dots(const ListedRows& lists, Index capacity, const Weights& matrix, const Numbers& g, const Numbers& out)
      : lists_(lists), capacity_(capacity), matrix_(matrix), g_(g), out_(out) {}

  void run(const Threads& threads) {
    const auto entries = static_cast<double>(lists_.entries());
    const double work = entries * static_cast<double>(matrix_.outputs);
    const Threads alone({}, 1);
    const Threads& own_threads = work < kThreadWork ? alone : threads;
    if (lists_.rows() > 1 && entries > kDense * static_cast<double>(lists_.rows() * lists_.width())) {
      runDense(own_threads);
    } else if (entries < 0.25 * static_cast<double>(lists_.width())) {
      runByRow(own_threads);
    } else {
      runByNeuron(own_threads);
    }
  }

 private:
  struct Scratch {
    std::vector<float> row, dots;
  };

  // One row of float32 numbers, in place or in scratch.
  const float* rowOf(const Numbers& numbers, Index row, std::vector<float>& scratch) const {
    if (!numbers.is_bfloat16) return numbers.float32() + row * matrix_.outputs;
    scratch.resize(static_cast<std::size_t>(matrix_.outputs));
    numbers.read(row * matrix_.outputs, matrix_.outputs, scratch.data());
    return scratch.data();
  }

  void runByRow(const Threads& threads) {
    threads.run(lists_.rows(), [&](Index r, Index) {
      Scratch own;
      std::vector<float> row;
      const Index count = lists_.count(r);
      if (count == 0) return;
      own.dots.resize(static_cast<std::size_t>(count));
      const float* g = rowOf(g_, r, own.row);
      if (!matrix_.numbers.is_bfloat16) {
        kernels().dotRows(lists_.ids(r), count, {matrix_.numbers.float32(), matrix_.outputs}, matrix_.outputs, g,
                          own.dots.data());
      } else {
        for (Index k = 0; k < count; ++k) {
          constexpr std::uint32_t kFirst = 0;
          const float* weights = rowOf(matrix_.numbers, lists_.ids(r)[k], row);
          kernels().dotRows(&kFirst, 1, {weights, matrix_.outputs}, matrix_.outputs, g, &own.dots[static_cast<std::size_t>(k)]);
        }
      }
      for (Index k = 0; k < count; ++k) out_.write(r * capacity_ + lists_.slots(r)[k], 1, &own.dots[static_cast<std::size_t>(k)]);
    });
  }

  // All of g as float32.
  const float* wideG(Buffer<float>& scratch) const {
    if (!g_.is_bfloat16) return g_.float32();
    scratch = Buffer<float>(lists_.rows() * matrix_.outputs);
    g_.read(0, lists_.rows() * matrix_.outputs, scratch.data());
    return scratch.data();
  }

  void runByNeuron(const Threads& threads) {
    const ListedRows by_neuron = lists_.transposed();
    Buffer<float> memory;
    const Rows<const float> g{wideG(memory), matrix_.outputs};
    std::vector<Scratch> scratch(static_cast<std::size_t>(threads.count()));
    constexpr Index kNeurons = 32;
    threads.run((lists_.width() + kNeurons - 1) / kNeurons, [&](Index task, Index worker) {
      Scratch& own = scratch[static_cast<std::size_t>(worker)];
      for (Index k = task * kNeurons; k < std::min(task * kNeurons + kNeurons, lists_.width()); ++k) {
        const Index count = by_neuron.count(k);
        if (count == 0) continue;
        own.dots.resize(static_cast<std::size_t>(count));
        kernels().dotRows(by_neuron.ids(k), count, g, matrix_.outputs, rowOf(matrix_.numbers, k, own.row), own.dots.data());
        for (Index i = 0; i < count; ++i) {
          out_.write(Index{by_neuron.ids(k)[i]} * capacity_ + by_neuron.slots(k)[i], 1, &own.dots[static_cast<std::size_t>(i)]);
        }
      }
    });
  }

  // All products of a row of the matrix with rows of g, of which the listed ones are taken.
  void runDense(const Threads& threads) {
    const ListedRows by_neuron = lists_.transposed();
    constexpr Index kTile = 32, kNeurons = 32;
    const Index rows = lists_.rows(), tiles = (rows + kTile - 1) / kTile, depth = matrix_.outputs;
    std::vector<PackedWeights> packed(static_cast<std::size_t>(tiles));
    const std::vector<float> ones(static_cast<std::size_t>(depth), 1.0F);
    threads.run(tiles, [&](Index tile, Index) {
      const Index first = tile * kTile, count = std::min(kTile, rows - first);
      PackedWeights& own = packed[static_cast<std::size_t>(tile)];
      own.resize(depth, roundUp(count, kernels().lanes));
      packTransposed({g_, rows, depth}, first, count, ones.data(), own);
    });
    std::vector<Scratch> scratch(static_cast<std::size_t>(threads.count()));
    threads.run((lists_.width() + kNeurons - 1) / kNeurons, [&](Index task, Index worker) {
      Scratch& own = scratch[static_cast<std::size_t>(worker)];
      const Index first = task * kNeurons, count = std::min(kNeurons, lists_.width() - first);
      const Index stride = tiles * kTile;
      own.dots.resize(static_cast<std::size_t>(kNeurons * stride));
      const float* weights = matrix_.numbers.float32() + first * depth;
      if (matrix_.numbers.is_bfloat16) {
        own.row.resize(static_cast<std::size_t>(kNeurons * depth));
        matrix_.numbers.read(first * depth, count * depth, own.row.data());
        weights = own.row.data();
      }
      for (Index tile = 0; tile < tiles; ++tile) {
        const PackedWeights& own_g = packed[static_cast<std::size_t>(tile)];
        kernels().multiplyRows({weights, depth}, count, depth, {own_g.rows().data, own_g.columns()}, own_g.columns(),
                               {nullptr, 0}, {own.dots.data() + tile * kTile, stride});
      }
      for (Index k = 0; k < count; ++k) {
        for (std::uint32_t i = 0; i < by_neuron.count(first + k); ++i) {
          const Index r = by_neuron.ids(first + k)[i];
          out_.write(r * capacity_ + by_neuron.slots(first + k)[i], 1, &own.dots[static_cast<std::size_t>(k * stride + r)]);
        }
      }
    });
  }

  const ListedRows& lists_;
  Index capacity_;
  const Weights& matrix_;
  const Numbers& g_;
  const Numbers& out_;
};

}  // namespace

void multiplyLists(const ListedRows& lists, const Weights& matrix, const Numbers& out, const Threads& threads) {
  Product(lists, matrix, out, threads).run();
}

void dotLists(const ListedRows& lists, Index capacity, const Weights& matrix, const Numbers& g, const Numbers& out,
              const Threads& threads) {
  Dots(lists, capacity, matrix, g, out).run(threads);
}

}  // namespace snnjax
