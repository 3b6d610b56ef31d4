// Poplar's Graph: where vertex classes come from.
#include <algorithm>
#include <filesystem>
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

bool isLibrary(StringRef src) { return std::filesystem::path(src.cloneAsString()).extension() == ".gp"; }

// Whether the graph does not have it yet.
bool add(ipu_model::GraphData& graph, std::shared_ptr<const ipu_model::CodeletLibrary> library) {
  if (std::ranges::find(graph.libraries, library) != graph.libraries.end()) return false;
  graph.libraries.push_back(std::move(library));
  graph.vertex_types.clear();
  return true;
}

}  // namespace

bool Graph::addCodelets(StringRef src, CodeletFileType, StringRef compileFlags, StringRef) {
  const std::filesystem::path path(src.cloneAsString());
  return add(*data_, isLibrary(src) ? ipu_model::CodeletLibrary::load(path)
                                    : ipu_model::CodeletLibrary::compile({path}, words(compileFlags)));
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
  if (!paths.empty()) add(*data_, ipu_model::CodeletLibrary::compile(paths, words(compileFlags)));
}

void Graph::addCodelets(std::stringstream& source, StringRef compileFlags, CodeletFileType, StringRef) {
  add(*data_, ipu_model::CodeletLibrary::compileText(source.str(), words(compileFlags)));
}

}  // namespace poplar
