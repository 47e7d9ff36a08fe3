# cmake -DOUTPUT=FILE -DFOLDER=DIR -DLICENCE=FILE -DLOADER=FILE -DMODULES=a,b -P bundle_vega.cmake
#
# Writes Debian's modules of Vega into one script, as CommonJS modules that the loader defines: loaded one after the other as they
# are, each would replace the global object of the one before.
file(READ ${LICENCE} licence)
string(REPLACE "*/" "* /" licence "${licence}")
file(READ ${LOADER} loader)
string(REPLACE "," ";" MODULES "${MODULES}")
file(WRITE ${OUTPUT} "/* Vega, from the Debian package libjs-vega. Its licences:\n\n${licence}*/\n${loader}")
foreach(module IN LISTS MODULES)
  file(READ ${FOLDER}/${module}.min.js script)
  string(REGEX REPLACE "\n//# sourceMappingURL=[^\n]*" "" script "${script}")
  file(APPEND ${OUTPUT} "vegaModule(\"${module}\", function (exports, module, require) {\n${script}\n});\n")
endforeach()
