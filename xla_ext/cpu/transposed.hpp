// Rows of spikes by the neurons that fired: what a weight gradient is a sum over.
//
// dweights[k] = sum of g[r] over the rows r in which k stands. Summed row by row, every g[r] is added to many rows of
// the gradient, each read and written again; summed neuron by neuron, rows of g are only read, and the sum of one
// neuron stays in registers. Rows are taken in chunks whose g stays in the cache.
#pragma once

#include <vector>

#include "extent.hpp"
#include "spare_memory.hpp"
#include "spike_rows.hpp"

namespace snnjax {

class TransposedSpikes {
 public:
  // How the rows of g of a chunk lie in memory: behind one another (step by step, the chunk's samples), or where they
  // lie in the array of all rows.
  enum class Layout { kPacked, kInPlace };

  // `spikes` must outlive this.
  TransposedSpikes(const SpikeLists& spikes, const Chunking& chunking, Layout layout, const Threads& threads);

  const Chunking& chunking() const { return chunking_; }

  // weights[k] += sum over the chunk's rows r of spikes[r][k] * g[r]; `g` begins with the chunk's first row.
  void accumulate(Index chunk, Rows<float> weights, Index columns, Rows<const float> g) const;

 private:
  struct Lists {
    std::vector<SpikeRow> neurons;          // of each neuron, the rows of g of the chunk in which it fired
    std::vector<std::uint32_t> dense_rows;  // rows of g whose spikes are in no list
    std::vector<Index> dense_spikes;        // and which spikes they belong to
  };

  template <typename Visit>
  void visitRows(Index chunk, Visit visit) const;
  void fill(Index chunk, std::uint32_t* rows, float* values);
  void addDense(const Lists& lists, Rows<float> weights, Index columns, Rows<const float> g) const;

  const SpikeLists& spikes_;
  const Chunking chunking_;
  const Layout layout_;
  std::vector<Lists> chunks_;
  Borrowed<std::uint32_t> row_ids_;
  Borrowed<float> values_;
};

}  // namespace snnjax
