//===- StreamSource.cpp - steps as somebody makes them --------------------===//

#include "StreamSource.h"
#include "MappedFile.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>

using namespace dsopt::runtime;

StreamSource::StreamSource(const Program &program, const std::string &folder, bool pad)
    : DataSource(program, kStreamPrefix + folder), folder(folder), pad(pad) {
  lock = sys::open((folder + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (lock < 0)
    throw Error(StatusInput, "option -data=" + name + ": cannot open " + folder +
                                 "/lock, which the stream's "
                                 "writer holds: " +
                                 std::strerror(errno));
}

StreamSource::~StreamSource() { sys::close(lock); }

int64_t StreamSource::plannedSteps(int64_t steps, int64_t epochs) {
  if (epochs > 0)
    throw Error(StatusInput, "option -epochs: a stream is read once; give -steps, or none for all of it");
  return steps > 0 ? steps : kEndless;
}

void StreamSource::shuffle(int64_t) {
  throw Error(StatusInput, "option -shuffle: a stream comes in its writer's order");
}

bool StreamSource::isThere(const std::string &file) const {
  struct stat info;
  return sys::stat(file.c_str(), &info) == 0;
}

bool StreamSource::writerLives() const {
  // Ranks that look at the same time share the lock.
  if (sys::flock(lock, LOCK_SH | LOCK_NB) != 0)
    return true;
  sys::flock(lock, LOCK_UN);
  return false;
}

DataSource::Arrival StreamSource::awaitStep(int64_t step, const std::function<bool()> &stop) {
  char number[32];
  std::snprintf(number, sizeof number, "%08lld", static_cast<long long>(step - first));
  std::string file = folder + "/step-" + number + ".npz";
  current.reset();
  sys::Clock::time_point begin = sys::now(), looked = begin;
  while (true) {
    bool ended = isThere(folder + "/end");
    if (isThere(file))
      break;
    if (isThere(folder + "/ask"))
      return Arrival::Asked;
    if (ended)
      return Arrival::Ended;
    if (stop())
      return Arrival::Stopped;
    sys::Clock::time_point now = sys::now();
    // The writer's last file may have come between the two looks.
    if (now - looked > std::chrono::milliseconds(500)) {
      looked = now;
      if (!writerLives() && !isThere(file) && !isThere(folder + "/end"))
        throw Error(StatusFailure, name + ": its writer is gone before step " + std::to_string(step));
    }
    // Each look asks the file system thrice, on which other ranks may wait, too: a step that takes long to
    // come may be seen a fiftieth of that later.
    using std::chrono::microseconds;
    auto waited = std::chrono::duration_cast<microseconds>(now - begin);
    std::this_thread::sleep_for(std::clamp(waited / 50, microseconds(100), microseconds(50000)));
  }
  current = std::make_unique<NpzSource>(program, file, pad);
  if (current->microBatches() != program.K)
    throw Error(StatusInput, file + ": holds " + std::to_string(current->microBatches()) +
                                 " micro-batches, expected the " + std::to_string(program.K) + " of a step");
  current->prepare();
  current->startAt(step, 0);
  places[step + 1] = current->place();
  places.erase(places.begin(), places.lower_bound(step));
  return Arrival::Ready;
}

std::string StreamSource::placeAfter(int64_t steps) const {
  auto found = places.find(steps);
  return found == places.end() ? "" : found->second;
}

std::optional<double> StreamSource::rateOf(int64_t step) { return current->learningRate(); }

std::vector<Request> StreamSource::requests() const {
  static const std::pair<const char *, Request::Kind> words[] = {
      {"save ", Request::Save}, {"write ", Request::Write}, {"take ", Request::Take}};
  std::string path = folder + "/ask", text;
  if (MappedFile file(path, "a file of lines"); file.size())
    text.assign(reinterpret_cast<const char *>(file.data()), file.size());
  std::vector<Request> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Request request;
    for (auto [word, kind] : words)
      if (line.compare(0, std::strlen(word), word) == 0)
        request = {kind, line.substr(std::strlen(word))};
    if (request.place.empty() || request.place.size() > PATH_MAX ||
        request.place.find('\0') != std::string::npos)
      throw Error(StatusInput, path + ": line " + std::to_string(all.size() + 1) +
                                   ": expected 'save FOLDER', 'write FILE' or 'take FILE'");
    all.push_back(std::move(request));
  }
  if (all.empty())
    throw Error(StatusInput, path + ": expected lines 'save FOLDER', 'write FILE' or 'take FILE'");
  return all;
}

void StreamSource::answer() {
  if (sys::rename((folder + "/ask").c_str(), (folder + "/answered").c_str()) != 0)
    throw Error(StatusFailure, name + ": cannot rename " + folder + "/ask: " + std::strerror(errno));
}

void StreamSource::fill(int64_t step, int64_t microBatch, int64_t input, void *target) {
  current->fill(step, microBatch, input, target);
}
