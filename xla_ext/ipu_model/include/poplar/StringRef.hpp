// A string that somebody else holds.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace poplar {

class StringRef : public std::string_view {
 public:
  constexpr StringRef() = default;
  constexpr StringRef(const char* text) : std::string_view(text) {}
  constexpr StringRef(const char* text, std::size_t size) : std::string_view(text, size) {}
  constexpr StringRef(std::string_view text) : std::string_view(text) {}
  StringRef(const std::string& text) : std::string_view(text) {}

  std::string cloneAsString() const { return std::string(*this); }
  operator std::string() const { return cloneAsString(); }
};

inline std::string operator+(const std::string& a, StringRef b) { return a + b.cloneAsString(); }
inline std::string operator+(StringRef a, const std::string& b) { return a.cloneAsString() + b; }

}  // namespace poplar
