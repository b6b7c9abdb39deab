//===- Fault.cpp - what DSOPT_FAULT asks for ------------------------------===//

#include "dsopt/Runtime/Fault.h"
#include "Record.h"
#include "Strike.h"
#include "dsopt/Runtime/Error.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dsopt::runtime::fault {

std::atomic<bool> active{false};

namespace {
constexpr const char *kPoints[] = {
#define DSOPT_POINT(name) name,
#include "dsopt/Runtime/Points.def"
};

enum class Class { Plain, Change, Transfer, Mapping };
constexpr std::pair<const char *, Class> kCalls[] = {
#define DSOPT_CALL(name, kind) {#name, Class::kind},
#include "dsopt/Runtime/Points.def"
};

enum class What { Kill, Exit, Signal, Delay, Stop, Error, Short, Flip, Skip };

struct Fault {
  std::string text;            ///< as it was given
  const char *point = nullptr; ///< null: a call
  Call call{};
  std::string detail;
  bool anyRank = true, anyStep = true;
  long rank = 0, step = 0, nth = 1;
  enum { Nth, From, Every } counting = Nth;
  What what = What::Kill;
  long value = 0;
  std::atomic<long> count{0};
};

std::vector<std::unique_ptr<Fault>> faults;
std::atomic<int> currentRank{-1};
std::atomic<long> currentStep{-1};
int hits = -1;

[[noreturn]] void refuse(const std::string &item, const std::string &why) {
  throw Error(StatusInput, "DSOPT_FAULT: '" + item + "': " + why);
}

long numberIn(const std::string &item, const std::string &text, long least) {
  char *end = nullptr;
  errno = 0;
  long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end || errno || value < least)
    refuse(item, "'" + text + "' is no number from " + std::to_string(least) + " on");
  return value;
}

/// The number that a system's name stands for; 0 if there is none.
template <typename NameOf> long numbered(const std::string &name, long most, NameOf nameOf) {
  for (long number = 1; number <= most; ++number)
    if (const char *known = nameOf(number); known && name == known)
      return number;
  return 0;
}

void takePlace(Fault &fault, const std::string &place) {
  std::string name = place.substr(0, place.find('='));
  auto point = std::find_if(std::begin(kPoints), std::end(kPoints), [&](const char *p) { return name == p; });
  if (point != std::end(kPoints)) {
    fault.point = *point;
    if (name != place)
      fault.detail = place.substr(name.size() + 1);
    return;
  }
  auto call = std::find_if(std::begin(kCalls), std::end(kCalls), [&](auto &c) { return place == c.first; });
  if (call == std::end(kCalls))
    refuse(fault.text, "'" + place + "' is no point and no call of Points.def");
  fault.call = static_cast<Call>(call - std::begin(kCalls));
}

void takeCondition(Fault &fault, const std::string &condition) {
  size_t equals = condition.find('=');
  std::string key = condition.substr(0, equals);
  std::string value = equals == std::string::npos ? "" : condition.substr(equals + 1);
  if (key == "rank") {
    fault.anyRank = false;
    fault.rank = numberIn(fault.text, value, -1);
  } else if (key == "step") {
    fault.anyStep = false;
    fault.step = numberIn(fault.text, value, 0);
  } else if (key == "nth" || key == "from" || key == "every") {
    fault.nth = numberIn(fault.text, value, 1);
    fault.counting = key == "nth" ? Fault::Nth : key == "from" ? Fault::From : Fault::Every;
  } else {
    refuse(fault.text, "'" + key + "' is unknown; expected rank, step, nth, from or every");
  }
}

