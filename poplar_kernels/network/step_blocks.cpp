// Blocks of time steps on the tiles: rows of a history, and the counter of a loop.
#include "../issue_slots.hpp"
#include "../vertex.hpp"
#include "../words.hpp"

namespace snnjax {

// row = history[block - back]; zeros where there is no such block
template <class T>
class LoadBlock : public poplar::MultiVertex {
 public:
  In<T> history;  // [num_blocks, width]
  Out<T> row;     // [width]
  poplar::Input<unsigned> block;
  unsigned num_blocks, back, width;

  void compute(unsigned worker) {
    const unsigned from = *block - back;
    const Range own = shareOf(width, worker, kPerVector<T>);
    if (from < num_blocks) {
      copyRows(&row[own.first], &history[from * width + own.first], own.count(), width);
    } else {
      fillRows(&row[own.first], T(0), own.count(), width);
    }
  }
};

// The counter of a loop, one on each tile.
class Advance : public poplar::Vertex {
 public:
  poplar::InOut<unsigned> counter;
  unsigned by;  // may wrap around: counts down

  void compute() { *counter += by; }
};

template <class T>
std::uint64_t workerCycles(const LoadBlock<T>& vertex, unsigned worker) {
  const Range own = shareOf(vertex.width, worker, kPerVector<T>);
  return cycles::entry(6, true) + 3 + 4 + cycles::moved(own.count(), sizeof(T), vertex.width);
}

// Two loads, add, store.
std::uint64_t workerCycles(const Advance&, unsigned) { return cycles::kCall + 5; }

SNNJAX_INSTANCES(LoadBlock, float, unsigned short)

}  // namespace snnjax
