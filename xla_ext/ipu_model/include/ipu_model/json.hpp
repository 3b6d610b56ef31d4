// Writes JSON: objects and lists nest by calls, commas come by themselves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ipu_model {

class JsonWriter {
 public:
  JsonWriter& open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  JsonWriter& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(double number);

  template <typename T>
  JsonWriter& field(std::string_view name, const T& of) {
    return key(name).value(of);
  }

  const std::string& text() const { return text_; }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  void quote(std::string_view text);

  std::string text_;
  bool first_ = true;
};

}  // namespace ipu_model
