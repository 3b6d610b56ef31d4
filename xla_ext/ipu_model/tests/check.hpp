// The checks of the C++ tests: each test is a program that returns how many of its checks failed, up to a most.
#pragma once

#include <cmath>
#include <exception>
#include <iostream>
#include <string>

namespace check {

inline int failures = 0;
// What a program returns has eight bits: 256 failures would look like none.
inline constexpr int kMostFailures = 255;

inline void that(bool holds, const char* text, const char* file, int line, const std::string& detail = {}) {
  if (holds) return;
  if (failures < kMostFailures) ++failures;
  std::cerr << file << ':' << line << ": failed: " << text << (detail.empty() ? "" : ", got " + detail) << '\n';
}

// The message of what `body` throws; empty if it throws nothing.
template <typename Body>
std::string messageOf(Body&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

template <typename A, typename B>
std::string both(const A& a, const B& b) {
  if constexpr (requires { std::to_string(a), std::to_string(b); }) {
    return std::to_string(a) + " and " + std::to_string(b);
  } else if constexpr (requires { std::string(a), std::string(b); }) {
    return std::string(a) + " and " + std::string(b);
  } else {
    return {};
  }
}

}  // namespace check

#define CHECK(condition) check::that(static_cast<bool>(condition), #condition, __FILE__, __LINE__)
#define CHECK_EQUAL(a, b) check::that((a) == (b), #a " == " #b, __FILE__, __LINE__, check::both(a, b))
#define CHECK_NEAR(a, b, tolerance) \
  check::that(std::abs((a) - (b)) <= (tolerance), #a " near " #b, __FILE__, __LINE__, check::both(a, b))
// The expression must throw an exception whose message holds `part`.
#define CHECK_THROWS(expression, part)                                                                          \
  do {                                                                                                          \
    const std::string message = check::messageOf([&] { (void)(expression); });                                  \
    check::that(message.find(part) != message.npos, #expression " throws " #part, __FILE__, __LINE__, message); \
  } while (false)
