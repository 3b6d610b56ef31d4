// A call of a target: its arrays and static values by the names of the op's table (snnjax/_schema.py).
#pragma once

#include <memory>

#include "ffi.hpp"
#include "schema/bind.hpp"

namespace snnjax {

// The attributes of a call, by name.
class Attributes {
 public:
  // Throws unless the call was made with the tables that this library was built with.
  Attributes(const char* op, ffi::Dictionary attributes);

  const char* op() const { return op_; }
  // The places among the leaves of a root of arrays, named by "operand_names" or "result_names".
  std::vector<schema::Place> places(std::span<const schema::Leaf> leaves, const char* names, std::size_t layers) const;
  // The number of layers that a static value is given for.
  std::size_t count(const char* name) const { return get<ffi::Span<const std::int64_t>>(name).size(); }

  // The values of `all` are those of an array, one for each; those of an enumeration are below a limit.
  template <typename Record, typename T>
  void read(const char* name, std::vector<Record>& all, T Record::* field, std::int64_t limit = 0) const {
    const auto values = get<ffi::Span<const std::conditional_t<std::is_same_v<T, float>, float, std::int64_t>>>(name);
    if (values.size() != all.size()) {
      throw misfit(op_, name, "hold one value a layer, " + std::to_string(all.size()), std::to_string(values.size()));
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto value = values.begin()[i];
      if constexpr (std::is_same_v<T, bool>) {
        all[i].*field = value != 0;
      } else {
        if constexpr (std::is_enum_v<T>) {
          if (value < 0 || value >= limit)
            throw misfit(op_, name, "hold numbers below " + std::to_string(limit), std::to_string(value));
        }
        all[i].*field = static_cast<T>(value);
      }
    }
  }

  // What a check of the table calls to throw.
  static auto refusal(const std::string& op) {
    return [op](const std::string& name, const std::string& expected, const std::string& actual) {
      throw misfit(op, name, expected, actual);
    };
  }

 private:
  template <typename T>
  T get(const char* name) const {
    const auto value = attributes_.get<T>(name);
    if (value.has_error()) throw misfit(op_, name, "be given", "nothing");
    return *value;
  }

  const char* op_;
  ffi::Dictionary attributes_;
};

// What the attributes of a call say. XLA keeps it with the compiled program: names are looked up when a program is
// compiled and not when it runs, since looking them up takes as long as the rest of a small call.
struct Site {
  static ffi::TypeId id;  // given by XLA

  virtual ~Site() = default;

  std::vector<schema::Place> from, to;
};

// Static values of an op without layers, which fix the length of no axis.
struct NoLayers {
  static constexpr std::size_t layers() { return 1; }
  void fix(schema::Lengths&) const {}
};

struct NoNumbers : NoLayers {
  explicit NoNumbers(const Attributes&) {}
};

template <typename Numbers>
struct SiteWith : Site {
  explicit SiteWith(const Attributes& attributes) : numbers(attributes) {}

  Numbers numbers;
};

// The types of numbers of the table, where `floats` is that of the op (INVALID: not yet known).
Types typesOf(schema::Numbers numbers, ffi::DataType floats, Index neurons);

// `Numbers` are the op's static values: made from Attributes, they say how many layers there are and, where there are
// none, which axes have a fixed length.
template <typename From, typename To, typename Numbers = NoNumbers>
struct Call {
  const Operands& operands;
  const Results& results;
  From from;
  To to;
  const Numbers& numbers;
  const Threads& threads;

  Index groups() const { return results.groups(); }

  // Throws unless an op has the arrays that its table asks for, those of all layers of the same lengths; returns the
  // lengths of their axes.
  schema::Lengths check() {
    schema::Lengths lengths;
    numbers.fix(lengths);
    ffi::DataType floats = ffi::DataType::INVALID;
    checkRoot(from, operands, numbers.layers(), lengths, floats);
    checkRoot(to, results, numbers.layers(), lengths, floats);
    needSameGroups(operands, results);
    return lengths;
  }

