// Vertices without an estimate and without a file of costs, for counted_codelets.cpp.
#include <cmath>
#include <cstring>
#include <poplar/Vertex.hpp>

using namespace poplar;

class DotProduct : public Vertex {
 public:
  Input<Vector<float>> a, b;
  Output<float> out;
  bool compute() {
    float sum = 0;
    for (unsigned i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    *out = sum;
    return true;
  }
};

class Exponential : public Vertex {
 public:
  InOut<Vector<float>> values;
  bool compute() {
    for (unsigned i = 0; i < values.size(); ++i) values[i] = std::exp(values[i]);
    return true;
  }
};

class Divide : public Vertex {
 public:
  InOut<Vector<int>> values;
  int by;
  bool compute() {
    for (unsigned i = 0; i < values.size(); ++i) values[i] /= by;
    return true;
  }
};

class Shift : public MultiVertex {
 public:
  InOut<Vector<float>> values;
  bool compute(unsigned worker) {
    for (unsigned i = worker; i < values.size(); i += numWorkers()) values[i] += 1;
    return true;
  }
};

// A supervisor's cost is not counted.
class Copies : public SupervisorVertex {
 public:
  Input<Vector<float>> from;
  Output<Vector<float>> to;
  bool compute() __attribute__((target("supervisor"))) {
    std::memcpy(&to[0], &from[0], from.size() * sizeof(float));
    return true;
  }
};
