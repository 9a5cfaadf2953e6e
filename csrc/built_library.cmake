# Takes a libnightingale.a that another build of the same sources made.

add_library(nightingale STATIC IMPORTED GLOBAL)
set_target_properties(nightingale PROPERTIES IMPORTED_LOCATION ${NIGHTINGALE_LIBRARY})
target_include_directories(nightingale INTERFACE
  ${PROJECT_SOURCE_DIR}/csrc ${PROJECT_SOURCE_DIR}/csrc/include ${MLX_INCLUDE_DIRS})
find_package(Threads REQUIRED)
target_link_libraries(nightingale INTERFACE mlx Threads::Threads)
if(APPLE)
  target_link_libraries(nightingale INTERFACE "-framework Accelerate")
else()
  target_link_libraries(nightingale INTERFACE ${OpenBLAS_LIBRARIES})
endif()

if(NIGHTINGALE_SANITIZE)
  # The folders that are tested are compiled anew, with the sanitizers; the
  # linker takes the rest from the library.
  set(sources)
  foreach(folder ${NIGHTINGALE_TEST_FOLDERS})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS
      ${PROJECT_SOURCE_DIR}/csrc/nightingale/${folder}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  add_library(nightingale_sanitized OBJECT ${sources})
  target_link_libraries(nightingale_sanitized PRIVATE nightingale)
  target_compile_options(nightingale_sanitized PRIVATE -Wall -Wextra -ffp-contract=off)
  target_precompile_headers(nightingale_sanitized PRIVATE
    <functional> <memory> <optional> <string> <vector> <mlx/array.h> <mlx/ops.h>)
endif()
