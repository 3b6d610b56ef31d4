// Writes JSON: objects and lists nest by calls, commas are automatic.
#pragma once

#include <cstdint>
#include <string>

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
  JsonWriter& key(const std::string& name);
  JsonWriter& value(const std::string& text);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(double number);

  template <typename T>
  JsonWriter& field(const std::string& name, const T& of) {
    return key(name).value(of);
  }

  const std::string& text() const { return text_; }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  void quote(const std::string& text);

  std::string text_;
  bool first_ = true;
};

}  // namespace ipu_model
