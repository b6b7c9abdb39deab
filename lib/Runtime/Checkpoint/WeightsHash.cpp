//===- WeightsHash.cpp - one hash of all parameters -----------------------===//

#include "dsopt/Runtime/Checkpoint.h"

#include <map>

#include <openssl/evp.h>

using namespace dsopt::runtime;

namespace {
class Sha256 {
public:
  Sha256() : context(EVP_MD_CTX_new()) {
    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1)
      throw Error(StatusFailure, "libcrypto offers no SHA-256");
  }
  ~Sha256() { EVP_MD_CTX_free(context); }
  Sha256(const Sha256 &) = delete;
  void add(const void *data, size_t bytes) { EVP_DigestUpdate(context, data, bytes); }
  std::string digest() {
    unsigned char result[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    EVP_DigestFinal_ex(context, result, &bytes);
    return std::string(reinterpret_cast<char *>(result), bytes);
  }

private:
  EVP_MD_CTX *context;
};
} // namespace

struct WeightsHash::State {
  std::map<std::string, std::string> digests;
};

WeightsHash::WeightsHash() : state(std::make_unique<State>()) {}
WeightsHash::~WeightsHash() = default;

void WeightsHash::parameter(const Parameter &parameter, const char *value) {
  std::string shape;
  for (size_t i = 0; i < parameter.shape.size(); ++i)
    shape += (i ? "," : "") + std::to_string(parameter.shape[i]);
  Sha256 hash;
  for (const std::string *field :
       {&parameter.name, &parameter.type, static_cast<const std::string *>(&shape)})
    hash.add(field->c_str(), field->size() + 1);
  hash.add(value, wholeBytes(parameter));
  state->digests[parameter.name] = hash.digest();
}

void WeightsHash::finish() {
  Sha256 hash;
  for (auto &[name, digest] : state->digests)
    hash.add(digest.data(), digest.size());
  text.clear();
  for (unsigned char byte : hash.digest())
    for (int nibble : {byte >> 4, byte & 15})
      text += "0123456789abcdef"[nibble];
}
