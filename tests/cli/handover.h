// A kernel for the tests of the command: every vector core hands one flag a round to its cube core.

#include "kernel_operator.h"

namespace demo {
using namespace AscendC;

class HandOver {
public:
  __aicore__ inline void Init(uint32_t rounds) { rounds_ = rounds; }
  __aicore__ inline void Process()
  {
    if ASCEND_IS_AIV {
      for (uint32_t i = 0; i < rounds_; ++i) {
#if defined(SKIP_FIRST)
        if (i == 0) {
          continue;
        }
#endif
        CrossCoreSetFlag<0x2, PIPE_MTE3>(i);
      }
    }
    if ASCEND_IS_AIC {
      for (uint32_t i = 0; i < rounds_; ++i) {
        CrossCoreWaitFlag<0x2, PIPE_MTE2>(i);
      }
    }
  }

private:
  uint32_t rounds_{0};
};
}  // namespace demo

__global__ __aicore__ void HandOverKernel(uint32_t roundCnt)
{
  demo::HandOver op;
  op.Init(roundCnt);
  op.Process();
}
