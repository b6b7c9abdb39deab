//===- Output.cpp - what the compiler prints ------------------------------===//

#include "Output.h"

#include "dsopt/Runtime/AtomicFile.h"

#include "llvm/ADT/StringRef.h"

#include <cstdlib>
#include <optional>
#include <system_error>

#include <sys/ioctl.h>
#include <unistd.h>

using dsopt::runtime::AtomicFile;
using dsopt::runtime::Error;

namespace {
/// What is printed, into a file. LLVM's printers let no exception through: the first error is kept.
class FileStream : public llvm::raw_ostream {
public:
  explicit FileStream(AtomicFile &file) : file(file) { SetBufferSize(1 << 16); }
  ~FileStream() override { flush(); }
  void finish() {
    flush();
    if (error)
      throw *error;
    file.commit();
  }

private:
  void write_impl(const char *bytes, size_t count) override {
    try {
      if (!error)
        file.append(bytes, count);
    } catch (const Error &wrong) {
      error = wrong;
    }
  }
  uint64_t current_pos() const override { return file.position(); }

  AtomicFile &file;
  std::optional<Error> error;
};
} // namespace

void dsopt::writeText(const std::string &path, llvm::function_ref<bool(llvm::raw_ostream &)> print) {
  if (path.empty()) {
    print(llvm::outs());
    return;
  }
  AtomicFile file(path);
  FileStream out(file);
  if (print(out))
    out.finish();
}

size_t dsopt::columnsOf(const std::string &path) {
  size_t columns = 0;
  if (const char *given = std::getenv("COLUMNS"); given && !llvm::StringRef(given).getAsInteger(10, columns))
    return columns;
  winsize window{};
  return path.empty() && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}

void dsopt::finishStandardOutput() {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  std::error_code error = out.error();
  out.clear_error();
  // A reader that is gone has read all it wanted.
  if (error)
    throw Error(runtime::StatusFailure, "standard output: writing failed: " + error.message(),
                /*quiet=*/error == std::errc::broken_pipe);
}
