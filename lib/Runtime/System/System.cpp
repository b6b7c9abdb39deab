//===- System.cpp - the system's calls ------------------------------------===//

#include "dsopt/Runtime/System.h"
#include "dsopt/Runtime/Liveness.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dsopt::runtime::sys {

int open(const char *path, int flags, mode_t mode) { return ::open(path, flags, mode); }
int close(int fd) { return ::close(fd); }
ssize_t read(int fd, void *data, size_t bytes) { return ::read(fd, data, bytes); }
ssize_t write(int fd, const void *data, size_t bytes) { return ::write(fd, data, bytes); }
// A rank that reads or writes gets on.
ssize_t pread(int fd, void *data, size_t bytes, off_t offset) {
  beat();
  return ::pread(fd, data, bytes, offset);
}
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
  beat();
  return ::pwrite(fd, data, bytes, offset);
}
int fsync(int fd) {
  beat();
  return ::fsync(fd);
}
int ftruncate(int fd, off_t bytes) { return ::ftruncate(fd, bytes); }
int fallocate(int fd, int mode, off_t offset, off_t bytes) { return ::fallocate(fd, mode, offset, bytes); }
int fstat(int fd, struct stat *info) { return ::fstat(fd, info); }
int stat(const char *path, struct stat *info) { return ::stat(path, info); }
int flock(int fd, int operation) { return ::flock(fd, operation); }

int rename(const char *from, const char *to) { return ::rename(from, to); }
int exchange(const char *one, const char *other) {
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE));
}
int unlink(const char *path) { return ::unlink(path); }
int mkdir(const char *path, mode_t mode) { return ::mkdir(path, mode); }
int rmdir(const char *path) { return ::rmdir(path); }
int syncFolder(const char *path) {
  int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return -1;
  int result = ::fsync(folder);
  int error = errno;
  ::close(folder);
  errno = error;
  return result;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return ::mmap(address, bytes, protection, flags, fd, offset);
}
int munmap(void *address, size_t bytes) { return ::munmap(address, bytes); }
int memfd(const char *name, unsigned flags) { return ::memfd_create(name, flags); }

int socket(int domain, int type, int protocol) { return ::socket(domain, type, protocol); }
int bind(int fd, const sockaddr *address, socklen_t bytes) { return ::bind(fd, address, bytes); }
int listen(int fd, int backlog) { return ::listen(fd, backlog); }
int connect(int fd, const sockaddr *address, socklen_t bytes) { return ::connect(fd, address, bytes); }
int accept4(int fd, sockaddr *address, socklen_t *bytes, int flags) {
  return ::accept4(fd, address, bytes, flags);
}
ssize_t send(int fd, const void *data, size_t bytes, int flags) { return ::send(fd, data, bytes, flags); }
ssize_t recv(int fd, void *data, size_t bytes, int flags) { return ::recv(fd, data, bytes, flags); }
ssize_t sendmsg(int fd, const msghdr *message, int flags) { return ::sendmsg(fd, message, flags); }
ssize_t recvmsg(int fd, msghdr *message, int flags) { return ::recvmsg(fd, message, flags); }
int poll(pollfd *entries, nfds_t count, int milliseconds) { return ::poll(entries, count, milliseconds); }
int epoll_wait(int fd, epoll_event *events, int most, int milliseconds) {
  return ::epoll_wait(fd, events, most, milliseconds);
}

pid_t fork() { return ::fork(); }
int pipe2(int ends[2], int flags) { return ::pipe2(ends, flags); }

Clock::time_point now() { return Clock::now(); }

} // namespace dsopt::runtime::sys
