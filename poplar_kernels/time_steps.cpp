// Time on the tiles: rows of a history, and the counter of a loop.
#include "fields.hpp"
#include "workers.hpp"

namespace snnjax {

// The step that a layer is at; beyond the last one where it is not running.
inline unsigned stepOf(unsigned iteration, unsigned delay, unsigned num_steps, bool reverse) {
  const unsigned t = iteration - delay;
  return reverse ? num_steps - 1 - t : t;
}

// Workers share a row in whole 64-bit words.
template <class T>
constexpr unsigned kUnit = 8 / sizeof(T);

// row = history[t]
template <class T>
class LoadStep : public poplar::MultiVertex {
 public:
  In<T> history;  // [num_steps, width]
  Out<T> row;     // [width]
  poplar::Input<unsigned> iteration;
  unsigned num_steps, delay, width;
  bool reverse;  // t = num_steps - 1 - (iteration - delay) instead of iteration - delay

  bool compute(unsigned worker) {
    const unsigned t = stepOf(*iteration, delay, num_steps, reverse);
    if (t >= num_steps) return true;
    const Range own = shareOf(width, worker, kUnit<T>);
    for (unsigned i = own.first; i < own.last; ++i) row[i] = history[t * width + i];
    return true;
  }
};

// history[t] = row
template <class T>
class StoreStep : public poplar::MultiVertex {
 public:
  In<T> row;         // [width]; of 16-bit elements even, so that steps begin at whole words
  InOut<T> history;  // [num_steps, width]
  poplar::Input<unsigned> iteration;
  unsigned num_steps, delay, width;
  bool reverse;  // t = num_steps - 1 - (iteration - delay) instead of iteration - delay

  bool compute(unsigned worker) {
    const unsigned t = stepOf(*iteration, delay, num_steps, reverse);
    if (t >= num_steps) return true;
    const Range own = shareOf(width, worker, kUnit<T>);
    for (unsigned i = own.first; i < own.last; ++i) history[t * width + i] = row[i];
    return true;
  }
};

// out = in, as it is
template <class T>
class CopyRow : public poplar::MultiVertex {
 public:
  In<T> in;    // [width]
  Out<T> out;  // [width]
  unsigned width;

  bool compute(unsigned worker) {
    const Range own = shareOf(width, worker, kUnit<T>);
    for (unsigned i = own.first; i < own.last; ++i) out[i] = in[i];
    return true;
  }
};

// The counter of a loop's iterations, one on each tile.
class AddOne : public poplar::Vertex {
 public:
  poplar::InOut<unsigned> iteration;

  bool compute() {
    *iteration += 1;
    return true;
  }
};

template class LoadStep<float>;
template class LoadStep<half>;
template class LoadStep<int>;
template class LoadStep<unsigned short>;
template class StoreStep<float>;
template class StoreStep<half>;
template class StoreStep<int>;
template class StoreStep<unsigned short>;
template class CopyRow<float>;
template class CopyRow<half>;
template class CopyRow<int>;
template class CopyRow<unsigned short>;

}  // namespace snnjax
