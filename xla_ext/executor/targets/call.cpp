#include "executor/targets/call.hpp"

namespace snnjax::executor::targets {

void refuseCall(const Instruction& instruction, const std::string& name, const std::string& expected,
                const std::string& actual) {
  throw Error(ErrorCode::kInvalidArgument, "compile: `" + name + "` of " + instruction.texts[0] + " must " + expected +
                                               ", got " + actual +
                                               ". Compile the function again, with libraries of its version (`make "
                                               "kernels` builds them).");
}

unsigned knownNumber(const Instruction& instruction, const char* name, std::int64_t number, std::int64_t limit) {
  if (number >= 0 && number < limit) return static_cast<unsigned>(number);
  refuseCall(instruction, name, "hold numbers that it knows", std::to_string(number));
}

Attributes::Attributes(const Instruction& instruction) : instruction_(instruction) {
  const std::string digest = has("schema") ? attribute(instruction, "schema") : "none";
  if (digest == schema::kDigest) return;
  refuseCall(instruction, "schema", "be " + std::string(schema::kDigest) + ", that of the IPU Model", digest);
}

bool Attributes::has(const std::string& name) const {
  return std::ranges::any_of(instruction_.texts, [&](const std::string& text) { return text.starts_with(name + ':'); });
}

// "1,2,3"
template <typename Number>
std::vector<Number> Attributes::numbers(const char* name) const {
  const std::string text = attribute(instruction_, name);
  std::vector<Number> numbers;
  for (std::size_t first = 0; first < text.size();) {
    const std::size_t comma = std::min(text.find(',', first), text.size());
    const char* const end = text.data() + comma;
    Number& number = numbers.emplace_back();
    const auto [stop, error] = std::from_chars(text.data() + first, end, number);
    if (error != std::errc() || stop != end) {
      const bool is_whole = std::is_same_v<Number, std::int64_t>;
      refuseCall(instruction_, name, is_whole ? "hold whole numbers" : "hold numbers", '"' + text + '"');
    }
    first = comma + 1;
  }
  return numbers;
}

template std::vector<std::int64_t> Attributes::numbers(const char* name) const;
template std::vector<double> Attributes::numbers(const char* name) const;

}  // namespace snnjax::executor::targets
