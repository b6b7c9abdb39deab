//===- DeviceSums.cpp - norms that a device takes of parameters ------------===//

#include "Core/DeviceSums.h"
#include "Core/TrustRatios.h"
#include "Kernels/CUDA/Routines.h"

#include <algorithm>

namespace dsopt::runtime {

std::vector<cuda::SquarePiece> piecesOnDevice(const SquareSums &sums, size_t range, Element type,
                                              const cuda::Memory &memory) {
  std::vector<cuda::SquarePiece> pieces;
  sums.eachPiece(range, [&](const void *values, int64_t elements, int64_t parameter) {
    const char *begin = memory.onDevice(values);
    cuda::SquarePiece *last = pieces.empty() ? nullptr : &pieces.back();
    // Groups of elements begin where they did.
    if (last && last->parameter == parameter && last->elements % cuda::kSquareElements == 0 &&
        begin == static_cast<const char *>(last->values) + last->elements * bytesOf(type))
      last->elements += elements;
    else
      pieces.push_back({begin, elements, parameter, 0});
  });
  return pieces;
}

/// Behind the freeze of 1-bit LAMB: the quotients are first, and with decay second.
void TrustRatios::findMoments(size_t number, const DeviceRank &device) {
  Direction &direction = directions[number];
  const std::vector<int64_t> &parameters = *direction.parameters;
  const LambCoefficients::Operands &operands = coefficients->operands(number);
  auto at = [&](const float *values, int64_t first) {
    return reinterpret_cast<const float *>(device.memory.onDevice(values)) + first;
  };
  for (cuda::SquarePiece piece : piecesOnDevice(*direction.steps, 0, Element::F32, device.memory)) {
    int64_t first = static_cast<const float *>(piece.values) - at(operands.along, 0),
            place =
                std::lower_bound(parameters.begin(), parameters.end(), piece.parameter) - parameters.begin();
    direction.moments.push_back({at(operands.momentum, first), at(operands.variance, first),
                                 at(operands.fresh, first), piece.elements, 2 * place});
    piece.sum = 2 * place + 1;
    if (coefficients->decays)
      direction.pieces.push_back(piece);
  }
}

void TrustRatios::measure(size_t number, DeviceRank &device, cuda::StreamHandle stream) {
  Direction &direction = directions[number];
  const std::vector<int64_t> &parameters = *direction.parameters;
  if (isFrozen() && direction.moments.empty())
    findMoments(number, device);
  if (!isFrozen() && direction.pieces.empty())
    for (int64_t which : {0, 1})
      for (cuda::SquarePiece piece :
           piecesOnDevice(*(which ? direction.steps : direction.weights), 0, Element::F32, device.memory)) {
        auto place = std::lower_bound(parameters.begin(), parameters.end(), piece.parameter);
        piece.sum = 2 * (place - parameters.begin()) + which;
        direction.pieces.push_back(piece);
      }
  auto *record = reinterpret_cast<int64_t *>(device.memory.onDevice(direction.record));
  auto sums = 2 * static_cast<int64_t>(parameters.size());
  cuda::squareSums(device.device, stream, direction.pieces.data(), direction.pieces.size(), DSOPT_F32,
                   /*record=*/nullptr, record, sums);
  if (isFrozen())
    cuda::lambSums(device.device, stream, direction.moments.data(), direction.moments.size(),
                   coefficients->eps, record, sums);
}

void TrustRatios::writeTables(const Action &action, size_t begin, size_t end, DeviceRank &device,
                              cuda::StreamHandle stream) const {
  auto onDevice = [&](const float *mirrored) {
    return reinterpret_cast<float *>(device.memory.onDevice(mirrored));
  };
  if (begin == end)
    return;
  std::vector<cuda::TrustTable> written;
  for (size_t i = begin; i < end; ++i)
    written.push_back({onDevice(tables[i].group), onDevice(tables[i].onDevice),
                       &places.at(tables[i].parameter).at, rootOf(tables[i].parameter),
                       tables[i].numbers ? onDevice(tables[i].numbers) : nullptr});
  // Of the parameters of one bucket.
  int64_t words = places.at(tables[begin].parameter).words;
  cuda::writeTrustTables(device.device, stream, written.data(), written.size(), rule(),
                         reinterpret_cast<const int64_t *>(device.memory.onDevice(addresses.at(action.temp))),
                         ranksOf(action, words), words,
                         reinterpret_cast<int64_t *>(device.memory.onDevice(scratch)));
}

} // namespace dsopt::runtime
