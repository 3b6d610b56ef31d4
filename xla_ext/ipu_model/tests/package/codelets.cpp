#include <poplar/Vertex.hpp>

class Square : public poplar::Vertex {
 public:
  poplar::InOut<poplar::Vector<float>> values;

  bool compute() {
    for (auto& value : values) value *= value;
    return true;
  }
};
