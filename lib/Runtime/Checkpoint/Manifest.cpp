//===- Manifest.cpp - manifest.json of a checkpoint -----------------------===//
//
// {"manifest": {...}, "xxh3": "..."}: the hash is that of the object's own text,
// printed without blanks and with its keys in order.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Runtime/Manifest.h"
#include "Types.h"
#include "dsopt/Runtime/Checkpoint.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <set>

#include <fcntl.h>
#include <nlohmann/json.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;
using Json = nlohmann::json;

static constexpr int kFormat = 1;
static constexpr const char *kFile = "/manifest.json";
static constexpr off_t kMostBytes = INT64_C(4) << 30;
/// Objects and arrays in each other; the text's own have 6.
static constexpr int kMostDepth = 16;

int dsopt::runtime::readStatus(int error) {
  switch (error) {
  case 0: // the file ended early
  case ENOENT:
  case ENOTDIR:
  case EISDIR:
  case EACCES:
  case EPERM:
  case ELOOP:
  case ENAMETOOLONG:
    return StatusInput;
  default:
    return StatusFailure;
  }
}

static std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string dsopt::runtime::drawRunName() {
  std::random_device random;
  auto word = [&] { return static_cast<uint64_t>(random()) << 32 | random(); };
  uint64_t first = word();
  return hex(first) + hex(word());
}

static Json describe(const std::vector<Parameter> &tensors) {
  Json rows = Json::array();
  for (const Parameter &tensor : tensors) {
    Json hashes = Json::array();
    for (uint64_t hash : tensor.chunks)
      hashes.push_back(hex(hash));
    rows.push_back({{"name", tensor.name},
                    {"type", tensor.type},
                    {"shape", tensor.shape},
                    {"file", tensor.file},
                    {"offset", tensor.offset},
                    {"file_bytes", tensor.file_bytes},
                    {"hashes", std::move(hashes)}});
  }
  return rows;
}

void dsopt::runtime::writeManifest(const Manifest &m, const std::string &checkpoint) {
  Json object = {{"format", kFormat},
                 {"dsopt", m.dsopt},
                 {"model", m.model},
                 {"run", m.lineage.run},
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
                 {"tensors", describe(m.tensors)}};
  if (m.decayGiven)
    object["decay_given"] = true;
  if (m.T > 1)
    object["T"] = m.T;
  if (m.Q > 1)
    object["Q"] = m.Q;
  if (!m.dataPlace.empty())
    object["data_place"] = m.dataPlace;
  if (m.pendingFactor)
    object["pending"] = {{"factor", *m.pendingFactor}};
  if (m.rates)
    object["apart"] = {{"rates", *m.rates}};
  if (m.lossScale)
    object["loss_scale"] = {{"scale", m.lossScale->scale},
                            {"hysteresis", m.lossScale->hysteresis},
                            {"steps", m.lossScale->steps},
                            {"last_overflow", m.lossScale->lastOverflow},
                            {"skipped", m.lossScale->skipped}};
  if (m.lineage.parentStep >= 0)
    object["parent"] = {{"run", m.lineage.parent}, {"step", m.lineage.parentStep}};
  if (!m.ranks.layout.empty())
    object["ranks"] = {{"layout", m.ranks.layout}, {"tensors", describe(m.ranks.tensors)}};
  std::string body = object.dump();
  std::string text =
      "{\"manifest\":" + body + ",\"xxh3\":\"" + hex(XXH3_64bits(body.data(), body.size())) + "\"}\n";

  std::string path = checkpoint + kFile;
  int file = sys::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
  bool written = file >= 0 && writeFully(file, 0, text.data(), text.size()) && sys::fsync(file) == 0;
  int error = errno;
  if (file >= 0 && sys::close(file) != 0 && written) {
    error = errno;
    written = false;
  }
  if (!written)
    throw Error(StatusFailure, path + ": writing failed: " + std::strerror(error));
}

static std::string readText(const std::string &path) {
  int file = sys::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info{};
  std::string text;
  bool read = file >= 0 && sys::fstat(file, &info) == 0;
  if (read && info.st_size > kMostBytes) {
    errno = EFBIG;
    read = false;
  }
  if (read) {
    text.resize(info.st_size);
    read = readFully(file, 0, text.data(), info.st_size);
  }
  int error = errno;
  if (file >= 0)
    sys::close(file);
  if (!read)
    throw Unreadable(readStatus(error),
                     "cannot read " + path + ": " + (error ? std::strerror(error) : "it ended early"));
  return text;
}

static uint64_t hashNamed(const std::string &text) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Json::other_error::create(500, "'" + text + "' is no hash", nullptr);
  return std::strtoull(text.c_str(), nullptr, 16);
}

