//===- Progress.cpp - what a person sees of a run -------------------------===//

#include "MetricsLog.h"
#include "dsopt/Runtime/SaveFolder.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>

#include <sys/ioctl.h>
#include <unistd.h>

using namespace dsopt::runtime;

template <typename... Values> static std::string format(const char *text, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, text, values...);
  return buffer;
}

std::string dsopt::runtime::describeBytes(int64_t bytes) {
  static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 5; ++unit)
    value /= 1024;
  return format(unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static std::string describeTime(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0)
    return "?";
  int64_t s = std::llround(seconds);
  if (s < 3600)
    return format("%d:%02d", static_cast<int>(s / 60), static_cast<int>(s % 60));
  return format("%lld:%02d:%02d", static_cast<long long>(s / 3600), static_cast<int>(s / 60 % 60),
                static_cast<int>(s % 60));
}

std::string dsopt::runtime::metricsLine(const Program &program, const std::vector<float> &values) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += "  " + program.metrics[i].name + format(" %.6g", values[i]);
  return text;
}

/// "step 3/8", "step 3" where nobody knows the end.
static std::string counted(int64_t step, int64_t steps) {
  return std::to_string(step) + (steps < DataSource::kEndless ? "/" + std::to_string(steps) : "");
}

Progress::Progress(const Program &program, const RunSettings &settings, const RunFacts &facts)
    : program(program), settings(settings),
      facts(facts), // mpirun gives its ranks a terminal even where its own output is a file.
      terminal(settings.launch.launcher == Launcher::Local && isatty(STDOUT_FILENO)) {}

void Progress::erase() {
  if (shown && !unread)
    std::printf("\r%s\r", std::string(shown, ' ').c_str());
  shown = 0;
}

/// A reader that is gone, or a full disk, is no reason to end the training.
void Progress::flush() {
  if ((std::fflush(stdout) == 0 && !std::ferror(stdout)) || unread)
    return;
  unread = true;
  std::fprintf(stderr, "dsopt: warning: standard output cannot be written: %s; the run goes on silently\n",
               std::strerror(errno));
}

void Progress::line(const std::string &text) {
  if (settings.quiet || unread)
    return;
  erase();
  std::printf("%s\n", text.c_str());
  draw();
}

void Progress::warning(const std::string &text) {
  erase();
  flush();
  std::fprintf(stderr, "dsopt: warning: %s\n", text.c_str());
  if (!settings.quiet && !unread)
    draw();
}

void Progress::step(const StepResult &result, double seconds) {
  smoothed = smoothed > 0 ? 0.8 * smoothed + 0.2 * seconds : seconds;
  if (settings.quiet || unread)
    return;
  if (terminal)
    return bar(result);
  if (!isDue(result))
    return;
  drawn = std::chrono::steady_clock::now();
  std::string scale = result.lossScale > 0 ? format("  loss scale %.6g", result.lossScale) : "";
  line(format("step %s  loss %.6g", counted(result.step, facts.steps).c_str(), result.loss) +
       metricsLine(program, result.metrics) +
       format("  grad norm %.4g  lr %.4g  %.1f ms  %.1f samples/s", result.gradNorm, result.lr, seconds * 1e3,
              samplesPerStep(program, result.variant) / seconds) +
       scale + (result.skipped ? ", overflow: skipped" : ""));
}

bool Progress::isDue(const StepResult &result) {
  ++steps;
  if (result.step + 1 == facts.steps || result.stop)
    return true;
  if (settings.logEvery)
    return result.step % *settings.logEvery == 0;
  // Each of the first 10 steps, then every 2nd to 20, every 5th to 50, every 10th to 100 ... Of slow steps
  // somebody who waits for them sees more.
  constexpr std::chrono::minutes kPause{1};
  int64_t power = 1;
  while (steps > 100 * power)
    power *= 10;
  int64_t every = power * (steps <= 10 * power ? 1 : steps <= 20 * power ? 2 : steps <= 50 * power ? 5 : 10);
  return (result.step + 1) % every == 0 || std::chrono::steady_clock::now() - drawn >= kPause;
}

