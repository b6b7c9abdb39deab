//===- Log.cpp - what a run wrote with -log -------------------------------===//

#include "Log.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

using nlohmann::json;

namespace dsopt::report {

double numberOf(const json &value, double otherwise) {
  if (value.is_number())
    return value.get<double>();
  if (value == "nan")
    return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf" || value == "-inf")
    return (value == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
  return otherwise;
}

std::vector<std::string> rankNames(size_t count, const json &run) {
  // Above 16 ranks a log has the least and the most.
  int64_t ranks = 0;
  if (run.is_object() && run.contains("layout"))
    ranks = static_cast<int64_t>(
        numberOf(run["layout"].value("dp", json(0)), 0) * numberOf(run["layout"].value("pp", json(0)), 0) *
        numberOf(run["layout"].value("sp", json(1)), 1) * numberOf(run["layout"].value("tp", json(1)), 1));
  std::vector<std::string> names;
  for (size_t rank = 0; rank < count; ++rank)
    names.push_back(ranks > 16 && count == 2 ? rank ? "most" : "least" : "rank " + std::to_string(rank));
  return names;
}

void Thinned::endStep(int64_t step) {
  constexpr size_t kSteps = 1024;
  int64_t number = seen++;
  numbers[step] = number;
  if (numbers.size() > kSteps)
    stride *= 2;
  else if (number % stride == 0)
    return;
  for (auto it = numbers.begin(); it != numbers.end();) {
    bool kept = it->second % stride == 0;
    if (!kept)
      for (auto &[name, series] : of)
        series.erase(it->first);
    it = kept ? std::next(it) : numbers.erase(it);
  }
}

void Thinned::restart(int64_t step) {
  numbers.erase(numbers.lower_bound(step), numbers.end());
  for (auto &[name, series] : of)
    series.erase(series.lower_bound(step), series.end());
}

static void takeNorms(Thinned &norms, const json &line, const char *key, int64_t step) {
  auto found = line.find(key);
  if (found == line.end() || !found->is_object())
    return;
  for (auto &[name, value] : found->items())
    norms.take(step, name, numberOf(value, 0));
  norms.endStep(step);
}

/// A number a rank; above 16 ranks the least and the most.
static void takeMemory(Log &log, const json &line, int64_t step) {
  auto found = line.find("peak_bytes");
  if (found == line.end() || !found->is_array())
    return;
  std::vector<std::string> names = rankNames(found->size(), log.run);
  for (size_t rank = 0; rank < found->size(); ++rank)
    log.memory.take(step, names[rank], numberOf((*found)[rank], 0));
  log.memory.endStep(step);
}

/// Takes a line's numbers; steps that an earlier run of the log went through again are the later ones'.
static void takeStep(Log &log, const json &line) {
  int64_t step = line["step"].get<int64_t>();
  auto found = line.find("skipped");
  bool skipped = found != line.end() && *found == true;
  if (skipped)
    log.series["skipped"][step] = 1;
  for (auto &[name, value] : line.items()) {
    // Of a step whose gradients are not finite.
    if (skipped && name == "grad_norm")
      continue;
    bool number = value.is_number() || value == "nan" || value == "inf" || value == "-inf";
    if (name != "step" && number)
      log.series[name][step] = numberOf(value, 0);
  }
  takeNorms(log.gradNorms, line, "grad_norms", step);
  takeNorms(log.paramNorms, line, "param_norms", step);
  takeMemory(log, line, step);
  if (line.contains("loss"))
    log.lastStep = line;
}

static void takeRun(Log &log, const json &run, int64_t &starts) {
  log.run = run;
  log.end = nullptr;
  ++starts;
}

/// Throws std::runtime_error if there is no file, or nothing of a run in it.
static Log readLog(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read " + path + ": " + std::strerror(errno));
  Log log;
  log.path = log.name = path;
  int64_t number = 0, starts = 0, broken = 0, firstBroken = 0;
  bool lastBroken = false, startsNow = false;
  for (std::string text; std::getline(file, text);) {
    ++number;
    if (text.find_first_not_of(" \r\t") == std::string::npos)
      continue;
    json line = json::parse(text, nullptr, /*allow_exceptions=*/false);
    lastBroken = !line.is_object();
    if (lastBroken) {
      firstBroken = broken++ ? firstBroken : number;
    } else if (line.contains("run") && line["run"].is_object()) {
      takeRun(log, line["run"], starts);
      startsNow = starts > 1;
    } else if (line.contains("step") && line["step"].is_number_integer()) {
      if (startsNow && line.contains("loss")) {
        int64_t step = line["step"].get<int64_t>();
        log.resumed.push_back(step);
        for (auto &[name, series] : log.series)
          series.erase(series.lower_bound(step), series.end());
        for (Thinned *few : {&log.gradNorms, &log.paramNorms, &log.memory})
          few->restart(step);
        startsNow = false;
      }
      takeStep(log, line);
    } else if (line.contains("breakdown") && line["breakdown"].is_object()) {
      log.breakdown = line["breakdown"];
    } else if (line.contains("end") && line["end"].is_object()) {
      log.end = line["end"];
    }
  }
  if (log.run.is_null() && log.series.empty())
    throw std::runtime_error(path + (number == 0 ? " is empty" : " holds no line of a run") +
                             "; expected what a run writes with -log=FILE.jsonl");
  if (broken && (broken > 1 || !lastBroken))
    log.notes.push_back(std::to_string(broken) + " lines could not be read, the first is line " +
                        std::to_string(firstBroken));
  else if (broken)
    log.notes.push_back("the last line is incomplete, as of a run that was killed");
  if (log.run.is_null())
    log.notes.push_back("the log does not say what ran: its first line is missing");
  if (log.series.empty())
    log.notes.push_back("no step is logged");
  if (auto skipped = log.series.find("skipped"); skipped != log.series.end() && !skipped->second.empty())
    log.notes.push_back(std::to_string(skipped->second.size()) +
                        " of the logged steps overflowed in fp16 and were skipped");
  for (const char *name : {"loss", "eval_loss", "grad_norm"})
    for (auto &[step, value] : log.series[name])
      if (!std::isfinite(value)) {
        log.notes.push_back(std::string(name) + " is " +
                            (std::isnan(value) ? "nan"
                             : value > 0       ? "inf"
                                               : "-inf") +
                            " in step " + std::to_string(step));
        break;
      }
  return log;
}

static std::string fileName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

std::string withoutEnding(const std::string &path) {
  size_t dot = path.rfind('.');
  return dot == std::string::npos || path.find('/', dot) != std::string::npos ? path : path.substr(0, dot);
}

std::vector<Log> readLogs(const std::vector<std::string> &paths) {
  std::vector<Log> logs;
  for (const std::string &path : paths)
    logs.push_back(readLog(path));
  for (Log &log : logs) {
    log.name = withoutEnding(fileName(log.path));
    for (const Log &other : logs)
      if (&other != &log && fileName(other.path) == fileName(log.path))
        log.name = log.path;
  }
  return logs;
}

} // namespace dsopt::report
