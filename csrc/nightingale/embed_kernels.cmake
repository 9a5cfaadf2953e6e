# Writes the files of metal/ into one C++ source:
#   cmake -DMETAL=folder -DOUTPUT=file.cpp -P embed_kernels.cmake

file(GLOB files ${METAL}/*.metal ${METAL}/*.h)
list(SORT files)
set(entries "")
set(count 0)
foreach(path IN LISTS files)
  get_filename_component(name ${path} NAME)
  file(READ ${path} text)
  string(APPEND entries "{\"${name}\", R\"msl(${text})msl\"},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${OUTPUT}
  "namespace nightingale::gpu {\n"
  "struct EmbeddedText {\nconst char* name;\nconst char* text;\n};\n"
  "extern const EmbeddedText kEmbeddedTexts[];\n"
  "extern const int kEmbeddedTextCount;\n"
  "const EmbeddedText kEmbeddedTexts[] = {\n${entries}};\n"
  "const int kEmbeddedTextCount = ${count};\n"
  "} // namespace nightingale::gpu\n")