void takeWhat(Fault &fault, const std::string &what) {
  static constexpr struct {
    const char *name;
    What what;
    bool valued;
  } kinds[] = {{"kill", What::Kill, false},   {"exit", What::Exit, true}, {"signal", What::Signal, true},
               {"delay", What::Delay, true},  {"stop", What::Stop, true}, {"error", What::Error, true},
               {"short", What::Short, false}, {"flip", What::Flip, true}, {"skip", What::Skip, false}};
  size_t equals = what.find('=');
  std::string name = what.substr(0, equals),
              value = equals == std::string::npos ? "" : what.substr(equals + 1);
  auto kind = std::find_if(std::begin(kinds), std::end(kinds), [&](auto &k) { return name == k.name; });
  if (kind == std::end(kinds))
    refuse(fault.text, "'" + name +
                           "' is unknown; expected kill, exit, signal, delay, stop, error, short, "
                           "flip or skip");
  if (kind->valued != (equals != std::string::npos))
    refuse(fault.text, kind->valued ? "'" + name + "' needs a value" : "'" + name + "' takes no value");
  fault.what = kind->what;
  Class of = fault.point ? Class::Plain : kCalls[static_cast<size_t>(fault.call)].second;
  bool fits = true;
  switch (fault.what) {
  case What::Kill:
    break;
  case What::Exit:
  case What::Delay:
  case What::Stop:
    fault.value = numberIn(fault.text, value, 0);
    break;
  case What::Signal:
    if (!(fault.value = numbered(value, 64, sigabbrev_np)))
      refuse(fault.text, "'" + value + "' is no signal; expected a name like TERM");
    break;
  case What::Error:
    fits = !fault.point;
    if (!(fault.value = numbered(value, 4095, strerrorname_np)))
      refuse(fault.text, "'" + value + "' is no error; expected a name like ENOSPC");
    break;
  case What::Short:
    fits = of == Class::Transfer;
    break;
  case What::Flip:
    fits = of == Class::Transfer || of == Class::Mapping;
    fault.value = numberIn(fault.text, value, 0);
    break;
  case What::Skip:
    fits = of == Class::Change;
    break;
  }
  if (!fits)
    refuse(fault.text, "'" + name + "' cannot strike there");
}

int openForAppending(const std::string &item, const std::string &path) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0)
    refuse(item, path + " cannot be written: " + std::strerror(errno));
  return fd;
}

void take(const std::string &item) {
  if (item.rfind("hits=", 0) == 0) {
    hits = openForAppending(item, item.substr(5));
    return;
  }
  if (item.rfind("record=", 0) == 0) {
    record::start(openForAppending(item, item.substr(7)));
    return;
  }
  auto fault = std::make_unique<Fault>();
  fault->text = item;
  size_t colon = item.rfind(':');
  if (colon == std::string::npos)
    refuse(item, "expected PLACE[,rank=R][,step=S][,nth=N]:WHAT");
  std::string where = item.substr(0, colon);
  size_t comma = where.find(',');
  takePlace(*fault, where.substr(0, comma));
  while (comma != std::string::npos) {
    size_t begin = comma + 1;
    comma = where.find(',', begin);
    takeCondition(*fault, where.substr(begin, comma - begin));
  }
  takeWhat(*fault, item.substr(colon + 1));
  faults.push_back(std::move(fault));
}

bool due(Fault &fault) {
  if (!fault.anyRank && fault.rank != currentRank.load(std::memory_order_relaxed))
    return false;
  if (!fault.anyStep && fault.step != currentStep.load(std::memory_order_relaxed))
    return false;
  long count = fault.count.fetch_add(1, std::memory_order_relaxed) + 1;
  switch (fault.counting) {
  case Fault::Nth:
    return count == fault.nth;
  case Fault::From:
    return count >= fault.nth;
  case Fault::Every:
    return count % fault.nth == 0;
  }
  return false;
}

timespec fromMilliseconds(long ms) { return {ms / 1000, ms % 1000 * 1000000}; }

void sleepFor(long ms) {
  timespec left = fromMilliseconds(ms);
  while (nanosleep(&left, &left) != 0 && errno == EINTR)
    ;
}

/// Uses nothing that a child of many threads may not.
bool isStopped(const char *stat) {
  char text[256] = {};
  int file = open(stat, O_RDONLY | O_CLOEXEC);
  ssize_t bytes = file < 0 ? 0 : read(file, text, sizeof text - 1);
  close(file);
  const char *name = bytes > 0 ? std::strrchr(text, ')') : nullptr;
  return name && name[1] == ' ' && name[2] == 'T';
}

