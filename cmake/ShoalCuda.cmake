# Finds nvcc and builds the one shared library that holds everything it compiles.
#
# Custom rules instead of enable_language(CUDA): a host without nvcc, or with nvcc outside PATH, configures the same
# way, and what ptxas says of each kernel (registers, stack, spills) and the PTX are kept for a test to read.
#
#   SHOAL_CUDA         ON: where nvcc is found; OFF: never; REQUIRED: or else the configuration fails
#   SHOAL_CUDA_ARCHS   compute capabilities; machine code for each, and PTX of the last for GPUs to come
#   SHOAL_CUDA_FOUND   (result) whether shoal_cuda_library() can be used
#
#   shoal_cuda_library(name SOURCES a.cu b.c ... [LIBS ...])
#     lib<name>.so in build/lib, with the CUDA runtime linked as shared. What ptxas says of a.cu is in build/ptxas/a.txt,
#     its PTX in build/ptxas/a.ptx.
#
#   shoal_cuda_program(name ARCH 90 SOURCES a.cu b.cc ... [LIBS ...])
#     An executable in build/bin/tests whose .cu files are embedded as PTX alone, of one compute capability: it runs on
#     any GPU of that capability and later, and on a virtual one. The runtime is linked as shared.

set(SHOAL_CUDA ON CACHE STRING "Build libshoal_cuda.so: ON (where nvcc is found), OFF or REQUIRED")
set(SHOAL_CUDA_ARCHS 90 CACHE STRING "Compute capabilities to compile for, the last also as PTX")
set(SHOAL_CUDA_FOUND OFF)

# The first nvcc of CUDACXX, CUDA_HOME, PATH and the usual place, with the toolkit's folder and shared runtime, into
# SHOAL_NVCC, SHOAL_CUDA_ROOT and SHOAL_CUDART; `reason` says what is missing, empty if nothing.
function(shoal_find_cuda reason)
  find_program(SHOAL_NVCC NAMES $ENV{CUDACXX} NO_DEFAULT_PATH PATHS / ENV PATH)
  find_program(SHOAL_NVCC NAMES nvcc NO_DEFAULT_PATH PATHS $ENV{CUDA_HOME}/bin)
  find_program(SHOAL_NVCC NAMES nvcc NO_DEFAULT_PATH PATHS ENV PATH)
  find_program(SHOAL_NVCC NAMES nvcc NO_DEFAULT_PATH PATHS /usr/local/cuda/bin)
  mark_as_advanced(SHOAL_NVCC)
  if(NOT SHOAL_NVCC)
    set(${reason} "no nvcc in CUDACXX, CUDA_HOME, PATH or /usr/local/cuda/bin" PARENT_SCOPE)
    return()
  endif()

  execute_process(COMMAND ${SHOAL_NVCC} --version OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT text MATCHES "release ([0-9]+\\.[0-9]+)")
    set(${reason} "${SHOAL_NVCC} --version does not answer" PARENT_SCOPE)
    return()
  endif()
  set(version ${CMAKE_MATCH_1})
  if(version VERSION_LESS 12.4)
    set(${reason} "${SHOAL_NVCC} is CUDA ${version}, and 12.4 is needed" PARENT_SCOPE)
    return()
  endif()

  file(REAL_PATH ${SHOAL_NVCC} nvcc)
  cmake_path(GET nvcc PARENT_PATH root)
  cmake_path(GET root PARENT_PATH root)
  find_library(SHOAL_CUDART NAMES cudart NO_DEFAULT_PATH
    PATHS ${root}/lib64 ${root}/lib ${root}/targets/${CMAKE_SYSTEM_PROCESSOR}-linux/lib)
  mark_as_advanced(SHOAL_CUDART)
  if(NOT SHOAL_CUDART)
    set(${reason} "no libcudart.so beside ${SHOAL_NVCC}" PARENT_SCOPE)
    return()
  endif()
  set(${reason} "" PARENT_SCOPE)
  set(SHOAL_CUDA_ROOT ${root} PARENT_SCOPE)
  set(SHOAL_CUDA_VERSION ${version} PARENT_SCOPE)
endfunction()

if(NOT SHOAL_CUDA)
  message(STATUS "CUDA: left out (SHOAL_CUDA is off)")
else()
  shoal_find_cuda(missing)
  if(NOT missing)
    set(SHOAL_CUDA_FOUND ON)
    message(STATUS "CUDA: ${SHOAL_NVCC} (${SHOAL_CUDA_VERSION}), architectures ${SHOAL_CUDA_ARCHS}")
  elseif(SHOAL_CUDA STREQUAL "REQUIRED")
    message(FATAL_ERROR "CUDA: ${missing}")
  else()
    message(STATUS "CUDA: left out (${missing})")
  endif()
