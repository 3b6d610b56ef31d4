// A tree of numbers, texts, lists and named values: a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace poplar {

class ProfileValue {
 public:
  enum class Type { BOOLEAN, NUMBER, STRING, VECTOR, MAP };
  using Vector = std::vector<ProfileValue>;
  using Map = std::map<std::string, ProfileValue>;

  ProfileValue();  // an empty map
  ProfileValue(bool value) : type_(Type::BOOLEAN), number_(value ? 1 : 0) {}
  template <typename T, typename = typename std::enable_if<std::is_arithmetic<T>::value>::type>
  ProfileValue(T value) : type_(Type::NUMBER), number_(static_cast<double>(value)) {}
  ProfileValue(const char* value) : type_(Type::STRING), text_(value) {}
  ProfileValue(std::string value) : type_(Type::STRING), text_(std::move(value)) {}
  ProfileValue(Vector value);
  ProfileValue(Map value);

  Type type() const { return type_; }
  // Throw a poplar_error where the value is of another type.
  bool asBool() const;
  double asDouble() const;
  std::int64_t asInt() const { return static_cast<std::int64_t>(asDouble()); }
  std::uint64_t asUint() const { return static_cast<std::uint64_t>(asDouble()); }
  const std::string& asString() const;
  const Vector& asVector() const;
  const Map& asMap() const;

  // Throw a poplar_error where there is no such value.
  const ProfileValue& operator[](const std::string& name) const;
  const ProfileValue& operator[](const char* name) const { return (*this)[std::string(name)]; }
  const ProfileValue& operator[](std::size_t index) const;
  const ProfileValue& operator[](int index) const { return (*this)[static_cast<std::size_t>(index)]; }
  std::size_t size() const;  // of a vector or a map
  double sum() const;        // of a vector of numbers

 private:
  Type type_;
  double number_ = 0;
  std::string text_;
  std::shared_ptr<const Vector> vector_;
  std::shared_ptr<const Map> map_;
};

void serializeToJSON(std::ostream& stream, const ProfileValue& value, bool prettyPrint = false);

}  // namespace poplar
