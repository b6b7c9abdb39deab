//===- Hmac.h - proofs of a shared secret -----------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_COMM_HMAC_H
#define DSOPT_LIB_RUNTIME_COMM_HMAC_H

#include <cstddef>
#include <string>
#include <string_view>

namespace dsopt::runtime {

inline constexpr size_t kProofBytes = 32;

/// HMAC-SHA-256 (RFC 2104).
std::string hmac(std::string_view key, std::string_view text);

/// Whether two texts are equal, in a time that does not depend on where they differ.
bool equalInSecret(std::string_view one, std::string_view other);

/// 32 bytes that nobody can predict; an Error of status 2 if the system has none.
std::string randomBytes();

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_COMM_HMAC_H
