//===- Record.cpp - what a run changes in files and folders ---------------===//

#include "Record.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace dsopt::runtime::fault::record {
namespace {
std::atomic<int> file{-1};

/// One line and what follows it in one call: lines of ranks do not mix.
template <typename... Values> void put(const void *data, size_t bytes, const char *format, Values... values) {
  int error = errno;
  char line[3 * PATH_MAX];
  int length = std::snprintf(line, sizeof line, format, values...);
  iovec parts[2] = {{line, std::min<size_t>(length, sizeof line - 1)}, {const_cast<void *>(data), bytes}};
  [[maybe_unused]] ssize_t written = ::writev(file, parts, bytes ? 2 : 1);
  errno = error;
}

/// 0 of what is no regular file or folder.
unsigned long long inodeOf(int fd) {
  struct stat info;
  int error = errno;
  bool counts = ::fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode));
  errno = error;
  return counts ? info.st_ino : 0;
}

struct Absolute {
  char text[2 * PATH_MAX];
  explicit Absolute(const char *path) {
    char folder[PATH_MAX] = "";
    bool relative = path[0] != '/' && ::getcwd(folder, sizeof folder);
    std::snprintf(text, sizeof text, relative ? "%s/%s" : "%s%s", folder, path);
  }
};
} // namespace

void start(int fd) { file = fd; }
void stop() {
  if (int fd = file.exchange(-1); fd >= 0)
    ::close(fd);
}
bool active() { return file.load(std::memory_order_relaxed) >= 0; }

void create(const char *path, int fd) {
  if (unsigned long long inode = inodeOf(fd))
    put(nullptr, 0, "create %llu %s\n", inode, Absolute(path).text);
}
void mkdir(const char *path) {
  struct stat info;
  if (::stat(path, &info) == 0)
    put(nullptr, 0, "mkdir %llu %s\n", static_cast<unsigned long long>(info.st_ino), Absolute(path).text);
}
void write(int fd, off_t offset, const void *data, size_t bytes) {
  if (unsigned long long inode = inodeOf(fd))
    put(data, bytes, "write %llu %lld %zu\n", inode, static_cast<long long>(offset), bytes);
}
void writeBefore(int fd, const void *data, size_t bytes) {
  int error = errno;
  off_t end = ::lseek(fd, 0, SEEK_CUR);
  errno = error;
  if (end >= 0)
    write(fd, end - static_cast<off_t>(bytes), data, bytes);
}
void truncate(int fd, off_t bytes) {
  if (unsigned long long inode = inodeOf(fd))
    put(nullptr, 0, "truncate %llu %lld\n", inode, static_cast<long long>(bytes));
}
void allocate(int fd, off_t bytes) {
  if (unsigned long long inode = inodeOf(fd))
    put(nullptr, 0, "allocate %llu %lld\n", inode, static_cast<long long>(bytes));
}
void sync(int fd) {
  if (unsigned long long inode = inodeOf(fd))
    put(nullptr, 0, "fsync %llu\n", inode);
}
void name(const char *change, const char *path, const char *other) {
  if (other)
    put(nullptr, 0, "%s %s -> %s\n", change, Absolute(path).text, Absolute(other).text);
  else
    put(nullptr, 0, "%s %s\n", change, Absolute(path).text);
}
void point(const char *name, int rank, long step) {
  if (active())
    put(nullptr, 0, "point %s %d %ld\n", name, rank, step);
}

} // namespace dsopt::runtime::fault::record
