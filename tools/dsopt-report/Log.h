//===- Log.h - what a run wrote with -log -----------------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_REPORT_LOG_H
#define DSOPT_TOOLS_DSOPT_REPORT_LOG_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dsopt::report {

/// Values by step. Where a run went on from an older checkpoint the newer value counts; NaN and
/// infinities are kept.
using Series = std::map<int64_t, double>;

/// Many series of the same steps, of which memory holds a few: every `stride`th, more of them the longer the
/// log is.
struct Thinned {
  std::map<std::string, Series> of;
  int64_t stride = 1;
  void take(int64_t step, const std::string &name, double value) { of[name][step] = value; }
  /// Behind each step; drops what is too much.
  void endStep(int64_t step);
  /// Steps from that one on are gone through again.
  void restart(int64_t step);

private:
  int64_t seen = 0;
  std::map<int64_t, int64_t> numbers; ///< of the steps that are held, among all
};

/// One log. CONTRACT section 4 has its form.
struct Log {
  std::string path, name;               ///< the name is what tells it from the others
  nlohmann::json run = nullptr;         ///< the last {"run":...}, null without
  nlohmann::json end = nullptr;         ///< the last {"end":...}, null of a run that did not come to it
  nlohmann::json lastStep = nullptr;    ///< with the lists of ranks
  nlohmann::json breakdown = nullptr;   ///< of -breakdown: milliseconds of a step, by part and rank
  std::map<std::string, Series> series; ///< loss, lr, step_ms, eval_loss ...
  Thinned gradNorms, paramNorms;        ///< of -log-norms, by parameter
  Thinned memory;                       ///< peak_bytes, by rank
  std::vector<int64_t> resumed;         ///< first steps of later runs of the same log
  std::vector<std::string> notes;       ///< what is odd about the file
};

/// The logs, with the shortest names that tell them apart: of the files, else their paths. Throws
/// std::runtime_error if there is no file, or nothing of a run in it.
std::vector<Log> readLogs(const std::vector<std::string> &paths);

/// A file's path without ".jsonl" and the like.
std::string withoutEnding(const std::string &path);

/// "rank 0" ...; above 16 ranks a log has "least" and "most".
std::vector<std::string> rankNames(size_t count, const nlohmann::json &run);

/// A number, also where the log has "nan" or "inf"; `otherwise` if it is neither.
double numberOf(const nlohmann::json &value, double otherwise);

} // namespace dsopt::report

#endif // DSOPT_TOOLS_DSOPT_REPORT_LOG_H
