// The name of one instantiation of a vertex template: templateVertex("Sum", poplar::FLOAT, true) is "Sum<float,true>".
#pragma once

#include <poplar/Type.hpp>
#include <string>
#include <type_traits>

namespace poputil {

// Specialise for further types of template arguments, for instance an enumeration of operations.
template <typename T, typename Enable = void>
struct VertexTemplateToString;

template <>
struct VertexTemplateToString<bool> {
  static std::string to_string(bool value) { return value ? "true" : "false"; }
};

template <typename T>
struct VertexTemplateToString<T, typename std::enable_if<std::is_integral<T>::value>::type> {
  static std::string to_string(T value) { return std::to_string(value); }
};

template <>
struct VertexTemplateToString<poplar::Type> {
  static std::string to_string(const poplar::Type& type) { return type.toString(); }
};

template <>
struct VertexTemplateToString<std::string> {
  static std::string to_string(const std::string& text) { return text; }
};

template <>
struct VertexTemplateToString<const char*> {
  static std::string to_string(const char* text) { return text; }
};

inline std::string templateVertexParams(bool) { return ">"; }

template <typename Argument, typename... Arguments>
std::string templateVertexParams(bool first, Argument&& argument, Arguments&&... arguments) {
  const std::string text = VertexTemplateToString<typename std::decay<Argument>::type>::to_string(argument);
  return (first ? "<" : ",") + text + templateVertexParams(false, std::forward<Arguments>(arguments)...);
}

template <typename... Arguments>
std::string templateVertex(const std::string& name, Arguments&&... arguments) {
  return sizeof...(arguments) == 0 ? name : name + templateVertexParams(true, std::forward<Arguments>(arguments)...);
}

}  // namespace poputil
