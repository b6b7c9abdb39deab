//===- System.cpp - the system's calls, and what strikes there ------------===//

#include "dsopt/Runtime/System.h"
#include "Record.h"
#include "Strike.h"
#include "dsopt/Runtime/Liveness.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

using namespace dsopt::runtime::fault;

namespace dsopt::runtime::sys {
namespace {
/// A call that has a result and nothing else.
template <typename Body> auto plain(Call call, Body body) -> decltype(body()) {
  Strike strike = before(call);
  if (strike.ends())
    return static_cast<decltype(body())>(strike.result());
  return body();
}

/// A change: `note` writes down that it was made.
template <typename Body, typename Note> int change(Call call, Body body, Note note) {
  Strike strike = before(call);
  if (strike.ends())
    return strike.result();
  int result = body();
  if (result == 0 && record::active())
    note();
  return result;
}

/// Bytes that come.
template <typename Body> ssize_t take(Call call, void *data, size_t bytes, Body body) {
  Strike strike = before(call);
  if (strike.ends())
    return strike.result();
  ssize_t got = body(strike.share(bytes));
  if (got > 0)
    strike.flip(data, static_cast<size_t>(got));
  return got;
}

/// Bytes that go: a flipped bit is one of a copy, which is all that goes.
template <typename Body> ssize_t give(Call call, const void *data, size_t bytes, Body body) {
  Strike strike = before(call);
  if (strike.ends())
    return strike.result();
  if (strike.flipped < 0)
    return body(data, strike.share(bytes));
  char copy[kFlipped];
  bytes = std::min(bytes, kFlipped);
  std::memcpy(copy, data, bytes);
  strike.flip(copy, bytes);
  return body(copy, bytes);
}

/// A message's first part that is not empty, for short counts and flips.
const iovec *firstPart(const msghdr &message) {
  for (size_t i = 0; i < message.msg_iovlen; ++i)
    if (message.msg_iov[i].iov_len > 0)
      return &message.msg_iov[i];
  return nullptr;
}
} // namespace

int open(const char *path, int flags, mode_t mode) {
  return plain(Call::open, [&] {
    struct stat info;
    bool made = record::active() && flags & O_CREAT && ::stat(path, &info) != 0;
    int fd = ::open(path, flags, mode);
    if (fd >= 0 && made)
      record::create(path, fd);
    else if (fd >= 0 && record::active() && flags & O_TRUNC)
      record::truncate(fd, 0);
    return fd;
  });
}
int close(int fd) {
  // What a real one does too, when it fails.
  Strike strike = before(Call::close);
  int result = ::close(fd);
  return strike.ends() ? -1 : result;
}
ssize_t read(int fd, void *data, size_t bytes) {
  return take(Call::read, data, bytes, [&](size_t n) { return ::read(fd, data, n); });
}
ssize_t write(int fd, const void *data, size_t bytes) {
  return give(Call::write, data, bytes, [&](const void *from, size_t n) {
    ssize_t written = ::write(fd, from, n);
    if (written > 0 && record::active())
      record::writeBefore(fd, from, static_cast<size_t>(written));
    return written;
  });
}
ssize_t pread(int fd, void *data, size_t bytes, off_t offset) {
  beat(); // a rank that moves bytes of files gets on
  return take(Call::pread, data, bytes, [&](size_t n) { return ::pread(fd, data, n, offset); });
}
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
  beat(); // a rank that moves bytes of files gets on
  return give(Call::pwrite, data, bytes, [&](const void *from, size_t n) {
    ssize_t written = ::pwrite(fd, from, n, offset);
    if (written > 0 && record::active())
      record::write(fd, offset, from, static_cast<size_t>(written));
    return written;
  });
}
int fsync(int fd) {
  beat(); // a rank that moves bytes of files gets on
  return change(Call::fsync, [&] { return ::fsync(fd); }, [&] { record::sync(fd); });
}
int ftruncate(int fd, off_t bytes) {
  return change(
      Call::ftruncate, [&] { return ::ftruncate(fd, bytes); }, [&] { record::truncate(fd, bytes); });
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  return change(
      Call::fallocate, [&] { return ::fallocate(fd, mode, offset, bytes); },
      [&] { record::allocate(fd, offset + bytes); });
}
int fstat(int fd, struct stat *info) {
  return plain(Call::fstat, [&] { return ::fstat(fd, info); });
}
int fstatvfs(int fd, struct statvfs *info) {
  return plain(Call::fstatvfs, [&] { return ::fstatvfs(fd, info); });
}
int stat(const char *path, struct stat *info) {
  return plain(Call::stat, [&] { return ::stat(path, info); });
}
int flock(int fd, int operation) {
  return change(Call::flock, [&] { return ::flock(fd, operation); }, [] {});
}

