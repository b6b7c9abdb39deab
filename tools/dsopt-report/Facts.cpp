//===- Facts.cpp - tables about runs --------------------------------------===//

#include "Facts.h"
#include "Chart.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

using nlohmann::json;
using namespace dsopt::report;

std::string dsopt::report::bytes(double value) {
  char text[40];
  const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; value >= 999.5 && unit < 4; ++unit)
    value /= 1000;
  std::snprintf(text, sizeof text, unit ? "%.3g %s" : "%.0f %s", value, units[unit]);
  return text;
}

std::string dsopt::report::milliseconds(double value) { return shortNumber(value) + " ms"; }

std::string dsopt::report::textOf(const json &object, const char *key) {
  if (!object.is_object() || !object.contains(key))
    return "";
  const json &value = object[key];
  return value.is_string()   ? value.get<std::string>()
         : value.is_number() ? shortNumber(numberOf(value, 0))
                             : "";
}

std::vector<double> dsopt::report::listOf(const json &object, const char *key) {
  std::vector<double> values;
  if (object.is_object() && object.contains(key) && object[key].is_array())
    for (const json &value : object[key])
      values.push_back(numberOf(value, 0));
  return values;
}

const Series &dsopt::report::seriesOf(const Log &log, const std::string &name) {
  static const Series none;
  auto it = log.series.find(name);
  return it == log.series.end() ? none : it->second;
}

