//===- MappedFile.cpp - a file of data in memory --------------------------===//

#include "MappedFile.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Fault.h"
#include "dsopt/Runtime/Mappings.h"
#include "dsopt/Runtime/System.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>

using namespace dsopt::runtime;

int dsopt::runtime::statusOf(int error) {
  for (int system : {EIO, EMFILE, ENFILE, ENOMEM, ESTALE, ETIMEDOUT})
    if (error == system)
      return StatusFailure;
  return StatusInput;
}

MappedFile::MappedFile(const std::string &path, const std::string &expected) {
  fault::point("load.data");
  // A FIFO that nobody writes would not open.
  int fd = sys::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  struct stat info;
  int error = fd < 0 || sys::fstat(fd, &info) != 0 ? errno : 0;
  bool isFile = !error && S_ISREG(info.st_mode);
  void *mapped = nullptr;
  if (isFile && info.st_size) {
    mapped = sys::mmap(nullptr, info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    error = mapped == MAP_FAILED ? errno : 0;
  }
  if (fd >= 0)
    sys::close(fd);
  if (error)
    throw Error(statusOf(error), path + ": cannot be read: " + std::strerror(error));
  if (!isFile)
    throw Error(StatusInput, path + ": expected " + expected + ", got a folder or device");
  bytes = static_cast<const uint8_t *>(mapped);
  count = info.st_size;
  registerMapping(bytes, count, path, &info);
}

MappedFile::~MappedFile() {
  if (!bytes)
    return;
  forgetMapping(bytes);
  sys::munmap(const_cast<uint8_t *>(bytes), count);
}
