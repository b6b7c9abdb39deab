//===- System.h - the seam between the runtime and the system ---*- C++ -*-===//
//
// Everything outside Kernels that the runtime asks of the system goes through
// these functions: files, mappings, sockets, processes, sleeping, the clock. They are
// the system's calls under its names, with its results and errno, so that a caller
// handles every failure that a real system may answer with.
//
// `DSOPT_FAULT` makes them fail on purpose (Fault.h). Without it a call costs one
// relaxed load more than the system's own.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_SYSTEM_H
#define DSOPT_RUNTIME_SYSTEM_H

#include <chrono>
#include <cstdint>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

struct epoll_event;

namespace dsopt::runtime::sys {

//===-- files ---------------------------------------------------------------===//
int open(const char *path, int flags, mode_t mode = 0666);
int close(int fd);
ssize_t read(int fd, void *data, size_t bytes);
ssize_t write(int fd, const void *data, size_t bytes);
ssize_t pread(int fd, void *data, size_t bytes, off_t offset);
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset);
int fsync(int fd);
int ftruncate(int fd, off_t bytes);
/// Reserves space; EOPNOTSUPP where the file system cannot.
int fallocate(int fd, int mode, off_t offset, off_t bytes);
int fstat(int fd, struct stat *info);
int fstatvfs(int fd, struct statvfs *info);
int stat(const char *path, struct stat *info);
int flock(int fd, int operation);

//===-- names ---------------------------------------------------------------===//
int rename(const char *from, const char *to);
/// Both names change places at once; ENOSYS or EINVAL where the file system cannot.
int exchange(const char *one, const char *other);
int unlink(const char *path);
int mkdir(const char *path, mode_t mode = 0777);
int rmdir(const char *path);
/// An open folder is synced like a file: what was made, renamed or removed in it lasts.
int syncFolder(const char *path);

//===-- memory --------------------------------------------------------------===//
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int munmap(void *address, size_t bytes);
int madvise(void *address, size_t bytes, int advice);
int memfd(const char *name, unsigned flags);

//===-- sockets -------------------------------------------------------------===//
int socket(int domain, int type, int protocol);
int bind(int fd, const sockaddr *address, socklen_t bytes);
int listen(int fd, int backlog);
int connect(int fd, const sockaddr *address, socklen_t bytes);
int accept4(int fd, sockaddr *address, socklen_t *bytes, int flags);
ssize_t send(int fd, const void *data, size_t bytes, int flags);
ssize_t recv(int fd, void *data, size_t bytes, int flags);
ssize_t sendmsg(int fd, const msghdr *message, int flags);
ssize_t recvmsg(int fd, msghdr *message, int flags);
int poll(pollfd *entries, nfds_t count, int milliseconds);
int epoll_wait(int fd, epoll_event *events, int most, int milliseconds);

//===-- processes -----------------------------------------------------------===//
pid_t fork();
int pipe2(int ends[2], int flags);

//===-- time ----------------------------------------------------------------===//
using Clock = std::chrono::steady_clock;
Clock::time_point now();

} // namespace dsopt::runtime::sys

#endif // DSOPT_RUNTIME_SYSTEM_H
