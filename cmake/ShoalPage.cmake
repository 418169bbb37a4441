# Puts a page together from its parts and makes two arrays of bytes of it, cut at the line `<!-- data -->`.
#
#   cmake -D PAGE=folder/page.html -D OUTPUT=page.c -P ShoalPage.cmake
#
# In the page, `<link rel="stylesheet" href="x.css">` and `<script src="x.js"></script>`, each a line of its own, stand for
# the files beside it, so that the page can be opened and edited as it is.

get_filename_component(folder ${PAGE} DIRECTORY)
file(READ ${PAGE} page)

string(REGEX MATCHALL "<link rel=\"stylesheet\" href=\"[a-z_]+\\.css\">" links "${page}")
foreach(link IN LISTS links)
  string(REGEX REPLACE ".*href=\"([a-z_]+\\.css)\".*" "\\1" name "${link}")
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

set(code "#include \"profiler/prof_page.h\"\n")
foreach(part head tail)
  file(WRITE ${OUTPUT}.${part} "${${part}}")
  file(READ ${OUTPUT}.${part} bytes HEX)
  file(REMOVE ${OUTPUT}.${part})
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND code "const unsigned char prof_page_${part}[] = {${bytes}};\n")
  string(APPEND code "const size_t prof_page_${part}_bytes = sizeof prof_page_${part};\n")
endforeach()
file(WRITE ${OUTPUT} "${code}")
