// Short vectors that count the operations on them, in place of the tile's: a test includes what it counts between
// definitions of float2 and its like as these.
#pragma once

#include <poplar/VectorTypes.hpp>
#include <type_traits>

namespace counting {

inline unsigned operations = 0;

template <class V>
struct Complement;

template <class V>
struct Counted {
  using Element = std::decay_t<decltype(V{}[0])>;
  V all;

  Counted() = default;
  template <class... More>
  Counted(Element first, Element second, More... more) : all{first, second, more...} {}
  static Counted after(V all) {
    ++operations;
    Counted result;
    result.all = all;
    return result;
  }
  Element& operator[](unsigned i) { return reinterpret_cast<Element*>(&all)[i]; }
  Element operator[](unsigned i) const { return all[i]; }
  Counted& operator+=(Counted more) { return *this = after(all + more.all); }
  Counted operator-() const { return after(-all); }
  Complement<V> operator~() const { return {all}; }
};

// A complement takes no instruction of its own beside an and.
template <class V>
struct Complement {
  V all;
  operator Counted<V>() const { return Counted<V>::after(~all); }
};
template <class V>
Counted<V> operator&(Complement<V> a, Counted<V> b) {
  return Counted<V>::after(~a.all & b.all);
}
template <class V>
Counted<V> operator&(Complement<V> a, Complement<V> b) {
  return a & Counted<V>(b);
}

#define COUNTED(operation)                                                         \
  template <class V>                                                               \
  auto operator operation(Counted<V> a, Counted<V> b) {                            \
    return Counted<decltype(a.all operation b.all)>::after(a.all operation b.all); \
  }                                                                                \
  template <class V>                                                               \
  auto operator operation(typename Counted<V>::Element a, Counted<V> b) {          \
    return Counted<decltype(a operation b.all)>::after(a operation b.all);         \
  }
COUNTED(+)
COUNTED(-)
COUNTED(*)
COUNTED(/)
COUNTED(&)
COUNTED(|)
COUNTED(==)
COUNTED(!=)
COUNTED(<)
COUNTED(<=)
COUNTED(>)
COUNTED(>=)
#undef COUNTED

using Float2 = Counted<float2>;
using Half2 = Counted<half2>;
using Half4 = Counted<half4>;
using Int2 = Counted<int2>;

}  // namespace counting
