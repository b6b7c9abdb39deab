//===- Parameters.h - parameter values from files and to rank 0 -*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_PARAMETERS_H
#define DSOPT_LIB_RUNTIME_CORE_PARAMETERS_H

#include "Core/Addresses.h"

namespace dsopt::runtime {

/// Files of a model, mapped while parameters are read from them.
class ParameterFiles {
public:
  /// Paths are relative to `folder`.
  explicit ParameterFiles(std::string folder) : folder(std::move(folder)) {}
  ~ParameterFiles();

  /// Reads elements [begin, end) of a parameter; checks the file's size and the hash of every chunk
  /// that holds one of them.
  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target);

private:
  struct Mapping {
    const char *data = nullptr;
    int64_t bytes = 0;
  };
  const Mapping &open(const Parameter &parameter);
  std::string folder;
  std::map<std::string, Mapping> files;
};

/// Reads what this rank holds of all parameters.
void loadParameters(const Program &program, const RankInfo &info, const Addresses &addresses,
                    ParameterFiles &files);

/// Collective; see Session::visitParameters. Parameters that no rank holds are read from `files`.
void visitParameters(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
                     ParameterFiles &files,
                     const std::function<void(const Parameter &, const char *value)> &visit);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_PARAMETERS_H
