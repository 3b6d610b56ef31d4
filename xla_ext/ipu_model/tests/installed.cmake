# Installs the model into an empty folder and runs programs against what lies there alone: headers, library, the codelets
# of the package (library_functions) and the codelet compiler (writing_vertices).
cmake_path(SET folder NORMALIZE ${build}/ipu_model/installed)
set(package ${folder}/snnjax)
set(tests ${CMAKE_CURRENT_LIST_DIR})
separate_arguments(flags)
if(sanitize)
  list(APPEND flags -fsanitize=${sanitize})
endif()
file(REMOVE_RECURSE ${folder})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${build} --component ipu_model --prefix ${folder}
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

set(standard_library_functions c++20)
set(standard_writing_vertices c++20)
set(standard_older_standard c++11)
foreach(program library_functions writing_vertices older_standard)
  execute_process(
    COMMAND ${compiler} -std=${standard_${program}} ${flags} ${tests}/programs/${program}.cpp -I ${tests} -I ${package}/ipu_model/include
      -L ${package} -lipu_model -Wl,-rpath,${package} -o ${folder}/${program}
    COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${folder}/${program} WORKING_DIRECTORY ${tests} COMMAND_ERROR_IS_FATAL ANY)
endforeach()

# A project that looks for Poplar and its libraries, and for popc, builds as it is; so does a line that links -lpoplar.
set(ENV{PATH} "${package}/ipu_model/bin:$ENV{PATH}")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${tests}/package -B ${folder}/package -D CMAKE_CXX_COMPILER=${compiler}
    "-D CMAKE_CXX_FLAGS=${flags}" -D CMAKE_PREFIX_PATH=${package}/ipu_model
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${folder}/package OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${folder}/package/squares WORKING_DIRECTORY ${folder}/package COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${compiler} ${flags} ${tests}/package/main.cpp -I ${package}/ipu_model/include
    -L ${package}/ipu_model/lib -lpoplar -lpopops -lpoputil -Wl,-rpath,${package} -o ${folder}/package/squares_by_name
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${folder}/package/squares_by_name WORKING_DIRECTORY ${folder}/package
  COMMAND_ERROR_IS_FATAL ANY)

# So does the custom operation, whose sources the model's build has compiled: in full where time is no matter.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${tests}/../.. -B ${folder}/custom_op -D CMAKE_CXX_COMPILER=${compiler}
    -D Python_EXECUTABLE=$ENV{SNNJAX_PYTHON} -D SNNJAX_POPLAR=SDK -D CMAKE_PREFIX_PATH=${package}/ipu_model
    -D CMAKE_COMPILE_WARNING_AS_ERROR=ON
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
if(sanitize)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${folder}/custom_op --parallel 2 OUTPUT_QUIET
    COMMAND_ERROR_IS_FATAL ANY)
endif()

# It was the installed compiler that ran, not that of the source tree.
file(WRITE ${package}/ipu_model/codelets/popc.py "raise SystemExit('another popc')")
execute_process(COMMAND ${folder}/writing_vertices WORKING_DIRECTORY ${tests} ERROR_VARIABLE error RESULT_VARIABLE result)
if(result EQUAL 0 OR NOT error MATCHES "another popc")
  message(FATAL_ERROR "The program ran another popc.py than that of the package: ${error}")
endif()
