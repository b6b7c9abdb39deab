//===- Data.h - micro-batches for a program from -data ----------*- C++ -*-===//
//
// What CONTRACT section 3 calls data: an .npz file of arrays, files of tokens,
// or a stream.
// A source checks it against a program's inputs and hands out micro-batches: a
// stream that begins again at its end, permuted in each epoch under -shuffle.
// Files are mapped, none is read whole.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_DATA_H
#define DSOPT_RUNTIME_DATA_H

#include "dsopt/Runtime/Npz.h"
#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

/// What a user is told before the first step.
struct Note {
  std::string text;
  bool warning = false; ///< also where progress is not wanted
};

/// What is wanted between two steps: a checkpoint in a folder, all weights written into a file, or those of a
/// file taken in place of the parameters'.
struct Request {
  enum Kind { Save, Write, Take } kind = Save;
  std::string place;
};

class DataSource : public InputSource {
public:
  int64_t microBatches() const { return count; }
  /// Rows of arrays that are lists of rows, where a prediction is made of them: the last micro-batch may have
  /// fewer than the others, and is filled up with its last row. 0: the data are micro-batches.
  virtual int64_t rows() const { return 0; }
  /// Remainders dropped, and how often a run goes through the data.
  const std::vector<Note> &notes() const { return lines; }

  /// Steps of a run: `steps` if given (> 0; the stream wraps around), else `epochs` passes (0: one)
  /// over the whole steps the data holds, the rest left out with a note. An Error of status 1 if there is
  /// not one.
  virtual int64_t plannedSteps(int64_t steps, int64_t epochs);

  /// From now on each epoch has an order of its own, which follows from `seed` and the epoch's number.
  virtual void shuffle(int64_t seed);

  /// The planned steps of data whose end nobody knows yet.
  static constexpr int64_t kEndless = INT64_C(1) << 40;

  /// Whether a step's micro-batches are there, after waiting for them if they are still to come; `stop`
  /// ends the wait. Asked: first what `requests` says is wanted, after which `answer` says that it is done.
  /// Ranks agree on what they saw.
  enum class Arrival { Ready, Asked, Ended, Stopped };
  virtual Arrival awaitStep(int64_t step, const std::function<bool()> &stop) { return Arrival::Ready; }
  virtual std::vector<Request> requests() const { return {}; }
  virtual void answer() {}
  /// Whether micro-batches come one step at a time, so that awaitStep has to be asked.
  virtual bool streams() const { return false; }

  /// Inflates what is deflated; call once before the first fill.
  virtual void prepare() {}

  void startAt(int64_t step, int64_t consumed) override { shift = consumed - step * program.K; }

protected:
  /// `name` is what messages call the data.
  DataSource(const Program &program, std::string name) : program(program), name(std::move(name)) {}
  /// Takes the stream's length; an Error of status 1 if it is nothing.
  void setCount(int64_t microBatches);
  /// Where item `item` of `size` items of micro-batch `microBatch` of a step lies among all the stream's
  /// items.
  int64_t itemAt(int64_t step, int64_t microBatch, int64_t item, int64_t size) const;

  const Program &program;
  const std::string name;
  std::vector<Note> lines;

private:
  int64_t count = 0; ///< micro-batches
  int64_t wrap = 0;  ///< micro-batches after which the stream begins again
  int64_t shift = 0; ///< of the stream against step * K, after another batch
  bool shuffled = false;
  uint64_t seed = 0;
};

/// How files of tokens become inputs.
struct TokenOptions {
  int64_t bytes = 0;    ///< of a token in raw files; 0: 2, where a file looks like that
  bool shifted = false; ///< labels are the next tokens; else the same, and the model shifts
  std::string input;    ///< takes tokens; empty: input_ids
  std::string label;    ///< takes labels; empty: labels
};

/// The source that `-data=text` names: an .npz file, or a file, a comma list, a glob or a folder of
/// tokens, or stream:DIR (StreamSource.h). With `pad`, micro-batches that lie between two sizes of the
/// program's dimension are filled up. An Error of status 1 says what does not fit.
std::unique_ptr<DataSource> openData(const Program &program, const std::string &text,
                                     const TokenOptions &tokens = {}, bool pad = false);

/// Opens the files that `-data=text` names, before there is a program to compare them with. An Error of
/// status 1 says what cannot be read or is no data.
void checkFiles(const std::string &text, int64_t tokenBytes);

/// The files that `-data=text` names; none for a stream. An Error of status 1 if a pattern matches none.
std::vector<std::string> filesOf(const std::string &text);

/// Whether `-data=text` names one .npz file.
bool namesNpz(const std::string &text);

/// How many micro-batches of `shape` an array holds (CONTRACT section 3): more axes are a stream of
/// them, equal rank is a list of rows. `rest` are the rows left over. An Error of status 1 says what
/// does not fit.
int64_t countMicroBatches(const NpzArray &array, const std::vector<int64_t> &shape, int64_t &rest,
                          const std::string &path);

/// Item `index` of a permutation of `size` items that follows from `seed` and `epoch`.
int64_t permuted(int64_t index, int64_t size, uint64_t seed, uint64_t epoch);

/// "x f32 [8, 64], labels i64 [8]": what a program wants.
std::string describeInputs(const Program &program);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_DATA_H
