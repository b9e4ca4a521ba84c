# Compile options of every target of this project; jitney_room() makes one room.

add_library(jitney_options INTERFACE)
target_include_directories(jitney_options INTERFACE ${PROJECT_SOURCE_DIR}
                                                    ${PROJECT_SOURCE_DIR}/api/include
                                                    ${PROJECT_SOURCE_DIR}/core/include)
target_compile_options(
  jitney_options
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wnon-virtual-dtor
            -Wold-style-cast
            -Wimplicit-fallthrough)
if(JITNEY_WERROR)
  target_compile_options(jitney_options INTERFACE -Werror)
endif()
if(JITNEY_SANITIZE)
  target_compile_options(jitney_options INTERFACE -fsanitize=address,undefined
                                                  -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(jitney_options INTERFACE -fsanitize=address,undefined)
endif()

# jitney_room(NAME SOURCES... [LIBRARIES ...]): object library jitney_NAME.
function(jitney_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_library(jitney_${name} OBJECT ${ROOM_SOURCES})
  target_link_libraries(jitney_${name} PUBLIC jitney_options ${ROOM_LIBRARIES})
endfunction()
