// Describes vertex classes from their C++ types. popc.py writes, for each source of codelets, a file that includes the
// source and then this header, and names the classes and their fields; everything else is deduced here. C++11, as the
// source may be.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <poplar/Vertex.hpp>
#include <utility>

#include "field.hpp"

namespace ipu_model {

// The name of a type as the compiler spells it.
template <typename T>
std::string typeName() {
  const std::string text = __PRETTY_FUNCTION__;  // "... [with T = Foo<float>; std::... = ...]" or "... [T = ...]"
  const std::size_t first = text.find("T = ") + 4;
  const std::size_t last = text.find("; std::", first);
  return text.substr(first, (last == text.npos ? text.size() - 1 : last) - first);
}

// Shared by all fields of one C++ type: constants, so that no field needs its own code.
struct FieldRecord {
  Direction direction;
  poplar::Type type;
  unsigned nesting, alignment, tile_bytes, tile_row_bytes;
  bool interleaved, sized;
  void (*connect)(void*, poplar::ArrayRef<EdgeData>);
  void (*set)(void*, const void*);
};

template <typename F>
void connectField(void* field, poplar::ArrayRef<EdgeData> rows) {
  FieldAccess::connect(*static_cast<F*>(field), rows);
}

template <typename F>
void setField(void* field, const void* value) {
  setState(*static_cast<F*>(field), value);
}

// A plain member is set, any other field connected.
template <typename F, bool is_member>
struct FieldFunctions {
  static constexpr void (*connect)(void*, poplar::ArrayRef<EdgeData>) = nullptr;
  static constexpr void (*set)(void*, const void*) = setField<F>;
};
template <typename F>
struct FieldFunctions<F, false> {
  static constexpr void (*connect)(void*, poplar::ArrayRef<EdgeData>) = connectField<F>;
  static constexpr void (*set)(void*, const void*) = nullptr;
};

template <typename F>
struct RecordOf {
  using Traits = FieldTraits<typename std::remove_const<F>::type>;
  using Functions = FieldFunctions<F, Traits::direction == Direction::State && Traits::nesting == 0>;
  static const FieldRecord record;
};
template <typename F>
const FieldRecord RecordOf<F>::record = {Traits::direction,   poplar::Type(DeviceType<typename Traits::Element>::kind),
                                         Traits::nesting,     Traits::alignment,
                                         Traits::tile_bytes,  Traits::tile_row_bytes,
                                         Traits::interleaved, Traits::sized,
                                         Functions::connect,  Functions::set};

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
  static_assert(sizeof(member) == sizeof(std::size_t), "a pointer to a member is an offset");
  std::size_t offset;
  std::memcpy(&offset, &member, sizeof offset);
  return offset;
}

// Adds the fields of V, of which popc.py names the members.
template <typename V>
struct Description {
  VertexType& type;

  template <typename F, typename Class>
  void field(const char* name, F Class::* member) {
    add(name, member, std::is_function<F>());
  }
  template <typename Static>
  void field(const char*, Static*) {}

 private:
  template <typename F, typename Class>
  void add(const char*, F Class::*, std::true_type /*a function*/) {}
  template <typename F, typename Class>
  void add(const char* name, F Class::* member, std::false_type) {
    using Traits = FieldTraits<typename std::remove_const<F>::type>;
    constexpr bool known = DeviceType<typename Traits::Element>::known;
    static_assert(known || (Traits::direction == Direction::State && Traits::nesting == 0),
                  "the elements of an edge must have a type that a tensor can have");
    addKnown<F>(name, offsetOf<V, F>(member), std::integral_constant<bool, known>());
  }
  template <typename F>
  void addKnown(const char* name, std::size_t offset, std::true_type) {
    addField(type, name, RecordOf<F>::record, offset);
  }
  template <typename F>
  void addKnown(const char*, std::size_t, std::false_type) {}
};

// Functions that add the member `name` of the vertex V or of its base classes, where there is one.
#define IPU_MODEL_FIELD(name)                                                                           \
  template <typename V>                                                                                 \
  static auto add_##name(ipu_model::Description<V>& to, int) -> decltype(static_cast<void>(&V::name)) { \
    to.field(#name, &V::name);                                                                          \
  }                                                                                                     \
  template <typename V>                                                                                 \
  static void add_##name(ipu_model::Description<V>&, long) {}

