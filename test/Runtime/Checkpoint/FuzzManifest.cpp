//===- FuzzManifest.cpp - manifest.json -----------------------------------===//
//
// An input that ends in "#" gets the right hash for the object that it is, so that
// what lies behind the hash is met as well.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "dsopt/Runtime/Manifest.h"

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;
using namespace dsopt::test;

static std::string manifestOf(const std::string &body) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(body.data(), body.size())));
  return "{\"manifest\":" + body + ",\"xxh3\":\"" + hash + "\"}\n";
}

std::vector<std::string> dsopt::test::fuzzSeeds() {
  FuzzFolder folder;
  Manifest manifest;
  manifest.step = 3;
  manifest.K = manifest.V = 2;
  manifest.accumulate = "local";
  manifest.options = {{"lr", "0.1"}};
  Parameter tensor;
  tensor.name = "w";
  tensor.type = "f32";
  tensor.shape = {2, 3};
  tensor.file = "model.safetensors";
  tensor.file_bytes = 24;
  tensor.chunks = {~uint64_t(0)};
  manifest.tensors = {tensor};
  writeManifest(manifest, folder.path);
  std::stringstream text;
  text << std::ifstream(folder.path + "/manifest.json").rdbuf();
  auto json = nlohmann::json::parse(text.str());
  return {text.str(), json["manifest"].dump() + "#"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const FuzzFolder folder;
  std::string text(viewOf(data, size));
  if (!text.empty() && text.back() == '#') {
    text.pop_back();
    auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_discarded())
      try {
        text = manifestOf(json.dump());
      } catch (const nlohmann::json::exception &) { // no UTF-8
      }
  }
  folder.write("manifest.json", text);
  try {
    readManifest(folder.path);
  } catch (const dsopt::runtime::Error &) {
  }
  return 0;
}
