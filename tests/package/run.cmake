# Installs, moves what was installed, builds the consumer against it outside the tree, and runs it.
# cmake -D BUILD= -D CONSUMER= -D COMPILER= -D C_COMPILER= -D FLAGS= -D GENERATOR= -P run.cmake
set(temp /tmp)
if(DEFINED ENV{TMPDIR})
  set(temp $ENV{TMPDIR})
endif()
string(RANDOM LENGTH 12 suffix)
set(scratch ${temp}/jitney-package-${suffix})

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${scratch}/installed)
file(RENAME ${scratch}/installed ${scratch}/moved)
step(
  ${CMAKE_COMMAND} -S ${CONSUMER} -B ${scratch}/build -G ${GENERATOR}
  -D CMAKE_PREFIX_PATH=${scratch}/moved -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_C_COMPILER=${C_COMPILER} -D CMAKE_C_FLAGS=${FLAGS}
  -D CMAKE_CXX_FLAGS=${FLAGS} -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
step(${CMAKE_COMMAND} --build ${scratch}/build)
step(${scratch}/build/by_cmake)
step(${scratch}/build/by_pkg_config)
step(${scratch}/build/by_c)
if(EXISTS ${scratch}/moved/bin/jitney)
  step(${scratch}/moved/bin/jitney --help)
endif()
# Kept where a step failed.
file(REMOVE_RECURSE ${scratch})
