// Loads and compiles libraries of codelets.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vertex_type.hpp"

namespace ipu_model {

// The vertex classes of one .gp file, which live as long as the library does.
class CodeletLibrary {
 public:
  // Throws poplar::poplar_error if the file is missing or was not made by popc.py.
  static std::shared_ptr<const CodeletLibrary> load(const std::filesystem::path& gp);

  // Compiles C++ sources with popc.py and loads the result; the same text with the same flags once, while a
  // process uses few others.
  // `flags` go to the compiler. Throws poplar::poplar_error with the compiler's message.
  // SNNJAX_POPC and SNNJAX_PYTHON in the environment say which popc.py runs in which Python; by default the one beside
  // the running library (or else of the source tree), and `python3`.
  static std::shared_ptr<const CodeletLibrary> compile(const std::vector<std::filesystem::path>& sources,
                                                       const std::vector<std::string>& flags = {});
  // The same with the text of a source instead of a file.
  static std::shared_ptr<const CodeletLibrary> compileText(const std::string& text,
                                                           const std::vector<std::string>& flags = {});

  // The codelets of poplar_kernels: the file that SNNJAX_IPU_CODELETS names, else snnjax.gp beside the running library.
  static std::shared_ptr<const CodeletLibrary> builtIn();

  // By any spelling: "Foo<unsigned, 3>" is "Foo<unsigned int,3>". Null if there is none of that name.
  const VertexType* find(std::string_view name) const;

  const std::vector<VertexType>& vertexTypes() const { return types_; }

  // The contents of the file, to be stored elsewhere; empty for the built-in library, which is always available.
  const std::string& contents() const { return contents_; }

  CodeletLibrary(std::shared_ptr<void> handle, std::vector<VertexType> types, std::string contents);

 private:
  std::shared_ptr<void> handle_;  // of dlopen; outlives types_, whose functions lie in it
  std::vector<VertexType> types_;
  std::string contents_;
  std::map<std::string, const VertexType*, std::less<>> by_name_;  // in normal form
};

}  // namespace ipu_model