/// The tensors of a list, whose numbers fit each other.
static std::vector<Parameter> tensorsOf(const Json &rows) {
  std::vector<Parameter> tensors;
  std::set<std::string> names;
  for (const Json &row : rows) {
    Parameter tensor;
    row.at("name").get_to(tensor.name);
    row.at("type").get_to(tensor.type);
    row.at("shape").get_to(tensor.shape);
    row.at("file").get_to(tensor.file);
    row.at("offset").get_to(tensor.offset);
    row.at("file_bytes").get_to(tensor.file_bytes);
    bool sound = !tensor.file.empty() && tensor.file.find('/') == std::string::npos && tensor.offset >= 0;
    tensor.bytes = elementType(tensor.type).bytes;
    for (int64_t size : tensor.shape)
      sound &= size >= 0 && !__builtin_mul_overflow(tensor.bytes, size, &tensor.bytes);
    sound = sound && tensor.offset <= tensor.file_bytes && tensor.bytes <= tensor.file_bytes - tensor.offset;
    for (const Json &hash : row.at("hashes"))
      tensor.chunks.push_back(hashNamed(hash.get<std::string>()));
    sound = sound &&
            static_cast<int64_t>(tensor.chunks.size()) == (tensor.bytes + kHashedBytes - 1) / kHashedBytes;
    if (!sound || !names.insert(tensor.name).second)
      throw Json::other_error::create(500, "what it says of '" + tensor.name + "' cannot be", nullptr);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Manifest dsopt::runtime::readManifest(const std::string &checkpoint) {
  std::string path = checkpoint + kFile;
  std::string text = readText(path);
  auto shallow = [](int depth, Json::parse_event_t, Json &) { return depth < kMostDepth; };
  Json whole = Json::parse(text, shallow, /*allow_exceptions=*/false);
  auto damaged = [&](const std::string &what) {
    throw Unreadable(StatusInput, path + " is damaged: " + what + "; resume from another checkpoint");
  };
  if (!whole.is_object() || !whole.contains("manifest") || !whole.contains("xxh3"))
    damaged("it is no manifest");
  std::string body = whole["manifest"].dump(-1, ' ', false, Json::error_handler_t::replace);
  Manifest m;
  m.identity = hex(XXH3_64bits(body.data(), body.size()));
  if (whole["xxh3"] != m.identity)
    damaged("its text is not what was written");
  try {
    const Json &object = whole["manifest"];
    if (int format = object.at("format"); format != kFormat)
      throw Error(StatusInput, path + " has format " + std::to_string(format) + ", this dsopt reads format " +
                                   std::to_string(kFormat));
    object.at("dsopt").get_to(m.dsopt);
    object.at("model").get_to(m.model);
    m.lineage.run = object.value("run", "");
    if (object.contains("parent")) {
      object.at("parent").at("run").get_to(m.lineage.parent);
      object.at("parent").at("step").get_to(m.lineage.parentStep);
    }
    object.at("step").get_to(m.step);
    object.at("applied").get_to(m.applied);
    if (object.contains("pending"))
      m.pendingFactor = object.at("pending").at("factor").get<double>();
    if (object.contains("apart"))
      m.rates = object.at("apart").at("rates").get<double>();
    if (object.contains("loss_scale")) {
      const Json &scale = object.at("loss_scale");
      LossScaleState &state = m.lossScale.emplace();
      scale.at("scale").get_to(state.scale);
      scale.at("hysteresis").get_to(state.hysteresis);
      scale.at("steps").get_to(state.steps);
      scale.at("last_overflow").get_to(state.lastOverflow);
      scale.at("skipped").get_to(state.skipped);
    }
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
    m.decayGiven = object.value("decay_given", false);
    m.T = object.value("T", INT64_C(1));
    m.Q = object.value("Q", INT64_C(1));
    m.dataPlace = object.value("data_place", "");
    object.at("options").get_to(m.options);
    m.tensors = tensorsOf(object.at("tensors"));
    if (object.contains("ranks")) {
      object.at("ranks").at("layout").get_to(m.ranks.layout);
      m.ranks.tensors = tensorsOf(object.at("ranks").at("tensors"));
    }
  } catch (const Json::exception &error) {
    damaged(error.what());
  }
  return m;
}

Manifest dsopt::runtime::inspectCheckpoint(const std::string &checkpoint) {
  Manifest manifest = readManifest(checkpoint);
  std::map<std::string, int64_t> files;
  for (const std::vector<Parameter> *tensors : {&manifest.tensors, &manifest.ranks.tensors})
    for (const Parameter &tensor : *tensors)
      files.emplace(tensor.file, tensor.file_bytes);
  for (auto &[name, bytes] : files) {
    std::string path = checkpoint + "/" + name;
    struct stat info{};
    if (sys::stat(path.c_str(), &info) != 0)
      throw Unreadable(readStatus(errno), "cannot read '" + path + "': " + std::strerror(errno));
    if (info.st_size != bytes)
      throw Unreadable(StatusInput, "'" + path + "' has " + std::to_string(info.st_size) + " bytes; it had " +
                                        std::to_string(bytes) + " when the checkpoint was written");
  }
  return manifest;
}

std::vector<int64_t> dsopt::runtime::possibleDegrees(int64_t K, int64_t V) {
  // A file says what K is: of degrees there are as many as V can be halved.
  std::vector<int64_t> degrees;
  for (int64_t dp = V; dp > 1; dp = dp % 2 == 0 ? dp / 2 : 1)
    if (K % dp == 0)
      degrees.push_back(dp);
  degrees.push_back(1);
  std::reverse(degrees.begin(), degrees.end());
  return degrees;
}
