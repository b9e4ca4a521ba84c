# What the project is built from. libjitney.so and the command depend on nothing but the C++ runtime
# (libcuda and libnvrtc are opened at run time): hence header-only forms, and fmt's own bodies in a
# static library.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(SPDLOG_INCLUDE_DIR spdlog/spdlog.h REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
if(JITNEY_CLI)
  find_package(CLI11 REQUIRED)
endif()

# The CUDA headers: types and constants of the Driver API and of NVRTC, nothing to link.
find_path(
  CUDA_INCLUDE_DIR cuda.h
  HINTS ${JITNEY_CUDA_INCLUDE_DIR} ENV JITNEY_CUDA_INCLUDE_DIR
  PATHS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda /opt/cuda ${CMAKE_BINARY_DIR}/cuda /usr
  PATH_SUFFIXES include REQUIRED)
add_library(jitney_cuda_headers INTERFACE)
target_include_directories(jitney_cuda_headers SYSTEM INTERFACE ${CUDA_INCLUDE_DIR})

add_library(jitney_fmt STATIC ${PROJECT_SOURCE_DIR}/core/fmt.cpp)
target_include_directories(jitney_fmt SYSTEM
                           PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)

add_library(jitney_spdlog INTERFACE)
target_include_directories(jitney_spdlog SYSTEM INTERFACE ${SPDLOG_INCLUDE_DIR})
target_compile_definitions(jitney_spdlog INTERFACE SPDLOG_FMT_EXTERNAL SPDLOG_HEADER_ONLY)
target_link_libraries(jitney_spdlog INTERFACE jitney_fmt Threads::Threads)

add_library(jitney_xxhash INTERFACE)
target_include_directories(jitney_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE_DIR})
target_compile_definitions(jitney_xxhash INTERFACE XXH_INLINE_ALL)
