// Options by name.
#pragma once

#include <initializer_list>
#include <map>
#include <poplar/StringRef.hpp>
#include <string>
#include <utility>

namespace poplar {

class OptionFlags {
 public:
  using OptionFlag = std::pair<const std::string, std::string>;
  using initializer_list = std::initializer_list<OptionFlag>;
  using iterator = std::map<std::string, std::string>::const_iterator;

  OptionFlags() = default;
  OptionFlags(initializer_list options) : options_(options) {}

  OptionFlags& set(StringRef option, StringRef value);
  OptionFlags& set(initializer_list options);
  // Throws invalid_option if there is no such option.
  StringRef at(StringRef option) const;
  bool contains(StringRef option) const { return options_.count(std::string(option)) != 0; }
  void clear() { options_.clear(); }

  iterator begin() const { return options_.begin(); }
  iterator end() const { return options_.end(); }
  friend bool operator==(const OptionFlags& a, const OptionFlags& b) { return a.options_ == b.options_; }
  friend bool operator!=(const OptionFlags& a, const OptionFlags& b) { return !(a == b); }

 private:
  std::map<std::string, std::string> options_;
};

// Reads {"name": "value", ...} into `flags`.
void readJSON(StringRef json, OptionFlags& flags);

}  // namespace poplar