// Whether a vertex has compute(), or compute(worker), and functions that say what it costs.
struct Has {
  template <typename V>
  static auto compute(int) -> decltype(static_cast<void>(std::declval<V&>().compute()), std::true_type());
  template <typename V>
  static std::false_type compute(long);
  template <typename V>
  static auto computeOnWorkers(int) -> decltype(static_cast<void>(std::declval<V&>().compute(0U)), std::true_type());
  template <typename V>
  static std::false_type computeOnWorkers(long);
  template <typename V>
  static auto worker(int) -> decltype(std::uint64_t{workerCycles(std::declval<const V&>(), 0U)}, std::true_type());
  template <typename V>
  static std::false_type worker(long);
  template <typename V>
  static auto supervisor(int) -> decltype(std::uint64_t{supervisorCycles(std::declval<const V&>())}, std::true_type());
  template <typename V>
  static std::false_type supervisor(long);
};

// What VertexType points to, for one class.
template <typename V>
struct VertexFunctions {
  // A vertex class may have members without a value, and a constructor that is declared only, to say so.
  static void construct(void* place) { new (place) V(); }
  static void clear(void* place) { std::memset(place, 0, sizeof(V)); }
  static void destroy(void* vertex) { static_cast<V*>(vertex)->~V(); }

  static void compute(void* vertex, unsigned) { static_cast<V*>(vertex)->compute(); }
  static void computeOnWorker(void* vertex, unsigned worker) { static_cast<V*>(vertex)->compute(worker); }

  static std::uint64_t worker(const void* vertex, unsigned worker) {
    return workerCycles(*static_cast<const V*>(vertex), worker);
  }
  static std::uint64_t supervisor(const void* vertex) { return supervisorCycles(*static_cast<const V*>(vertex)); }
};

// The same where only some of the functions can be compiled: those that the type of the second argument allows.
template <typename V>
struct Choice {
  using Functions = VertexFunctions<V>;

  static void construct(VertexType& type, std::true_type) { type.construct = Functions::construct; }
  static void construct(VertexType& type, std::false_type) { type.construct = Functions::clear; }
  static void compute(VertexType& type, std::true_type /*on workers*/) { type.compute = Functions::computeOnWorker; }
  static void compute(VertexType& type, std::false_type) { type.compute = Functions::compute; }
  static void worker(VertexType& type, std::true_type) { type.worker_cycles = Functions::worker; }
  static void worker(VertexType&, std::false_type) {}
  static void supervisor(VertexType& type, std::true_type) { type.supervisor_cycles = Functions::supervisor; }
  static void supervisor(VertexType&, std::false_type) {}
};

[[gnu::noinline]] inline VertexType& addType(std::vector<VertexType>& types, std::string name,
                                             const char* source_name) {
  types.emplace_back();
  types.back().name = std::move(name);
  types.back().source_name = source_name;
  return types.back();
}

template <typename V, typename Fields, bool has_constructor>
void describeVertex(std::vector<VertexType>& types, const char* source_name, unsigned long source_bytes) {
  using Multi = std::is_base_of<poplar::MultiVertex, V>;
  static_assert(Multi::value ? decltype(Has::computeOnWorkers<V>(0))::value : decltype(Has::compute<V>(0))::value,
                "compute of a MultiVertex must take the worker's number, and that of any other vertex nothing");
  VertexType& type = addType(types, typeName<V>(), source_name);
  type.size = sizeof(V);
  type.alignment = alignof(V);
  type.multi = Multi::value;
  type.supervisor = std::is_base_of<poplar::SupervisorVertex, V>::value;
  type.source_bytes = source_bytes;
  type.destroy = VertexFunctions<V>::destroy;
  Choice<V>::construct(type,
                       std::integral_constant<bool, has_constructor && std::is_default_constructible<V>::value>());
  Choice<V>::compute(type, Multi());
  Choice<V>::worker(type, decltype(Has::worker<V>(0))());
  Choice<V>::supervisor(type, decltype(Has::supervisor<V>(0))());
  Description<V> description{type};
  Fields::add(description);
}

// A class that is not a vertex, or a base class without compute().
template <typename V, typename Fields, bool has_constructor>
void describeIf(std::vector<VertexType>&, const char*, unsigned long, std::false_type) {}
template <typename V, typename Fields, bool has_constructor>
void describeIf(std::vector<VertexType>& types, const char* source_name, unsigned long source_bytes, std::true_type) {
  describeVertex<V, Fields, has_constructor>(types, source_name, source_bytes);
}

// Adds V to `types` if it is a vertex class.
template <typename V, typename Fields, bool has_constructor>
void describe(std::vector<VertexType>& types, const char* source_name, unsigned long source_bytes) {
  constexpr bool computes = decltype(Has::compute<V>(0))::value || decltype(Has::computeOnWorkers<V>(0))::value;
  describeIf<V, Fields, has_constructor>(
      types, source_name, source_bytes,
      std::integral_constant<bool, std::is_base_of<AnyVertex, V>::value && computes>());
}

}  // namespace ipu_model
