# Writes PTX as a string of C++: cmake -DPTX=file -DNAME=name -DTO=file -P EmbedImage.cmake
file(READ "${PTX}" text)
file(WRITE "${TO}" "namespace dsopt::runtime {
extern const char image${NAME}[];
const char image${NAME}[] = R\"ptx(${text})ptx\";
} // namespace dsopt::runtime
")
