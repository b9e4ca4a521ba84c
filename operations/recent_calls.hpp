// What the calling thread prepared for its last calls: the layers of a model ask for a few forms
// again and again, such as those with a sliding window and those without.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "operations/call_form.hpp"
#include "operations/decision.hpp"

namespace jitney {

// Prepared has `args`, whose addresses mean nothing, `memory`, which is theirs, and `decision`.
template <class Prepared>
class RecentCalls {
  public:
    // Null where no recent call had this form. No allocation.
    template <class Args>
    static const Prepared* find(const Args& args, const Decision& decision) noexcept {
        if (mine == nullptr) return nullptr;
        for (const std::unique_ptr<Prepared>& call : mine->calls_) {
            if (call != nullptr && is_like<Differs::in_calls>(args, call->args) &&
                call->decision == decision && call->memory.lies_apart(args)) {
                return call.get();
            }
        }
        return nullptr;
    }

    // In the place of the oldest.
    static const Prepared& keep(std::unique_ptr<Prepared> prepared) {
        static thread_local RecentCalls owner;
        mine = &owner;
        std::unique_ptr<Prepared>& place = owner.calls_[owner.next_];
        owner.next_ = (owner.next_ + 1) % owner.calls_.size();
        place = std::move(prepared);
        return *place;
    }

    ~RecentCalls() { mine = nullptr; }

  private:
    // Without a constructor or destructor to run, so that reading it is a load.
    static inline constinit thread_local RecentCalls* mine = nullptr;

    std::array<std::unique_ptr<Prepared>, 8> calls_;
    std::size_t next_ = 0;
};

}  // namespace jitney
