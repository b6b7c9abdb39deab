//===- FuzzMain.cpp - runs a fuzzer on inputs that follow from a seed ------===//
//
// usage: FuzzX [-seed=N] [-cases=N] [-seconds=N] [-case=N]. Input number n of a seed
// is the same wherever it is made; what ends the process says its number, and -case=N
// makes it alone.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>

#include <sys/time.h>

using namespace dsopt::test;

/// What knows more of its inputs than that they are bytes, as libFuzzer calls it.
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most,
                                                                unsigned random);

/// Of a fuzzer that makes all of its inputs out of nothing.
__attribute__((weak)) std::vector<std::string> dsopt::test::fuzzSeeds() { return {""}; }

namespace {
uint64_t seed = 1;
volatile uint64_t current = 0;
const char *program = "";

/// Says which input it was, however the process ends.
void sayWhich() {
  char text[256];
  int length = std::snprintf(text, sizeof text, "\nthe input was: %s -seed=%llu -case=%llu\n", program,
                             static_cast<unsigned long long>(seed), static_cast<unsigned long long>(current));
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text, length);
}

void onSignal(int signal) {
  sayWhich();
  std::signal(signal, SIG_DFL);
  raise(signal);
}

/// Ends an input that takes for ever: by processor time, for the machine may have other work, and by the
/// clock where it waits.
void limitInput() {
  itimerval limit = {{}, {60, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(600);
}

/// Bytes of an input.
constexpr size_t kMost = 1 << 16;

class Mutator {
public:
  Mutator(const std::vector<std::string> &seeds, uint64_t number) : seeds(seeds), random(mix(number)) {}

  std::string make() {
    std::string text = seeds[below(seeds.size())];
    for (size_t changes = 1 + below(5); changes > 0; --changes)
      if (LLVMFuzzerCustomMutator && below(16))
        changeByMeaning(text);
      else
        change(text);
    return text;
  }

private:
  static uint64_t mix(uint64_t number) {
    uint64_t x = seed * 0x9e3779b97f4a7c15 + number;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  size_t below(size_t bound) { return bound ? random() % bound : 0; }
  /// Numbers at which something changes.
  uint64_t number() {
    uint64_t power = uint64_t(1) << below(64);
    switch (below(5)) {
    case 0:
      return power;
    case 1:
      return power - 1;
    case 2:
      return -power;
    case 3:
      return below(300);
    default:
      return random();
    }
  }

  void changeByMeaning(std::string &text) {
    size_t size = text.size();
    text.resize(kMost);
    text.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t *>(text.data()), size, kMost, random()));
  }

  void change(std::string &text) {
    size_t size = text.size(), at = below(size + 1), count = below(std::min<size_t>(size - at, 64) + 1);
    switch (below(10)) {
    case 0:
      if (at < size)
        text[at] ^= static_cast<char>(1 << below(8));
      break;
    case 1:
      if (at < size)
        text[at] = static_cast<char>(random());
      break;
    case 2: { // a little-endian number
      uint64_t value = number();
      size_t width = std::min<size_t>(size_t(1) << below(4), size - at);
      std::memcpy(text.data() + at, &value, width);
      break;
    }
    case 3: { // a number as text, in place of one
      size_t digit = text.find_first_of("0123456789", at);
      if (digit == std::string::npos)
        break;
      size_t end = std::min(text.find_first_not_of("0123456789", digit), size);
      text.replace(digit, end - digit,
                   below(2) ? std::to_string(number()) : std::to_string(int64_t(number())));
      break;
    }
    case 4:
      text.erase(at, count);
      break;
    case 5: // again
      text.insert(at, text.substr(at, count));
      break;
    case 6: { // of another
      const std::string &other = seeds[below(seeds.size())];
      size_t from = below(other.size() + 1);
      text.replace(at, count, other, from, below(64));
      break;
    }
    case 7: {
      static const char *const words[] = {"{}",    "[]",   "null", "\"\"",     "-1",
                                          "1e400", "true", "\xff", "[[[[[[[[", "\0"};
      text.replace(at, below(2) ? count : 0, words[below(std::size(words))]);
      break;
    }
    case 8:
      text.resize(at);
      break;
    default: // two places change their contents
      if (size_t other = below(size + 1); other + count <= size && at + count <= size)
        std::swap_ranges(text.begin() + at, text.begin() + at + count, text.begin() + other);
    }
    if (text.size() > kMost)
      text.resize(kMost);
  }

  const std::vector<std::string> &seeds;
  std::mt19937_64 random;
};

bool runInput(const std::string &input) {
  // A copy of the exact size: a sanitizer sees what is read after it.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  try {
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    return true;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "thrown: %s", error.what());
  } catch (...) {
    std::fprintf(stderr, "something was thrown that is no exception");
  }
  sayWhich();
  return false;
}
} // namespace

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_set_death_callback(void (*callback)());
#endif

int main(int argc, char **argv) {
  uint64_t cases = 10000, first = 0, seconds = UINT64_MAX;
  program = argv[0];
  for (int i = 1; i < argc; ++i) {
    auto take = [&](const char *name, uint64_t &value) {
      if (std::strncmp(argv[i], name, std::strlen(name)) == 0)
        value = std::strtoull(argv[i] + std::strlen(name), nullptr, 10);
    };
    take("-seed=", seed);
    take("-cases=", cases);
    take("-seconds=", seconds);
    if (std::strncmp(argv[i], "-case=", 6) == 0) {
      take("-case=", first);
      cases = 1;
    }
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(sayWhich);
#else
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    std::signal(signal, onSignal);
#endif
  for (int signal : {SIGABRT, SIGALRM, SIGPROF})
    std::signal(signal, onSignal);
  std::vector<std::string> seeds = fuzzSeeds();
  auto begin = std::chrono::steady_clock::now();
  auto since = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  uint64_t done = 0;
  for (; done < cases && since() < static_cast<double>(seconds); ++done) {
    limitInput();
    current = first + done;
    // The first are the seeds themselves: they have to be good for something.
    if (!runInput(current < seeds.size() ? seeds[current] : Mutator(seeds, current).make()))
      return 1;
  }
  std::printf("%s: %llu inputs of seed %llu in %.1f s\n",
              std::strrchr(program, '/') ? std::strrchr(program, '/') + 1 : program,
              static_cast<unsigned long long>(done), static_cast<unsigned long long>(seed), since());
}
