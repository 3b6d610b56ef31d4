// What a file of codelets holds. The model takes C++ and libraries of popc, by the names of files alone.
#pragma once

namespace poplar {

enum class CodeletFileType { PreprocessedAsmSource, AsmSource, CSource, CppSource, IrSource, Object, Auto };

}  // namespace poplar
