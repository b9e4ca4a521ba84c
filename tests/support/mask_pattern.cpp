#include "tests/support/mask_pattern.hpp"

#include <algorithm>

namespace jitney::tests {
namespace {

constexpr std::int64_t kBandRows = 70;

}  // namespace

MaskPattern::MaskPattern(Random& random, std::int64_t keys)
    : random_(random),
      keys_(keys),
      has_runs_(random.chance(0.5)),
      hidden_keys_(static_cast<std::size_t>(keys)),
      dropped_keys_(static_cast<std::size_t>(keys)) {
    const double share = random.chance(0.5) ? random.uniform(0.0, 0.6) : 0.0;
    std::generate(dropped_keys_.begin(), dropped_keys_.end(),
                  [&random, share] { return random.chance(share); });
}

void MaskPattern::hide_runs() {
    std::int64_t key = 0;
    bool hidden = random_.chance(0.5);
    while (key < keys_) {
        const std::int64_t end = std::min(key + random_.integer(1, 160), keys_);
        std::fill(hidden_keys_.begin() + key, hidden_keys_.begin() + end, hidden);
        hidden = !hidden;
        key = end;
    }
}

double MaskPattern::operator()(std::int64_t index) {
    const std::int64_t key = index % keys_;
    if (key == 0) {
        if (has_runs_ && index / keys_ % kBandRows == 0) hide_runs();
        hidden_row_ = random_.chance(0.1);
    }
    const auto at = static_cast<std::size_t>(key);
    const bool hidden = hidden_row_ || hidden_keys_[at] || dropped_keys_[at];
    return !hidden && random_.chance(0.6) ? 1.0 : 0.0;
}

}  // namespace jitney::tests
