//===- Answers.h - what goes out of a run -----------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_ANSWERS_H
#define DSOPT_LIB_RUNTIME_GENERATE_ANSWERS_H

#include "Generate/GenerateSettings.h"

namespace dsopt::runtime {

/// Answers prompts (collective): rank 0 writes tokens to standard output, or to where they are to be saved,
/// and rates to standard error. Whether all ranks agreed to stop.
bool answerPrompts(Session &session, Engine &engine, const Program &program, RowSource &source,
                   GenerateSettings &settings);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_ANSWERS_H
