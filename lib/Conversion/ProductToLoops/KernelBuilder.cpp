//===- KernelBuilder.cpp - indices, loops and vectors of a kernel ---------===//

#include "KernelBuilder.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dsopt;

KernelBuilder::KernelBuilder(Location loc, Block *entry)
    : b(loc, loc.getContext()), entry(entry),
      asItIs(parseAttribute("#llvm.loop_annotation<vectorize = <disable = true>, unroll = <disable = true>>",
                            loc.getContext())) {}

Value KernelBuilder::index(int64_t value) {
  Value &constant = constants[value];
  if (!constant) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(entry);
    constant = arith::ConstantIndexOp::create(b, value);
  }
  return constant;
}

Value KernelBuilder::add(Value left, Value right) {
  return arith::AddIOp::create(b, left, right, arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::add(Value left, int64_t right) { return right ? add(left, index(right)) : left; }
Value KernelBuilder::subtract(Value left, Value right) {
  return arith::SubIOp::create(b, left, right, arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::multiply(Value left, int64_t right) {
  return right == 1 ? left : arith::MulIOp::create(b, left, index(right), arith::IntegerOverflowFlags::nsw);
}
Value KernelBuilder::most(Value left, Value right) { return arith::MaxSIOp::create(b, left, right); }
Value KernelBuilder::least(Value left, Value right) { return arith::MinSIOp::create(b, left, right); }
Value KernelBuilder::quotient(Value left, int64_t right, bool up) {
  return right == 1 ? left
                    : arith::DivUIOp::create(b, up ? add(left, right - 1) : left, index(right)).getResult();
}
Value KernelBuilder::isEqual(Value left, Value right) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, left, right);
}

KernelBuilder::Values KernelBuilder::loop(Value from, Value to, int64_t step,
                                          llvm::function_ref<Values(Value, ValueRange)> body,
                                          ValueRange carried) {
  Value stride = index(step);
  auto loop =
      scf::ForOp::create(b, from, to, stride, carried, [](OpBuilder &, Location, Value, ValueRange) {});
  loop->setAttr("llvm.loop_annotation", asItIs);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  b.setInsertionPointToEnd(loop.getBody());
  scf::YieldOp::create(b, next);
  return Values(loop.getResults());
}

void KernelBuilder::branch(Value condition, llvm::function_ref<void()> then,
                           llvm::function_ref<void()> otherwise) {
  auto choice = scf::IfOp::create(b, condition, /*withElseRegion=*/static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(choice.thenBlock());
  then();
  if (otherwise) {
    b.setInsertionPointToStart(choice.elseBlock());
    otherwise();
  }
}

Value KernelBuilder::scratch(int64_t elements, Type type) {
  constexpr int64_t kCacheLine = 64;
  return memref::AllocaOp::create(b, MemRefType::get(elements, type), b.getI64IntegerAttr(kCacheLine));
}

Value KernelBuilder::zeros(Type type) { return arith::ConstantOp::create(b, b.getZeroAttr(type)); }

void KernelBuilder::prefetch(Value buffer, Value at, bool isNear) {
  memref::PrefetchOp::create(b, buffer, at, /*isWrite=*/false, /*localityHint=*/isNear ? 3 : 2,
                             /*isDataCache=*/true);
}

/// A mask.
static Value firstLanes(ImplicitLocOpBuilder &b, int64_t lanes, int64_t of) {
  SmallVector<bool> mask(of);
  std::fill_n(mask.begin(), lanes, true);
  return arith::ConstantOp::create(b, DenseElementsAttr::get(VectorType::get({of}, b.getI1Type()), mask));
}

Value KernelBuilder::load(VectorType type, Value buffer, Value at, int64_t lanes) {
  if (lanes == type.getNumElements())
    return vector::LoadOp::create(b, type, buffer, at);
  return vector::MaskedLoadOp::create(b, type, buffer, at, firstLanes(b, lanes, type.getNumElements()),
                                      zeros(type));
}

void KernelBuilder::store(Value vector, Value buffer, Value at, int64_t lanes) {
  int64_t all = cast<VectorType>(vector.getType()).getNumElements();
  if (lanes == all)
    vector::StoreOp::create(b, vector, buffer, at);
  else
    vector::MaskedStoreOp::create(b, buffer, at, firstLanes(b, lanes, all), vector);
}

KernelBuilder::Values KernelBuilder::transpose(Values rows) {
  int64_t lanes = rows.size(), inPiece = std::min<int64_t>(lanes, 4);
  // Of `extent / unit` vectors, `stride` apart: units of each extent change places with vectors. In each
  // round what is even of two neighbours comes first, what is odd last. Within 128 bits, or of 128 bits, that
  // is one instruction.
  auto turn = [&](int64_t first, int64_t stride, int64_t unit, int64_t extent) {
    int64_t count = extent / unit;
    for (int64_t round = 1; round < count; round *= 2) {
      Values next(count);
      for (int64_t i = 0; i < count; ++i) {
        int64_t pair = i % (count / 2), odd = i / (count / 2);
        SmallVector<int64_t> from;
        for (int64_t lane = 0; lane < lanes; ++lane) {
          int64_t place = lane % extent / unit, side = place / (count / 2);
          from.push_back(side * lanes + lane / extent * extent + (place % (count / 2) * 2 + odd) * unit +
                         lane % unit);
        }
        next[i] = vector::ShuffleOp::create(b, rows[first + 2 * pair * stride],
                                            rows[first + (2 * pair + 1) * stride], from);
      }
      for (int64_t i = 0; i < count; ++i)
        rows[first + i * stride] = next[i];
    }
  };
  for (int64_t piece = 0; piece < lanes; piece += inPiece)
    turn(piece, 1, 1, inPiece);
  for (int64_t column = 0; column < inPiece; ++column)
    turn(column, inPiece, inPiece, lanes);
  return rows;
}
