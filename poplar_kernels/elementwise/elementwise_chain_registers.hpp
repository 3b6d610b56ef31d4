// What the code of elementwise chains is made of, which the executor generates
// (xla_ext/elementwise/chain_source.cpp): elements in registers, n = 4, 2 or 1 of them, and functions of them. They
// yield what elementwise_chain_ops.hpp says.
//
// Floats are pairs in 64-bit registers; of one element both are the same. The truth of a comparison is a mask, all bits
// of an element set or clear, as the chip's comparisons have it. Halves are four in a register. Integers are single.
// chain_code.cpp says how many instructions each function takes.
#pragma once

#include <poplar/VectorTypes.hpp>
#include <type_traits>

#include "../vertex.hpp"
#include "cycles.hpp"
#include "elementwise_chain_ops.hpp"

namespace snnjax::chain {

template <unsigned n>
using Count = std::integral_constant<unsigned, n>;
template <unsigned n>
constexpr unsigned kPairs = (n + 1) / 2;

template <unsigned n, class V>
struct Pairs {
  V pairs[kPairs<n>];
};
template <unsigned n>
using Floats = Pairs<n, float2>;
template <unsigned n>
using Masks = Pairs<n, int2>;
template <unsigned n>
struct Halves {
  std::conditional_t<n == 4, half4, half2> all;
};
template <unsigned n>
struct Integers {
  unsigned all[n];
};

// The element of a row of one, and what all elements share, in registers. `bits` are those of a slot.
inline unsigned shared(const unsigned* from) { return *from; }
inline unsigned sharedHalf(const unsigned short* from) {
  return bitsOf<unsigned>(static_cast<float>(bitsOf<half>(*from)));
}
inline unsigned sharedBfloat(const unsigned short* from) { return unsigned(*from) << 16; }
template <class T, class Bits>
unsigned sharedInteger(const Bits* from) {
  return static_cast<unsigned>(static_cast<T>(*from));
}

template <unsigned n>
Floats<n> floats(Count<n>, unsigned bits) {
  const float x = bitsOf<float>(bits);
  Floats<n> all;
  for (float2& pair : all.pairs) pair = float2{x, x};
  return all;
}
template <unsigned n>
Halves<n> halves(Count<n>, unsigned bits) {
  const half x = static_cast<half>(bitsOf<float>(bits));
  if constexpr (n == 4)
    return {half4{x, x, x, x}};
  else
    return {half2{x, x}};
}
template <unsigned n>
Masks<n> masks(Count<n>, unsigned bits) {
  const int all = bits != 0 ? -1 : 0;
  Masks<n> result;
  for (int2& pair : result.pairs) pair = int2{all, all};
  return result;
}
template <unsigned n>
Integers<n> integers(Count<n>, unsigned bits) {
  Integers<n> result;
  for (unsigned& each : result.all) each = bits;
  return result;
}

// Rows are aligned for these accesses, each one instruction. They go by the type, not by memcpy: Clang forgets what it
// may assume of a pointer's alignment when it optimises a loop. The type of a row is only the width of its elements.
template <class T>
struct __attribute__((may_alias)) Aliased {
  T all;
};
template <class To, class From>
To loaded(const From* from) {
  return reinterpret_cast<const Aliased<To>*>(from)->all;
}
template <class To, class From>
void stored(To* to, From from) {
  reinterpret_cast<Aliased<From>*>(to)->all = from;
}

template <unsigned n>
Floats<n> loadFloats(Count<n>, const unsigned* from) {
  Floats<n> all;
  if constexpr (n == 1) {
    const float x = bitsOf<float>(*from);
    all.pairs[0] = float2{x, x};
  } else {
    for (unsigned i = 0; i < kPairs<n>; ++i) all.pairs[i] = loaded<float2>(from + 2 * i);
  }
  return all;
}
template <unsigned n>
Halves<n> loadHalves(Count<n>, const unsigned short* from) {
  if constexpr (n == 1)
    return {half2{bitsOf<half>(*from), bitsOf<half>(*from)}};
  else
    return {loaded<decltype(Halves<n>::all)>(from)};
}
// Sixteen bits become the upper ones of a float: halves beside zeros.
template <unsigned n>
Floats<n> loadBfloats(Count<n> count, const unsigned short* from) {
  const Halves<n> all = loadHalves(count, from);
  Floats<n> wide;
  for (unsigned i = 0; i < kPairs<n>; ++i) {
    const half2 first = {half(0), all.all[2 * i]}, second = {half(0), all.all[2 * i + 1]};
    wide.pairs[i] = float2{bitsOf<float>(first), bitsOf<float>(second)};
  }
  return wide;
}
template <class T, unsigned n, class Bits>
Integers<n> loadIntegers(Count<n>, const Bits* from) {
  Integers<n> all;
  for (unsigned i = 0; i < n; ++i) all.all[i] = static_cast<unsigned>(static_cast<T>(from[i]));
  return all;
}

// The same bits in the other kind of registers, through memory or by a move.
template <unsigned n>
Floats<n> floats(const Integers<n>& x) {
  Floats<n> all;
  for (unsigned i = 0; i < kPairs<n>; ++i) {
    all.pairs[i] = float2{bitsOf<float>(x.all[2 * i]), bitsOf<float>(x.all[n == 1 ? 0 : 2 * i + 1])};
  }
  return all;
}
template <unsigned n>
Integers<n> integers(const Floats<n>& x) {
  Integers<n> all;
  for (unsigned i = 0; i < n; ++i) all.all[i] = bitsOf<unsigned>(float(x.pairs[i / 2][i % 2]));
  return all;
}
// Between 1 and all bits.
template <unsigned n>
Integers<n> integers(const Masks<n>& x) {
  Integers<n> all;
  for (unsigned i = 0; i < n; ++i) all.all[i] = unsigned(x.pairs[i / 2][i % 2]) & 1u;
  return all;
}
template <unsigned n>
Masks<n> masks(const Integers<n>& x) {
  Masks<n> all;
  for (unsigned i = 0; i < kPairs<n>; ++i) {
    all.pairs[i] = int2{-int(x.all[2 * i]), -int(x.all[n == 1 ? 0 : 2 * i + 1])};
  }
  return all;
}
template <unsigned n>
Floats<n> floats(const Halves<n>& x) {
  Floats<n> all;
  for (unsigned i = 0; i < kPairs<n>; ++i) {
    all.pairs[i] = float2{static_cast<float>(x.all[2 * i]), static_cast<float>(x.all[2 * i + 1])};
  }
  return all;
}
template <unsigned n>
Halves<n> halves(const Floats<n>& x) {
  Halves<n> all;
  for (unsigned i = 0; i < kPairs<n>; ++i) {
    all.all[2 * i] = static_cast<half>(x.pairs[i][0]);
    all.all[2 * i + 1] = static_cast<half>(x.pairs[i][1]);
  }
  return all;
}

template <unsigned n>
void storeFloats(const Floats<n>& x, unsigned* to) {
  if constexpr (n == 1)
    *to = bitsOf<unsigned>(float(x.pairs[0][0]));
  else
    for (unsigned i = 0; i < kPairs<n>; ++i) stored(to + 2 * i, x.pairs[i]);
}
template <unsigned n>
void storeIntegers(const Integers<n>& x, unsigned* to) {
  for (unsigned i = 0; i < n; ++i) to[i] = x.all[i];
}
template <unsigned n>
void storeHalves(const Halves<n>& x, unsigned short* to) {
  if constexpr (n == 1)
    *to = bitsOf<unsigned short>(half(x.all[0]));
  else
    stored(to, x.all);
}
// The upper halves of numbers that are rounded already.
template <unsigned n>
void storeBfloats(const Floats<n>& x, unsigned short* to) {
  Halves<n> all;
  for (unsigned i = 0; i < 2 * kPairs<n>; ++i) all.all[i] = bitsOf<half2>(float(x.pairs[i / 2][i % 2]))[1];
  storeHalves(all, to);
}
template <unsigned n>
void storeShorts(const Integers<n>& x, unsigned short* to) {
  if constexpr (n == 1)
    *to = static_cast<unsigned short>(x.all[0]);
  else {
    for (unsigned i = 0; i < n; i += 2) {
      stored(to + i, ushort2{static_cast<unsigned short>(x.all[i]), static_cast<unsigned short>(x.all[i + 1])});
    }
  }
}
template <unsigned n>
void storeBytes(const Integers<n>& x, unsigned char* to) {
  uchar4 bytes = {};
  for (unsigned i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>(x.all[i]);
  if constexpr (n == 4)
    stored(to, bytes);
  else
    for (unsigned i = 0; i < n; ++i) to[i] = bytes[i];
}
template <unsigned n>
void storeBytes(const Masks<n>& x, unsigned char* to) {
  uchar4 bytes = {};
  for (unsigned i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>(x.pairs[i / 2][i % 2]);
  const unsigned truths = bitsOf<unsigned>(bytes) & 0x01010101u;
  if constexpr (n == 4)
    stored(to, truths);
  else
    for (unsigned i = 0; i < n; ++i) to[i] = static_cast<unsigned char>(truths >> 8 * i);
}

// of(pair) of the pairs of registers. Comparisons yield masks.
template <unsigned n, class V, class Of, class... More>
auto pairwise(Of&& of, const Pairs<n, V>& x, const More&... more) {
  using Result = std::decay_t<decltype(of(x.pairs[0], more.pairs[0]...))>;
  Pairs<n, std::conditional_t<std::is_same_v<Result, float2>, float2, int2>> all;
  for (unsigned i = 0; i < kPairs<n>; ++i) all.pairs[i] = of(x.pairs[i], more.pairs[i]...);
  return all;
}
template <unsigned n, class Of, class... More>
Halves<n> pairwise(Of&& of, const Halves<n>& x, const More&... more) {
  return {of(x.all, more.all...)};
}

// Of short vectors. Comparisons yield vectors of integers; bits are those, and back.
template <class V>
using Truth = decltype(V{} < V{});
template <class V>
V chosen(Truth<V> where, V yes, V no) {
  return bitsOf<V>((where & bitsOf<Truth<V>>(yes)) | (~where & bitsOf<Truth<V>>(no)));
}
template <class V>
V kept(Truth<V> where, V x) {
  return bitsOf<V>(where & bitsOf<Truth<V>>(x));
}
template <class V>
V cleared(Truth<V> where, V x) {
  return bitsOf<V>(~where & bitsOf<Truth<V>>(x));
}
template <class V>
V filled(float x) {
  V all;
  for (unsigned i = 0; i < sizeof(V) / sizeof(all[0]); ++i) all[i] = static_cast<std::decay_t<decltype(all[0])>>(x);
  return all;
}
// A NaN is passed on, and +0 is more than -0, as maximum() of elementwise_chain_ops.hpp has it.
template <class V>
V maximumVector(V a, V b) {
  const V larger = chosen((a > b) | (a != a), a, b);
  return kept(bitsOf<Truth<V>>(a) | (a != b), larger);
}
template <class V>
V minimumVector(V a, V b) {
  const V smaller = chosen((a < b) | (a != a), a, b);
  return bitsOf<V>(bitsOf<Truth<V>>(smaller) | ((a == b) & bitsOf<Truth<V>>(a)));
}

// Of Floats, or of Halves; truths, of Masks.
#define SNNJAX_CHAIN_UNARY_PAIRS(name, expression)         \
  auto name(const auto& a) {                               \
    return pairwise([](auto x) { return expression; }, a); \
  }
SNNJAX_CHAIN_UNARY_PAIRS(negate, -x)
SNNJAX_CHAIN_UNARY_PAIRS(neither, ~x)
// The sign is cleared, also that of a NaN.
SNNJAX_CHAIN_UNARY_PAIRS(absolute, cleared(bitsOf<Truth<decltype(x)>>(filled<decltype(x)>(-0.0f)), x))
SNNJAX_CHAIN_UNARY_PAIRS(atLeastZero, cleared(x <= decltype(x){}, x))
SNNJAX_CHAIN_UNARY_PAIRS(atMostZero, cleared(x > decltype(x){}, x))
#undef SNNJAX_CHAIN_UNARY_PAIRS
#define SNNJAX_CHAIN_BINARY_PAIRS(name, expression)                   \
  auto name(const auto& a, const auto& b) {                           \
    return pairwise([](auto x, auto y) { return expression; }, a, b); \
  }
SNNJAX_CHAIN_BINARY_PAIRS(add, x + y)
SNNJAX_CHAIN_BINARY_PAIRS(subtract, x - y)
SNNJAX_CHAIN_BINARY_PAIRS(multiply, x* y)
SNNJAX_CHAIN_BINARY_PAIRS(maximum, maximumVector(x, y))
SNNJAX_CHAIN_BINARY_PAIRS(minimum, minimumVector(x, y))
// The same with a bound that is no NaN, and not +0, for which there are shorter ones.
SNNJAX_CHAIN_BINARY_PAIRS(atLeast, chosen(x < y, y, x))
SNNJAX_CHAIN_BINARY_PAIRS(atMost, chosen(x >= y, y, x))
SNNJAX_CHAIN_BINARY_PAIRS(eq, x == y)
SNNJAX_CHAIN_BINARY_PAIRS(ne, x != y)
SNNJAX_CHAIN_BINARY_PAIRS(lt, x < y)
SNNJAX_CHAIN_BINARY_PAIRS(le, x <= y)
SNNJAX_CHAIN_BINARY_PAIRS(gt, x > y)
SNNJAX_CHAIN_BINARY_PAIRS(ge, x >= y)
SNNJAX_CHAIN_BINARY_PAIRS(both, x& y)
SNNJAX_CHAIN_BINARY_PAIRS(either, x | y)
#undef SNNJAX_CHAIN_BINARY_PAIRS
// 1, -1, or what is neither above nor below 0.
template <unsigned n>
Floats<n> sign(const Floats<n>& a) {
  return pairwise(
      [](float2 x) {
        const int2 above = x > float2{}, below = x < float2{};
        const int2 ones = (above & bitsOf<int2>(filled<float2>(1.0f))) | (below & bitsOf<int2>(filled<float2>(-1.0f)));
        return bitsOf<float2>(ones | (~below & (~above & bitsOf<int2>(x))));
      },
      a);
}

template <unsigned n>
Masks<n> isFinite(const Floats<n>& a) {
  return pairwise([](float2 x) { return x < filled<float2>(std::numeric_limits<float>::infinity()); }, absolute(a));
}

// yes where a mask is set, no elsewhere; and 0 elsewhere, or where it is set.
template <unsigned n, class V>
Pairs<n, V> select(const Masks<n>& where, const Pairs<n, V>& yes, const Pairs<n, V>& no) {
  return pairwise([](int2 m, V y, V z) { return chosen(m, y, z); }, where, yes, no);
}
template <unsigned n>
Floats<n> keepWhere(const Masks<n>& where, const Floats<n>& x) {
  return pairwise([](int2 m, float2 y) { return kept(m, y); }, where, x);
}
template <unsigned n>
Floats<n> clearWhere(const Masks<n>& where, const Floats<n>& x) {
  return pairwise([](int2 m, float2 y) { return cleared(m, y); }, where, x);
}
template <unsigned n>
Integers<n> select(const Integers<n>& where, const Integers<n>& yes, const Integers<n>& no) {
  Integers<n> all;
  for (unsigned i = 0; i < n; ++i) all.all[i] = where.all[i] != 0 ? yes.all[i] : no.all[i];
  return all;
}

// A function of elementwise_chain_ops.hpp, element by element.
template <class T, unsigned n, class Get>
auto collected(Get&& get) {
  if constexpr (std::is_same_v<T, float>) {
    Floats<n> all;
    for (unsigned i = 0; i < n; ++i) all.pairs[i / 2][i % 2] = get(i);
    if constexpr (n == 1) all.pairs[0][1] = all.pairs[0][0];
    return all;
  } else {
    Integers<n> all;
    for (unsigned i = 0; i < n; ++i) all.all[i] = static_cast<unsigned>(get(i));
    return all;
  }
}
template <unsigned n, class Function, class... More>
auto each(Function&& of, const Floats<n>& x, const More&... more) {
  const auto at = [&](unsigned i) { return of(float(x.pairs[i / 2][i % 2]), float(more.pairs[i / 2][i % 2])...); };
  return collected<decltype(at(0)), n>(at);
}
template <unsigned n, class Function, class... More>
auto each(Function&& of, const Integers<n>& x, const More&... more) {
  const auto at = [&](unsigned i) { return of(x.all[i], more.all[i]...); };
  return collected<decltype(at(0)), n>(at);
}
// Integers that lie in registers for floats.
template <unsigned n, class Function>
Floats<n> eachOfBits(Function&& of, const Floats<n>& x) {
  return each(of, integers(x));
}

// Calls body(Count<n>{}, first) for a worker's share of `count` elements: 4 by `at_once`, then 2, then 1. Shares are
// whole units, so that each begins at 64 bits.
template <unsigned at_once, class Body>
bool inFours(unsigned count, unsigned worker, unsigned unit, Body&& body) {
  const Range share = workOf(count, worker, unit);
  unsigned first = share.first;
  for (; first + 4 <= share.last; first += 4) {
    body(Count<at_once>{}, first);
    if constexpr (at_once == 2) body(Count<2>{}, first + 2);
  }
  if (first + 2 <= share.last) {
    body(Count<2>{}, first);
    first += 2;
  }
  if (first < share.last) body(Count<1>{}, first);
  return true;
}

// What that costs the worker, in issue slots; `cost` is the executor's count for 4, 2 and 1 elements.
struct Cost {
  unsigned pointers, four, two, one;
};
inline std::uint64_t costInFours(unsigned count, unsigned worker, unsigned unit, Cost cost) {
  const Range share = shareOf(count, worker, unit);
  return cycles::chain(share.last - share.first, cost.pointers, cost.four, cost.two, cost.one);
}

}  // namespace snnjax::chain
