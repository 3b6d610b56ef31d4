// Conversions between element types, element by element.
//
// Floats are truncated to integers; out-of-range values saturate, and NaN becomes 0, on every machine. Integers become
// narrower ones by keeping the low bits. A Boolean is true for any number but 0.
#include "cycles.hpp"

#include "../numbers.hpp"
#include "../vertex.hpp"

namespace snnjax {

template <class T>
constexpr bool kIsReal = std::is_same_v<T, float> || std::is_same_v<T, half>;

template <class To, class From>
To converted(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (kIsReal<From> && !kIsReal<To>) {
    return toInteger<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, half>) {
    return static_cast<half>(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

// A worker takes whole vectors of the wider type, and whole words of the narrower one.
template <class From, class To>
constexpr unsigned kCastUnit = larger(kPerWord<To>, 4);

// out = To(in)
template <class From, class To>
class Cast : public poplar::MultiVertex {
 public:
  In<From> in;  // [count]
  Out<To> out;  // [count]
  unsigned count;

  void compute(unsigned worker) {
    const Range share = shareOf(count, worker, kCastUnit<From, To>);
    unsigned i = share.first;
    if constexpr (kIsReal<From> && kIsReal<To>) {
      using Of = Numbers<float2>;  // it widens halves where it loads them, and rounds to them where it stores
      for (; i + 4 <= share.last; i += 4) {
        const float2 first = Of::load(&in[i]), second = Of::load(&in[i + 2]);
        Of::store(&out[i], first);
        Of::store(&out[i + 2], second);
      }
    }
    for (; i < share.last; ++i) out[i] = converted<To>(in[i]);
  }
};

template <class From, class To>
std::uint64_t workerCycles(const Cast<From, To>& vertex, unsigned worker) {
  const Range share = shareOf(vertex.count, worker, kCastUnit<From, To>);
  return cycles::cast(share.count(), kIsReal<From> && kIsReal<To>, kPerWord<To>);
}

SNNJAX_INSTANCES_OF_ELEMENTS(Cast, float)
SNNJAX_INSTANCES_OF_ELEMENTS(Cast, half)
SNNJAX_INSTANCES_OF_ELEMENTS(Cast, int)
SNNJAX_INSTANCES_OF_ELEMENTS(Cast, unsigned)
SNNJAX_INSTANCES_OF_ELEMENTS(Cast, short)
SNNJAX_INSTANCES_OF_ELEMENTS(Cast, unsigned short)
SNNJAX_INSTANCES_OF_ELEMENTS(Cast, signed char)
SNNJAX_INSTANCES_OF_ELEMENTS(Cast, unsigned char)
SNNJAX_INSTANCES_OF_ELEMENTS(Cast, char)
SNNJAX_INSTANCES_OF_ELEMENTS(Cast, bool)

}  // namespace snnjax
