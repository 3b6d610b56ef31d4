#include "codelet_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <poplar/exceptions.hpp>

#include "process.hpp"
#include "vertex_name.hpp"

namespace ipu_model {
namespace {

namespace fs = std::filesystem;

constexpr char kEntry[] = "ipu_model_vertex_types";  // that of popc.py

std::string environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// The folder of the library, or of the program, that this code was linked into.
fs::path ownFolder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&ownFolder), &info) == 0 || info.dli_fname == nullptr) return ".";
  return fs::absolute(info.dli_fname).parent_path();
}

fs::path popcPath() {
  const fs::path installed = ownFolder() / "ipu_model" / "codelets" / "popc.py";
  const fs::path in_tree = fs::path(SNNJAX_CODELET_COMPILER);
  return environment("SNNJAX_POPC", fs::exists(installed) ? installed : in_tree);
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The dependencies of a compilation, except the sources' headers, which are assumed not to change.
std::string compilationKey(const std::vector<fs::path>& sources, const std::vector<std::string>& flags) {
  std::string key;
  for (const fs::path& source : sources) key += fs::absolute(source).string() + '\0' + contents(source) + '\0';
  for (const std::string& flag : flags) key += flag + '\0';
  return key;
}

std::shared_ptr<const CodeletLibrary> runPopc(const std::vector<fs::path>& sources,
                                              const std::vector<std::string>& flags) {
  const TemporaryFolder folder("snnjax-popc");
  const fs::path gp = folder.path() / "codelets.gp";
  std::vector<std::string> command{environment("SNNJAX_PYTHON", "python3"), popcPath(), "-o", gp};
  for (const std::string& flag : flags) command.push_back("--flag=" + flag);
  command.insert(command.end(), sources.begin(), sources.end());
  const ProcessResult result = runProcess(command, folder.path());
  if (result.status != 0) throw poplar::graph_program_compilation_error("addCodelets: " + result.errors, result.errors);
  return CodeletLibrary::load(gp);
}

std::shared_ptr<const CodeletLibrary> open(const fs::path& gp, std::string contents) {
  // An absolute path, so that the loader searches nowhere else.
  void* opened = dlopen(fs::absolute(gp).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    throw poplar::graph_object_load_error("addCodelets: `" + gp.string() + "` must be a library of codelets, got: " +
                                          dlerror() + ". Make it with popc.py.");
  }
  std::shared_ptr<void> handle(opened, dlclose);
  using Entry = void(std::vector<VertexType>&);
  Entry* entry = reinterpret_cast<Entry*>(dlsym(opened, kEntry));
  if (entry == nullptr) {
    throw poplar::graph_object_load_error("addCodelets: `" + gp.string() + "` must be a library of codelets, got one " +
                                          "without " + kEntry + ". Make it with popc.py.");
  }
  std::vector<VertexType> types;
  entry(types);
  return std::make_shared<const CodeletLibrary>(std::move(handle), std::move(types), std::move(contents));
}

}  // namespace

CodeletLibrary::CodeletLibrary(std::shared_ptr<void> handle, std::vector<VertexType> types, std::string contents)
    : handle_(std::move(handle)), types_(std::move(types)), contents_(std::move(contents)) {
  for (VertexType& type : types_) {
    type.name = normalVertexName(type.name);
    by_name_.emplace(type.name, &type);
  }
  for (const VertexType& type : types_) by_name_.emplace(normalVertexName(type.source_name), &type);
}

std::shared_ptr<const CodeletLibrary> CodeletLibrary::load(const fs::path& gp) {
  return open(gp, ipu_model::contents(gp));
}

std::shared_ptr<const CodeletLibrary> CodeletLibrary::compile(const std::vector<fs::path>& sources,
                                                              const std::vector<std::string>& flags) {
  static std::mutex mutex;
  // Never destroyed: a program may still run when the process ends.
  static auto& compiled = *new std::map<std::string, std::shared_ptr<const CodeletLibrary>>;
  for (const fs::path& source : sources) {
    if (fs::exists(source)) continue;
    throw poplar::graph_object_load_error("addCodelets: `" + source.string() +
                                          "` must be a file, got none of that name. Give a path from the folder " +
                                          fs::current_path().string() + ".");
  }
  const std::string key = compilationKey(sources, flags);
  const std::lock_guard lock(mutex);
  std::shared_ptr<const CodeletLibrary>& library = compiled[key];
  if (library == nullptr) library = runPopc(sources, flags);
  return library;
}

std::shared_ptr<const CodeletLibrary> CodeletLibrary::builtIn() {
  static const auto& library = *new std::shared_ptr<const CodeletLibrary>(  // never destroyed, as those of `compile`
      open(environment("SNNJAX_IPU_CODELETS", ownFolder() / "snnjax.gp"), {}));
  return library;
}

const VertexType* CodeletLibrary::find(std::string_view name) const {
  const auto found = by_name_.find(normalVertexName(name));
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace ipu_model
