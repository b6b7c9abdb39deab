//===- SignExchange.cpp - a bucket's values as signs between ranks --------===//

#include "SignExchange.h"

#include "OneBit.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Rows that a thread takes at least.
static constexpr int64_t kMappedRows = 64;

SignExchange::SignExchange(ProgramBuilder &out, CompressionKernels &kernels, dist::BucketOp bucket,
                           StringRef memory, bool sliced)
    : out(out), kernels(kernels), bucket(bucket), sliced(sliced),
      prefix((bucket.getSymName() + ".signs.").str()), memory(memory.str()), ranks(bucket.getRanks()),
      slice(bucket.getSlice()), bytes(signBytes(slice)), sliceBytes(slice * sizeof(float)) {
  ownWorkerError = error(kWorkerError, bucket.getPadded());
  ownServerError = error(kServerError, slice);
  if (!sliced)
    return;
  ProgramBuilder::BufferTraits traits;
  traits.persistent = true;
  traits.role = BufferRole::Kept;
  traits.of = bucket.getSymName();
  traits.state = kTakes;
  ownTakes = out.ref(out.buffer(
      bucket.getSymName() + "." + kTakes,
      MemRefType::get({(int64_t)bucket.getPadded() / kWordBits}, IntegerType::get(out.context, kWordBits)),
      BufferKind::Optimizer, traits));
}

RefAttr SignExchange::scalar(dsopt_scalar index) const {
  BufferOp table = out.find(BufferRole::Scalars);
  return out.ref(FlatSymbolRefAttr::get(table.getSymNameAttr()), 0, index * sizeof(float));
}

RefAttr SignExchange::error(StringRef whose, int64_t elements) {
  ProgramBuilder::BufferTraits traits;
  traits.persistent = true;
  traits.role = BufferRole::State;
  traits.of = bucket.getSymName();
  traits.state = whose;
  traits.memory = memory;
  return out.ref(out.buffer(bucket.getSymName() + "." + whose,
                            MemRefType::get({elements}, Float32Type::get(out.context)), BufferKind::Optimizer,
                            traits));
}

RefAttr SignExchange::declare(StringRef suffix, int64_t elements, Type type, bool crosses) {
  ProgramBuilder::BufferTraits traits;
  if (!crosses)
    traits.memory = memory;
  return out.ref(out.buffer(prefix + suffix, MemRefType::get({elements}, type), BufferKind::Buffers, traits));
}

void SignExchange::map(SymbolRefAttr kernel, ArrayRef<Attribute> refs, int64_t rows) {
  out.emit<MapOp>(kernel, ArrayAttr::get(out.context, refs), rows, kMappedRows, stream);
}

void SignExchange::pack(const Unit &unit) {
  map(kernels.scale(slice / kSummed), {unit.squares, unit.counts, unit.record}, 1);
  map(kernels.pack(),
      {unit.values, unit.takes, unit.record, scalar(DSOPT_APPLY), shifted(unit.record, sizeof(float))},
      slice / kWordBits);
}

RefAttr SignExchange::toDevice(RefAttr host, RefAttr device, int64_t bytes) {
  if (memory.empty())
    return host;
  out.emit<CopyOp>(host, device, bytes, kUploadStream);
  return device;
}

void SignExchange::toHost(RefAttr device, RefAttr host, int64_t bytes) {
  if (!memory.empty())
    out.emit<CopyOp>(device, host, bytes, kDownloadStream);
}

void SignExchange::gather(RefAttr from, RefAttr to, int64_t each) {
  out.emit<GatherOp>(from, to, each, TypeAttr(), Traffic::AllGather, out.nextOrder(),
                     communicatorName(bucket.getAxes()), kCommStream);
}

void SignExchange::begin(RefAttr variance, StringRef on, bool first) {
  stream = on.str();
  int64_t words = (sliced ? slice : (int64_t)bucket.getPadded()) / kWordBits;
  if (!sliced)
    ownTakes = declare("takes", words, IntegerType::get(out.context, kWordBits));
  if (sliced && !first)
    return;
  RefAttr own = sliced ? Bucket(bucket).ownPart(ownTakes, slice / 8) : ownTakes;
  map(kernels.takes(), {variance, own}, words);
  if (sliced)
    gather(own, ownTakes, slice / 8);
}

