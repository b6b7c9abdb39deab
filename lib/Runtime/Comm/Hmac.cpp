//===- Hmac.cpp - proofs of a shared secret -------------------------------===//

#include "Comm/Hmac.h"
#include "dsopt/Runtime/Error.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

namespace dsopt::runtime {

std::string hmac(std::string_view key, std::string_view text) {
  unsigned char proof[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
            reinterpret_cast<const unsigned char *>(text.data()), text.size(), proof, &bytes) ||
      bytes != kProofBytes)
    throw Error(StatusFailure, "SHA-256 is not available");
  return std::string(reinterpret_cast<const char *>(proof), bytes);
}

bool equalInSecret(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

std::string randomBytes() {
  std::string bytes(kProofBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(StatusFailure, "the system gives no random numbers");
  return bytes;
}

} // namespace dsopt::runtime
