//===- Replaced.h - new values of parameters between steps ------*- C++ -*-===//
//
// A parameter that is not trained may lie on ranks in a narrow type alone. Its own
// values are read from files where somebody asks for them: from the model's, until
// they are replaced.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_REPLACED_H
#define DSOPT_LIB_RUNTIME_CORE_REPLACED_H

#include "Core/Parameters.h"
#include "dsopt/Runtime/Checkpoint.h"

#include <memory>

namespace dsopt::runtime {

class Replaced {
public:
  /// Reads what this rank holds of the parameters that a safetensors file has (openReplacement), the
  /// optimizer's masters and what lies beside them alike. Where ranks are `apart`, it may have none that are
  /// trained.
  void take(const Program &program, const RankInfo &info, const Addresses &addresses, ThreadPool &pool,
            const std::string &file, const OriginalNames &names, bool apart);
  /// What `model` has, but of replaced parameters their new values.
  std::unique_ptr<ParameterValues> over(std::unique_ptr<ParameterValues> model) const;
  /// An Error if there are any: a checkpoint would not have them. Said by the rank that is not `quiet`.
  void checkNone(bool quiet) const;

private:
  std::map<std::string, std::shared_ptr<ParameterValues>> files; ///< by parameter; open, whatever their names
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_REPLACED_H