 private:
  template <typename Root, typename Item>
  static void checkRoot(Root& root, const Arrays<Item>& arrays, std::size_t layers, schema::Lengths& lengths,
                        ffi::DataType& floats) {
    const auto has = [&](schema::Switch by, std::size_t layer) { return root.has(by, layer); };
    const auto visit = [&](const schema::Leaf& leaf, std::size_t, const Item& item) {
      std::array<Index, schema::kMaxRank> shape{};
      for (std::size_t i = 0; i < leaf.rank; ++i) shape[i] = lengths.expected(leaf.axes[i], item.length(i));
      arrays.need(leaf.name, item, std::span(shape).first(leaf.rank),
                  typesOf(leaf.numbers, floats, lengths[schema::Axis::kNeurons]));
      if (leaf.numbers == schema::Numbers::kFloats) floats = item.type();
    };
    schema::check(root, layers, has, visit, Attributes::refusal(arrays.op()));
  }
};

// What a target does, as the handlers of all targets call it: XLA's templates are then compiled once.
struct Target {
  const char* op;
  std::unique_ptr<Site> (*read)(const Attributes& attributes);
  void (*run)(const Site& site, const Operands& operands, const Results& results, const Threads& threads);
};

// Reads the attributes of a target, and runs its body.
template <auto kBody>
struct TargetOf;

template <typename From, typename To, typename Numbers, void (*kBody)(Call<From, To, Numbers>&)>
struct TargetOf<kBody> {
  static std::unique_ptr<Site> read(const Attributes& attributes) {
    auto site = std::make_unique<SiteWith<Numbers>>(attributes);
    site->from = attributes.places(From::kLeaves, "operand_names", site->numbers.layers());
    site->to = attributes.places(To::kLeaves, "result_names", site->numbers.layers());
    return site;
  }

  static void run(const Site& site, const Operands& operands, const Results& results, const Threads& threads) {
    const Numbers& numbers = static_cast<const SiteWith<Numbers>&>(site).numbers;
    const auto fill = [&]<typename Root>(const auto& arrays, const std::vector<schema::Place>& places, Root*) {
      const auto& all = arrays.all();
      return schema::filled<Root>(
          places, numbers.layers(), all.size(), [&](std::size_t i) { return all[i]; },
          Attributes::refusal(arrays.op()));
    };
    Call<From, To, Numbers> call{operands,
                                 results,
                                 fill(operands, site.from, static_cast<From*>(nullptr)),
                                 fill(results, site.to, static_cast<To*>(nullptr)),
                                 numbers,
                                 threads};
    kBody(call);
  }
};

// The handlers of a target, which live as long as the program. `api` makes the type of sites known to XLA.
const ffi::Ffi* readsAttributes(const Target& target, const XLA_FFI_Api* api);
const ffi::Ffi* runs(const Target& target);

}  // namespace snnjax

// The handlers of a target of an op: `target` runs void body(Call<...>&), `target`_instantiate reads the attributes.
#define SNNJAX_TARGET(target, op, body)                                                                             \
  static constexpr snnjax::Target target##_of{op, snnjax::TargetOf<&(body)>::read, snnjax::TargetOf<&(body)>::run}; \
  extern "C" SNNJAX_EXPORT XLA_FFI_Error* target##_instantiate(XLA_FFI_CallFrame* frame) {                          \
    static const auto* const handler = snnjax::readsAttributes(target##_of, frame->api);                            \
    return handler->Call(frame);                                                                                    \
  }                                                                                                                 \
  extern "C" SNNJAX_EXPORT XLA_FFI_Error* target(XLA_FFI_CallFrame* frame) {                                        \
    static const auto* const handler = snnjax::runs(target##_of);                                                   \
    return handler->Call(frame);                                                                                    \
  }                                                                                                                 \
  static_assert(true)
