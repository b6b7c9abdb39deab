//===- dsopt-report.cpp - logs of runs as one HTML page -------------------===//
//
// `dsopt-report RUN.jsonl [MORE.jsonl ...] [-o FILE.html]`: everything a run wrote
// with -log as one page that needs no network; several runs in the same figures.
// `dsopt-report -serve[=PORT] RUN.jsonl`: the same on loopback, while the run goes on.
//
//===----------------------------------------------------------------------===//

#include "Page.h"
#include "Serve.h"
#include "dsopt/Runtime/AtomicFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

using namespace dsopt::report;
namespace runtime = dsopt::runtime;

static const char *const kUsage =
    "usage: dsopt-report RUN.jsonl [MORE.jsonl ...] [-o FILE.html]\n"
    "       dsopt-report -serve[=PORT] RUN.jsonl [MORE.jsonl ...]\n\n"
    "Writes one HTML page about what runs wrote with -log: loss, learning rate, throughput, memory,\n"
    "evaluations, plan. It needs no network. Default of -o: the first log's name, ending in .html.\n"
    "-serve shows the same at http://127.0.0.1:PORT (default: a free one), where it follows the runs, until "
    "SIGINT.\n";

static int portOf(const std::string &text) {
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(text) < 1 || std::stoi(text) > 65535)
    throw std::runtime_error("-serve=" + text + ": expected a port, 1 to 65535");
  return std::stoi(text);
}

static int run(int argc, char **argv) {
  std::vector<std::string> paths;
  std::string output;
  std::optional<int> port;
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
    else if (name == "serve")
      port = 0;
    else if (name.rfind("serve=", 0) == 0)
      port = portOf(name.substr(6));
    else if (!name.empty())
      throw std::runtime_error("unknown option " + word + "; expected -o FILE.html or -serve[=PORT]");
    else
      paths.push_back(word);
  }
  if (paths.empty())
    throw std::runtime_error(
        "no log is given; usage: dsopt-report RUN.jsonl [MORE.jsonl ...] [-o FILE.html]");
  if (port && !output.empty())
    throw std::runtime_error("-o " + output + " is of no use with -serve, which writes no file");
  if (port) {
    serve(paths, *port);
    return 0;
  }
  std::vector<Log> logs = readLogs(paths);
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
