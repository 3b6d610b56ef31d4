// Names of what a program adds to a graph. The model keeps the path of names only, no source locations.
#pragma once

#include <poplar/StringRef.hpp>
#include <string>

namespace poplar {

// The path of names of an operation, to be passed to the operations that it calls.
class DebugNameAndId {
 public:
  DebugNameAndId() = default;
  DebugNameAndId(const char* name) : path_(name) {}
  DebugNameAndId(StringRef name) : path_(name) {}
  DebugNameAndId(const std::string& name) : path_(name) {}
  DebugNameAndId(const DebugNameAndId& parent, StringRef name);

  const std::string& getPathName() const { return path_; }

 private:
  std::string path_;
};

class DebugContext {
 public:
  DebugContext() = default;
  DebugContext(const char* name) : name_(name) {}
  DebugContext(StringRef name) : name_(name) {}
  DebugContext(const std::string& name) : name_(name) {}
  DebugContext(const DebugNameAndId& parent, StringRef name = "") : name_(parent, name) {}
  DebugContext(const DebugContext& parent, StringRef name) : name_(parent.name_, name) {}

  const std::string& getPathName() const { return name_.getPathName(); }

 private:
  DebugNameAndId name_;
};

inline DebugNameAndId::DebugNameAndId(const DebugNameAndId& parent, StringRef name) : path_(parent.path_) {
  if (!path_.empty() && !name.empty() && path_.back() != '/' && name.front() != '/') path_ += '/';
  path_ += name;
}

}  // namespace poplar
