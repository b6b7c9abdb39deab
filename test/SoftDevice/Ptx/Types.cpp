//===- Types.cpp - PTX's scalar types -------------------------------------===//

#include "Syntax.h"

namespace softdevice {

namespace {
struct Row {
  const char *name;
  Type type;
  int bytes;
};
} // namespace

static constexpr Row kTypes[] = {
    {"pred", Type::Pred, 0},  {"b8", Type::B8, 1},       {"u8", Type::U8, 1},         {"s8", Type::S8, 1},
    {"b16", Type::B16, 2},    {"u16", Type::U16, 2},     {"s16", Type::S16, 2},       {"f16", Type::F16, 2},
    {"bf16", Type::BF16, 2},  {"b32", Type::B32, 4},     {"u32", Type::U32, 4},       {"s32", Type::S32, 4},
    {"f32", Type::F32, 4},    {"f16x2", Type::F16x2, 4}, {"bf16x2", Type::BF16x2, 4}, {"tf32", Type::TF32, 4},
    {"b64", Type::B64, 8},    {"u64", Type::U64, 8},     {"s64", Type::S64, 8},       {"f64", Type::F64, 8},
    {"b128", Type::B128, 16},
};

int bytesOf(Type type) {
  for (const Row &row : kTypes)
    if (row.type == type)
      return row.bytes;
  return 0;
}

bool isFloat(Type type) {
  return type == Type::F16 || type == Type::BF16 || type == Type::F32 || type == Type::F16x2 ||
         type == Type::BF16x2 || type == Type::TF32 || type == Type::F64;
}

bool isSigned(Type type) {
  return type == Type::S8 || type == Type::S16 || type == Type::S32 || type == Type::S64;
}

Type typeNamed(std::string_view name) {
  for (const Row &row : kTypes)
    if (name == row.name)
      return row.type;
  return Type::None;
}

} // namespace softdevice
