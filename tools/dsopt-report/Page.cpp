//===- Page.cpp - one HTML page about runs --------------------------------===//

#include "Page.h"
#include "Assets.h"
#include "Chart.h"
#include "Facts.h"

#include <algorithm>
#include <cmath>

using nlohmann::json;

namespace dsopt::report {

static constexpr int kColors = 8;
/// So many parameters' norms are shown until others are chosen, and so many can be.
static constexpr size_t kShownNorms = 6, kMostNorms = 48;

static std::string nameWith(const std::string &what, const Log &log, bool several) {
  return several ? what + ", " + log.name : what;
}

/// The same quantity of all runs.
static std::string figure(const std::vector<Log> &logs, const std::string &title, const char *name,
                          bool smooth = true) {
  std::vector<Line> lines;
  for (size_t i = 0; i < logs.size(); ++i)
    lines.push_back({.name = logs.size() > 1 ? logs[i].name : title,
                     .color = static_cast<int>(i) % kColors,
                     .values = &seriesOf(logs[i], name),
                     .smooth = smooth,
                     .dotted = i / kColors % 2 == 1});
  return lineChart(title, lines, logs.size() == 1 ? logs[0].resumed : std::vector<int64_t>());
}

/// The loss or a metric, in training and as evaluations measured it.
static std::string measuredFigure(const std::vector<Log> &logs, const std::string &name) {
  std::vector<Line> lines;
  bool several = logs.size() > 1;
  for (size_t i = 0; i < logs.size(); ++i) {
    int color = static_cast<int>(i) % kColors;
    lines.push_back({.name = several ? logs[i].name : "training",
                     .color = color,
                     .values = &seriesOf(logs[i], name),
                     .smooth = true,
                     .dotted = i / kColors % 2 == 1});
    lines.push_back({.name = several ? logs[i].name + " evaluation" : "evaluation",
                     .color = several ? color : 1,
                     .values = &seriesOf(logs[i], "eval_" + name),
                     .points = true,
                     .tone = several});
  }
  return lineChart(name, lines, several ? std::vector<int64_t>() : logs[0].resumed);
}

/// The metrics of all logs, each once.
static std::vector<std::string> metricsOf(const std::vector<Log> &logs) {
  std::vector<std::string> names;
  for (const Log &log : logs)
    if (auto found = log.run.is_object() ? log.run.find("metrics") : log.run.end();
        found != log.run.end() && found->is_array())
      for (const json &name : *found)
        if (name.is_string() && std::find(names.begin(), names.end(), name) == names.end())
          names.push_back(name);
  return names;
}

/// The parameters whose norms are largest in the middle of the run's values; the others can be chosen.
static std::string normFigure(const Log &log, const std::string &title, const Thinned &norms) {
  std::vector<std::pair<double, const std::pair<const std::string, Series> *>> bySize;
  for (auto &entry : norms.of) {
    std::vector<double> values;
    for (auto [step, value] : entry.second)
      values.push_back(std::isfinite(value) ? value : 0);
    auto middle = values.begin() + values.size() / 2;
    std::nth_element(values.begin(), middle, values.end());
    bySize.push_back({values.empty() ? 0 : *middle, &entry});
  }
  std::sort(bySize.begin(), bySize.end(), [](auto &a, auto &b) {
    return a.first != b.first ? a.first > b.first : a.second->first < b.second->first;
  });
  std::vector<Line> lines;
  for (auto &[size, entry] : bySize)
    if (lines.size() < kMostNorms)
      lines.push_back({.name = entry->first,
                       .color = static_cast<int>(lines.size()) % kColors,
                       .values = &entry->second,
                       .dotted = lines.size() / kColors % 2 == 1,
                       .hidden = lines.size() >= kShownNorms});
  std::string note;
  if (bySize.size() > kMostNorms)
    note =
        "the largest " + std::to_string(kMostNorms) + " of " + std::to_string(bySize.size()) + " parameters";
  if (norms.stride > 1)
    note +=
        (note.empty() ? "" : "; ") + std::string("every ") + std::to_string(norms.stride) + "th logged step";
  return lineChart(title, lines, log.resumed, note);
}

/// The most memory of each rank up to each step.
static std::string memoryFigure(const Log &log, const std::string &title) {
  std::vector<Line> lines;
  for (auto &[rank, series] : log.memory.of)
    lines.push_back({.name = rank, .color = static_cast<int>(lines.size()) % kColors, .values = &series});
  return lineChart(title, lines, log.resumed, "bytes of each rank's memory, in use at most");
}

/// Memory, traffic and where the time went, by rank.
static std::string rankFigures(const Log &log, bool several) {
  std::string suffix = several ? ", " + log.name : "", out;
  Bars memory;
  std::vector<double> arenas = listOf(log.lastStep, "peak_bytes");
  std::vector<double> libraries = listOf(log.end.is_object() ? log.end : log.run, "libraries");
  memory.parts = {"arena", "libraries"};
  memory.rows = rankNames(arenas.size(), log.run);
  for (size_t rank = 0; rank < arenas.size(); ++rank)
    memory.values.push_back({arenas[rank], rank < libraries.size() ? libraries[rank] : 0});
  out += barChart("memory" + suffix, memory, bytes);
  Bars sent;
  sent.parts = {"sent in a step"};
  for (double value : listOf(log.lastStep, "sent_bytes"))
    sent.values.push_back({value});
  sent.rows = rankNames(sent.values.size(), log.run);
  out += barChart("traffic" + suffix, sent, bytes);
  if (!log.breakdown.is_object())
    return out;
  Bars time;
  for (const char *part : {"forward", "backward", "evaluation", "communication", "update", "waiting"}) {
    if (!log.breakdown.contains(part))
      continue;
    time.parts.push_back(part);
    time.values.resize(std::max(time.values.size(), log.breakdown[part].size()));
  }
  for (size_t rank = 0; rank < time.values.size(); ++rank)
    for (const std::string &part : time.parts) {
      const json &values = log.breakdown[part];
      time.values[rank].push_back(rank < values.size() ? numberOf(values[rank], 0) : 0);
    }
  time.rows = rankNames(time.values.size(), nullptr);
  return out + barChart("where a step's time goes" + suffix, time, milliseconds);
}

std::string figures(const std::vector<Log> &logs) {
  bool several = logs.size() > 1;
  std::string out;
  for (const Log &log : logs)
    for (const std::string &note : log.notes)
      out += "<p class='note'>" + escaped((several ? log.name + ": " : "") + note) + "</p>\n";
  if (several)
    out += "<h2>Compared</h2>\n" + comparison(logs, kColors);
  out += "<h2>Training</h2>\n<div class='grid'>\n" + measuredFigure(logs, "loss");
  for (const std::string &name : metricsOf(logs))
    out += measuredFigure(logs, name);
  out += figure(logs, "learning rate", "lr", /*smooth=*/false) + figure(logs, "gradient norm", "grad_norm") +
         figure(logs, "tokens per second", "tokens_per_s");
  if (std::all_of(logs.begin(), logs.end(),
                  [](const Log &log) { return seriesOf(log, "tokens_per_s").empty(); }))
    out += figure(logs, "samples per second", "samples_per_s");
  out += figure(logs, "milliseconds of a step", "step_ms") + "</div>\n";
  std::string norms, ranks, memory;
  for (const Log &log : logs) {
    norms += normFigure(log, nameWith("gradient norms by parameter", log, several), log.gradNorms) +
             normFigure(log, nameWith("parameter norms", log, several), log.paramNorms);
    ranks += rankFigures(log, several);
    memory += memoryFigure(log, nameWith("memory over time", log, several));
  }
  if (!norms.empty())
    out += "<h2>Parameters</h2>\n<div class='grid'>\n" + norms + "</div>\n";
  if (!ranks.empty() || !memory.empty())
    out += "<h2>Ranks</h2>\n";
  for (const std::string &alike : {ranks, memory}) // bars and lines are not of one height
    if (!alike.empty())
      out += "<div class='grid even'>\n" + alike + "</div>\n";
  return out + "<h2>Run and plan</h2>\n" + factTable(logs);
}

std::string page(const std::vector<Log> &logs, std::optional<int64_t> version) {
  std::string title = logs.size() == 1 ? textOf(logs[0].run, "model") : std::to_string(logs.size()) + " runs";
  if (title.empty())
    title = logs[0].name;
  std::string colors;
  for (int i = 0; i < kColors; ++i) {
    std::string number = std::to_string(i);
    // A curve's other tone lies between its color and the text's.
    for (auto [kind, color] :
         {std::pair("c" + number, "var(--c" + number + ")"),
          std::pair("e" + number, "color-mix(in srgb, var(--c" + number + ") 50%, var(--text))")})
      colors += "svg ." + kind + " { stroke: " + color + "; } svg rect." + kind + ", svg circle." + kind +
                ", i." + kind + " { fill: " + color + "; background: " + color + "; stroke: none; }\n";
  }
  std::string out = "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>\n"
                    "<meta name='viewport' content='width=device-width, initial-scale=1'>\n<title>" +
                    escaped(title) + " - dsopt</title>\n<style>" + kStyle + colors + "</style></head><body" +
                    (version ? " data-version='" + std::to_string(*version) + "'" : "") + ">\n<h1>" +
                    escaped(title) + "</h1>\n<p class='soft'>";
  for (size_t i = 0; i < logs.size(); ++i)
    out += (i ? ", " : "") + escaped(logs[i].path);
  out += "</p>\n";
  if (version)
    out += "<p class='soft' id='state' role='status'>live</p>\n";
  // Which of the curves is shown is the style's to say: the choice works without the script.
  const char *const names[] = {"none", "a little", "some", "much"};
  out += "<fieldset class='smoothing'><legend>smoothing</legend>";
  for (int i = 0; i < 4; ++i)
    out += "<label><input type='radio' name='smooth' id='smooth" + std::to_string(i) + "'" +
           (i ? "" : " checked") + "/>" + names[i] + "</label>";
  out += "</fieldset>\n<main>\n" + figures(logs) + "</main>\n<script>" + kScript;
  return out + (version ? kLiveScript : "") + "</script>\n</body></html>\n";
}

} // namespace dsopt::report
