#include "backends/cpu/kernels/finish.h"

#include "backends/cpu/kernels/vec_narrow.h"

#define FERRY_KERNEL "backends/cpu/kernels/activation.inc"
#include "backends/cpu/kernels/foreach_isa.inc"
#define FERRY_KERNEL "backends/cpu/kernels/stored.inc"
#include "backends/cpu/kernels/foreach_isa.inc"
#define FERRY_KERNEL "backends/cpu/kernels/finish.inc"
#include "backends/cpu/kernels/foreach_isa.inc"

namespace ferry::cpu {

FinishFn finish_fn(Isa isa, const Epilogue& epilogue) {
  using Table = const FinishFn[3][kActivationKinds];
  static constexpr Table* kTables[] = FERRY_BY_ISA(kFinishes);
  const int at = epilogue.residual == Residual::kNone              ? 0
                 : epilogue.residual == Residual::kAfterActivation ? 2
                                                                   : 1;
  return (*kTables[static_cast<int>(isa)])[at][static_cast<int>(epilogue.activation.kind)];
}

}  // namespace ferry::cpu
