// Dense linear algebra in vectors of two, in the manner of libraries that bring their own vector types for the host:
// the names of the IPU's types are free where <poplar/VectorTypes.hpp> is not included.
#include <cmath>
#include <cstdint>
#include <limits>
#include <poplar/HalfFloat.hpp>
#include <poplar/Vertex.hpp>
#ifdef __IPU__
#include <ipu_builtins.h>
#include <ipu_memory_intrinsics>
#include <ipu_vector_math>
#endif

#define ALWAYS_INLINE inline __attribute__((always_inline))

#ifndef __IPU__
template <class T, std::size_t n>
struct HostVector {
  T data[n];
  T& operator[](std::size_t i) { return data[i]; }
  const T& operator[](std::size_t i) const { return data[i]; }
};
template <class T, std::size_t n>
ALWAYS_INLINE HostVector<T, n> operator*(const HostVector<T, n>& a, const HostVector<T, n>& b) {
  HostVector<T, n> result;
  for (std::size_t i = 0; i < n; ++i) result[i] = a[i] * b[i];
  return result;
}
template <class T, std::size_t n>
ALWAYS_INLINE HostVector<T, n> operator+(const HostVector<T, n>& a, const HostVector<T, n>& b) {
  HostVector<T, n> result;
  for (std::size_t i = 0; i < n; ++i) result[i] = a[i] + b[i];
  return result;
}
using float2 = HostVector<float, 2>;
using rptsize_t = std::uint16_t;
namespace ipu {
template <class T>
ALWAYS_INLINE T load_postinc(const T** from, int step) {
  const T value = **from;
  *from += step;
  return value;
}
template <class T>
ALWAYS_INLINE void store_postinc(T** to, T value, int step) {
  **to = value;
  *to += step;
}
}  // namespace ipu
// What a scaled sum leaves in the accumulators and takes from the scale register.
struct Scale {
  float scale = 0;
  void put(float s) { scale = s; }
  float2 axpy(float2 x, float2 y) const { return {scale * x[0] + y[0], scale * x[1] + y[1]}; }
};
#else
struct Scale {
  void put(float s) { __builtin_ipu_uput(s, 0); }
  float2 axpy(float2 x, float2 y) { return __builtin_ipu_f32v2axpy(y, x); }
};
#endif

using namespace poplar;
static constexpr size_t MIN_ALIGN = 8;

// out = x - (x . v) scale v, row by row: a Householder reflection of rows, each worker those between its offsets.
class [[poplar::constraint("elem(*x) != elem(*v)", "elem(*x) != elem(*out)")]] ReflectRows : public MultiVertex {
 public:
  using IndexType = unsigned short;
  Input<Vector<float, VectorLayout::ONE_PTR, MIN_ALIGN>> x;                   // [rows, width]
  Input<Vector<float, VectorLayout::ONE_PTR, MIN_ALIGN>> v;                   // [width]
  Input<Vector<float, VectorLayout::ONE_PTR, MIN_ALIGN>> scale;               // [1]
  Input<Vector<IndexType, VectorLayout::ONE_PTR, MIN_ALIGN>> worker_offsets;  // [7]
  Output<Vector<float, VectorLayout::ONE_PTR, MIN_ALIGN>> out;                // [rows, width]
  const IndexType width;

  ReflectRows();

  bool compute(unsigned wid) {
    __builtin_assume(width % 2 == 0);
    for (IndexType row = worker_offsets[wid]; row != worker_offsets[wid + 1]; ++row) reflect(row);
    return true;
  }

 private:
  ALWAYS_INLINE void reflect(IndexType row) {
    const rptsize_t pairs = width / 2;
    auto ptr_x = reinterpret_cast<const float2*>(&x[row * width]);
    auto ptr_v = reinterpret_cast<const float2*>(&v[0]);
    float2 dot = {0, 0};
#pragma clang loop unroll_count(2)
    for (rptsize_t i = 0; i != pairs; ++i) dot = dot + ipu::load_postinc(&ptr_x, 1) * ipu::load_postinc(&ptr_v, 1);
    Scale tas;
    tas.put(-(dot[0] + dot[1]) * scale[0]);
    ptr_x = reinterpret_cast<const float2*>(&x[row * width]);
    ptr_v = reinterpret_cast<const float2*>(&v[0]);
    auto ptr_out = reinterpret_cast<float2*>(&out[row * width]);
    for (rptsize_t i = 0; i != pairs; ++i) {
      const float2 vi = ipu::load_postinc(&ptr_v, 1);
      ipu::store_postinc(&ptr_out, tas.axpy(vi, ipu::load_postinc(&ptr_x, 1)), 1);
    }
  }
};

// *out = <a, b>, in the type of the operands or wider.
template <typename T, typename Sum, bool square>
class DotProduct : public Vertex {
 public:
  Vector<Input<Vector<T, VectorLayout::SPAN, 4>>> a, b;  // pieces
  Output<Sum> out;
  Sum start = 0;

  bool compute() {
    Sum sum = start;
    for (unsigned piece = 0; piece < a.size(); ++piece) {
      const auto& right = square ? a[piece] : b[piece];
      for (unsigned i = 0; i < a[piece].size(); ++i) sum += Sum(a[piece][i]) * Sum(right[i]);
    }
    *out = sum;
    return true;
  }
};
template class DotProduct<float, float, false>;
template class DotProduct<half, float, false>;
template class DotProduct<half, half, false>;