void Progress::bar(const StepResult &result) {
  int64_t done = result.step + 1, most = *std::max_element(facts.arenaBytes.begin(), facts.arenaBytes.end());
  std::string right = format(" %s  loss %.4f", counted(done, facts.steps).c_str(), result.loss) +
                      metricsLine(program, result.metrics) +
                      format("  %.1f ms  %.1f samples/s  ", smoothed * 1e3,
                             samplesPerStep(program, result.variant) / smoothed) +
                      describeBytes(most) + " a rank  " +
                      (facts.steps < DataSource::kEndless
                           ? describeTime(smoothed * static_cast<double>(facts.steps - done)) + " left"
                           : "");
  winsize window{};
  size_t columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col ? window.ws_col : 80;
  size_t width = columns > right.size() + 13 ? std::min<size_t>(columns - right.size() - 3, 30) : 0;
  std::string text;
  if (width) {
    size_t filled = width * done / std::max<int64_t>(facts.steps, 1);
    text = "[" + std::string(filled, '=') + std::string(width - std::min(filled, width), ' ') + "]";
  }
  text += right;
  if (text.size() >= columns)
    text.resize(columns - 1);
  last = text;
  // Drawing more often than this costs more than it shows.
  constexpr std::chrono::milliseconds kPause{50};
  if (auto now = std::chrono::steady_clock::now();
      now - drawn >= kPause || done == facts.steps || result.stop) {
    drawn = now;
    draw();
  }
}

void Progress::draw() {
  if (!last.empty()) {
    std::string blanks(shown > last.size() ? shown - last.size() : 0, ' ');
    std::printf("\r%s%s", last.c_str(), blanks.c_str());
    shown = last.size();
  }
  flush();
}

void Progress::end() {
  if (!last.empty() && !settings.quiet && !unread) {
    draw();
    std::printf("\n");
  }
  last.clear();
  shown = 0;
  flush();
}

std::string dsopt::runtime::placesLine(const RunSettings &settings, int64_t saved) {
  std::string text;
  auto say = [&](const char *what, const std::string &path) {
    if (!path.empty())
      text += (text.empty() ? "wrote " : ", ") + std::string(what) + " to " + path;
  };
  say("weights", settings.saveWeights);
  say("the model", settings.saveOnnx);
  say("outputs", settings.saveOutputs);
  if (saved >= 0)
    say("the last checkpoint",
        settings.save + (settings.save.back() == '/' ? "" : "/") + checkpointName(saved));
  say("the log", settings.log);
  say("the trace", settings.trace);
  return text;
}

std::string dsopt::runtime::breakdownTable(const std::vector<Breakdown> &ranks,
                                           const std::vector<double> &milliseconds, bool evaluates) {
  // Columns as wide as their titles, and for numbers of up to 8 places.
  auto column = [](const std::string &value, size_t width) {
    width = std::max<size_t>(width, 8);
    return "  " + std::string(width - std::min(width, value.size()), ' ') + value;
  };
  std::string text = format("%-12s", "ms a step");
  for (const BreakdownPart &part : breakdownParts(evaluates))
    text += column(part.name, std::strlen(part.name));
  text += column("other", 0) + column("total", 0) + "\n";
  Breakdown mean;
  double total = 0;
  auto row = [&](const std::string &name, const Breakdown &b, double ms) {
    double other = ms;
    text += format("%-12s", name.c_str());
    for (const BreakdownPart &part : breakdownParts(evaluates)) {
      other -= b.*part.time;
      text += column(format("%.2f", b.*part.time), std::strlen(part.name));
    }
    text += column(format("%.2f", std::max(other, 0.0)), 0) + column(format("%.2f", ms), 0) + "\n";
  };
  double share = 1.0 / static_cast<double>(std::max<size_t>(ranks.size(), 1));
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    row("rank " + std::to_string(rank), ranks[rank], milliseconds[rank]);
    for (const BreakdownPart &part : breakdownParts(evaluates))
      mean.*part.time += ranks[rank].*part.time * share;
    total += milliseconds[rank] * share;
  }
  if (ranks.size() > 1)
    row("all (mean)", mean, total);
  text.pop_back();
  return text;
}
