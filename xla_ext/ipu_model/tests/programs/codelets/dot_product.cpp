// One number of a matrix-vector product.
#include <poplar/Vertex.hpp>

using namespace poplar;

class DotProduct : public Vertex {
 public:
  Input<Vector<float, VectorLayout::ONE_PTR, 8>> row;
  Input<Vector<float, VectorLayout::SPAN, 8>> vector;
  Output<float> result;

  bool compute() {
    float sum = 0;
    for (std::size_t i = 0; i < vector.size(); ++i) sum += row[i] * vector[i];
    *result = sum;
    return true;
  }
};
