//===- InitialValues.h - where training starts from -------------*- C++ -*-===//
//
// Other sources of parameter values than the model's own files: -weights=FILE, -init,
// and what a stream's writer replaces between steps. Each gives any range of a parameter,
// so that a rank asks for what it owns.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_INITIALVALUES_H
#define DSOPT_LIB_RUNTIME_CORE_INITIALVALUES_H

#include "Core/Parameters.h"
#include "dsopt/Runtime/Checkpoint.h"

#include <memory>

namespace dsopt::runtime {

/// The tensors of a safetensors file by the parameters' names, or by their original names and
/// orientation. Floating-point types that fit into the parameter's are widened. Parameters that are not
/// trained (constants, what -freeze names) keep the model's values if the file lacks them; what is missing,
/// left over or of another shape is an Error.
std::unique_ptr<ParameterValues> openWeights(const std::string &path, const Program &program,
                                             const OriginalNames &names, ThreadPool *pool,
                                             std::unique_ptr<ParameterValues> model);

/// The same of a file with some of the parameters, trained or not: it has no other values.
std::unique_ptr<ParameterValues> openReplacement(const std::string &path, const Program &program,
                                                 const OriginalNames &names, ThreadPool *pool);

/// "normal:0.02": trained f32 and bf16 parameters of two or more axes are drawn from a normal
/// distribution, keyed by seed, name and element; biases and what normalizes (one axis) and parameters
/// that are not trained keep the model's values.
std::unique_ptr<ParameterValues> drawWeights(const std::string &init, int64_t seed, ThreadPool *pool,
                                             std::unique_ptr<ParameterValues> model);

/// Elements [begin, end) of the normal distribution that `seed` and `name` number.
void drawNormal(uint64_t seed, const std::string &name, double deviation, int64_t begin, int64_t end,
                float *target);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_INITIALVALUES_H
