//===- Data.h - micro-batches for a program from -data ----------*- C++ -*-===//
//
// Checks an .npz file against a program's inputs (CONTRACT section 3) and hands
// out its micro-batches.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_DATA_H
#define DSOPT_RUNTIME_DATA_H

#include "dsopt/Runtime/Npz.h"
#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

/// How many micro-batches of `shape` an array holds (CONTRACT section 3): more axes are a stream of
/// them, equal rank is a list of rows. `rest` are the rows left over. An Error of status 1 says what
/// does not fit.
int64_t countMicroBatches(const NpzArray &array, const std::vector<int64_t> &shape, int64_t &rest,
                          const std::string &path);

class NpzSource : public InputSource {
public:
  /// Checks headers only. An Error of status 1 says what does not fit.
  NpzSource(const Program &program, const std::string &path);

  /// Inflates what is deflated; call once before the first fill.
  void prepare();

  int64_t microBatches() const { return count; }
  /// Lines for the user: remainders dropped.
  const std::vector<std::string> &notes() const { return lines; }

  /// Steps of a run: `steps` if given (> 0; the stream wraps around), else `epochs` passes (0: one)
  /// over the whole steps the data holds, the rest left out with a note.
  int64_t plannedSteps(int64_t steps, int64_t epochs);

  void fill(int64_t step, int64_t microBatch, int64_t input, void *target) override;
  void startAt(int64_t step, int64_t consumed) override { shift = consumed - step * program.K; }

private:
  struct Stream {
    const NpzArray *array = nullptr;
    const char *data = nullptr;
    int64_t elements = 0; ///< of one micro-batch
    int from = 0, to = 0; ///< element kinds
    int64_t bytes = 0;    ///< of one element in the file
  };
  const Program &program;
  NpzFile file;
  std::vector<Stream> streams;
  std::vector<std::string> lines;
  int64_t count = 0; ///< micro-batches
  int64_t wrap = 0;  ///< micro-batches after which the stream begins again
  int64_t shift = 0; ///< of the stream against step * K, after another batch
};

/// The source that `-data=text` names; formats that are not read yet say so.
std::unique_ptr<NpzSource> openData(const Program &program, const std::string &text);

/// "x f32 [8, 64], labels i64 [8]": what a program wants.
std::string describeInputs(const Program &program);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_DATA_H