/// Stops this process; a child of a child, which has none of its files, continues it.
void stopFor(long ms) {
  pid_t self = getpid();
  if (ms > 0) {
    char stat[32];
    std::snprintf(stat, sizeof stat, "/proc/%d/stat", self);
    pid_t child = _Fork();
    if (child == 0) {
      if (_Fork() != 0)
        _exit(0);
      close_range(0, ~0u, 0);
      // On a busy machine it may take a while until it stands still, and going on before that is none.
      for (int left = 10000; left > 0 && !isStopped(stat); --left)
        sleepFor(1);
      sleepFor(ms);
      kill(self, SIGCONT);
      _exit(0);
    }
    if (child > 0)
      while (waitpid(child, nullptr, 0) < 0 && errno == EINTR)
        ;
  }
  kill(self, SIGSTOP);
}

void note(const Fault &fault) {
  if (hits < 0)
    return;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  char line[256];
  int bytes = std::snprintf(line, sizeof line, "%lld %d %d %ld %s\n", now.tv_sec * 1000000000ll + now.tv_nsec,
                            getpid(), currentRank.load(), currentStep.load(), fault.text.c_str());
  [[maybe_unused]] ssize_t written = ::write(hits, line, std::min<size_t>(bytes, sizeof line - 1));
}

void apply(const Fault &fault, Strike &strike) {
  int error = errno;
  note(fault);
  switch (fault.what) {
  case What::Kill:
    kill(getpid(), SIGKILL);
    break;
  case What::Exit:
    _exit(static_cast<int>(fault.value));
  case What::Signal:
    kill(getpid(), static_cast<int>(fault.value));
    break;
  case What::Delay:
    sleepFor(fault.value);
    break;
  case What::Stop:
    stopFor(fault.value);
    break;
  case What::Error:
    strike.error = static_cast<int>(fault.value);
    break;
  case What::Short:
    strike.shortened = true;
    break;
  case What::Flip:
    strike.flipped = fault.value;
    break;
  case What::Skip:
    strike.skipped = true;
    break;
  }
  errno = error;
}
} // namespace

void start() {
  if (const char *text = std::getenv("DSOPT_FAULT"))
    start(text);
}

void start(const char *text) {
  faults.clear();
  record::stop();
  if (hits >= 0)
    ::close(hits);
  hits = -1;
  active = false;
  std::string list = text;
  for (size_t begin = 0; begin < list.size();) {
    size_t end = std::min(list.find(';', begin), list.size());
    take(list.substr(begin, end - begin));
    begin = end + 1;
  }
  active = !faults.empty() || record::active();
}

void strike(const char *point, const char *detail) {
  record::point(point, currentRank, currentStep);
  Strike nothing;
  for (const std::unique_ptr<Fault> &fault : faults)
    if (fault->point && std::strcmp(fault->point, point) == 0 &&
        (fault->detail.empty() || (detail && fault->detail == detail)) && due(*fault))
      apply(*fault, nothing);
}

Strike strikeCall(Call call) {
  Strike strike;
  for (const std::unique_ptr<Fault> &fault : faults)
    if (!fault->point && fault->call == call && due(*fault))
      apply(*fault, strike);
  return strike;
}

void setRank(int rank) {
  if (currentRank.exchange(rank) != rank)
    for (const std::unique_ptr<Fault> &fault : faults)
      fault->count = 0;
}

void setStep(long step) { currentStep = step; }

bool Strike::ends() const {
  if (error)
    errno = error;
  return error || skipped;
}

void Strike::flip(void *data, size_t bytes) const {
  bytes = std::min(bytes, kFlipped);
  if (flipped >= 0 && bytes > 0) {
    size_t bit = static_cast<size_t>(flipped) % (bytes * 8);
    static_cast<unsigned char *>(data)[bit / 8] ^= 1u << bit % 8;
  }
}

} // namespace dsopt::runtime::fault
