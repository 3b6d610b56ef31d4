// Codelets of many shapes, for codelets_types.cpp: written as users of Poplar write them.
#include <ipudef.h>
#include <poplar/AvailableVTypes.h>
#include <poplar/StackSizeDefs.hpp>
#include <poplar/TileConstants.hpp>
#include <poplar/Vertex.hpp>
#include <string>

using namespace poplar;

static constexpr auto SPAN = VectorLayout::SPAN;
static constexpr auto ONE_PTR = VectorLayout::ONE_PTR;

DEF_STACK_USAGE(200, "__runCodelet_Plain");

// class Commented : public Vertex { public: Input<float> never; };
class Plain : public Vertex {
  Input<float> hidden;  // fields may be private
  static constexpr unsigned kConstant = 3;
  static unsigned shared;
  enum Mode { A, B };
  int helper(int x) const { return x + 1; }

 public:
  /* Input<float> commented; */
  Input<Vector<float>> first, second;
  Output<Vector<float, SPAN, 8>> result;
  unsigned count = 2;
  const float scale;
  float table[4] = {};
  float* scratch = nullptr;

  Plain();
  bool compute() {
    for (unsigned i = 0; i < count; ++i) result[i] = first[i] * scale + *hidden + second.size();
    return true;
  }
};

namespace outer::inner {
namespace {
constexpr int kOffset = 10;
}
enum class Op { Add, Subtract };

template <typename T>
struct Base : public Vertex {
  InOut<Vector<T>> data;
};

template <typename T>
struct Middle : Base<T> {
  Vector<T> state;
};

template <typename T, Op op, unsigned n, bool flag = false>
class [[poplar::constraint("elem(*data) != elem(*other)")]] Derived : public Middle<T> {
 public:
  Input<Vector<T, VectorLayout::SCALED_PTR64, 8>> other;
  T bias{};

  bool compute() {
    for (unsigned i = 0; i < this->data.size(); ++i) {
      const T x = other[i] * T(n);
      this->data[i] = (op == Op::Add ? this->data[i] + x : this->data[i] - x) + bias + (flag ? this->state[0] : T(0));
    }
    return true;
  }
};

#define INSTANTIATE(T)                   \
  template class Derived<T, Op::Add, 2>; \
  template class Derived<T, Op::Subtract, 3u, true>
INSTANTIATE(float);
INSTANTIATE(half);
template class Derived<unsigned, Op::Add, 1>;
}  // namespace outer::inner

template <typename T>
struct Special : public Vertex {
  Input<T> general;
  Output<T> out;
  void compute() { *out = *general; }
};
template <>
struct Special<int> : public Vertex {
  Input<int> particular;
  Output<int> out;
  void compute() { *out = -*particular; }
};
template <typename T>
struct Special<Vector<T>> : public Vertex {
  Input<Vector<T>> partial;
  Output<T> out;
  void compute() { *out = partial[0]; }
};
template struct Special<float>;
template struct Special<Vector<float>>;

class Nested : public Vertex {
 public:
  Vector<InOut<Vector<float, ONE_PTR, 8>>, ONE_PTR> rows;
  Input<VectorList<unsigned short, VectorListLayout::DELTAN>> list;
  Vector<Input<float>> scalars;
  Output<Vector<unsigned>> sizes;
  Input<size_t> limit;

  auto compute() -> bool {
    for (std::size_t i = 0; i < limit; ++i) rows[i][0] += scalars[i] + float(list[i].size());
    for (const auto& row : list) sizes[0] += row[0];
    sizes[1] = unsigned(list.size() + scalars.size());
    return true;
  }
};

struct Workers : public MultiVertex {
  InOut<Vector<unsigned, ONE_PTR>> counts;
  unsigned size;
  bool compute(unsigned workerId) {
    for (unsigned i = workerId; i < size; i += MultiVertex::numWorkers()) counts[i] = workerId;
    return true;
  }
};

class Supervisor : public SupervisorVertex {
 public:
  InOut<bool> flag;
  __attribute__((target("supervisor"))) void compute() { flag = !flag; }
};

// No vertex, and derived from something.
struct Helper : std::char_traits<char> {};
