//===- Replaced.h - new values of parameters between steps ------*- C++ -*-===//
//
// A parameter that is not trained may lie on ranks in a narrow type alone. Its own
// values are read from files where somebody asks for them: from the model's, until
// they are replaced. Checkpoints then have them beside what ranks have.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_REPLACED_H
#define DSOPT_LIB_RUNTIME_CORE_REPLACED_H

#include "Core/Parameters.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/Manifest.h"

#include <memory>

namespace dsopt::runtime {

class Replaced {
public:
  /// Reads what this rank holds of the parameters that a safetensors file has (openReplacement), the
  /// optimizer's masters and what lies beside them alike. Where ranks are `apart`, it may have none that are
  /// trained.
  void take(const Program &program, const RankInfo &info, const Addresses &addresses, ThreadPool &pool,
            const std::string &file, const OriginalNames &names, bool apart);
  /// The same of what a checkpoint has that was loaded (loadState).
  void resume(const Program &program, const std::string &checkpoint, const Manifest &manifest,
              ThreadPool &pool);
  /// What `model` has, but of replaced parameters their new values.
  std::unique_ptr<ParameterValues> over(std::unique_ptr<ParameterValues> model) const;

  /// Those that no rank holds whole, without places in files.
  std::vector<Parameter> tensors(const Program &program) const;
  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target) const {
    files.at(parameter.name)->read(parameter, begin, end, target);
  }

private:
  void add(const Program &program, const std::shared_ptr<ParameterValues> &values);
  std::map<std::string, std::shared_ptr<ParameterValues>> files; ///< by parameter; open, whatever their names
};

/// Whether no rank holds all of a parameter in its own type.
bool isNowhereWhole(const ParameterTable &table, const Parameter &parameter);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_REPLACED_H
