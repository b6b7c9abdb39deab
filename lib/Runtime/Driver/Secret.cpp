//===- Secret.cpp - what ranks know each other by -------------------------===//

#include "Secret.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/System.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace dsopt::runtime {

static constexpr size_t kFewest = 16, kMost = 4096;

/// The text of a file that only its owner can read.
static std::string readSecretFile(const std::string &path) {
  auto refuse = [&](const std::string &why) {
    throw Error(StatusInput, "DSOPT_SECRET_FILE=" + path + ": " + why);
  };
  int file = sys::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    refuse(std::string("cannot be read: ") + std::strerror(errno));
  struct stat info{};
  std::string text(kMost + 1, '\0');
  int known = sys::fstat(file, &info);
  ssize_t got = known == 0 && S_ISREG(info.st_mode) ? sys::read(file, text.data(), text.size()) : -1;
  int error = errno;
  sys::close(file);
  if (known == 0 && !S_ISREG(info.st_mode))
    refuse("is no regular file");
  if (known == 0 && (info.st_mode & 077) != 0)
    refuse("others than its owner may use it; make it private: chmod 600 " + path);
  if (known == 0 && info.st_uid != geteuid() && info.st_uid != 0)
    refuse("belongs to another user");
  if (got < 0)
    refuse(std::string("cannot be read: ") + std::strerror(error));
  text.resize(got);
  text.erase(text.find_last_not_of("\r\n") + 1);
  return text;
}

std::string readSecret() {
  const char *given = std::getenv("DSOPT_SECRET"), *path = std::getenv("DSOPT_SECRET_FILE");
  bool isGiven = given && *given, hasFile = path && *path;
  if (isGiven && hasFile)
    throw Error(StatusInput, "DSOPT_SECRET and DSOPT_SECRET_FILE are both set: give one of them");
  std::string secret = isGiven ? given : hasFile ? readSecretFile(path) : "";
  if ((isGiven || hasFile) && (secret.size() < kFewest || secret.size() > kMost))
    throw Error(StatusInput, std::string(isGiven ? "DSOPT_SECRET" : "DSOPT_SECRET_FILE") + " holds " +
                                 std::to_string(secret.size()) + " bytes, expected " +
                                 std::to_string(kFewest) + " to " + std::to_string(kMost) +
                                 " that nobody can guess (openssl rand -hex 32 makes some)");
  return secret;
}

} // namespace dsopt::runtime
