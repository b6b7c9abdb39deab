//===- Compression.h - methods by which gradients travel --------*- C++ -*-===//
//
// All that compressed reductions differ in. A method packs fp32 values into a record and
// says what a record stands for; the frame around it adds what was left out before, sends
// the record of each slice to the slice's owner, adds there what all records stand for, in
// the order of the ranks, and keeps what the own record leaves out (error feedback). A
// plugin may register one of its own, which -compress-gradients=NAME then takes.
//
// Built in: onebit, signs by their mean magnitude (Karimireddy et al., 2019, EF-signSGD);
// topk, the largest elements of each block; powersgd, two narrow factors of each matrix.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TRANSFORMS_WIRE_COMPRESSION_H
#define DSOPT_TRANSFORMS_WIRE_COMPRESSION_H

#include "dsopt/Dialect/Exec/Exec.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dsopt {

/// What becomes of what a kernel computes.
enum class Into {
  Replace,  ///< it is the result
  Add,      ///< it is added to what is there
  Subtract, ///< it is taken from what is there
};

/// Writes what a method is made of. Places are references to buffers; elements of a unit are a multiple
/// of 64.
class CompressionWriter {
public:
  virtual ~CompressionWriter() = default;
  /// `bytes` behind a place.
  virtual exec::RefAttr at(exec::RefAttr place, int64_t bytes) = 0;
  /// A place for so many elements until the unit's next call.
  virtual exec::RefAttr scratch(llvm::StringRef name, int64_t elements, mlir::Type type) = 0;
  /// Runs the kernel that `text` has, a func.func of that name, on so many rows: places of its arguments,
  /// then of its results (of those in graph.in_place, once). Tensors whose first dimension is 64 have rows;
  /// others are read whole. `into` is of its last result, the only one unless it is Replace, whose place
  /// then is the last one. A text is compiled once for each name and `into`.
  virtual void map(llvm::StringRef name, const std::string &text, llvm::ArrayRef<mlir::Attribute> places,
                   int64_t rows, Into into = Into::Replace) = 0;
  mlir::MLIRContext *context = nullptr;
};

/// What is packed into one record: a slice of a bucket's gradient.
struct CompressionUnit {
  exec::RefAttr values; ///< fp32; 0 in padding
  exec::RefAttr takes;  ///< a bit for each, in words of 32: 0 in padding
  exec::RefAttr record;
  int64_t elements;
};

/// A number that a method may be given: -compress-gradients=NAME{option=N}.
struct CompressionOption {
  std::string name;
  double byDefault, least, most;
  double multipleOf = 0; ///< a number that it has to divide by; 0: none
};

struct CompressionMethod {
  using Options = llvm::ArrayRef<double>; ///< as it has registered them
  /// Of the record of so many values; a multiple of 4.
  std::function<int64_t(int64_t elements, Options)> recordBytes;
  /// Writes the record of a unit's values, which stay.
  std::function<void(CompressionWriter &, const CompressionUnit &, Options)> pack;
  /// Writes what a record stands for, element by element, to `values`, or adds it or takes it away. What
  /// comes out in padding does not count.
  std::function<void(CompressionWriter &, exec::RefAttr record, exec::RefAttr values, int64_t elements, Into,
                     Options)>
      unpack;
  std::vector<CompressionOption> options = {};
  /// Of a method of the frame's own that sees whole matrices: the rank of the factors that travel in their
  /// place. It has none of the functions above.
  std::function<int64_t(Options)> factorRank = {};
};

/// A method with the options that it was given.
struct Compression {
  CompressionMethod method;
  std::vector<double> options;
};

/// Makes a method known by name; a later one of the same name replaces it.
void registerCompression(llvm::StringRef name, CompressionMethod method);
/// What `NAME` or `NAME{option=N,...}` asks for; none where there is none: `problem` (may be null) says why.
std::optional<Compression> getCompression(llvm::StringRef text, std::string *problem = nullptr);
/// The names of all, in alphabetical order.
std::vector<std::string> compressionNames();

} // namespace dsopt

#endif // DSOPT_TRANSFORMS_WIRE_COMPRESSION_H
