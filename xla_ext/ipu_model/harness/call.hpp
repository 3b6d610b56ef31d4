// One op on one set of arrays, as Python asks for it: plain C structures, and a view of them by name.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

extern "C" {

// A row-major array, to be read or to be filled: int32_t or float.
struct SnnjaxArray {
  const char* name;
  void* data;
  std::int64_t size;
  std::int32_t is_integer;
};

struct SnnjaxNumber {
  const char* name;
  double value;
};

struct SnnjaxCall {
  const char* op;
  const char* chip;
  std::int64_t num_tiles;  // of each IPU
  std::int64_t num_ipus;
  const SnnjaxArray* arrays;
  std::int64_t num_arrays;
  const SnnjaxNumber* numbers;
  std::int64_t num_numbers;
};
}

namespace snnjax::harness {

// Arrays and numbers of a call by their names; Error where there is none of that name, kind or size.
class Call {
 public:
  explicit Call(const SnnjaxCall& call);

  std::string op() const { return call_->op; }
  std::string chip() const { return call_->chip; }
  unsigned numTiles() const { return static_cast<unsigned>(call_->num_tiles); }
  unsigned numIpus() const { return static_cast<unsigned>(call_->num_ipus); }

  bool has(const std::string& name) const { return arrays_.contains(name); }
  std::span<float> floats(const std::string& name, std::size_t size) const;
  std::span<std::int32_t> integers(const std::string& name, std::size_t size) const;
  double number(const std::string& name) const;
  unsigned size(const std::string& name) const;  // a number from 1 on
  bool flag(const std::string& name) const { return number(name) != 0; }
  // A number of an enumeration.
  template <typename Enum>
  Enum choice(const std::string& name) const {
    return static_cast<Enum>(static_cast<unsigned char>(number(name)));
  }

 private:
  void* find(const std::string& name, std::size_t size, bool is_integer) const;

  const SnnjaxCall* call_;
  std::map<std::string, const SnnjaxArray*> arrays_;
  std::map<std::string, double> numbers_;
};

}  // namespace snnjax::harness