endif()

# Compiles one .cu file to `object` with the options given, -gencode among them. What ptxas says is kept in `report`, a
# .txt, and the PTX beside it. Determinism rule 1 on both sides; ftz, prec-div and prec-sqrt keep their IEEE defaults. The
# toolkit's own headers are system headers to the host compiler, so that warnings speak of this tree only.
function(shoal_cuda_compile source object report)
  cmake_path(GET source FILENAME name)
  cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  cmake_path(REPLACE_EXTENSION report LAST_ONLY .ptx OUTPUT_VARIABLE ptx)
  add_custom_command(OUTPUT ${object}
    BYPRODUCTS ${report} ${ptx}
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/nvcc_compile.sh ${report}
      ${SHOAL_NVCC} -c ${source} -o ${object} -MD -MF ${object}.d -MT ${object}
      -ccbin ${CMAKE_CXX_COMPILER} -std=c++17 -O3 -lineinfo
      $<$<CONFIG:Release>:-DNDEBUG>
      -fmad=false -Xptxas -v -Werror all-warnings
      -Xcompiler -ffp-contract=off,-fno-math-errno,-fno-trapping-math,-fPIC,-fvisibility=hidden,-g1
      -Xcompiler -Wall,-Wextra,-Wshadow,-Wdouble-promotion,-Wvla,-Werror ${ARGN}
      -isystem ${SHOAL_CUDA_ROOT}/include -I${PROJECT_SOURCE_DIR} -I${PROJECT_BINARY_DIR}
    DEPENDS ${source} ${PROJECT_SOURCE_DIR}/cmake/nvcc_compile.sh
    DEPFILE ${object}.d
    COMMENT "Building CUDA object ${name}"
    VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

# An object file for the library, of all architectures; its path goes into `out`.
function(shoal_cuda_object source out)
  cmake_path(GET source STEM stem)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${stem}.cu.o)
  foreach(arch IN LISTS SHOAL_CUDA_ARCHS)
    list(APPEND codes -gencode arch=compute_${arch},code=sm_${arch})
  endforeach()
  list(GET SHOAL_CUDA_ARCHS -1 last)
  list(APPEND codes -gencode arch=compute_${last},code=compute_${last})
  shoal_cuda_compile(${source} ${object} ${CMAKE_BINARY_DIR}/ptxas/${stem}.txt ${codes} -Xcompiler -Wconversion)
  set(${out} ${object} PARENT_SCOPE)
endfunction()

function(shoal_cuda_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "ARCH" "SOURCES;LIBS")
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}.ptx)
  set(objects "")
  foreach(source IN LISTS arg_SOURCES)
    if(source MATCHES "\\.cu$")
      cmake_path(GET source STEM stem)
      # No -Wconversion: CUB counts in int and the containers of the tests in size_t.
      shoal_cuda_compile(${source} ${folder}/${stem}.cu.o ${folder}/${stem}.txt
        -gencode arch=compute_${arg_ARCH},code=compute_${arg_ARCH})
      list(APPEND objects ${folder}/${stem}.cu.o)
    else()
      list(APPEND objects ${source})
    endif()
  endforeach()
  file(MAKE_DIRECTORY ${folder})
  cmake_path(GET SHOAL_CUDART PARENT_PATH runtime_folder)
  add_executable(${name} ${objects})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} shoal_options ${SHOAL_CUDART})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX BUILD_RPATH ${runtime_folder}
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/tests)
endfunction()

function(shoal_cuda_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  set(objects "")
  foreach(source IN LISTS arg_SOURCES)
    if(source MATCHES "\\.cu$")
      shoal_cuda_object(${source} object)
      list(APPEND objects ${object})
    else()
      list(APPEND objects ${source})
    endif()
  endforeach()
  add_library(${name} SHARED ${objects})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} shoal_options ${SHOAL_CUDART})
  target_include_directories(${name} SYSTEM PRIVATE ${SHOAL_CUDA_ROOT}/include)
  # Installed, it looks beside itself first, then where this build's toolkit has its runtime, then as the loader does.
  cmake_path(GET SHOAL_CUDART PARENT_PATH runtime_folder)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX
    BUILD_RPATH ${runtime_folder} INSTALL_RPATH "$ORIGIN;${runtime_folder}")
  install(TARGETS ${name} LIBRARY DESTINATION lib)
endfunction()
