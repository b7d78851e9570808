#include "backends/cpu/moves.h"

#include <utility>

#include "backends/cpu/kernels/eltwise.h"

namespace ferry::cpu {
namespace {

class MoveStep final : public Step {
 public:
  MoveStep(std::vector<Move> moves, Isa isa) : moves_(std::move(moves)), isa_(isa) {
    kernel = std::string("copy ") + isa_name(float_isa(isa));
  }
  void run(const RunArgs& args) const override {
    for (const Move& move : moves_)
      convert(move.from.stored(args.arena), nullptr, {}, move.to.stored(args.arena), isa_,
              args.pool);
  }

 private:
  std::vector<Move> moves_;
  Isa isa_;
};

}  // namespace

PictureRef slice(PictureRef whole, int64_t first, int64_t count) {
  whole.offset += first * element_bytes(whole.storage.dtype);
  whole.c = count;
  return whole;
}

std::unique_ptr<Step> move_step(std::vector<Move> moves, LowerContext& context) {
  std::erase_if(moves, [](const Move& m) {
    return m.from.offset == m.to.offset && m.from.stride == m.to.stride &&
           m.from.storage == m.to.storage;
  });
  if (moves.empty()) return nullptr;
  return std::make_unique<MoveStep>(std::move(moves), context.isa());
}

}  // namespace ferry::cpu
