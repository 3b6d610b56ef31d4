// PJRT's table of functions, filled file by file: each function takes its arguments by reference and throws.
#pragma once

#include <string_view>

#include "pjrt/interface/abi_programs.hpp"
#include "pjrt/interface/errors.hpp"

namespace snnjax::pjrt {

// Throws if a caller's structure ends before the last field that the plugin reads or writes.
void requireSize(std::size_t given, std::size_t needed);

// A function of the table from a lambda without captures, whose exceptions become errors.
template <class Args, class Body>
Function toFunction(Body, void (Body::*)(Args&) const) {
  return [](void* raw) -> Error* {
    try {
      auto& args = *static_cast<Args*>(raw);
      requireSize(args.struct_size, sizeof(Args));
      Body{}(args);
      return nullptr;
    } catch (const std::exception& exception) {
      return toError(errorOf(exception));
    }
  };
}
template <class Body>
Function toFunction(Body body) {
  return toFunction(body, &Body::operator());
}

class Table {
 public:
  // All functions report that they are unimplemented.
  Table();
  // `name`: one of kFunctions.
  template <class Body>
  void add(std::string_view name, Body body) {
    entry(name) = toFunction(body);
  }
  const Api& api() const { return api_; }
  Extension*& extensions() { return api_.extension_start; }

 private:
  Function& entry(std::string_view name);
  Api api_{};
};

}  // namespace snnjax::pjrt
