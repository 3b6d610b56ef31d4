// Codelets of the tests of the core: small enough that what they do, and cost, can be checked by head.
#include <poplar/Vertex.hpp>

using namespace poplar;

// out = factor * in
template <typename T>
class Scale : public Vertex {
 public:
  Input<Vector<T>> in;
  Output<Vector<T>> out;
  T factor = 1;

  void compute() {
    for (unsigned i = 0; i < in.size(); ++i) out[i] = factor * in[i];
  }
};
template class Scale<float>;
template class Scale<int>;

// Adds to data what its neighbour is; each worker does every sixth element.
class AddShared : public MultiVertex {
 public:
  Input<Vector<float>> other;
  InOut<Vector<float>> data;

  bool compute(unsigned worker) {
    for (unsigned i = worker; i < data.size(); i += numWorkers()) data[i] += other[i];
    return true;
  }
};

// Sums of rows, and what it was called, with state that lives as long as the program.
class RowSums : public Vertex {
 public:
  Vector<Input<Vector<float>>> rows;
  Output<Vector<float>> sums;
  Output<unsigned> calls;
  Vector<float> weights;
  unsigned count = 0;

  bool compute() {
    for (unsigned r = 0; r < rows.size(); ++r) {
      float sum = 0;
      for (unsigned i = 0; i < rows[r].size(); ++i) sum += rows[r][i];
      sums[r] = sum * weights[r];
    }
    *calls = ++count;
    return true;
  }
};

// Nobody knows what it costs.
class Countdown : public Vertex {
 public:
  InOut<int> left;
  Output<bool> more;

  bool compute() {
    *left = *left - 1;
    *more = *left > 0;
    return true;
  }
};

// Nor what these two cost.
class CountdownOfWorkers : public MultiVertex {
 public:
  InOut<int> left;

  bool compute(unsigned worker) {
    if (worker == 0) *left = *left - 1;
    return true;
  }
};

class CountdownOfSupervisor : public SupervisorVertex {
 public:
  InOut<int> left;

  __attribute__((target("supervisor"))) bool compute() {
    *left = *left - 1;
    return true;
  }
};
