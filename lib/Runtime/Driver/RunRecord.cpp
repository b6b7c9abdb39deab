//===- RunRecord.cpp - what a run is made of, to be compared ---------------===//

#include "RunRecord.h"
#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstring>

#include <fcntl.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime {
namespace {

constexpr int64_t kSampleBytes = 4096, kPieceBytes = 1 << 20;
/// Files of one option that are read whole, in all; of larger ones there are samples.
constexpr int64_t kWholeBytes = 64 << 20;
/// Of one file, and of all files that one option names.
constexpr int64_t kMostSamples = 16, kAllSamples = 1024;
/// Files with entries of their own; the others share one.
constexpr size_t kNamedFiles = 64;

std::string hexOf(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

/// "1,234 bytes".
std::string bytesText(int64_t bytes) {
  std::string text = std::to_string(bytes);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text + (bytes == 1 ? " byte" : " bytes");
}

struct FileSamples {
  int64_t bytes = -1; ///< -1: it cannot be opened
  uint64_t hash = 0;
};

/// The file's beginning, its end and places spread between them; all of one with at most `whole` bytes.
FileSamples sample(const std::string &path, int64_t samples, int64_t whole) {
  FileSamples result;
  int file = sys::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (file >= 0 && sys::fstat(file, &info) == 0) {
    result.bytes = info.st_size;
    bool isWhole = info.st_size <= whole;
    if (isWhole)
      samples = (info.st_size + kPieceBytes - 1) / kPieceBytes;
    std::string bytes(std::min<int64_t>(isWhole ? kPieceBytes : kSampleBytes, info.st_size), '\0');
    int64_t size = static_cast<int64_t>(bytes.size()), last = info.st_size - size;
    for (int64_t i = 0; i < samples; ++i) {
      int64_t at = samples > 1 ? static_cast<int64_t>(static_cast<double>(last) * i / (samples - 1)) : 0;
      if (!readFully(file, at, bytes.data(), size)) {
        std::string why = errno ? std::strerror(errno) : "it became shorter";
        sys::close(file);
        throw Error(StatusFailure, path + ": cannot be read: " + why);
      }
      result.hash = XXH3_64bits_withSeed(bytes.data(), bytes.size(), result.hash);
    }
  }
  if (file >= 0)
    sys::close(file);
  return result;
}

void add(Record &record, const std::string &name, const std::string &subject, const std::string &value) {
  record.push_back({name, subject, value});
}

void addOptions(Record &record, const Run &run) {
  const RunSettings &settings = run.settings;
  auto option = [&](const std::string &name, const std::string &value) {
    add(record, "option " + name, "-" + name + " is", value);
  };
  auto flag = [&](const std::string &name, bool given) { option(name, given ? "given" : "not given"); };
  for (const auto &[name, value] : settings.alike)
    option(name, value);
  flag("eval-data", !settings.evalData.empty());
  flag("log", !settings.log.empty());
  flag("trace", !settings.trace.empty());
  add(record, "option steps in all", "the steps to train are", std::to_string(settings.steps));
}

} // namespace

void addFiles(Record &record, const std::string &kind, const std::string &option,
              const std::vector<std::string> &paths) {
  add(record, kind + " files", option + " names",
      std::to_string(paths.size()) + (paths.size() == 1 ? " file" : " files"));
  int64_t count = static_cast<int64_t>(std::max<size_t>(paths.size(), 1));
  int64_t samples = std::clamp<int64_t>(kAllSamples / count, 2, kMostSamples);
  std::string others;
  for (size_t i = 0; i < paths.size(); ++i) {
    FileSamples file = sample(paths[i], samples, kWholeBytes / count);
    std::string size = file.bytes < 0 ? "no bytes that can be read" : bytesText(file.bytes);
    std::string name = paths[i].substr(paths[i].rfind('/') + 1), number = kind + " " + std::to_string(i);
    if (i >= kNamedFiles) {
      others += size + " " + hexOf(file.hash) + "\n";
      continue;
    }
    add(record, number + " size", name + " has", size);
    add(record, number + " content", "samples of " + name + " have the hash", hexOf(file.hash));
  }
  if (!others.empty())
    add(record, kind + " others",
        "the " + std::to_string(paths.size() - kNamedFiles) + " files after the first " +
            std::to_string(kNamedFiles) + " have the hash",
        hexOf(XXH3_64bits(others.data(), others.size())));
}

Record recordOf(const Run &run) {
  const Program &program = run.program();
  ProgramObject::Identity identity = run.object.identity();
  Record record;
  // Before the program, which is another one then: the ranks of an executable may choose differently, and
  // what dsopt -run compiles has its options in it.
  add(record, "target", "its target (-run-on) is", program.target);
  addOptions(record, run);
  record.push_back({"program", "it is",
                    (program.model.empty() ? std::string("a program") : program.model) + " for " +
                        describeWorld(program) + " ranks, dsopt " + program.dsopt + ", table " +
                        hexOf(identity.table),
                    "made by " + dsoptCommand(program, {})});
  add(record, "build", "its code has the hash", hexOf(identity.code));
  if (run.data.streams())
    add(record, "data stream", "-data is", run.settings.data);
  addFiles(record, "data", "-data", filesOf(run.settings.data));
  if (!run.settings.evalData.empty())
    addFiles(record, "eval-data", "-eval-data", filesOf(run.settings.evalData));
  // The model's own weights are in the table by their hashes.
  if (const std::string &weights = run.settings.options.weights.file; !weights.empty())
    addFiles(record, "weights", "-weights", {weights});
  return record;
}

} // namespace dsopt::runtime
