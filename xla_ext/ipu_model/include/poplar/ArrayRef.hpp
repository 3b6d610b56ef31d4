// A non-owning view of contiguous elements: of a vector, an array, an initializer list or one element.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <vector>

namespace poplar {

template <typename T>
class ArrayRef {
 public:
  using value_type = T;
  using const_iterator = const T*;
  using iterator = const_iterator;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& element) : data_(&element), size_(1) {}
  constexpr ArrayRef(const T* data, std::size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<std::size_t>(end - begin)) {}
  template <typename Allocator>
  ArrayRef(const std::vector<T, Allocator>& elements) : data_(elements.data()), size_(elements.size()) {}
  template <std::size_t N>
  constexpr ArrayRef(const std::array<T, N>& elements) : data_(elements.data()), size_(N) {}
  template <std::size_t N>
  constexpr ArrayRef(const T (&elements)[N]) : data_(elements), size_(N) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
// The list lives until the end of the full expression, as everything that an ArrayRef argument refers to.
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  constexpr ArrayRef(const std::initializer_list<T>& elements) : data_(elements.begin()), size_(elements.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  constexpr const T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](std::size_t index) const { return data_[index]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }

  std::vector<T> cloneAsVector() const { return {begin(), end()}; }
  operator std::vector<T>() const { return cloneAsVector(); }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace poplar
