# find_package(poplar): the target `poplar`, which is the IPU Model. Below the package's folder ipu_model/lib/cmake/poplar.
get_filename_component(_ipu_model "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET poplar)
  add_library(poplar SHARED IMPORTED)
  set_target_properties(poplar PROPERTIES
    IMPORTED_LOCATION "${_ipu_model}/../libipu_model.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_ipu_model}/include")
endif()
unset(_ipu_model)
