# jitney_embed(TABLE SOURCES...): a C++ file, its path in TABLE, that defines embedded_sources()
# (kernel_sources/embedded.hpp) over the given files of the current directory. Each becomes a raw
# string literal in a fragment of its own, made again only when that file changes.

set(JITNEY_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_fragment.cmake)

function(jitney_embed table)
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  set(sources ${ARGN})
  list(SORT sources)
  list(LENGTH sources count)
  set(rows "")
  set(fragments "")
  foreach(source IN LISTS sources)
    set(fragment ${directory}/${source}.inc)
    add_custom_command(
      OUTPUT ${fragment}
      COMMAND ${CMAKE_COMMAND} -D SOURCE=${CMAKE_CURRENT_SOURCE_DIR}/${source}
              -D FRAGMENT=${fragment} -P ${JITNEY_EMBED_SCRIPT}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${JITNEY_EMBED_SCRIPT}
      COMMENT "Embedding ${source}"
      VERBATIM)
    list(APPEND fragments ${fragment})
    string(APPEND rows "    EmbeddedSource{\"${source}\",\n#include \"${source}.inc\"\n    },\n")
  endforeach()
  set(file ${directory}/table.cpp)
  file(
    CONFIGURE
    OUTPUT ${file}
    CONTENT
      [[#include <array>

#include "kernel_sources/embedded.hpp"

namespace jitney::kernel_sources {
namespace {

constexpr std::array<EmbeddedSource, @count@> kSources = {
@rows@};

}  // namespace

std::span<const EmbeddedSource> embedded_sources() noexcept { return kSources; }

}  // namespace jitney::kernel_sources
]]
    @ONLY)
  set_source_files_properties(
    ${file} PROPERTIES OBJECT_DEPENDS "${fragments}" INCLUDE_DIRECTORIES ${directory}
                       COMPILE_OPTIONS -Wno-overlength-strings)
  set(${table} ${file} PARENT_SCOPE)
endfunction()
