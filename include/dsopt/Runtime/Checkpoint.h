//===- Checkpoint.h - what becomes of trained parameters --------*- C++ -*-===//
//
// Writers that take whole parameters one after the other (Session::
// visitParameters) and put files in place when they are whole (AtomicFile.h).
// Unwritable places are Error(1) when a writer is checked, failing disks Error(2)
// while it writes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_CHECKPOINT_H
#define DSOPT_RUNTIME_CHECKPOINT_H

#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Program.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dsopt::runtime {

/// Takes every parameter once, then `finish`.
class ParameterSink {
public:
  virtual ~ParameterSink() = default;
  virtual void parameter(const Parameter &parameter, const char *value) = 0;
  virtual void finish() = 0;
};

/// What a parameter is where the model comes from.
struct OriginalName {
  std::string name;
  bool transposed = false; ///< a matrix that lies the other way round there
};
using OriginalNames = std::map<std::string, OriginalName>; ///< by the model's name

/// The names that dsopt.export left in a model's protobuf; empty if there are none.
OriginalNames originalNames(const char *model, uint64_t modelBytes);

/// Name and shape that a parameter has there.
Parameter originalForm(const Parameter &parameter, const OriginalNames &names);

/// The value of a matrix the other way round.
std::string transposedValue(const Parameter &parameter, const char *value);

/// One safetensors file of whole tensors under the parameters' names, or their original ones.
std::unique_ptr<ParameterSink> makeSafetensorsWriter(const std::string &path,
                                                     const std::vector<Parameter> &parameters,
                                                     const OriginalNames &names = {});

/// The model with these parameters. Above `inlineLimit` bytes of parameters they lie in `path`.data.
std::unique_ptr<ParameterSink> makeOnnxWriter(const std::string &path, const char *model, uint64_t modelBytes,
                                              const std::vector<Parameter> &parameters,
                                              uint64_t inlineLimit = 1500000000);

/// Parameters of the element types that the model has them in.
std::vector<Parameter> inSourceTypes(std::vector<Parameter> parameters);
/// A sink that gets each value in that type.
std::unique_ptr<ParameterSink> inSourceTypes(std::unique_ptr<ParameterSink> sink);

/// `weights_hash` of CONTRACT section 4. Of each parameter, in ascending byte order of name, the SHA-256 of
///   name, 0x00, element type as MLIR spells it ("f32"), 0x00,
///   shape in decimal with commas between ("64,128", empty for a scalar), 0x00,
///   the value: little-endian, row-major, whole, no padding.
/// The hash is the SHA-256 of these 32-byte digests one after the other, in lower-case hexadecimal.
/// Parameters may come in any order.
class WeightsHash : public ParameterSink {
public:
  WeightsHash();
  ~WeightsHash() override;
  void parameter(const Parameter &parameter, const char *value) override;
  void finish() override;
  const std::string &hex() const { return text; }

private:
  struct State;
  std::unique_ptr<State> state;
  std::string text;
};

/// Bytes of a whole parameter.
int64_t wholeBytes(const Parameter &parameter);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_CHECKPOINT_H
