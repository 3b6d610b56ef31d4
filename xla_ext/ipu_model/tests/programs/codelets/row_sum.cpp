// Sums, as a first vertex of one's own, and the same as a template over the type.
#include <poplar/Vertex.hpp>

class RowSum : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> row;
  poplar::Output<float> sum;

  bool compute() {
    *sum = 0;
    for (const float value : row) *sum += value;
    return true;
  }
};

template <typename T>
class WeightedSum : public poplar::Vertex {
 public:
  poplar::Vector<poplar::Input<poplar::Vector<T>>> rows;
  poplar::Input<poplar::Vector<T>> weights;
  poplar::InOut<poplar::Vector<T>> total;
  int repeats;

  bool compute() {
    for (int repeat = 0; repeat < repeats; ++repeat) {
      for (unsigned r = 0; r < rows.size(); ++r) {
        for (unsigned i = 0; i < rows[r].size(); ++i) total[i] += weights[r] * rows[r][i];
      }
    }
    return true;
  }
};

template class WeightedSum<float>;
template class WeightedSum<int>;
