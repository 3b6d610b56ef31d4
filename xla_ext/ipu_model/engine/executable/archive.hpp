// Values to and from a stream of bytes. One function per structure, `transfer`, lists its members for both directions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <poplar/exceptions.hpp>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace ipu_model {

class Writer {
 public:
  static constexpr bool kReads = false;
  explicit Writer(std::ostream& stream) : stream_(stream) {}
  void bytes(const void* data, std::size_t size) {
    stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    if (!stream_) throw poplar::poplar_error("serialize: `out` must take all bytes, got an error. Is the disk full?");
  }

 private:
  std::ostream& stream_;
};

class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::istream& stream) : stream_(stream) {}
  void bytes(void* data, std::size_t size) {
    stream_.read(static_cast<char*>(data), static_cast<std::streamsize>(size));
    if (stream_) return;
    throw poplar::poplar_error(
        "deserialize: `in` must hold a whole executable, got less. Write it with Executable::serialize.");
  }

 private:
  std::istream& stream_;
};

template <typename Archive, typename T>
  requires std::is_trivially_copyable_v<T>
void transfer(Archive& archive, T& value) {
  archive.bytes(&value, sizeof value);
}

template <typename Archive, typename Container>
void transferSize(Archive& archive, Container& container) {
  std::uint64_t size = container.size();
  transfer(archive, size);
  if constexpr (Archive::kReads) container.resize(size);
}

template <typename Archive>
void transfer(Archive& archive, std::string& text) {
  transferSize(archive, text);
  archive.bytes(text.data(), text.size());
}

template <typename Archive, typename First, typename Second>
  requires(!std::is_trivially_copyable_v<std::pair<First, Second>>)
void transfer(Archive& archive, std::pair<First, Second>& pair) {
  transfer(archive, pair.first);
  transfer(archive, pair.second);
}

template <typename Archive, typename T>
void transfer(Archive& archive, std::vector<T>& values) {
  transferSize(archive, values);
  if constexpr (std::is_trivially_copyable_v<T>) {
    archive.bytes(values.data(), values.size() * sizeof(T));
  } else {
    for (T& value : values) transfer(archive, value);
  }
}

template <typename Archive, typename T>
  requires(!std::is_trivially_copyable_v<std::optional<T>>)
void transfer(Archive& archive, std::optional<T>& value) {
  bool there = value.has_value();
  transfer(archive, there);
  if (Archive::kReads && there) value.emplace();
  if (there) transfer(archive, *value);
}

template <typename Archive>
void transfer(Archive& archive, std::unordered_map<std::string, std::uint32_t>& map) {
  std::vector<std::pair<std::string, std::uint32_t>> entries(map.begin(), map.end());
  transfer(archive, entries);
  if constexpr (Archive::kReads) map = {entries.begin(), entries.end()};
}

template <std::size_t index, typename... Ts>
void emplaceAlternative(std::variant<Ts...>& value, std::size_t wanted) {
  if constexpr (index < sizeof...(Ts)) {
    if (index == wanted) {
      value.template emplace<index>();
    } else {
      emplaceAlternative<index + 1>(value, wanted);
    }
  } else {
    throw poplar::poplar_error("deserialize: `in` must be whole, got a step of no kind. Write it again.");
  }
}

template <typename Archive, typename... Ts>
  requires(!std::is_trivially_copyable_v<std::variant<Ts...>>)
void transfer(Archive& archive, std::variant<Ts...>& value) {
  std::uint64_t index = value.index();
  transfer(archive, index);
  if constexpr (Archive::kReads) emplaceAlternative<0>(value, index);
  std::visit([&archive](auto& alternative) { transfer(archive, alternative); }, value);
}

}  // namespace ipu_model
