//===- Communicator.h - a communicator and what it has to do ----*- C++ -*-===//
//
// An operation becomes a node of its stream. Once the stream comes to it, and the
// communicator's operation before it is done, its parts go to the peers; it is ready when
// theirs have come and they have taken its own. What a peer sends has to be what this rank
// expects. After an error nothing gets on until the communicator is aborted.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_SOFTDEVICE_NCCL_COMMUNICATOR_H
#define DSOPT_TEST_SOFTDEVICE_NCCL_COMMUNICATOR_H

#include "Api.h"
#include "Driver/State.h"
#include "Wire.h"

#include <memory>

namespace softdevice {

/// A call that fails, with what ncclGetLastError says.
struct NcclError {
  ncclResult_t result;
  std::string text;
};

/// A part that goes to a peer or comes from one; a peer that is this rank itself is both.
struct Part {
  int peer;
  Header::Kind kind;
  uint64_t address;
  size_t count;
  ncclDataType_t type;
};

/// Received parts that are added, each to those before it.
struct Sum {
  uint64_t address;
  size_t count;
  ncclDataType_t type;
  size_t firstPart, parts; ///< of the receives
};

struct Operation {
  std::string what;
  CUstream stream;
  std::vector<Part> sends, receives; ///< what is added comes to no address
  std::vector<Sum> sums;
  std::shared_ptr<Operation> before; ///< of the communicator, until that is done
  std::vector<std::string> arrived;  ///< of the receives
  std::vector<std::string> kept;     ///< for this rank itself
  bool hasBegun = false, isDone = false;
};

/// What it is that a process has of a communicator; the nodes of its operations keep it.
class Communicator : public std::enable_shared_from_this<Communicator> {
public:
  Communicator(const ncclUniqueId &id, int rank, int size, const CUuuid &device);

  /// ncclSuccess, ncclInProgress or what went wrong.
  ncclResult_t state();
  /// Takes an operation, at once or when it is asked for its state later.
  ncclResult_t issue(std::shared_ptr<Operation> operation);
  void abort();

  int rank, size;
  bool isBlocking = false, isFinalized = false;

private:
  void join();
  void submit();
  bool isReady(Operation &operation);
  void begin(Operation &operation);
  void receive(Operation &operation);
  Footprint finish(Operation &operation);
  void fail(ncclResult_t result, const std::string &text);
  std::string describe(const Header &header) const;

  std::unique_ptr<Wire> wire; ///< until it is aborted
  std::string device;
  std::vector<std::shared_ptr<Operation>> issued; ///< that are not on their streams yet
  std::shared_ptr<Operation> last;
  std::vector<int64_t> sent; ///< by peer
  ncclResult_t error = ncclSuccess;
  bool hasJoined = false, isAborted = false;
};

std::string &lastNcclError();
size_t bytesOf(ncclDataType_t type);

} // namespace softdevice

struct ncclComm {
  std::shared_ptr<softdevice::Communicator> communicator;
};

#endif // DSOPT_TEST_SOFTDEVICE_NCCL_COMMUNICATOR_H
