#include "process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <poplar/exceptions.hpp>
#include <system_error>

namespace ipu_model {

TemporaryFolder::TemporaryFolder(const std::string& prefix) {
  std::string name = std::filesystem::temp_directory_path() / (prefix + "-XXXXXX");
  if (mkdtemp(name.data()) == nullptr) {
    throw poplar::runtime_error("addCodelets: `" + name + "` must be a folder that can be made, got: " +
                                std::strerror(errno) + ". Set TMPDIR to a folder that can be written.");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // nothing to be done about a file that stays
  std::filesystem::remove_all(path_, ignored);
}

ProcessResult runProcess(const std::vector<std::string>& command, const std::filesystem::path& folder) {
  const std::string errors_path = folder / "errors.txt";
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t process = 0;
  const int failure = posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return {failure, "`" + command[0] + "` must be a program, got: " + std::strerror(failure)};

  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  std::ifstream file(errors_path);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1, {std::istreambuf_iterator<char>(file), {}}};
}

}  // namespace ipu_model
