//===- MetricsLog.cpp - the JSON lines of a run ---------------------------===//

#include "MetricsLog.h"
#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/JsonText.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>

using namespace dsopt::runtime;

std::string dsopt::runtime::jsonRanks(const std::vector<int64_t> &values) {
  std::vector<int64_t> shown = values;
  if (values.size() > 16) {
    auto [least, most] = std::minmax_element(values.begin(), values.end());
    shown = {*least, *most};
  }
  std::string text = "[";
  for (size_t i = 0; i < shown.size(); ++i)
    text += (i ? "," : "") + std::to_string(shown[i]);
  return text + "]";
}

/// The shape of an input's micro-batches in a step.
static const std::vector<int64_t> &shapeOf(const Program &program, size_t input, int variant) {
  return variant < 0 ? program.inputs[input].shape : program.variants[variant].shapes[input];
}

int64_t dsopt::runtime::samplesPerStep(const Program &program, int variant) {
  bool rows = program.micro_batch_size > 0 && !program.inputs.empty();
  return program.K * (rows ? shapeOf(program, 0, variant).front() : 1);
}

/// What is written goes to the end of the file, wherever that is by then: logs are rotated and copied away.
/// Behind a line that was cut short it begins a new one.
static int openLog(const std::string &path, int flags) {
  int file = sys::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | flags);
  if (file < 0 && errno == EACCES) { // a pipe or device that is only written
    file = sys::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags);
    if (file < 0 && errno == ENOENT)
      errno = EACCES; // it is not there, and may not be made
  }
  struct stat info{};
  char last = '\n';
  if (file >= 0 && sys::fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
      sys::pread(file, &last, 1, info.st_size - 1) == 1 && last != '\n')
    sys::write(file, "\n", 1);
  return file;
}

static bool writeLine(int file, const std::string &line) {
  std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    ssize_t bytes = sys::write(file, text.data() + done, text.size() - done);
    if (bytes < 0 && errno == EINTR)
      continue;
    if (bytes <= 0)
      return false;
    done += static_cast<size_t>(bytes);
  }
  return true;
}

MetricsLog::MetricsLog(const Program &program, const RunSettings &settings, const RunFacts &facts)
    : program(program), settings(settings), facts(facts) {
  for (size_t i = 0; i < program.inputs.size(); ++i)
    if (program.inputs[i].name == "input_ids")
      tokens = static_cast<int>(i);
  if (settings.log.empty())
    return;
  bool appends = settings.resumed || settings.appendsLog;
  file = openLog(settings.log, appends ? 0 : O_TRUNC);
  if (file < 0)
    throw Error(statusOfCreating(errno),
                "option -log: cannot write " + settings.log + ": " + std::strerror(errno));
  run();
}

MetricsLog::~MetricsLog() {
  if (file >= 0)
    sys::close(file);
}

void MetricsLog::write(const std::string &line) {
  if (file < 0 || !error.empty())
    return;
  fault::point("log");
  if (!writeLine(file, line))
    error = settings.log + ": writing failed: " + std::strerror(errno);
}

std::string dsopt::runtime::failureRecord(int64_t steps, const std::string &status, int rank,
                                          const std::string &reason) {
  return "{\"end\":{\"steps\":" + std::to_string(steps) + ",\"status\":" + jsonString(status) +
         (rank >= 0 ? ",\"rank\":" + std::to_string(rank) : "") + ",\"reason\":" + jsonString(reason) + "}}";
}

void dsopt::runtime::appendEnd(const std::string &path, const std::string &record) {
  int file = openLog(path, 0);
  if (file < 0)
    return;
  writeLine(file, record);
  sys::close(file);
}

void MetricsLog::run() {
  auto field = [](const char *name, int64_t value) {
    return std::string(",\"") + name + "\":" + std::to_string(value);
  };
  auto text = [](const char *name, const std::string &value) {
    return std::string(",\"") + name + "\":" + jsonString(value);
  };
  std::string planned =
      "{\"arena_bytes\":" + jsonRanks(facts.arenaBytes) + ",\"host_bytes\":" + jsonRanks(facts.hostBytes) +
      ",\"disk_bytes\":" + jsonRanks(facts.diskBytes) + field("save_staging_bytes", facts.stagingBytes) +
      ",\"bubble\":" + jsonNumber(program.bubble, 17) + field("flops_per_step", program.flops) + "}";
  std::string measured;
  for (const Metric &metric : program.metrics)
    measured += (measured.empty() ? ",\"metrics\":[" : ",") + jsonString(metric.name);
  measured += measured.empty() ? "" : "]";
  const RunOptions &run = settings.options;
  write("{\"run\":{\"version\":" + jsonString(DSOPT_VERSION) + text("compiler", program.dsopt) +
        text("command", settings.commandLine) + text("compiled", program.command) +
        text("model", program.model) + ",\"layout\":{\"dp\":" + std::to_string(program.dp()) +
        field("pp", program.pp()) + field("sp", program.sp()) + field("tp", program.tp()) +
        field("zero", program.zero) + text("schedule", program.schedule) + "}" + field("K", program.K) +
        field("V", program.V) + field("M", program.M) + field("micro_batch_size", program.micro_batch_size) +
        text("accumulate", program.accumulate) + text("gradient_type", program.gradient_type) +
        text("precision", program.precision) + text("optimizer", program.optimizer) +
        text("target", program.target) + text("arch", program.arch) +
        (facts.device.empty() ? "" : text("device", facts.device)) + text("engine", facts.engine) +
        (facts.graphs ? field("cuda_graphs", *facts.graphs) : "") + field("threads", run.threads) +
        (facts.steps < DataSource::kEndless ? field("steps", facts.steps) : "") +
        (facts.microBatches ? field("micro_batches", facts.microBatches) : "") + field("seed", run.seed) +
        field("kernel_table", kKernelTable) + measured + ",\"plan\":" + planned +
        ",\"libraries\":" + jsonRanks(facts.libraries) + "}}");
}

