# Finds MLX, OpenBLAS and nanobind in the Python environment of the build.

function(python_answers variable code)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "${code}"
    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "This build needs a Python package that is missing; "
                        "`pip install .` brings all of them.")
  endif()
  set(${variable} "${answer}" PARENT_SCOPE)
endfunction()

if(NOT MLX_DIR)
  python_answers(mlx_root
    "import importlib.util as u; print(list(u.find_spec('mlx').submodule_search_locations)[0])")
  set(MLX_DIR "${mlx_root}/share/cmake/MLX")
endif()
if(NOT APPLE AND NOT OpenBLAS_DIR)
  python_answers(blas_root
    "import importlib.util as u; print(u.find_spec('scipy_openblas32').submodule_search_locations[0])")
  set(OpenBLAS_DIR "${blas_root}/lib/cmake/openblas")
endif()
if(NOT nanobind_DIR)
  python_answers(nanobind_DIR "import nanobind; print(nanobind.cmake_dir())")
endif()
