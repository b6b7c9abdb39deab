//===- Parameters.h - parameter values from files and to rank 0 -*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_PARAMETERS_H
#define DSOPT_LIB_RUNTIME_CORE_PARAMETERS_H

#include "Core/Addresses.h"
#include "Core/ThreadPool.h"

namespace dsopt::runtime {

/// Where parameter values come from.
class ParameterValues {
public:
  virtual ~ParameterValues() = default;
  /// Whether there are values of a parameter.
  virtual bool has(const Parameter &parameter) const { return true; }
  /// Elements [begin, end) of a parameter, in its own type.
  virtual void read(const Parameter &parameter, int64_t begin, int64_t end, char *target) = 0;
};

/// Files of a model, open while parameters are read from them. They are read, not mapped: nothing of them
/// stays resident, and a file that shrinks is an error, not a signal.
class ParameterFiles final : public ParameterValues {
public:
  /// Paths are relative to `folder`. The threads of `pool`, if any, read and check chunks. Sizes and hashes
  /// were taken when `moment`.
  explicit ParameterFiles(std::string folder, ThreadPool *pool = nullptr,
                          std::string moment = "the program was compiled")
      : folder(std::move(folder)), pool(pool), moment(std::move(moment)) {}
  ~ParameterFiles() override;

  /// Reads elements [begin, end) of a parameter; checks the file's size and the hash of every chunk
  /// that holds one of them.
  void read(const Parameter &parameter, int64_t begin, int64_t end, char *target) override;

private:
  /// The same elements as they are in the file.
  void readBytes(const Parameter &parameter, int64_t begin, int64_t end, char *target);
  struct File {
    int descriptor;
    int64_t bytes;
  };
  std::string pathOf(const Parameter &parameter) const;
  const File &open(const Parameter &parameter);
  std::string folder;
  ThreadPool *pool;
  std::string moment;
  std::map<std::string, File> files;
};

/// What a bucket has of a parameter.
struct PlacedPart {
  const Parameter *parameter = nullptr;
  Part part;
};

/// A program's parameters by bucket, and who loads them.
class ParameterTable {
public:
  explicit ParameterTable(const Program &program);
  const std::vector<PlacedPart> &ofBucket(int64_t bucket) const { return buckets[bucket]; }
  /// Where a part's values are in the model's own type: a load of `position`, the owner if it has one;
  /// null if no position loads it.
  const Position::Load *holder(const Parameter &parameter, const Part &part, int64_t &position) const;

private:
  const Program &program;
  std::vector<std::vector<PlacedPart>> buckets;
  std::vector<std::vector<std::pair<int64_t, const Position::Load *>>> loads; ///< by bucket, with positions
};

/// Reads what this rank holds of all parameters that `masters` has.
/// What lies beside a master comes from `beside` where that is given.
void loadParameters(const Program &program, const RankInfo &info, const Addresses &addresses,
                    ParameterValues &masters, ParameterValues *beside = nullptr);

/// Collective; see Session::visitParameters. Parameters that no rank holds are read from `values`.
void visitParameters(const Program &program, const RankInfo &info, const Addresses &addresses, Engine &engine,
                     ParameterValues &values,
                     const std::function<void(const Parameter &, const char *value)> &visit);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_PARAMETERS_H
