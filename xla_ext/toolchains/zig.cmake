# Clang and the headers of other systems, as the package `ziglang` ships them: `python-zig` lies beside the Python that
# runs CMake. What it links is checked to compile and to export, never released: see xla_ext/README.md.
find_program(SNNJAX_ZIG python-zig HINTS ${CMAKE_CURRENT_LIST_DIR}/../../.venv/bin REQUIRED)
set(CMAKE_CXX_COMPILER ${SNNJAX_ZIG} c++)
set(CMAKE_CXX_COMPILER_LAUNCHER "")
# Nothing is archived and no name is rewritten, but CMake looks for the tools.
foreach(tool AR RANLIB INSTALL_NAME_TOOL)
  set(CMAKE_${tool} /bin/true)
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
