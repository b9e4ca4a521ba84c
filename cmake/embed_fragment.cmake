# cmake -D SOURCE=FILE -D FRAGMENT=FILE -P embed_fragment.cmake: the text of a source as a C++ raw
# string literal.
file(READ "${SOURCE}" text)
set(delimiter "jitney_text")
string(FIND "${text}" ")${delimiter}\"" found)
if(NOT found EQUAL -1)
  message(FATAL_ERROR "${SOURCE}: holds the end mark of the raw string that it would become")
endif()
file(WRITE "${FRAGMENT}" "R\"${delimiter}(${text})${delimiter}\"\n")
