// Codelets in C++11, as public ones are written; `requires` has been a keyword since C++20.
#include <ipudef.h>
#include <poplar/Vertex.hpp>

namespace poplar {

// With the names of Poplar around it, as those of its own namespace.
struct Doubled : Vertex {
  Input<Vector<float, VectorLayout::ONE_PTR, 8>> in;
  Output<Vector<float>> out;
  Vector<Input<Vector<int>>> rows;
  unsigned
    requires;

  bool compute() {
    const auto pairs = reinterpret_cast<float2*>(&in[0]);
    for (unsigned i = 0; i < out.size(); ++i)
    out[i] = 2 * pairs[i / 2][i % 2] + rows[0][i] +
               requires;
    return true;
  }
};

}  // namespace poplar

using namespace poplar;

namespace {

template <typename T>
class Largest : public MultiVertex {
 public:
  Input<Vector<T>> in;
  Output<T> out;

  bool compute(unsigned worker) {
    if (worker != 0) return true;
    *out = in[0];
    for (const T value : in) *out = value > *out ? value : *out;
    return true;
  }
};

}  // namespace

template class Largest<float>;
