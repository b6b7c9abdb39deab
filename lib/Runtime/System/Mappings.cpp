//===- Mappings.cpp - names the mapped file that cannot be read ------------===//
//
// The handler looks the address up in a list that only grows: entries are made and
// filled before they are linked, and forgotten ones are filled anew.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Runtime/Mappings.h"
#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

#include <unistd.h>

namespace dsopt::runtime {
namespace {

struct Entry {
  std::atomic<uintptr_t> begin{0}; ///< 0: forgotten
  std::atomic<size_t> bytes{0};
  char path[1024] = ""; ///< in the entry: a stream maps a file each step
  dev_t device = 0;     ///< with `inode` and under `changing`: which file, if it is looked after
  ino_t inode = 0;
  Entry *next = nullptr;
};

std::atomic<Entry *> entries{nullptr};
std::mutex changing;

constexpr int kStatus = 2;
int reportTo = STDERR_FILENO;
char before[64], endOfReport = '\n';

const Entry *find(uintptr_t address) {
  for (const Entry *entry = entries.load(); entry; entry = entry->next)
    if (uintptr_t begin = entry->begin.load(); begin && address - begin < entry->bytes.load())
      return entry;
  return nullptr;
}

/// Async-signal-safe text of limited length.
struct Text {
  char data[1024];
  size_t size = 0;
  void add(const char *text) {
    size_t length = std::min(std::strlen(text), sizeof data - 1 - size);
    std::memcpy(data + size, text, length);
    size += length;
  }
  void add(uint64_t number) {
    char digits[21];
    char *first = digits + sizeof digits - 1;
    *first = 0;
    do
      *--first = static_cast<char>('0' + number % 10);
    while (number /= 10);
    add(first);
  }
};

void onBusError(int signal, siginfo_t *info, void *) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const Entry *entry = info->si_code > 0 ? find(address) : nullptr;
  if (!entry) {
    // Not a file's: it ends as it would have.
    std::signal(signal, SIG_DFL);
    if (info->si_code <= 0)
      raise(signal);
    return;
  }
  Text text;
  text.add(before);
  text.add(entry->path);
  text.add(": cannot be read any more from byte ");
  text.add(static_cast<uint64_t>(address - entry->begin.load()));
  text.add(" on: the file was truncated while the run used it, or its disk fails");
  text.data[text.size++] = endOfReport;
  [[maybe_unused]] ssize_t written = write(reportTo, text.data, text.size);
  _exit(kStatus);
}

} // namespace

void registerMapping(const void *address, size_t bytes, const std::string &path, const struct stat *file) {
  if (!address || bytes == 0)
    return;
  std::lock_guard<std::mutex> lock(changing);
  Entry *entry = entries.load();
  while (entry && entry->begin.load())
    entry = entry->next;
  bool fresh = !entry;
  if (fresh)
    entry = new Entry();
  entry->bytes = bytes;
  entry->path[path.copy(entry->path, sizeof entry->path - 1)] = 0;
  entry->device = file ? file->st_dev : 0;
  entry->inode = file ? file->st_ino : 0;
  entry->begin = reinterpret_cast<uintptr_t>(address);
  if (fresh) {
    entry->next = entries.load();
    entries = entry;
  }
}

void forgetMapping(const void *address) {
  std::lock_guard<std::mutex> lock(changing);
  for (Entry *entry = entries.load(); entry; entry = entry->next)
    if (entry->begin.load() == reinterpret_cast<uintptr_t>(address) && address)
      entry->begin = 0;
}

void checkMappings() {
  std::lock_guard<std::mutex> lock(changing);
  for (Entry *entry = entries.load(); entry; entry = entry->next) {
    struct stat now{};
    // Another file may have the name by now: of what is mapped nothing is known then.
    if (!entry->begin.load() || !entry->inode || sys::stat(entry->path, &now) != 0 ||
        now.st_dev != entry->device || now.st_ino != entry->inode)
      continue;
    if (size_t bytes = entry->bytes.load(); static_cast<size_t>(now.st_size) < bytes)
      throw Error(StatusFailure, std::string(entry->path) + ": was truncated while the run used it, from " +
                                     std::to_string(bytes) + " to " + std::to_string(now.st_size) +
                                     " bytes: what was read since may be zeros");
  }
}

void reportLostMappings(int fd, const std::string &text, char end) {
  reportTo = fd;
  endOfReport = end;
  before[text.copy(before, sizeof before - 1)] = 0;
  struct sigaction action{};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

} // namespace dsopt::runtime
