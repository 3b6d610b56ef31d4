// Running another program to its end, and a folder for its files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ipu_model {

// A new folder below that for temporary files, removed with all it holds.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& prefix);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct ProcessResult {
  int status;          // 0 after success
  std::string errors;  // what it wrote to its standard error
};

// Runs `command[0]`, searched for in PATH, without a shell. `folder` takes a file for its output.
ProcessResult runProcess(const std::vector<std::string>& command, const std::filesystem::path& folder);

}  // namespace ipu_model
