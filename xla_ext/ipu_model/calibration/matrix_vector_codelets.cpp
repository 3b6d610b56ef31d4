// The two vertices of a matrix-vector product whose rows are split: plain loops, as a C++ programmer writes them.
#include <poplar/Vertex.hpp>

namespace calibration {

class DotProduct : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> row, vector;
  poplar::Output<float> out;

  bool compute() {
    float sum = 0;
    for (unsigned i = 0; i < row.size(); ++i) sum += row[i] * vector[i];
    *out = sum;
    return true;
  }
};

class Sum : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> parts;
  poplar::Output<float> out;

  bool compute() {
    float sum = 0;
    for (unsigned i = 0; i < parts.size(); ++i) sum += parts[i];
    *out = sum;
    return true;
  }
};

}  // namespace calibration
