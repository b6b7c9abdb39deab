//===- Record.h - what a run changes in files and folders -------*- C++ -*-===//
//
// "record=FILE" of DSOPT_FAULT: one line for each change that was made, in the order in
// which they were, of all ranks alike. From it a test makes every state in which a power
// cut may leave the disk. INODE is a file's or folder's number, paths are absolute:
//
//   create INODE PATH        mkdir INODE PATH        unlink PATH        rmdir PATH
//   rename FROM -> TO        exchange ONE -> OTHER
//   write INODE OFFSET BYTES, with the bytes behind the line
//   truncate INODE BYTES     allocate INODE BYTES (at least so many)    fsync INODE
//   point NAME RANK STEP     the run has come to a point
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_SYSTEM_RECORD_H
#define DSOPT_LIB_RUNTIME_SYSTEM_RECORD_H

#include <cstddef>

#include <sys/types.h>

namespace dsopt::runtime::fault::record {

void start(int fd);
void stop();
bool active();

/// Each is called after the change was made, and keeps errno.
void create(const char *path, int fd);
void mkdir(const char *path);
void write(int fd, off_t offset, const void *data, size_t bytes);
/// Where the descriptor's own offset is after the bytes.
void writeBefore(int fd, const void *data, size_t bytes);
void truncate(int fd, off_t bytes);
void allocate(int fd, off_t bytes);
void sync(int fd);
void name(const char *change, const char *path, const char *other = nullptr);
void point(const char *name, int rank, long step);

} // namespace dsopt::runtime::fault::record

#endif // DSOPT_LIB_RUNTIME_SYSTEM_RECORD_H