int rename(const char *from, const char *to) {
  return change(Call::rename, [&] { return ::rename(from, to); }, [&] { record::name("rename", from, to); });
}
int exchange(const char *one, const char *other) {
  return change(
      Call::exchange,
      [&] {
        return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE));
      },
      [&] { record::name("exchange", one, other); });
}
int unlink(const char *path) {
  return change(Call::unlink, [&] { return ::unlink(path); }, [&] { record::name("unlink", path); });
}
int mkdir(const char *path, mode_t mode) {
  return change(Call::mkdir, [&] { return ::mkdir(path, mode); }, [&] { record::mkdir(path); });
}
int rmdir(const char *path) {
  return change(Call::rmdir, [&] { return ::rmdir(path); }, [&] { record::name("rmdir", path); });
}
int syncFolder(const char *path) {
  int folder = -1;
  return change(
      Call::syncFolder,
      [&] {
        folder = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
          return -1;
        int result = ::fsync(folder), error = errno;
        if (result == 0 && record::active())
          record::sync(folder);
        ::close(folder);
        errno = error;
        return result;
      },
      [] {});
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  Strike strike = before(Call::mmap);
  if (strike.ends())
    return MAP_FAILED;
  if (strike.flipped < 0 || fd < 0 || protection & PROT_WRITE)
    return ::mmap(address, bytes, protection, flags, fd, offset);
  // The bit is flipped in this mapping alone.
  void *mapped =
      ::mmap(address, bytes, protection | PROT_WRITE, (flags & ~MAP_SHARED) | MAP_PRIVATE, fd, offset);
  if (mapped != MAP_FAILED) {
    strike.flip(mapped, bytes);
    ::mprotect(mapped, bytes, protection);
  }
  return mapped;
}
int munmap(void *address, size_t bytes) {
  return plain(Call::munmap, [&] { return ::munmap(address, bytes); });
}
int madvise(void *address, size_t bytes, int advice) {
  return plain(Call::madvise, [&] { return ::madvise(address, bytes, advice); });
}
int memfd(const char *name, unsigned flags) {
  return plain(Call::memfd, [&] { return ::memfd_create(name, flags); });
}

int socket(int domain, int type, int protocol) {
  return plain(Call::socket, [&] { return ::socket(domain, type, protocol); });
}
int bind(int fd, const sockaddr *address, socklen_t bytes) {
  return plain(Call::bind, [&] { return ::bind(fd, address, bytes); });
}
int listen(int fd, int backlog) {
  return plain(Call::listen, [&] { return ::listen(fd, backlog); });
}
int connect(int fd, const sockaddr *address, socklen_t bytes) {
  return plain(Call::connect, [&] { return ::connect(fd, address, bytes); });
}
int accept4(int fd, sockaddr *address, socklen_t *bytes, int flags) {
  return plain(Call::accept4, [&] { return ::accept4(fd, address, bytes, flags); });
}
ssize_t send(int fd, const void *data, size_t bytes, int flags) {
  return give(Call::send, data, bytes,
              [&](const void *from, size_t n) { return ::send(fd, from, n, flags); });
}
ssize_t recv(int fd, void *data, size_t bytes, int flags) {
  return take(Call::recv, data, bytes, [&](size_t n) { return ::recv(fd, data, n, flags); });
}
ssize_t sendmsg(int fd, const msghdr *message, int flags) {
  Strike strike = before(Call::sendmsg);
  if (strike.ends())
    return strike.result();
  const iovec *first = firstPart(*message);
  if (!first || (strike.flipped < 0 && !strike.shortened))
    return ::sendmsg(fd, message, flags);
  char copy[kFlipped];
  iovec part = {copy, strike.share(std::min(first->iov_len, kFlipped))};
  std::memcpy(copy, first->iov_base, part.iov_len);
  strike.flip(copy, part.iov_len);
  msghdr changed = *message;
  changed.msg_iov = &part;
  changed.msg_iovlen = 1;
  return ::sendmsg(fd, &changed, flags);
}
ssize_t recvmsg(int fd, msghdr *message, int flags) {
  Strike strike = before(Call::recvmsg);
  if (strike.ends())
    return strike.result();
  const iovec *first = firstPart(*message);
  if (!first || (strike.flipped < 0 && !strike.shortened))
    return ::recvmsg(fd, message, flags);
  iovec part = {first->iov_base, strike.share(first->iov_len)};
  msghdr changed = *message;
  changed.msg_iov = &part;
  changed.msg_iovlen = 1;
  ssize_t got = ::recvmsg(fd, &changed, flags);
  changed.msg_iov = message->msg_iov;
  changed.msg_iovlen = message->msg_iovlen;
  *message = changed;
  if (got > 0)
    strike.flip(part.iov_base, static_cast<size_t>(got));
  return got;
}
int poll(pollfd *entries, nfds_t count, int milliseconds) {
  return plain(Call::poll, [&] { return ::poll(entries, count, milliseconds); });
}
int epoll_wait(int fd, epoll_event *events, int most, int milliseconds) {
  return plain(Call::epoll_wait, [&] { return ::epoll_wait(fd, events, most, milliseconds); });
}

pid_t fork() {
  return plain(Call::fork, [] { return ::fork(); });
}
int pipe2(int ends[2], int flags) {
  return plain(Call::pipe2, [&] { return ::pipe2(ends, flags); });
}

Clock::time_point now() { return Clock::now(); }

} // namespace dsopt::runtime::sys