/// The program's metrics as members of a line.
static std::string metricsText(const Program &program, const std::vector<float> &values,
                               const std::string &prefix) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i)
    text += "," + jsonString(prefix + program.metrics[i].name) + ":" + jsonNumber(values[i]);
  return text;
}

void MetricsLog::step(const StepResult &result, double seconds) {
  if (facts.comparison)
    facts.comparison->step(result, program);
  bool last = result.step + 1 == facts.steps || result.stop;
  if (file < 0 || (result.step % settings.logEvery.value_or(1) != 0 && !last))
    return;
  double samples = static_cast<double>(samplesPerStep(program, result.variant));
  double epoch =
      facts.microBatches ? static_cast<double>((result.step + 1) * program.K) / facts.microBatches : 0;
  std::string line = "{\"step\":" + std::to_string(result.step) + ",\"loss\":" + jsonNumber(result.loss) +
                     metricsText(program, result.metrics, "") +
                     ",\"grad_norm\":" + jsonNumber(result.gradNorm) +
                     ",\"lr\":" + jsonNumber(result.lr, 12) + ",\"step_ms\":" + jsonNumber(seconds * 1e3, 6) +
                     ",\"samples_per_s\":" + jsonNumber(samples / seconds, 6);
  if (tokens >= 0) {
    double count = static_cast<double>(program.K);
    for (int64_t size : shapeOf(program, tokens, result.variant))
      count *= static_cast<double>(size);
    line += ",\"tokens_per_s\":" + jsonNumber(count / seconds, 6);
  }
  line += ",\"epoch\":" + jsonNumber(epoch, 6) + ",\"peak_bytes\":" + jsonRanks(facts.arenaBytes) +
          ",\"sent_bytes\":" + jsonRanks(result.sentByRank);
  if (result.lossScale > 0)
    line += ",\"loss_scale\":" + jsonNumber(result.lossScale, 17) +
            ",\"skipped\":" + (result.skipped ? "true" : "false");
  if (settings.options.logLosses) {
    line += ",\"losses\":[";
    for (size_t i = 0; i < result.losses.size(); ++i)
      line += (i ? "," : "") + jsonNumber(static_cast<float>(result.losses[i]));
    line += "]";
  }
  auto norms = [&](const char *name, const std::vector<float> &values) {
    std::string object;
    for (size_t i = 0; i < values.size() && i < program.parameters.size(); ++i)
      if (program.parameters[i].trainable)
        object += (object.empty() ? "" : ",") + jsonString(program.parameters[i].name) + ":" +
                  jsonNumber(values[i]);
    return std::string(",\"") + name + "\":{" + object + "}";
  };
  if (settings.options.logNorms)
    line += norms("grad_norms", result.gradNorms) + norms("param_norms", result.paramNorms);
  write(line + "}");
}

void MetricsLog::evaluation(int64_t step, const Evaluation &result) {
  if (facts.comparison)
    facts.comparison->evaluation(step, result.loss);
  if (file >= 0)
    write("{\"step\":" + std::to_string(step) + ",\"eval_loss\":" + jsonNumber(result.loss) +
          metricsText(program, result.metrics, "eval_") + ",\"eval_batches\":" +
          std::to_string(result.microBatches) + ",\"eval_ms\":" + jsonNumber(result.times.ms, 6) + "}");
}

void MetricsLog::compared() {
  if (file >= 0)
    write("{\"compare\":" + facts.comparison->json() + "}");
}

const std::vector<BreakdownPart> &dsopt::runtime::breakdownParts(bool evaluates) {
  static const std::vector<BreakdownPart> step = {{"forward", &Breakdown::forward},
                                                  {"backward", &Breakdown::backward},
                                                  {"communication", &Breakdown::communication},
                                                  {"update", &Breakdown::update},
                                                  {"waiting", &Breakdown::waiting}},
                                          evaluation = {{"evaluation", &Breakdown::evaluation},
                                                        {"communication", &Breakdown::communication},
                                                        {"waiting", &Breakdown::waiting}};
  return evaluates ? evaluation : step;
}

void MetricsLog::breakdown(const std::vector<Breakdown> &ranks, bool evaluates) {
  if (file < 0)
    return;
  std::string line;
  for (const BreakdownPart &part : breakdownParts(evaluates)) {
    line += std::string(line.empty() ? "" : ",") + "\"" + part.name + "\":[";
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      line += (rank ? "," : "") + jsonNumber(ranks[rank].*part.time, 6);
    line += "]";
  }
  write("{\"breakdown\":{" + line + "}}");
}

void MetricsLog::end(int64_t steps, int64_t skipped, const std::string &weightsHash,
                     const std::string &status, const std::string &ended) {
  if (file < 0)
    return;
  write("{\"end\":{\"steps\":" + std::to_string(steps) +
        (scalesLoss(program.precision) ? ",\"skipped\":" + std::to_string(skipped) : "") +
        (weightsHash.empty() ? "" : ",\"weights_hash\":" + jsonString(weightsHash)) +
        ",\"libraries\":" + jsonRanks(facts.libraries) + ",\"status\":" + jsonString(status) +
        (ended.empty() ? "" : ",\"ended\":" + jsonString(ended)) + "}}");
}
