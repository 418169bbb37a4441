# Puts a page together from its parts and makes a HostPage (host/page.h) of it, cut at the line `<!-- data -->`.
#
#   shoal_page(target name folder/x.html)    adds `const HostPage name` to a target; its parts are all files of the folder and host/*.css
#   cmake -D PAGE=folder/x.html -D NAME=name -D OUTPUT=name.c -P ShoalPage.cmake    what it runs
#
# In the page, `<link rel="stylesheet" href="x.css">` and `<script src="x.js"></script>`, each a line of its own, stand for
# files, whose paths are from the page's folder, so that the page can be opened and edited as it is.


if(NOT CMAKE_SCRIPT_MODE_FILE)
  function(shoal_page target name page)
    get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR}/${page} DIRECTORY)
    file(GLOB parts CONFIGURE_DEPENDS ${folder}/*.html ${folder}/*.css ${folder}/*.js ${PROJECT_SOURCE_DIR}/host/*.css)
    set(script ${PROJECT_SOURCE_DIR}/cmake/ShoalPage.cmake)
    add_custom_command(OUTPUT ${name}.c
      COMMAND ${CMAKE_COMMAND} -D PAGE=${CMAKE_CURRENT_SOURCE_DIR}/${page} -D NAME=${name}
        -D OUTPUT=${CMAKE_CURRENT_BINARY_DIR}/${name}.c -P ${script}
      DEPENDS ${parts} ${script})
    target_sources(${target} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${name}.c)
  endfunction()
  return()
endif()

get_filename_component(folder ${PAGE} DIRECTORY)
file(READ ${PAGE} page)

string(REGEX MATCHALL "<link rel=\"stylesheet\" href=\"[a-z_./]+\\.css\">" links "${page}")
foreach(link IN LISTS links)
  string(REGEX REPLACE ".*href=\"([a-z_./]+\\.css)\".*" "\\1" name "${link}")
  file(READ ${folder}/${name} text)
  string(REPLACE "${link}" "<style>\n${text}</style>" page "${page}")
endforeach()
string(REGEX MATCHALL "<script src=\"[a-z_]+\\.js\"></script>" scripts "${page}")
foreach(script IN LISTS scripts)
  string(REGEX REPLACE ".*src=\"([a-z_]+\\.js)\".*" "\\1" name "${script}")
  file(READ ${folder}/${name} text)
  string(REPLACE "${script}" "<script>\n${text}</script>" page "${page}")
endforeach()

string(FIND "${page}" "<!-- data -->\n" cut)
if(cut EQUAL -1)
  message(FATAL_ERROR "${PAGE} has no line '<!-- data -->'")
endif()
string(SUBSTRING "${page}" 0 ${cut} head)
string(SUBSTRING "${page}" ${cut} -1 tail)

set(code "#include \"host/page.h\"\n")
foreach(part head tail)
  file(WRITE ${OUTPUT}.${part} "${${part}}")
  file(READ ${OUTPUT}.${part} bytes HEX)
  file(REMOVE ${OUTPUT}.${part})
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND code "static const unsigned char ${part}[] = {${bytes}};\n")
endforeach()
string(APPEND code "extern const HostPage ${NAME};\n")
string(APPEND code "const HostPage ${NAME} = {head, sizeof head, tail, sizeof tail};\n")
file(WRITE ${OUTPUT} "${code}")
