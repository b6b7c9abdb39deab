//===- Page.cpp - one HTML page about runs --------------------------------===//

#include "Page.h"
#include "Chart.h"

#include <algorithm>
#include <cmath>

using nlohmann::json;

namespace dsopt::report {

static const char *const kStyle = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1a1d21; --soft: #667079; --line: #e3e7eb; --card: #f6f8fa;
  --c0: #2563eb; --c1: #e07b00; --c2: #0a9464; --c3: #d92d3a; --c4: #7c4ddb; --c5: #0891b2; --c6: #c026a8; --c7: #6b8e00; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --text: #e6e9ec; --soft: #98a2ab; --line: #2b3136; --card: #1c2024;
  --c0: #6ea8ff; --c1: #ffab4a; --c2: #3fcf9b; --c3: #ff7a80; --c4: #b294ff; --c5: #4dd0e6; --c6: #f083de; --c7: #b5d44b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 24px 20px 60px; max-width: 1340px; background: var(--back); color: var(--text);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 21px; margin: 0 0 2px; } h2 { font-size: 16px; margin: 32px 0 10px; } p { margin: 4px 0; }
.soft, .note { color: var(--soft); } .note::before { content: "! "; color: var(--c1); font-weight: bold; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 540px), 1fr)); gap: 16px; }
figure { margin: 0; padding: 12px 14px; background: var(--card); border: 1px solid var(--line); border-radius: 8px; position: relative; }
figcaption { font-weight: 600; margin-bottom: 6px; } svg { width: 100%; height: auto; display: block; overflow: visible; }
svg text { font-size: 11px; fill: var(--soft); } .grid-line, svg .grid { stroke: var(--line); stroke-width: 1; }
svg .mark, .cursor line { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
svg path { fill: none; stroke-width: 1.6; stroke-linejoin: round; } svg .dashed { stroke-dasharray: 4 3; stroke-width: 1.2; }
svg .bad { fill: var(--c3); } .legend { margin-top: 6px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 4px 14px; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 6px; }
.tip { position: absolute; right: 14px; top: 10px; font-size: 12px; font-variant-numeric: tabular-nums; text-align: right; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; } .scroll { overflow-x: auto; }
th, td { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; white-space: nowrap; } thead th { color: var(--soft); font-weight: 500; } code { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
)";

/// Shows the values under the pointer. The page is complete without it.
static const char *const kScript = R"(
for (const svg of document.querySelectorAll('svg[data-x]')) {
  const [least, most] = svg.dataset.x.split(' ').map(Number), left = 58, right = 608, cursor = svg.querySelector('.cursor');
  const tip = document.createElement('div'); tip.className = 'tip'; svg.parentNode.append(tip);
  const lines = [...svg.querySelectorAll('desc')].map(d => ({ color: d.dataset.color, name: d.dataset.name,
    values: d.textContent.split(',').map(v => v.split(':')).map(([s, v]) => [Number(s), v]) }));
  svg.addEventListener('mousemove', e => {
    const box = svg.getBoundingClientRect(), x = (e.clientX - box.left) / box.width * 620;
    const step = least + (x - left) / (right - left) * (most - least);
    let at = null; tip.replaceChildren();
    for (const line of lines) {
      const near = line.values.reduce((a, b) => Math.abs(b[0] - step) < Math.abs(a[0] - step) ? b : a);
      if (at === null) { at = near[0]; tip.append('step ' + at); }
      const row = document.createElement('div'); row.style.color = `var(--c${line.color})`;
      row.textContent = (lines.length > 1 ? line.name + ' ' : '') + near[1]; tip.append(row);
    }
    const place = left + (at - least) / (most - least) * (right - left);
    cursor.innerHTML = `<line x1="${place}" x2="${place}" y1="10" y2="206"/>`;
  });
  svg.addEventListener('mouseleave', () => { cursor.innerHTML = ''; tip.replaceChildren(); });
}
)";

static constexpr int kColors = 8;

static std::string bytes(double value) {
  char text[40];
  const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; value >= 999.5 && unit < 4; ++unit)
    value /= 1000;
  std::snprintf(text, sizeof text, unit ? "%.3g %s" : "%.0f %s", value, units[unit]);
  return text;
}

static std::string milliseconds(double value) { return shortNumber(value) + " ms"; }

static std::string textOf(const json &object, const char *key) {
  if (!object.is_object() || !object.contains(key))
    return "";
  const json &value = object[key];
  return value.is_string()   ? value.get<std::string>()
         : value.is_number() ? shortNumber(numberOf(value, 0))
                             : "";
}

static std::vector<double> listOf(const json &object, const char *key) {
  std::vector<double> values;
  if (object.is_object() && object.contains(key) && object[key].is_array())
    for (const json &value : object[key])
      values.push_back(numberOf(value, 0));
  return values;
}