/// The middle of the finite values but the first, which is about memory that is touched for the first time.
static double median(const Series &series) {
  std::vector<double> values;
  for (auto it = series.begin(); it != series.end(); ++it)
    if (std::isfinite(it->second) && (it != series.begin() || series.size() == 1))
      values.push_back(it->second);
  if (values.empty())
    return NAN;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

static std::string lastOf(const Series &series) {
  return series.empty() ? "" : shortNumber(series.rbegin()->second);
}
static std::string leastOf(const Series &series) {
  double least = INFINITY;
  for (auto [step, value] : series)
    if (std::isfinite(value))
      least = std::min(least, value);
  return std::isfinite(least) ? shortNumber(least) : "";
}
static std::string medianOf(const Series &series) {
  double value = median(series);
  return std::isnan(value) ? "" : shortNumber(value);
}

static std::string statusOf(const Log &log) {
  if (!log.end.is_object())
    return "still running, or killed";
  return textOf(log.end, "status");
}

static std::string layoutOf(const Log &log) {
  if (!log.run.is_object() || !log.run.contains("layout"))
    return "";
  const json &layout = log.run["layout"];
  auto along = [&](const char *axis) {
    bool isCut = numberOf(layout.value(axis, json(1)), 1) > 1;
    return isCut ? std::string(", ") + axis + " " + textOf(layout, axis) : "";
  };
  return "dp " + textOf(layout, "dp") + ", pp " + textOf(layout, "pp") + along("sp") + along("tp") +
         ", zero " + textOf(layout, "zero") + ", " + textOf(layout, "schedule");
}

static std::string batchOf(const Log &log) {
  if (textOf(log.run, "K").empty())
    return "";
  return textOf(log.run, "K") + " micro-batches of " + textOf(log.run, "micro_batch_size") + ", V " +
         textOf(log.run, "V") + ", accumulate " + textOf(log.run, "accumulate");
}

static std::string planOf(const Log &log) {
  if (!log.run.is_object() || !log.run.contains("plan"))
    return "";
  const json &plan = log.run["plan"];
  double flops = plan.contains("flops_per_step") ? numberOf(plan["flops_per_step"], 0) : 0;
  double step = median(seriesOf(log, "step_ms"));
  std::string text = "bubble " + textOf(plan, "bubble") + ", " + shortNumber(flops) + " flops a step";
  return step > 0 ? text + ", " + shortNumber(flops / step / 1e6) + " GFLOP/s" : text;
}

static std::string memoryOf(const Log &log) {
  std::vector<double> arenas = listOf(log.lastStep, "peak_bytes");
  return arenas.empty() ? "" : bytes(*std::max_element(arenas.begin(), arenas.end())) + " a rank at most";
}

std::string dsopt::report::factTable(const std::vector<Log> &logs) {
  struct Fact {
    const char *name;
    std::string (*of)(const Log &);
  };
  static const Fact facts[] = {
      {"status", statusOf},
      {"steps", [](const Log &log) { return std::to_string(seriesOf(log, "loss").size()) + " logged"; }},
      {"last loss", [](const Log &log) { return lastOf(seriesOf(log, "loss")); }},
      {"least loss", [](const Log &log) { return leastOf(seriesOf(log, "loss")); }},
      {"last evaluation", [](const Log &log) { return lastOf(seriesOf(log, "eval_loss")); }},
      {"least evaluation", [](const Log &log) { return leastOf(seriesOf(log, "eval_loss")); }},
      {"step",
       [](const Log &log) {
         std::string text = medianOf(seriesOf(log, "step_ms"));
         return text.empty() ? "" : text + " ms (median)";
       }},
      {"tokens/s", [](const Log &log) { return medianOf(seriesOf(log, "tokens_per_s")); }},
      {"samples/s", [](const Log &log) { return medianOf(seriesOf(log, "samples_per_s")); }},
      {"memory", memoryOf},
      {"layout", layoutOf},
      {"batch", batchOf},
      {"plan", planOf},
      {"optimizer", [](const Log &log) { return textOf(log.run, "optimizer"); }},
      {"precision", [](const Log &log) { return textOf(log.run, "precision"); }},
      {"model", [](const Log &log) { return textOf(log.run, "model"); }},
      {"target", [](const Log &log) { return textOf(log.run, "target"); }},
      {"processor", [](const Log &log) { return textOf(log.run, "arch"); }},
      {"device", [](const Log &log) { return textOf(log.run, "device"); }},
      {"engine", [](const Log &log) { return textOf(log.run, "engine"); }},
      {"threads a rank", [](const Log &log) { return textOf(log.run, "threads"); }},
      {"seed", [](const Log &log) { return textOf(log.run, "seed"); }},
      {"dsopt", [](const Log &log) { return textOf(log.run, "version"); }},
      {"weights hash", [](const Log &log) { return textOf(log.end, "weights_hash").substr(0, 16); }},
      {"command", [](const Log &log) { return textOf(log.run, "command"); }},
      {"compiled by", [](const Log &log) { return textOf(log.run, "compiled"); }},
  };
  std::string out = "<div class='scroll'><table>";
  if (logs.size() > 1) {
    out += "<thead><tr><th></th>";
    for (const Log &log : logs)
      out += "<th scope='col'>" + escaped(log.name) + "</th>";
    out += "</tr></thead>";
  }
  for (const Fact &fact : facts) {
    std::string row;
    bool any = false;
    for (const Log &log : logs) {
      std::string value = fact.of(log);
      any |= !value.empty();
      bool code = std::string(fact.name).find("comm") == 0 || std::string(fact.name).find("compiled") == 0;
      row += code ? "<td><code>" + escaped(value) + "</code></td>" : "<td>" + escaped(value) + "</td>";
    }
    if (any)
      out += "<tr><th scope='row'>" + std::string(fact.name) + "</th>" + row + "</tr>";
  }
  return out + "</table></div>";
}

/// What decides about a run's numbers and time, by name: of its record, then of its command lines.
static std::map<std::string, std::string> settingsOf(const Log &log) {
  std::map<std::string, std::string> settings;
  if (!log.run.is_object())
    return settings;
  // Of the command lines what only says where things go, or what the record has.
  static const std::set<std::string> elsewhere = {
      "accumulate", "breakdown",     "compare",  "dp",        "emit", "log",       "log-every", "log-losses",
      "log-norms",  "micro-batches", "o",        "optimizer", "pp",   "precision", "quiet",     "run",
      "save",       "save-weights",  "schedule", "seed",      "sp",   "target",    "threads",   "tp",
      "trace",      "zero"};
  for (const char *line : {"compiled", "command"}) {
    std::istringstream words(textOf(log.run, line));
    for (std::string word; words >> word;) {
      size_t dashes = word.find_first_not_of('-'), equal = std::min(word.find('='), word.size());
      if (dashes == 0 || dashes == std::string::npos || dashes > 2)
        continue;
      std::string name = word.substr(dashes, equal - dashes);
      if (!elsewhere.count(name))
        settings[name] = equal == word.size() ? "yes" : word.substr(equal + 1);
    }
  }
  if (log.run.contains("layout"))
    for (const char *name : {"dp", "pp", "sp", "tp", "zero", "schedule"})
      settings[name] = textOf(log.run["layout"], name);
  for (const char *name : {"model", "K", "V", "micro_batch_size", "accumulate", "optimizer", "precision",
                           "target", "arch", "device", "engine", "threads", "seed", "version"})
    settings[name] = textOf(log.run, name);
  return settings;
}

std::string dsopt::report::comparison(const std::vector<Log> &logs, int colors) {
  std::vector<std::map<std::string, std::string>> settings;
  std::set<std::string> names;
  for (const Log &log : logs)
    for (auto &[name, value] : settings.emplace_back(settingsOf(log)))
      names.insert(name);
  std::vector<std::string> differing;
  for (const std::string &name : names)
    if (std::any_of(settings.begin(), settings.end(),
                    [&](auto &of) { return of[name] != settings[0][name]; }))
      differing.push_back(name);
  std::string out = "<div class='scroll'><table class='compared'><thead><tr><th></th><th scope='col'>last "
                    "loss</th><th scope='col'>last evaluation</th>";
  for (const std::string &name : differing)
    out += "<th scope='col'>" + escaped(name) + "</th>";
  out += "</tr></thead>";
  for (size_t i = 0; i < logs.size(); ++i) {
    out += "<tr><th scope='row'><i class='c" + std::to_string(static_cast<int>(i) % colors) + "'></i>" +
           escaped(logs[i].name) + "</th><td>" + lastOf(seriesOf(logs[i], "loss")) + "</td><td>" +
           lastOf(seriesOf(logs[i], "eval_loss")) + "</td>";
    for (const std::string &name : differing)
      out += "<td>" + escaped(settings[i][name]) + "</td>";
    out += "</tr>";
  }
  return out + "</table></div>" + (differing.empty() ? "<p class='soft'>no option differs</p>" : "");
}
