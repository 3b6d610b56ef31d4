// Names of what a program adds to a graph. The model keeps the path of names only, no source locations.
#pragma once

#include <poplar/StringRef.hpp>
#include <string>

namespace poplar {

class DebugContext;

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

// Of an operation that is being built.
class DebugInfo {
 public:
  DebugInfo(const DebugContext& context, StringRef api);
  virtual ~DebugInfo() = default;
  DebugInfo(const DebugInfo&) = delete;
  DebugInfo& operator=(const DebugInfo&) = delete;

  std::string getPathName() const { return name_.getPathName(); }
  operator const DebugNameAndId&() const { return name_; }

 private:
  DebugNameAndId name_;
};

class DebugContext {
 public:
  DebugContext() = default;
  DebugContext(const char* name) : name_(name) {}
  DebugContext(StringRef name) : name_(name) {}
  DebugContext(const std::string& name) : name_(name) {}
  DebugContext(const DebugNameAndId& parent, StringRef name = "") : name_(parent, name) {}
  DebugContext(const DebugInfo& parent, StringRef name = "") : name_(parent, name) {}
  DebugContext(const DebugContext& parent, StringRef name) : name_(parent.name_, name) {}

  const std::string& getPathName() const { return name_.getPathName(); }

 private:
  DebugNameAndId name_;
};

inline DebugNameAndId::DebugNameAndId(const DebugNameAndId& parent, StringRef name) : path_(parent.path_) {
  if (!path_.empty() && !name.empty() && path_.back() != '/' && name.front() != '/') path_ += '/';
  path_ += name;
}

inline DebugInfo::DebugInfo(const DebugContext& context, StringRef /*api*/) : name_(context.getPathName()) {}

}  // namespace poplar
