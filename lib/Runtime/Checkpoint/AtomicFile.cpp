//===- AtomicFile.cpp - every output of dsopt -----------------------------===//

#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace dsopt::runtime;

/// Bytes of one system call.
static constexpr int64_t kMost = 1 << 30;

bool dsopt::runtime::writeFully(int descriptor, int64_t offset, const void *data, int64_t bytes) {
  auto *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t written = sys::pwrite(descriptor, from, std::min(bytes, kMost), offset);
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
    ssize_t got = sys::pread(descriptor, to, std::min(bytes, kMost), offset);
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

//===----------------------------------------------------------------------===//
// Temporary names
//===----------------------------------------------------------------------===//

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

static std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

static constexpr const char *kSuffix = ".tmp";

/// What the temporary names of this machine begin with, until it starts anew: its locks are known here.
static std::string temporaryPrefix() {
  static const uint64_t machine = [] {
    char text[64];
    int fd = sys::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd < 0 ? 0 : sys::read(fd, text, sizeof text);
    if (fd >= 0)
      sys::close(fd);
    return XXH3_64bits(text, bytes < 0 ? 0 : bytes);
  }();
  return ".dsopt-" + hex(machine) + "-";
}

/// A new empty file in the folder, locked as long as it is open; -1 with errno if there can be none.
static int createTemporary(const std::string &folder, mode_t mode, std::string &name) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
      return -1;
    name = folder + "/" + temporaryPrefix() + hex(number) + kSuffix;
    int fd = sys::open(name.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode);
    if (fd < 0 && (errno == EEXIST || errno == EINTR))
      continue;
    if (fd < 0)
      return -1;
    // Before it was locked, another run may have taken it for left behind. Without locks none is removed.
    struct stat info;
    sys::flock(fd, LOCK_EX | LOCK_NB);
    if (sys::fstat(fd, &info) != 0 || info.st_nlink > 0)
      return fd;
    sys::close(fd);
  }
  errno = EEXIST;
  return -1;
}

/// Removes temporary files that nobody holds open any more.
static void removeLeftovers(const std::string &folder) {
  DIR *entries = opendir(folder.c_str());
  if (!entries)
    return;
  std::string prefix = temporaryPrefix();
  size_t length = prefix.size() + 16 + std::strlen(kSuffix);
  while (dirent *entry = readdir(entries)) {
    std::string name = entry->d_name;
    if (name.size() != length || name.rfind(prefix, 0) != 0)
      continue;
    name = folder + "/" + name;
    int fd = sys::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
      continue;
    if (sys::flock(fd, LOCK_EX | LOCK_NB) == 0)
      sys::unlink(name.c_str());
    sys::close(fd);
  }
  closedir(entries);
}

//===----------------------------------------------------------------------===//
// What is there already
//===----------------------------------------------------------------------===//

/// Whether a path is a name of one of this process' descriptors, as /dev/stdout is.
static bool namesDescriptor(std::string path) {
  for (int links = 0; links < 8; ++links) {
    char target[PATH_MAX];
    ssize_t bytes = readlink(path.c_str(), target, sizeof target);
    if (bytes < 0)
      return false;
    std::string folder = folderOf(path);
    if (char *real = realpath(folder.c_str(), nullptr)) {
      bool descriptor = std::strncmp(real, "/proc/", 6) == 0;
      std::free(real);
      if (descriptor)
        return true;
    }
    path = target[0] == '/' ? std::string(target, bytes) : folder + "/" + std::string(target, bytes);
  }
  return false;
}

/// Whether `path` is written in place.
static bool isPlace(const std::string &path, struct stat &info) {
  return sys::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode) &&
         (!S_ISREG(info.st_mode) || namesDescriptor(path));
}

/// Opens what is written in place. A FIFO that nobody reads has some seconds to be opened at its other end.
static int openPlace(const std::string &path) {
  using namespace std::chrono_literals;
  sys::Clock::time_point limit = sys::now() + 10s;
  while (true) {
    int fd = sys::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0)
      return fd;
    int error = errno;
    if (fd >= 0)
      sys::close(fd);
    errno = error;
    if ((error != ENXIO && error != EINTR) || sys::now() > limit)
      return -1;
    std::this_thread::sleep_for(10ms);
  }
}

//===----------------------------------------------------------------------===//
// AtomicFile
//===----------------------------------------------------------------------===//