void SignExchange::compensate(SymbolRefAttr kernel, SmallVector<Attribute> refs,
                              std::optional<BucketPart> part) {
  int64_t rows = bucket.getPadded() / kSummed;
  squares = declare("squares", rows, Float64Type::get(out.context));
  counts = declare("counts", rows, Float32Type::get(out.context));
  int64_t first = part ? part->begin / kSummed : 0;
  refs.append({shifted(squares, first * sizeof(double)), shifted(counts, first * sizeof(float))});
  map(kernel, refs, (part ? part->end / kSummed : rows) - first);
}

void SignExchange::exchange() {
  Type f32 = Float32Type::get(out.context), f64 = Float64Type::get(out.context),
       word = IntegerType::get(out.context, kWordBits);
  RefAttr sent = declare("sent", ranks * bytes / 4, word), received = sent;
  int64_t part = slice / kSummed;
  for (int64_t unit = 0; unit < ranks; ++unit)
    pack({shifted(ownWorkerError, unit * sliceBytes), shifted(ownTakes, unit * slice / 8),
          shifted(squares, unit * part * sizeof(double)), shifted(counts, unit * part * sizeof(float)),
          shifted(sent, unit * bytes)});
  std::string group = communicatorName(bucket.getAxes());
  if (ranks > 1) {
    received = declare("received", ranks * bytes / 4, word);
    RefAttr from = sent, to = received;
    if (!memory.empty()) {
      from = toDevice(sent, declare("device.sent", ranks * bytes / 4, word, /*crosses=*/true), ranks * bytes);
      to = declare("device.received", ranks * bytes / 4, word, /*crosses=*/true);
    }
    out.emit<AllToAllOp>(from, to, bytes, out.nextOrder(), group, kCommStream).setLogical(sliceBytes);
    toHost(to, received, ranks * bytes);
  }

  // Each server: the mean of its unit with what it left out before, packed.
  mean = declare("mean", ranks * bytes / 4, word);
  RefAttr ownSquares = declare("own.squares", part, f64), ownCounts = declare("own.counts", part, f32);
  SmallVector<Attribute> refs;
  for (int64_t worker = 0; worker < ranks; ++worker) {
    refs.push_back(shifted(received, worker * bytes + sizeof(float)));
    refs.push_back(shifted(received, worker * bytes));
  }
  RefAttr sliceTakes = Bucket(bucket).ownPart(ownTakes, slice / 8);
  RefAttr ownRecord = Bucket(bucket).ownPart(mean, bytes);
  refs.append({ownServerError, sliceTakes, scalar(DSOPT_APPLY), ownSquares, ownCounts});
  map(kernels.average(ranks), refs, part);
  pack({ownServerError, sliceTakes, ownSquares, ownCounts, ownRecord});
  if (ranks > 1) {
    RefAttr from = ownRecord, to = mean;
    if (!memory.empty()) {
      to = declare("device.mean", ranks * bytes / 4, word, /*crosses=*/true);
      from = toDevice(ownRecord, Bucket(bucket).ownPart(to, bytes), bytes);
    }
    out.emit<GatherOp>(from, to, bytes, TypeAttr(), Traffic::AllGather, out.nextOrder(), group, kCommStream)
        .setLogical(sliceBytes);
    toHost(to, mean, ranks * bytes);
  }
}

void SignExchange::unpack(SymbolRefAttr kernel, ArrayRef<RefAttr> wholes, ArrayRef<Attribute> rest,
                          std::optional<BucketPart> part) {
  BucketPart all{0, ranks * slice};
  auto [first, last] = part.value_or(all);
  for (int64_t unit = first / slice; unit * slice < last; ++unit) {
    int64_t begin = std::max(first, unit * slice), end = std::min(last, (unit + 1) * slice);
    int64_t word = (begin - unit * slice) / kWordBits;
    SmallVector<Attribute> refs = {shifted(mean, unit * bytes + (1 + word) * (int64_t)sizeof(float)),
                                   shifted(mean, unit * bytes), shifted(ownTakes, begin / 8)};
    for (RefAttr whole : wholes)
      refs.push_back(shifted(whole, begin * sizeof(float)));
    refs.append(rest.begin(), rest.end());
    map(kernel, refs, (end - begin) / kWordBits);
  }
}
