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
