// Describes vertex classes from their C++ types. popc.py writes, for each source of codelets, a file that includes the
// source and then this header, and names the classes and their fields; everything else is deduced here.
#pragma once

#include <bit>
#include <new>
#include <poplar/Vertex.hpp>
#include <utility>

#include "field.hpp"

namespace ipu_model {

// The name of a type as the compiler spells it.
template <typename T>
constexpr std::string_view typeName() {
  constexpr std::string_view text =
      __PRETTY_FUNCTION__;  // "... [with T = Foo<float>; std::... = ...]" or "... [T = ...]"
  constexpr std::size_t first = text.find("T = ") + 4;
  constexpr std::size_t last = text.find("; std::", first);
  return text.substr(first, (last == text.npos ? text.size() - 1 : last) - first);
}

// What all fields of one C++ type share: constants that need no code of their own for each field.
struct FieldRecord {
  Direction direction;
  poplar::Type type;
  unsigned nesting, alignment, tile_bytes, tile_row_bytes;
  bool interleaved, sized;
  void (*connect)(void*, std::span<const EdgeData>);
  void (*set)(void*, const void*);
};

template <typename F>
void connectField(void* field, std::span<const EdgeData> rows) {
  FieldAccess::connect(*static_cast<F*>(field), rows);
}

template <typename F>
void setField(void* field, const void* value) {
  setState(*static_cast<F*>(field), value);
}

template <typename F>
inline constexpr FieldRecord kRecord = [] {
  using Traits = FieldTraits<std::remove_const_t<F>>;
  FieldRecord record{Traits::direction,
                     DeviceType<typename Traits::Element>::value,
                     Traits::nesting,
                     Traits::alignment,
                     Traits::tile_bytes,
                     Traits::tile_row_bytes,
                     Traits::interleaved,
                     Traits::sized,
                     nullptr,
                     nullptr};
  if constexpr (Traits::direction != Direction::State || Traits::nesting > 0) {
    record.connect = connectField<F>;
  } else {
    record.set = setField<F>;
  }
  return record;
}();

// Not inlined: a library describes thousands of fields.
[[gnu::noinline]] inline void addField(VertexType& type, const char* name, const FieldRecord& field,
                                       std::size_t offset) {
  type.fields.push_back({name, field.direction, field.type, field.nesting, field.alignment, field.interleaved,
                         field.sized, offset, field.type.size(), field.tile_bytes, field.tile_row_bytes, field.connect,
                         field.set});
}

// Bytes from the start of a V to a member of it, or of a base class: what a pointer to a member is in the ABI that GCC
// and Clang share.
template <typename V, typename F>
std::size_t offsetOf(F V::* member) {
  static_assert(sizeof(member) == sizeof(std::size_t));
  return std::bit_cast<std::size_t>(member);
}

template <typename V>
struct Description {
  VertexType& type;

  // Adds a field. Member functions and static members are none.
  template <auto member>
  void field(const char* name) {
    if constexpr (std::is_member_object_pointer_v<decltype(member)>) {
      using F = std::remove_reference_t<decltype(std::declval<V&>().*member)>;
      using Traits = FieldTraits<std::remove_const_t<F>>;
      if constexpr (DeviceType<typename Traits::Element>::known) {
        addField(type, name, kRecord<F>, offsetOf<V, F>(member));
      } else {
        static_assert(Traits::direction == Direction::State && Traits::nesting == 0,
                      "the elements of an edge must have a type that a tensor can have");
      }
    }
  }
};

// `name` of the vertex V and of its base classes, where there is such a member.
#define IPU_MODEL_FIELD(name) \
  if constexpr (requires { &V::name; }) description.template field<&V::name>(#name)

template <typename V>
concept ComputesAlone = requires(V& vertex) { vertex.compute(); };
template <typename V>
concept ComputesOnWorkers = requires(V& vertex) { vertex.compute(0u); };
template <typename V>
concept HasWorkerCycles = requires(const V& vertex, unsigned worker) { std::uint64_t{workerCycles(vertex, worker)}; };
template <typename V>
concept HasSupervisorCycles = requires(const V& vertex) { std::uint64_t{supervisorCycles(vertex)}; };

// A vertex class may have members without a value, and a constructor that is declared only, to say so.
template <typename V, bool has_constructor>
void construct(void* place) {
  if constexpr (has_constructor && std::is_default_constructible_v<V>) {
    new (place) V();
  } else {
    std::memset(place, 0, sizeof(V));
  }
}

template <typename V>
void destroy(void* vertex) {
  static_cast<V*>(vertex)->~V();
}

template <typename V>
void compute(void* vertex, [[maybe_unused]] unsigned worker) {
  if constexpr (std::is_base_of_v<poplar::MultiVertex, V>) {
    static_cast<V*>(vertex)->compute(worker);
  } else {
    static_cast<V*>(vertex)->compute();
  }
}

template <typename V>
std::uint64_t workerCyclesOf(const void* vertex, unsigned worker) {
  return workerCycles(*static_cast<const V*>(vertex), worker);
}

template <typename V>
std::uint64_t supervisorCyclesOf(const void* vertex) {
  return supervisorCycles(*static_cast<const V*>(vertex));
}

[[gnu::noinline]] inline VertexType& addType(std::vector<VertexType>& types, std::string_view name,
                                             const char* source_name) {
  VertexType& type = types.emplace_back();
  type.name = name;
  type.source_name = source_name;
  return type;
}

// Adds V to `types` if it is a vertex class. One without compute() is there to be derived from.
template <typename V, typename Fields, bool has_constructor>
void describe(std::vector<VertexType>& types, const char* source_name, unsigned long source_bytes) {
  if constexpr (std::is_base_of_v<AnyVertex, V> && (ComputesAlone<V> || ComputesOnWorkers<V>)) {
    constexpr bool multi = std::is_base_of_v<poplar::MultiVertex, V>;
    static_assert(multi ? ComputesOnWorkers<V> : ComputesAlone<V>,
                  "compute of a MultiVertex must take the worker's number, and that of any other vertex nothing");
    VertexType& type = addType(types, typeName<V>(), source_name);
    type.size = sizeof(V);
    type.alignment = alignof(V);
    type.multi = multi;
    type.supervisor = std::is_base_of_v<poplar::SupervisorVertex, V>;
    type.source_bytes = source_bytes;
    type.construct = construct<V, has_constructor>;
    type.destroy = destroy<V>;
    type.compute = compute<V>;
    if constexpr (HasWorkerCycles<V>) type.worker_cycles = workerCyclesOf<V>;
    if constexpr (HasSupervisorCycles<V>) type.supervisor_cycles = supervisorCyclesOf<V>;
    Description<V> description{type};
    Fields::template add<V>(description);
  }
}

}  // namespace ipu_model
