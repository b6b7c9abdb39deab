//===- GenerationConfig.h - what a model says of its answers ----*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_GENERATIONCONFIG_H
#define DSOPT_LIB_RUNTIME_GENERATE_GENERATIONCONFIG_H

#include "Generate/Sampling.h"
#include "dsopt/Runtime/Options.h"

#include <optional>
#include <string>

namespace dsopt::runtime {

/// Takes what generation_config.json (`json`, empty: none) says of what no option does: end tokens,
/// penalties, the most new tokens; and, where no option asks for draws, whether and how tokens are drawn,
/// with transformers' own defaults. An Error of status 1 names what is not as it should be.
void applyGenerationConfig(const std::string &json, const ParsedOptions &options, SamplingOptions &sampling,
                           std::optional<int64_t> &newTokens);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_GENERATIONCONFIG_H
