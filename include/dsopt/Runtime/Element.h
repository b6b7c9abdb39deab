//===- Element.h - element types of what is added ---------------*- C++ -*-===//
//
// Gradients are f32, or bf16 or f16: then each addition is computed in fp32 and
// rounded (DESIGN 2.1 rule 5). Numbered as in ABI.h.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_ELEMENT_H
#define DSOPT_RUNTIME_ELEMENT_H

#include "dsopt/Runtime/ABI.h"

#include <cstdint>
#include <string>

namespace dsopt::runtime {

enum class Element : int64_t { F32 = DSOPT_F32, BF16 = DSOPT_BF16, F16 = DSOPT_F16 };

inline bool isElement(const std::string &name) { return name == "f32" || name == "bf16" || name == "f16"; }
/// Of a name for which isElement holds.
inline Element elementNamed(const std::string &name) {
  return name == "bf16" ? Element::BF16 : name == "f16" ? Element::F16 : Element::F32;
}
inline int64_t bytesOf(Element element) { return element == Element::F32 ? 4 : 2; }

/// Calls `body` with a zero of the type that holds such elements: float, uint16_t for bf16, or _Float16.
template <typename Body> void withElement(Element element, Body body) {
  if (element == Element::BF16)
    body(uint16_t());
  else if (element == Element::F16)
    body(_Float16());
  else
    body(float());
}

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_ELEMENT_H
