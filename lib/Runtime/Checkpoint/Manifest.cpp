//===- Manifest.cpp - manifest.json of a checkpoint -----------------------===//
//
// {"manifest": {...}, "xxh3": "..."}: the hash is that of the object's own text,
// printed without blanks and with its keys in order.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Runtime/Manifest.h"
#include "Types.h"
#include "dsopt/Runtime/Checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;
using Json = nlohmann::json;
namespace fs = std::filesystem;

static constexpr int kFormat = 1;
static constexpr const char *kFile = "manifest.json";

static std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

const Parameter *Manifest::find(const std::string &name) const {
  auto it = std::find_if(tensors.begin(), tensors.end(), [&](auto &tensor) { return tensor.name == name; });
  return it == tensors.end() ? nullptr : &*it;
}

std::string dsopt::runtime::checkpointName(int64_t step) {
  char text[40];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

std::vector<std::string> dsopt::runtime::listCheckpoints(const std::string &folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename();
    bool isStep = name.rfind("step-", 0) == 0 && name.size() > 5 &&
                  name.find_first_not_of("0123456789", 5) == std::string::npos;
    if (isStep && fs::exists(it->path() / kFile, error))
      found.push_back(it->path());
  }
  auto stepOf = [](const std::string &path) { return std::stoll(path.substr(path.rfind('-') + 1)); };
  std::sort(found.begin(), found.end(), [&](auto &a, auto &b) { return stepOf(a) < stepOf(b); });
  return found;
}

std::string dsopt::runtime::findCheckpoint(const std::string &given) {
  std::error_code error;
  if (fs::exists(fs::path(given) / kFile, error))
    return given;
  std::vector<std::string> all = listCheckpoints(given);
  return all.empty() ? "" : all.back();
}

std::vector<int64_t> dsopt::runtime::possibleDegrees(int64_t K, int64_t V) {
  std::vector<int64_t> degrees;
  for (int64_t dp = 1; dp <= K; ++dp) {
    int64_t shards = V % dp == 0 ? V / dp : 0;
    if (K % dp == 0 && (dp == 1 || (shards && (shards & (shards - 1)) == 0)))
      degrees.push_back(dp);
  }
  return degrees;
}

void dsopt::runtime::writeManifest(const Manifest &m, const std::string &checkpoint) {
  Json tensors = Json::array();
  for (const Parameter &tensor : m.tensors) {
    Json hashes = Json::array();
    for (uint64_t hash : tensor.chunks)
      hashes.push_back(hex(hash));
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"shape", tensor.shape},
                       {"file", tensor.file},
                       {"offset", tensor.offset},
                       {"file_bytes", tensor.file_bytes},
                       {"hashes", std::move(hashes)}});
  }
  Json object = {{"format", kFormat},
                 {"dsopt", m.dsopt},
                 {"model", m.model},
                 {"step", m.step},
                 {"applied", m.applied},
                 {"micro_batches", m.microBatches},
                 {"K", m.K},
                 {"V", m.V},
                 {"accumulate", m.accumulate},
                 {"gradient_type", m.gradientType},
                 {"precision", m.precision},
                 {"optimizer", m.optimizer},
                 {"arch", m.arch},
                 {"kernel_table", m.kernelTable},
                 {"decay_steps", m.decaySteps},
                 {"options", m.options},
                 {"tensors", std::move(tensors)}};
  std::string body = object.dump();
  std::string text =
      "{\"manifest\":" + body + ",\"xxh3\":\"" + hex(XXH3_64bits(body.data(), body.size())) + "\"}\n";
  AtomicFile file(checkpoint + "/" + kFile);
  file.append(text.data(), text.size());
  file.commit();
}

static uint64_t hashNamed(const std::string &text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Json::other_error::create(500, "'" + text + "' is no hash", nullptr);
  return std::strtoull(text.c_str(), nullptr, 16);
}

Manifest dsopt::runtime::readManifest(const std::string &checkpoint) {
  std::string path = checkpoint + "/" + kFile;
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw Error(StatusInput, "cannot read " + path + ": " + std::strerror(errno));
  std::stringstream text;
  text << in.rdbuf();
  Json whole = Json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  auto damaged = [&](const std::string &what) {
    throw Error(StatusInput, path + " is damaged: " + what + "; resume from another checkpoint");
  };
  if (!whole.is_object() || !whole.contains("manifest") || !whole.contains("xxh3"))
    damaged("it is no manifest");
  std::string body = whole["manifest"].dump();
  if (whole["xxh3"] != hex(XXH3_64bits(body.data(), body.size())))
    damaged("its text is not what was written");
  Manifest m;
  try {
    const Json &object = whole["manifest"];
    if (int format = object.at("format"); format != kFormat)
      throw Error(StatusInput, path + " has format " + std::to_string(format) + ", this dsopt reads format " +
                                   std::to_string(kFormat));
    object.at("dsopt").get_to(m.dsopt);
    object.at("model").get_to(m.model);
    object.at("step").get_to(m.step);
    object.at("applied").get_to(m.applied);
    object.at("micro_batches").get_to(m.microBatches);
    object.at("K").get_to(m.K);
    object.at("V").get_to(m.V);
    object.at("accumulate").get_to(m.accumulate);
    object.at("gradient_type").get_to(m.gradientType);
    object.at("precision").get_to(m.precision);
    object.at("optimizer").get_to(m.optimizer);
    object.at("arch").get_to(m.arch);
    object.at("kernel_table").get_to(m.kernelTable);
    object.at("decay_steps").get_to(m.decaySteps);
    object.at("options").get_to(m.options);
    for (const Json &entry : object.at("tensors")) {
      Parameter tensor;
      entry.at("name").get_to(tensor.name);
      entry.at("type").get_to(tensor.type);
      entry.at("shape").get_to(tensor.shape);
      entry.at("file").get_to(tensor.file);
      entry.at("offset").get_to(tensor.offset);
      entry.at("file_bytes").get_to(tensor.file_bytes);
      tensor.bytes = wholeBytes(tensor);
      for (const Json &hash : entry.at("hashes"))
        tensor.chunks.push_back(hashNamed(hash.get<std::string>()));
      m.tensors.push_back(std::move(tensor));
    }
  } catch (const Json::exception &error) {
    damaged(error.what());
  }
  return m;
}
