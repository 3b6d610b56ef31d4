// lif_network, backward: from the gradients of lists to those of the neurons below that fired.
#include "../fields.hpp"
#include "../lists/listed_rows.hpp"

namespace snnjax {

// The dense form of lists and their values, at the home of the lists: 0 except at the listed ids. Rows are laid out in
// blocks, one for each tile that takes them. Both groups of a list ascend, so that each worker finds the ids of its
// blocks by bisection.
template <class Id>
class ScatterList : public poplar::MultiVertex {
 public:
  In<Id> list;                                            // [rows, stride], records
  In<float> values;                                       // [rows, capacity]
  Out<float> row;                                         // [blocks, rows, columns]: id i lies in block i / columns
  unsigned rows, stride, capacity, columns, num_neurons;  // num_neurons: blocks * columns

  bool compute(unsigned worker) {
    const unsigned block_size = rows * columns;
    const Range blocks = shareOf(num_neurons / columns, worker, block_size % 2 == 0 ? 1 : 2);
    for (unsigned i = blocks.first * block_size; i < blocks.last * block_size; ++i) row[i] = 0.0f;
    const Range own = {blocks.first * columns, blocks.last * columns};
    for (unsigned b = 0; b < rows; ++b) {
      const List<Id> from = {&list[b * stride], capacity};
      const unsigned spikes = from.spikes();
      place(b, from.ids(), Range{0, spikes}, own);
      place(b, from.ids(), Range{spikes, from.listed()}, own);
    }
    return true;
  }

 private:
  // The entries of one ascending group, as far as their ids lie in `own`.
  void place(unsigned b, const Id* ids, Range group, Range own) {
    const Range entries = entriesWithin(ids + group.first, group.last - group.first, own);
    const float inverse = 1.0f / static_cast<float>(columns);
    for (unsigned k = group.first + entries.first; k < group.first + entries.last; ++k) {
      const auto id = static_cast<unsigned>(ids[k]);
      if (id - own.first >= own.last - own.first) continue;  // ids in disorder
      const unsigned block = quotient(id, columns, inverse);
      row[(block * rows + b) * columns + id - block * columns] = values[b * capacity + k];
    }
  }

  // a / b without a division of integers, which a tile has only in software.
  static unsigned quotient(unsigned a, unsigned b, float inverse) {
    unsigned q = static_cast<unsigned>(static_cast<float>(a) * inverse);
    while (q * b > a) --q;
    while (a - q * b >= b) ++q;
    return q;
  }
};

template class ScatterList<unsigned short>;

}  // namespace snnjax
