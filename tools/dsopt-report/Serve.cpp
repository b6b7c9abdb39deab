//===- Serve.cpp - a page of runs that go on ------------------------------===//
//
// GET / is the page, GET /data?version=N a JSON object with the figures as they are now, without them where
// they are still those of version N. One thread answers all connections; a log is read when somebody asks.
//
//===----------------------------------------------------------------------===//

#include "Serve.h"
#include "Page.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <arpa/inet.h>
#include <microhttpd.h>
#include <sys/stat.h>

using nlohmann::json;
using namespace dsopt::report;
using Clock = std::chrono::steady_clock;

namespace {
struct Destroy {
  void operator()(MHD_Response *response) const { MHD_destroy_response(response); }
};
/// Connections that send one hold it, too.
using Response = std::unique_ptr<MHD_Response, Destroy>;

Response responseOf(const std::string &text, const char *type) {
  Response response(
      MHD_create_response_from_buffer(text.size(), const_cast<char *>(text.data()), MHD_RESPMEM_MUST_COPY));
  if (!response)
    throw std::bad_alloc();
  for (auto [name, value] :
       {std::pair("Content-Type", type),
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"Content-Security-Policy",
         "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
         "base-uri 'none'; frame-ancestors 'none'"}})
    MHD_add_response_header(response.get(), name, value);
  return response;
}

class LivePage {
public:
  explicit LivePage(const std::vector<std::string> &paths) : paths(paths) {
    for (const std::string &path : paths)
      if (!std::ifstream(path))
        throw std::runtime_error("cannot read " + path + ": " + std::strerror(errno));
  }

  MHD_Response *whole() {
    update();
    if (!pageResponse)
      pageResponse = responseOf(page(logs, version), "text/html; charset=utf-8");
    return pageResponse.get();
  }

  /// `have` is the version that the asking page shows.
  MHD_Response *data(const char *have) {
    update();
    bool same = have && have == std::to_string(version);
    Response &response = same ? sameResponse : dataResponse;
    if (!response) {
      json answer = {{"version", version}, {"ended", ended}};
      if (!error.empty())
        answer["error"] = error;
      if (!same)
        answer["page"] = figures(logs);
      response = responseOf(answer.dump(-1, ' ', false, json::error_handler_t::replace), "application/json");
    }
    return response.get();
  }

private:
  /// Reads the logs again if they are not what they were, but for most of the time does not read.
  void update() {
    if (Clock::now() < next)
      return;
    std::string seen;
    for (const std::string &path : paths) {
      struct stat state{};
      if (::stat(path.c_str(), &state) == 0)
        seen += std::to_string(state.st_ino) + " " + std::to_string(state.st_size) + " " +
                std::to_string(state.st_mtim.tv_sec) + " " + std::to_string(state.st_mtim.tv_nsec) + "\n";
    }
    auto begin = Clock::now();
    if (!logs.empty() && seen == signature)
      return;
    signature = seen;
    ++version;
    error.clear();
    try {
      logs = readLogs(paths);
    } catch (const std::exception &failure) {
      // Such as a log that was just begun, or is copied away: what was read before stays.
      error = failure.what();
      if (logs.empty())
        for (const std::string &path : paths) {
          Log &log = logs.emplace_back();
          log.path = log.name = path;
        }
    }
    ended = true;
    for (const Log &log : logs)
      ended &= log.end.is_object();
    for (Response *response : {&pageResponse, &dataResponse, &sameResponse})
      response->reset();
    next = begin + std::max<Clock::duration>(std::chrono::milliseconds(500), 5 * (Clock::now() - begin));
  }

  const std::vector<std::string> paths;
  std::vector<Log> logs;
  std::string signature, error;
  bool ended = false;
  Clock::time_point next;
  /// Another server of the same port starts with another one.
  int64_t version = std::chrono::duration_cast<std::chrono::milliseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  Response pageResponse, dataResponse, sameResponse;
};

MHD_Result answer(MHD_Connection *connection, int status, MHD_Response *response) {
  return MHD_queue_response(connection, status, response);
}
MHD_Result refuse(MHD_Connection *connection, int status, const char *why) {
  return answer(connection, status, responseOf(std::string(why) + "\n", "text/plain").get());
}

/// Whether a page of this server asks: names of other hosts that lead here are not ours.
bool isOurs(const char *host) {
  std::string name = host ? host : "";
  name = name.substr(0, name.find(':'));
  return name == "127.0.0.1" || name == "localhost";
}

MHD_Result handle(void *closure, MHD_Connection *connection, const char *url, const char *method,
                  const char *, const char *, size_t *bodySize, void **state) try {
  bool get = !std::strcmp(method, MHD_HTTP_METHOD_GET) || !std::strcmp(method, MHD_HTTP_METHOD_HEAD);
  if (!get)
    return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET or HEAD");
  // The first call is about headers alone; a body is of no account.
  if (!*state || *bodySize) {
    *state = closure;
    *bodySize = 0;
    return MHD_YES;
  }
  if (!isOurs(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST)))
    return refuse(connection, MHD_HTTP_FORBIDDEN, "expected 127.0.0.1 or localhost as the host");
  auto &live = *static_cast<LivePage *>(closure);
  if (!std::strcmp(url, "/"))
    return answer(connection, MHD_HTTP_OK, live.whole());
  if (!std::strcmp(url, "/data"))
    return answer(connection, MHD_HTTP_OK,
                  live.data(MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "version")));
  return refuse(connection, MHD_HTTP_NOT_FOUND, "expected / or /data");
} catch (const std::exception &) {
  // Closes this connection; the others go on.
  return MHD_NO;
}
} // namespace

void dsopt::report::serve(const std::vector<std::string> &paths, int port) {
  LivePage live(paths);
  // Before there are threads: all of them leave the signals to this one.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  errno = 0;
  std::unique_ptr<MHD_Daemon, decltype(&MHD_stop_daemon)> daemon(
      MHD_start_daemon(MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr, handle, &live,
                       MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_LIMIT, 64u,
                       MHD_OPTION_CONNECTION_TIMEOUT, 10u, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                       size_t{16 << 10}, MHD_OPTION_END),
      MHD_stop_daemon);
  if (!daemon)
    throw std::runtime_error("cannot serve at 127.0.0.1:" + std::to_string(port) + ": " +
                             (errno ? std::strerror(errno) : "there is no server"));
  const MHD_DaemonInfo *info = MHD_get_daemon_info(daemon.get(), MHD_DAEMON_INFO_BIND_PORT);
  std::printf("serving http://127.0.0.1:%d/ until SIGINT (Ctrl-C)\n", info ? info->port : port);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
}
