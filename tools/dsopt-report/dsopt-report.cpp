//===- dsopt-report.cpp - logs of runs as one HTML page -------------------===//
//
// `dsopt-report RUN.jsonl [MORE.jsonl ...] [-o FILE.html]`: everything a run wrote
// with -log as one page that needs no network; several runs in the same figures.
//
//===----------------------------------------------------------------------===//

#include "Page.h"
#include "dsopt/Runtime/AtomicFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

using namespace dsopt::report;
namespace runtime = dsopt::runtime;

static const char *const kUsage =
    "usage: dsopt-report RUN.jsonl [MORE.jsonl ...] [-o FILE.html]\n\n"
    "Writes one HTML page about what runs wrote with -log: loss, learning rate, throughput, memory,\n"
    "evaluations, plan. It needs no network. Default of -o: the first log's name, ending in .html.\n";

static std::string fileName(const std::string &path) { return path.substr(path.rfind('/') + 1); }

static std::string withoutEnding(const std::string &path) {
  size_t dot = path.rfind('.');
  return dot == std::string::npos || path.find('/', dot) != std::string::npos ? path : path.substr(0, dot);
}

/// The shortest names that tell the logs apart: of the files, else their paths.
static void nameLogs(std::vector<Log> &logs) {
  for (Log &log : logs) {
    log.name = withoutEnding(fileName(log.path));
    for (const Log &other : logs)
      if (&other != &log && fileName(other.path) == fileName(log.path))
        log.name = log.path;
  }
}

static int run(int argc, char **argv) {
  std::vector<Log> logs;
  std::vector<std::string> paths;
  std::string output;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    std::string name = word.size() > 1 && word[0] == '-' ? word.substr(word[1] == '-' ? 2 : 1) : "";
    if (name == "help" || name == "h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (name == "version") {
      std::printf("dsopt-report " DSOPT_VERSION "\n");
      return 0;
    }
    if (name == "o" && i + 1 < argc)
      output = argv[++i];
    else if (name.rfind("o=", 0) == 0)
      output = name.substr(2);
    else if (!name.empty())
      throw std::runtime_error("unknown option " + word + "; expected -o FILE.html");
    else
      paths.push_back(word);
  }
  if (paths.empty())
    throw std::runtime_error(
        "no log is given; usage: dsopt-report RUN.jsonl [MORE.jsonl ...] [-o FILE.html]");
  for (const std::string &path : paths)
    logs.push_back(readLog(path));
  nameLogs(logs);
  if (output.empty())
    output = withoutEnding(paths[0]) + ".html";
  for (const std::string &path : paths)
    if (path == output)
      throw std::runtime_error("-o " + output + " is one of the logs");
  runtime::checkWritable(output, "o");
  std::string text = page(logs);
  runtime::AtomicFile file(output);
  file.append(text.data(), text.size());
  file.commit();
  std::printf("wrote %s\n", output.c_str());
  return 0;
}

int main(int argc, char **argv) {
  auto fail = [](const std::string &what, int status) {
    std::fprintf(stderr, "dsopt-report: error: %s\n", what.c_str());
    return status;
  };
  try {
    int status = run(argc, argv);
    if (std::fflush(stdout) != 0)
      return fail(std::string("standard output: writing failed: ") + std::strerror(errno),
                  runtime::StatusFailure);
    return status;
  } catch (const runtime::Error &error) {
    return fail(error.what(), error.status);
  } catch (const std::exception &error) {
    return fail(error.what(), runtime::StatusInput);
  }
}
