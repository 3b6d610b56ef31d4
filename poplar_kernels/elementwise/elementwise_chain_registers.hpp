// What the code of elementwise chains is made of, which the executor generates
// (xla_ext/elementwise/chain_source.cpp): elements in registers, n = 4, 2 or 1 of them, and functions of them. They
// yield what elementwise_chain_ops.hpp says.
//
// Floats are pairs in 64-bit registers; of one element both are the same. The truth of a comparison is a mask, all bits
// of an element set or clear, as the chip's comparisons have it. Halves are four in a register. Integers are single.
// chain_code.cpp says how many instructions each function takes.
#pragma once

#include "../vertex.hpp"
#include "elementwise_chain_ops.hpp"

namespace snnjax::chain {

template <unsigned n>
using Count = std::integral_constant<unsigned, n>;
template <unsigned n>
constexpr unsigned kPairs = (n + 1) / 2;

template <unsigned n, class V>
struct Pairs {
  static constexpr unsigned kCount = n;
  V pairs[kPairs<n>];
};
template <unsigned n>
using Floats = Pairs<n, float2>;
template <unsigned n>
using Masks = Pairs<n, int2>;
template <unsigned n>
struct Halves {
  static constexpr unsigned kCount = n;
  std::conditional_t<n == 4, half4, half2> all;
};
template <unsigned n>
struct Integers {
  static constexpr unsigned kCount = n;
  unsigned all[n];
};

// Element i of registers, and what sets it.
template <unsigned n, class V>
auto elementOf(const Pairs<n, V>& x, unsigned i) {
  return x.pairs[i / 2][i % 2];
}
auto elementOf(const auto& x, unsigned i) { return x.all[i]; }
template <unsigned n, class V>
void setElement(Pairs<n, V>& x, unsigned i, auto element) {
  x.pairs[i / 2][i % 2] = element;
}
void setElement(auto& x, unsigned i, auto element) { x.all[i] = element; }

// Registers of the elements get(i); where vectors hold one, it is in both lanes.
template <class Registers>
Registers made(auto&& get) {
  constexpr unsigned n = Registers::kCount;
  Registers all;
  for (unsigned i = 0; i < n; ++i) setElement(all, i, get(i));
  if constexpr (n == 1 && !std::is_same_v<Registers, Integers<n>>) setElement(all, 1, elementOf(all, 0));
  return all;
}

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
  return made<Floats<n>>([&](unsigned) { return bitsOf<float>(bits); });
}
template <unsigned n>
Halves<n> halves(Count<n>, unsigned bits) {
  return made<Halves<n>>([&](unsigned) { return static_cast<half>(bitsOf<float>(bits)); });
}
template <unsigned n>
Masks<n> masks(Count<n>, unsigned bits) {
  return made<Masks<n>>([&](unsigned) { return bits != 0 ? -1 : 0; });
}
template <unsigned n>
Integers<n> integers(Count<n>, unsigned bits) {
  return made<Integers<n>>([&](unsigned) { return bits; });
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
Floats<n> loadFloats(Count<n> count, const unsigned* from) {
  if constexpr (n == 1) return floats(count, *from);
  Floats<n> all;
  for (unsigned i = 0; i < kPairs<n>; ++i) all.pairs[i] = loaded<float2>(from + 2 * i);
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
  return made<Floats<n>>([&](unsigned i) { return bitsOf<float>(half2{half(0), elementOf(all, i)}); });
}
template <class T, unsigned n, class Bits>
Integers<n> loadIntegers(Count<n>, const Bits* from) {
  return made<Integers<n>>([&](unsigned i) { return static_cast<unsigned>(static_cast<T>(from[i])); });
}

// The same bits in the other kind of registers, through memory or by a move.
template <unsigned n>
Floats<n> floats(const Integers<n>& x) {
  return made<Floats<n>>([&](unsigned i) { return bitsOf<float>(elementOf(x, i)); });
}
template <unsigned n>
Integers<n> integers(const Floats<n>& x) {
  return made<Integers<n>>([&](unsigned i) { return bitsOf<unsigned>(elementOf(x, i)); });
}
// Between 1 and all bits.
template <unsigned n>
Integers<n> integers(const Masks<n>& x) {
  return made<Integers<n>>([&](unsigned i) { return unsigned(elementOf(x, i)) & 1u; });
}
template <unsigned n>
Masks<n> masks(const Integers<n>& x) {
  return made<Masks<n>>([&](unsigned i) { return -int(elementOf(x, i)); });
}
template <unsigned n>
Floats<n> floats(const Halves<n>& x) {
  return made<Floats<n>>([&](unsigned i) { return static_cast<float>(elementOf(x, i)); });
}
template <unsigned n>
Halves<n> halves(const Floats<n>& x) {
  return made<Halves<n>>([&](unsigned i) { return static_cast<half>(elementOf(x, i)); });
}

template <unsigned n>
void storeFloats(const Floats<n>& x, unsigned* to) {
  if constexpr (n == 1)
    *to = bitsOf<unsigned>(elementOf(x, 0));
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
  storeHalves(made<Halves<n>>([&](unsigned i) { return bitsOf<half2>(elementOf(x, i))[1]; }), to);
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
  for (unsigned i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>(elementOf(x, i));
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

// Of short vectors.
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
// Also of a NaN.
template <class V>
V withoutSign(V x) {
  return cleared(bitsOf<Truth<V>>(filled<V>(-0.0f)), x);
}
// A NaN is passed on, and +0 is more than -0, as maximum() of elementwise_chain_ops.hpp has it.
template <class V>
V maximumVector(V a, V b) {
  const V larger = chosen((a > b) | (a != a), a, b);
  return keptWhere(bitsOf<Truth<V>>(a) | (a != b), larger);
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
SNNJAX_CHAIN_UNARY_PAIRS(absolute, withoutSign(x))
SNNJAX_CHAIN_UNARY_PAIRS(isFinite, withoutSign(x) < filled<decltype(x)>(std::numeric_limits<float>::infinity()))
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
// y where a mask is set, or where it is not, and 0 elsewhere.
SNNJAX_CHAIN_BINARY_PAIRS(keepWhere, keptWhere(x, y))
SNNJAX_CHAIN_BINARY_PAIRS(clearWhere, cleared(x, y))
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

// yes where a mask is set, no elsewhere.
template <unsigned n, class V>
Pairs<n, V> select(const Masks<n>& where, const Pairs<n, V>& yes, const Pairs<n, V>& no) {
  return pairwise([](int2 m, V y, V z) { return chosen(m, y, z); }, where, yes, no);
}
template <unsigned n>
Integers<n> select(const Integers<n>& where, const Integers<n>& yes, const Integers<n>& no) {
  return made<Integers<n>>([&](unsigned i) { return where.all[i] != 0 ? yes.all[i] : no.all[i]; });
}

// A function of elementwise_chain_ops.hpp, element by element.
template <class Function, class First, class... More>
auto each(Function&& of, const First& x, const More&... more) {
  constexpr unsigned n = First::kCount;
  const auto at = [&](unsigned i) { return of(elementOf(x, i), elementOf(more, i)...); };
  return made<std::conditional_t<std::is_same_v<decltype(at(0)), float>, Floats<n>, Integers<n>>>(at);
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
  return cycles::chain(share.count(), cost.pointers, cost.four, cost.two, cost.one);
}

}  // namespace snnjax::chain
