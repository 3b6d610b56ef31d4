// Rows of any number, none included.
#include <poplar/Vertex.hpp>

class RowTotal : public poplar::Vertex {
 public:
  poplar::Vector<poplar::Input<poplar::Vector<float>>> rows;
  poplar::Input<poplar::Vector<float>> extra;
  poplar::Output<float> total;

  bool compute() {
    float sum = 0;
    for (unsigned r = 0; r < rows.size(); ++r) {
      for (float value : rows[r]) sum += value;
    }
    for (float value : extra) sum += value;
    *total = sum;
    return true;
  }
};
