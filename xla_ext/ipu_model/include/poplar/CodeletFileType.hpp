// What a file of codelets holds. The model accepts C++ and libraries of popc, told apart by file name alone.
#pragma once

namespace poplar {

enum class CodeletFileType { PreprocessedAsmSource, AsmSource, CSource, CppSource, IrSource, Object, Auto };

}  // namespace poplar
