// A non-owning view of a string.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <ostream>
#include <string>
#if __cplusplus >= 201703L
#include <string_view>
#endif

namespace poplar {

class StringRef {
 public:
  using const_iterator = const char*;
  using iterator = const_iterator;

  constexpr StringRef() = default;
  StringRef(const char* text) : data_(text), size_(std::strlen(text)) {}
  constexpr StringRef(const char* text, std::size_t size) : data_(text), size_(size) {}
  StringRef(const std::string& text) : data_(text.data()), size_(text.size()) {}
#if __cplusplus >= 201703L
  constexpr StringRef(std::string_view text) : data_(text.data()), size_(text.size()) {}
  constexpr operator std::string_view() const { return {data_, size_}; }
#endif

  constexpr const char* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const char* begin() const { return data_; }
  constexpr const char* end() const { return data_ + size_; }
  constexpr const char& operator[](std::size_t index) const { return data_[index]; }
  constexpr const char& front() const { return data_[0]; }
  constexpr const char& back() const { return data_[size_ - 1]; }

  std::string cloneAsString() const { return std::string(begin(), end()); }
  operator std::string() const { return cloneAsString(); }

  friend bool operator==(StringRef a, StringRef b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  friend bool operator!=(StringRef a, StringRef b) { return !(a == b); }
  friend bool operator<(StringRef a, StringRef b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }
  friend std::string operator+(const std::string& a, StringRef b) { return a + b.cloneAsString(); }
  friend std::string operator+(StringRef a, const std::string& b) { return a.cloneAsString() + b; }
  friend std::ostream& operator<<(std::ostream& stream, StringRef text) { return stream << text.cloneAsString(); }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace poplar