void AtomicFile::fail(const char *what, int error) const {
  throw Error(StatusFailure,
              path + ": " + what + ": " + (error == ENXIO ? "nobody reads from it" : std::strerror(error)));
}

AtomicFile::AtomicFile(const std::string &path, mode_t mode) : path(path) {
  struct stat info;
  if (!isPlace(path, info)) {
    fd = createTemporary(folderOf(path), mode, temporary);
  } else if (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) {
    fd = openPlace(path);
    // A terminal takes bytes one after the other, as a FIFO does.
    if (fd >= 0 && lseek(fd, 0, SEEK_CUR) < 0) {
      sys::close(fd);
      collected = true;
    }
  } else {
    collected = true;
  }
  if (collected)
    fd = sys::memfd("dsopt-output", MFD_CLOEXEC);
  if (fd < 0)
    fail("cannot be written", errno);
}

AtomicFile::~AtomicFile() {
  if (fd < 0)
    return;
  sys::close(fd);
  if (!temporary.empty())
    sys::unlink(temporary.c_str());
}

void AtomicFile::writeAt(uint64_t offset, const void *data, uint64_t bytes) {
  fault::point("output.write");
  if (!writeFully(fd, static_cast<int64_t>(offset), data, static_cast<int64_t>(bytes)))
    fail("writing failed", errno);
}

void AtomicFile::append(const void *data, uint64_t bytes) {
  writeAt(end, data, bytes);
  end += bytes;
}

void AtomicFile::deliver() {
  int to = openPlace(path);
  if (to < 0)
    fail("cannot be written", errno);
  std::vector<char> piece(1 << 20);
  int64_t size = lseek(fd, 0, SEEK_END), at = 0;
  int error = 0;
  while (!error && at < size) {
    int64_t bytes = std::min<int64_t>(size - at, piece.size());
    if (!readFully(fd, at, piece.data(), bytes))
      error = errno;
    for (int64_t done = 0; !error && done < bytes;) {
      ssize_t written = sys::write(to, piece.data() + done, bytes - done);
      if (written < 0 && errno != EINTR)
        error = errno;
      done += std::max<ssize_t>(written, 0);
    }
    at += bytes;
  }
  if (sys::close(to) != 0 && !error)
    error = errno;
  if (error)
    fail("writing failed", error);
}

void AtomicFile::commit() {
  fault::point("output.commit");
  if (collected)
    deliver();
  int error = 0;
  // What is no file on a disk cannot be synced.
  if (!collected && sys::fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
    error = errno;
  if (sys::close(fd) != 0 && !error)
    error = errno;
  fd = -1;
  if (!temporary.empty()) {
    if (!error && sys::rename(temporary.c_str(), path.c_str()) == 0) {
      // A folder that may not be read, or a file system without, is no failure.
      if (sys::syncFolder(folderOf(path).c_str()) != 0 && errno != EINVAL && errno != EACCES)
        fail("its folder cannot be synced", errno);
      return;
    }
    error = error ? error : errno;
    sys::unlink(temporary.c_str());
  }
  if (error)
    fail("cannot be put in place", error);
}

int dsopt::runtime::statusOfCreating(int error) {
  bool failed = error == ENOSPC || error == EDQUOT || error == EIO || error == EMFILE || error == ENFILE;
  return failed ? StatusFailure : StatusInput;
}

void dsopt::runtime::checkWritable(const std::string &path, const std::string &option) {
  std::string prefix = "option -" + option + ": ";
  struct stat info;
  if (isPlace(path, info)) {
    if (access(path.c_str(), W_OK) != 0)
      throw Error(StatusInput, prefix + "cannot write " + path + ": " + std::strerror(errno));
    return;
  }
  if (sys::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    throw Error(StatusInput, prefix + path + " is a folder, expected a file");
  size_t slash = path.rfind('/');
  if (slash + 1 == path.size())
    throw Error(StatusInput, prefix + "cannot write " + path + ": it ends in '/', expected a file");
  if (path.size() - (slash + 1) > NAME_MAX)
    throw Error(StatusInput, prefix + "cannot write " + path + ": " + std::strerror(ENAMETOOLONG));
  std::string temporary;
  int fd = createTemporary(folderOf(path), 0600, temporary);
  if (fd < 0)
    throw Error(statusOfCreating(errno), prefix + "cannot write " + path + ": " + std::strerror(errno));
  sys::close(fd);
  sys::unlink(temporary.c_str());
  removeLeftovers(folderOf(path));
}
