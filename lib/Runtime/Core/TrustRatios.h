//===- TrustRatios.h - updates by the norms of whole parameters -*- C++ -*-===//
//
// An update of a rule such as LAMB or Adafactor is two actions. The first one, a direction,
// leaves where the step goes in the gradient's place; here the squares of it and
// of the parameter are summed exactly, by parameter, into a record. The second
// one finds the records of all ranks and takes each parameter's ratio of norms
// from them, so that how parameters were cut changes no bit.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_CORE_TRUSTRATIOS_H
#define DSOPT_LIB_RUNTIME_CORE_TRUSTRATIOS_H

#include "Core/Addresses.h"
#include "Core/DeviceRank.h"
#include "Core/LambCoefficients.h"
#include "Core/SquareSums.h"
#include "Kernels/CUDA/SquarePiece.h"
#include "dsopt/Runtime/Scalars.h"

#include <array>
#include <deque>
#include <map>
#include <memory>

namespace dsopt::runtime {

class TrustRatios {
public:
  TrustRatios(const Program &program, const Position &position, const Addresses &addresses, ThreadPool &pool)
      : program(program), position(position), addresses(addresses), pool(pool) {}

  /// Of a rule that keeps coefficients by parameter, before all else.
  void keepCoefficients(const RunOptions &options, bool isFrozen) {
    coefficients = std::make_unique<LambCoefficients>(program, addresses, options, pool, isFrozen);
  }
  /// Prepares an action that is a direction; `first` is its first element in the bucket. Returns its number.
  size_t addDirection(const Action &action, int64_t first);
  /// Sums what direction number `direction` has made.
  void measure(size_t direction);

  /// Prepares a launch of an update for elements of a part of one parameter: returns its table of scalars,
  /// the one of `group` but for the ratio. It lies at `table`, which a device then writes, or if that is null
  /// here.
  float *addLaunch(const float *group, int64_t parameter, const Part &part, float *table);
  /// So many tables of scalars are room for the record of one parameter.
  static constexpr int64_t kScratchTables = kTrustWords * sizeof(int64_t) / (DSOPT_SCALARS * sizeof(float));
  /// What a device needs to write tables: room for the record of one parameter.
  void setScratch(void *mirrored) { scratch = mirrored; }
  bool hasScratch() const { return scratch; }
  size_t launches() const { return tables.size(); }
  /// Fills the tables of launches [begin, end), of the update `action`.
  void writeTables(const Action &action, size_t begin, size_t end);

  /// The same two on a device's stream. Sums and ratios have the host's bits, and the host waits for neither.
  void measure(size_t direction, DeviceRank &device, cuda::StreamHandle stream);
  void writeTables(const Action &action, size_t begin, size_t end, DeviceRank &device,
                   cuda::StreamHandle stream) const;

private:
  struct Direction {
    std::unique_ptr<SquareSums> weights, steps;
    const std::vector<int64_t> *parameters;
    int64_t *record;
    bool adds;                             ///< to what earlier parts of the bucket have
    std::vector<cuda::SquarePiece> pieces; ///< on a device, once it was measured there
    std::vector<cuda::LambPiece> moments;
  };
  struct Table {
    const float *group;
    int64_t parameter;
    float *onDevice; ///< its mirror; null: `values`
    float *numbers;  ///< coefficients of the part; null of rules that keep none
    std::array<float, DSOPT_SCALARS> values;
  };
  void findMoments(size_t direction, const DeviceRank &device);
  /// Where a parameter's sums lie: so many words from the start of each rank's record.
  struct Places {
    int64_t words = 0; ///< of a rank's record
    std::vector<int64_t> at;
  };
  /// So many ranks have a record in what `action` reads.
  int64_t ranksOf(const Action &action, int64_t words) const;
  float ratio(const Table &table, const Action &action) const;
  bool isFrozen() const { return coefficients && coefficients->rule.isFrozen; }
  /// LAMB's own has no coefficients.
  LambRule rule() const;
  /// Of a rule whose steps are as long as the root of the parameter's mean square, the root of how many
  /// elements that is the mean of; of others 0.
  double rootOf(int64_t parameter) const;

  const Program &program;
  const Position &position;
  const Addresses &addresses;
  ThreadPool &pool;
  std::vector<Direction> directions;
  std::map<int64_t, std::vector<int64_t>> held; ///< by bucket: its parameters, as its record has them
  std::map<int64_t, Places> places;             ///< by parameter
  std::deque<Table> tables;
  void *scratch = nullptr;                        ///< of a device
  std::unique_ptr<LambCoefficients> coefficients; ///< null of rules that keep none
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_TRUSTRATIOS_H
