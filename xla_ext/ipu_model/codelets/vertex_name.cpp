#include "vertex_name.hpp"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <vector>

namespace ipu_model {
namespace {

bool isWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool isOneOf(const std::string& word, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* other) { return word == other; });
}

// Words and numbers whole, "::" whole, any other character by itself.
std::vector<std::string> tokens(std::string_view text) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at + 1;
    if (isWord(text[at])) {
      while (end < text.size() && isWord(text[end])) ++end;
    } else if (text.substr(at, 2) == "::") {
      end = at + 2;
    }
    if (std::isspace(static_cast<unsigned char>(text[at])) == 0) result.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return result;
}

// Takes out what compilers write for an unnamed namespace, with the "::" after it.
void dropUnnamedNamespaces(std::string& text) {
  for (const std::string_view unnamed : {"{anonymous}::", "<unnamed>::", "(anonymous namespace)::", "(anonymous)::"}) {
    for (std::size_t at = text.find(unnamed); at != text.npos; at = text.find(unnamed)) text.erase(at, unnamed.size());
  }
}

// The names of integers and halves, and numbers without what says their type.
void normalise(std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    const std::string next = i + 1 < words.size() ? words[i + 1] : "";
    if (word == "_Float16") word = "half";
    if (word == "unsigned" && !isOneOf(next, {"char", "short", "int", "long"})) word = "unsigned int";
    if (isOneOf(word, {"short", "long"}) && next == "int")
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 && word.find_first_of("xX.") == word.npos) {
      word.erase(word.find_last_not_of("uUlL") + 1);
    }
    // A name from the outermost namespace is the same without the "::" before it.
    const bool outermost = i == 0 || !(isWord(words[i - 1].back()) || words[i - 1] == ">");
    if (word == "::" && outermost) words.erase(words.begin() + static_cast<std::ptrdiff_t>(i--));
  }
}

}  // namespace

std::string normalVertexName(std::string_view name) {
  std::string text(name);
  dropUnnamedNamespaces(text);
  std::vector<std::string> words = tokens(text);
  normalise(words);
  std::string result;
  for (const std::string& word : words) {
    const bool apart = !result.empty() && isWord(result.back()) && isWord(word.front());
    result += apart ? " " + word : word;
  }
  return result;
}

}  // namespace ipu_model
