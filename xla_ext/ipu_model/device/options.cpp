// Poplar's OptionFlags.
#include <cctype>
#include <poplar/OptionFlags.hpp>
#include <poplar/exceptions.hpp>

namespace poplar {
namespace {

[[noreturn]] void refuse(StringRef json) {
  throw invalid_option("readJSON: `json` must be an object of strings, numbers or booleans, got " +
                       json.cloneAsString() + R"(. Write {"name": "value"}.)");
}

// Reads the tokens of one flat object.
class Reader {
 public:
  explicit Reader(StringRef json) : json_(json) {}

  bool take(char c) {
    skipSpace();
    if (at_ >= json_.size() || json_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string text() {
    skipSpace();
    std::string result;
    if (take('"')) {
      while (at_ < json_.size() && json_[at_] != '"') {
        if (json_[at_] == '\\') ++at_;
        if (at_ < json_.size()) result += json_[at_++];
      }
      if (!take('"')) refuse(json_);
    } else {
      while (at_ < json_.size() && (std::isalnum(static_cast<unsigned char>(json_[at_])) != 0 || json_[at_] == '.' ||
                                    json_[at_] == '-' || json_[at_] == '+')) {
        result += json_[at_++];
      }
      if (result.empty()) refuse(json_);
    }
    return result;
  }

 private:
  void skipSpace() {
    while (at_ < json_.size() && std::isspace(static_cast<unsigned char>(json_[at_])) != 0) ++at_;
  }

  StringRef json_;
  std::size_t at_ = 0;
};

}  // namespace

OptionFlags& OptionFlags::set(StringRef option, StringRef value) {
  options_[option] = value;
  return *this;
}

OptionFlags& OptionFlags::set(initializer_list options) {
  for (const OptionFlag& option : options) options_[option.first] = option.second;
  return *this;
}

StringRef OptionFlags::at(StringRef option) const {
  const auto found = options_.find(std::string(option));
  if (found != options_.end()) return found->second;
  throw invalid_option("OptionFlags: `option` must have been set, got \"" + option + "\". Ask contains() first.");
}

void readJSON(StringRef json, OptionFlags& flags) {
  Reader reader(json);
  if (!reader.take('{')) refuse(json);
  if (reader.take('}')) return;
  do {
    const std::string name = reader.text();
    if (!reader.take(':')) refuse(json);
    flags.set(name, reader.text());
  } while (reader.take(','));
  if (!reader.take('}')) refuse(json);
}

}  // namespace poplar