static const Series &seriesOf(const Log &log, const char *name) {
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
  return "dp " + textOf(layout, "dp") + ", pp " + textOf(layout, "pp") + ", zero " + textOf(layout, "zero") +
         ", " + textOf(layout, "schedule");
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

/// One column a run, one row a fact; facts that no run has are left out.
static std::string factTable(const std::vector<Log> &logs) {
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
      out += "<th>" + escaped(log.name) + "</th>";
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
      out += "<tr><th>" + std::string(fact.name) + "</th>" + row + "</tr>";
  }
  return out + "</table></div>";
}

/// The same quantity of all runs.
static std::string figure(const std::vector<Log> &logs, const std::string &title, const char *name) {
  std::vector<Line> lines;
  std::vector<int64_t> marks;
  for (size_t i = 0; i < logs.size(); ++i) {
    lines.push_back(
        {logs.size() > 1 ? logs[i].name : title, static_cast<int>(i) % kColors, &seriesOf(logs[i], name)});
    if (logs.size() == 1)
      marks = logs[i].resumed;
  }
  return lineChart(title, lines, marks);
}

static std::string lossFigure(const std::vector<Log> &logs) {
  std::vector<Line> lines;
  for (size_t i = 0; i < logs.size(); ++i) {
    std::string prefix = logs.size() > 1 ? logs[i].name + " " : "";
    int color = static_cast<int>(logs.size() > 1 ? i : 0) % kColors;
    lines.push_back({logs.size() > 1 ? logs[i].name : "training", color, &seriesOf(logs[i], "loss")});
    lines.push_back(
        {prefix + "evaluation", logs.size() > 1 ? color : 1, &seriesOf(logs[i], "eval_loss"), true});
  }
  return lineChart("loss", lines, logs.size() == 1 ? logs[0].resumed : std::vector<int64_t>());
}

static std::vector<std::string> rankNames(size_t count, const json &run) {
  // Above 16 ranks a log has the least and the most.
  int64_t ranks = 0;
  if (run.is_object() && run.contains("layout"))
    ranks = static_cast<int64_t>(numberOf(run["layout"].value("dp", json(0)), 0) *
                                 numberOf(run["layout"].value("pp", json(0)), 0));
  std::vector<std::string> names;
  for (size_t rank = 0; rank < count; ++rank)
    names.push_back(ranks > 16 && count == 2 ? rank ? "most" : "least" : "rank " + std::to_string(rank));
  return names;
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

std::string page(const std::vector<Log> &logs) {
  std::string title = logs.size() == 1 ? textOf(logs[0].run, "model") : std::to_string(logs.size()) + " runs";
  if (title.empty())
    title = logs[0].name;
  std::string colors;
  for (int i = 0; i < kColors; ++i) {
    std::string number = std::to_string(i);
    colors += "svg .c" + number + " { stroke: var(--c" + number + "); } svg rect.c" + number +
              ", svg circle.c" + number + ", i.c" + number + " { fill: var(--c" + number +
              "); background: var(--c" + number + "); stroke: none; }\n";
  }
  std::string out = "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>\n"
                    "<meta name='viewport' content='width=device-width, initial-scale=1'>\n<title>" +
                    escaped(title) + " - dsopt</title>\n<style>" + kStyle + colors +
                    "</style></head><body>\n<h1>" + escaped(title) + "</h1>\n<p class='soft'>";
  for (size_t i = 0; i < logs.size(); ++i)
    out += (i ? ", " : "") + escaped(logs[i].path);
  out += "</p>\n";
  for (const Log &log : logs)
    for (const std::string &note : log.notes)
      out += "<p class='note'>" + escaped((logs.size() > 1 ? log.name + ": " : "") + note) + "</p>\n";
  out += "<h2>Training</h2>\n<div class='grid'>\n" + lossFigure(logs) + figure(logs, "learning rate", "lr") +
         figure(logs, "gradient norm", "grad_norm") + figure(logs, "tokens per second", "tokens_per_s");
  if (std::all_of(logs.begin(), logs.end(),
                  [](const Log &log) { return seriesOf(log, "tokens_per_s").empty(); }))
    out += figure(logs, "samples per second", "samples_per_s");
  out += figure(logs, "milliseconds of a step", "step_ms") + "</div>\n";
  std::string ranks;
  for (const Log &log : logs)
    ranks += rankFigures(log, logs.size() > 1);
  if (!ranks.empty())
    out += "<h2>Ranks</h2>\n<div class='grid'>\n" + ranks + "</div>\n";
  out += "<h2>Run and plan</h2>\n" + factTable(logs);
  return out + "\n<script>" + kScript + "</script>\n</body></html>\n";
}

} // namespace dsopt::report
