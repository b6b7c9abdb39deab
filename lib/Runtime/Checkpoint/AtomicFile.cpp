//===- AtomicFile.cpp - files that appear when they are complete ----------===//

#include "dsopt/Runtime/Checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace dsopt::runtime;

/// Bytes of one system call.
static constexpr int64_t kMost = 1 << 30;

bool dsopt::runtime::writeFully(int descriptor, int64_t offset, const void *data, int64_t bytes) {
  auto *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = pwrite(descriptor, from, std::min(bytes, kMost), offset);
    if (written < 0 && errno == EINTR)
      continue;
    if (written == 0)
      errno = ENOSPC;
    if (written <= 0)
      return false;
    from += written, offset += written, bytes -= written;
  }
  return true;
}

bool dsopt::runtime::readFully(int descriptor, int64_t offset, void *data, int64_t bytes) {
  auto *to = static_cast<char *>(data);
  while (bytes > 0) {
    ssize_t got = pread(descriptor, to, std::min(bytes, kMost), offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got == 0)
      errno = 0;
    if (got <= 0)
      return false;
    to += got, offset += got, bytes -= got;
  }
  return true;
}

static std::string temporaryName(const std::string &path) { return path + ".tmp" + std::to_string(getpid()); }

AtomicFile::AtomicFile(const std::string &path) : path(path), temporary(temporaryName(path)) {
  fd = open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0)
    throw Error(StatusFailure, path + ": cannot be written: " + std::strerror(errno));
}

AtomicFile::~AtomicFile() {
  if (fd < 0)
    return;
  close(fd);
  unlink(temporary.c_str());
}

void AtomicFile::writeAt(uint64_t offset, const void *data, uint64_t bytes) {
  if (!writeFully(fd, static_cast<int64_t>(offset), data, static_cast<int64_t>(bytes)))
    throw Error(StatusFailure, path + ": writing failed: " + std::strerror(errno));
}

void AtomicFile::append(const void *data, uint64_t bytes) {
  writeAt(end, data, bytes);
  end += bytes;
}

void AtomicFile::commit() {
  bool failed = fsync(fd) != 0 && errno != EINVAL && errno != EROFS;
  int error = errno;
  failed |= close(fd) != 0;
  fd = -1;
  if (!failed && rename(temporary.c_str(), path.c_str()) == 0)
    return;
  error = failed ? error : errno;
  unlink(temporary.c_str());
  throw Error(StatusFailure, path + ": cannot be put in place: " + std::strerror(error));
}

void dsopt::runtime::checkWritable(const std::string &path, const std::string &option) {
  std::string prefix = "option -" + option + ": ";
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode))
      throw Error(StatusInput, prefix + path + " is a folder, expected a file");
    if (!S_ISREG(info.st_mode))
      return; // a device or pipe
  }
  std::string temporary = temporaryName(path);
  int fd = open(temporary.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0)
    throw Error(StatusInput, prefix + "cannot write " + path + ": " + std::strerror(errno));
  close(fd);
  unlink(temporary.c_str());
}
