//===- StreamSource.h - steps as somebody makes them ------------*- C++ -*-===//
//
// -data=stream:DIR: another program writes each step's micro-batches as the file
// DIR/step-00000000.npz (counted from the run's first step; arrays of
// [K, ...input shape], at any size of the program's dimension), renamed into place, and the empty file
// DIR/end after the last. As long as it lives it holds a lock (flock) on DIR/lock. A file may be removed once
// its step is logged. When all steps it has written are done and before the next one, the writer may ask
// for more: DIR/ask, renamed into place, has a line for each wish, in order, and becomes DIR/answered when
// all are fulfilled. What cannot be fulfilled ends the run with a message. A line is one of
//   save FOLDER   a checkpoint there
//   write FILE    what -save-weights writes, but in the types in which weights are trained
//   take FILE     parameters' values from a safetensors file, which may have any of them under the names
//                 that `write` gives them, frozen or trained; what the optimizer keeps stays as it is.
//                 The file may lose its name, but not change, as long as the program runs
// Under -lr-schedule=stream each step's file has its learning rate, too, as the scalar array 'dsopt.lr'.
// A file may have a text, the bytes 'dsopt.place': the writer's place after the step. A checkpoint of that
// step keeps it ("data_place" in its manifest) for who resumes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_DATA_STREAMSOURCE_H
#define DSOPT_LIB_RUNTIME_DATA_STREAMSOURCE_H

#include "NpzSource.h"

#include <map>
#include <memory>

namespace dsopt::runtime {

/// What -data starts with.
inline constexpr const char *kStreamPrefix = "stream:";

class StreamSource : public DataSource {
public:
  StreamSource(const Program &program, const std::string &folder, bool pad);
  ~StreamSource() override;

  bool streams() const override { return true; }
  int64_t plannedSteps(int64_t steps, int64_t epochs) override;
  void shuffle(int64_t seed) override;
  void startAt(int64_t step, int64_t) override { first = step; }
  Arrival awaitStep(int64_t step, const std::function<bool()> &stop) override;
  int chooseVariant(int64_t step) override { return current->chooseVariant(step); }
  std::optional<double> rateOf(int64_t step) override;
  std::string placeAfter(int64_t steps) const override;
  std::vector<Request> requests() const override;
  void answer() override;
  void fill(int64_t step, int64_t microBatch, int64_t input, void *target) override;

private:
  bool isThere(const std::string &file) const;
  bool writerLives() const;

  const std::string folder;
  const bool pad;
  int lock = -1;
  int64_t first = 0;
  std::unique_ptr<NpzSource> current; ///< the step that was awaited last
  /// Places after the two steps that came last, by steps done: the newest may not have been taken yet.
  std::map<int64_t, std::string> places;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DATA_STREAMSOURCE_H
