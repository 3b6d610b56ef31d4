// Poplar's Graph: where vertex classes come from.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <poplar/Graph.hpp>
#include <sstream>

#include "graph/graph_data.hpp"

namespace ipu_model {

const VertexType& GraphData::vertexType(const std::string& name) {
  const auto known = vertex_types.find(name);
  if (known != vertex_types.end()) return *known->second;
  const auto remember = [&](const CodeletLibrary& library) {
    const VertexType* type = library.find(name);
    if (type != nullptr) vertex_types[name] = type;
    return type;
  };
  for (auto library = libraries.rbegin(); library != libraries.rend(); ++library) {
    if (const VertexType* type = remember(**library)) return *type;
  }
  const std::shared_ptr<const CodeletLibrary> built_in = CodeletLibrary::builtIn();
  if (const VertexType* type = remember(*built_in)) {
    libraries.insert(libraries.begin(), built_in);  // searched last, as it was this time
    return *type;
  }
  throw poplar::unknown_vertex_type("addVertex: `vertexType` must be a class of a codelet file of this graph, got \"" +
                                    name + "\". Call addCodelets with its source, or mind the template arguments.");
}

}  // namespace ipu_model

namespace poplar {
namespace {

std::vector<std::string> words(StringRef text) {
  std::istringstream stream{text.cloneAsString()};
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

// A source file that lives as long as this does.
class TemporarySource {
 public:
  explicit TemporarySource(const std::string& text) {
    std::string pattern = (std::filesystem::temp_directory_path() / "codelets-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw graph_object_load_error("addCodelets: `source` must be written to a temporary file, got no folder " +
                                    pattern + ". Make TMPDIR a folder that can be written.");
    }
    folder_ = pattern;
    std::ofstream(path()) << text;
  }
  ~TemporarySource() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporarySource(const TemporarySource&) = delete;
  TemporarySource& operator=(const TemporarySource&) = delete;
  std::filesystem::path path() const { return folder_ / "codelets.cpp"; }

 private:
  std::filesystem::path folder_;
};

bool isLibrary(StringRef src) { return std::filesystem::path(src.cloneAsString()).extension() == ".gp"; }

}  // namespace

bool Graph::addCodelets(StringRef src, CodeletFileType, StringRef compileFlags, StringRef) {
  const std::filesystem::path path(src.cloneAsString());
  auto library = isLibrary(src) ? ipu_model::CodeletLibrary::load(path)
                                : ipu_model::CodeletLibrary::compile({path}, words(compileFlags));
  for (const auto& known : data_->libraries) {
    if (known == library) return false;
  }
  data_->libraries.push_back(std::move(library));
  data_->vertex_types.clear();
  return true;
}

void Graph::addCodelets(const std::vector<std::string>& sources, StringRef compileFlags, StringRef) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& source : sources) {
    if (isLibrary(source)) {
      addCodelets(StringRef(source));
    } else {
      paths.emplace_back(source);
    }
  }
  if (paths.empty()) return;
  data_->libraries.push_back(ipu_model::CodeletLibrary::compile(paths, words(compileFlags)));
  data_->vertex_types.clear();
}

void Graph::addCodelets(std::stringstream& source, StringRef compileFlags, CodeletFileType, StringRef) {
  const TemporarySource file(source.str());
  data_->libraries.push_back(ipu_model::CodeletLibrary::compile({file.path()}, words(compileFlags)));
  data_->vertex_types.clear();
}

}  // namespace poplar
