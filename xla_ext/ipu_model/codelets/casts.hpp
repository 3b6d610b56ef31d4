// Replacements, inserted by popc.py, for constructs that the vendor's compiler accepts and the host's does not.
//
// reinterpret_cast as codelets for the IPU know it.
// An Input's elements are const here, so that writing to them is an error. Poplar's are not, and codelets commonly read
// them through a pointer to a short vector: reinterpret_cast<float2 *>(&in[0]). So const may be cast away. C++11.
#pragma once

#include <type_traits>

namespace ipu_model {

template <typename To, typename From>
To reinterpretCast(From&& from) {
  using Mutable = typename std::remove_const<typename std::remove_reference<From>::type>::type;
  return reinterpret_cast<To>(const_cast<Mutable&>(from));
}

template <typename To, typename From>
To reinterpretCast(const From* from) {
  return reinterpret_cast<To>(const_cast<From*>(from));
}

// Stands before assembly in a template. Defined nowhere: a template that is never instantiated does no harm, and a
// library that would run assembly of the IPU does not link.
void assemblyOfTheIpu();

}  // namespace ipu_model
