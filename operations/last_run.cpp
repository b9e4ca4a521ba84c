#include "operations/last_run.hpp"

#include "jitney/backend.hpp"

namespace jitney {
namespace {

enum class Ran { nothing, reference, kernel };

struct LastRun {
    Ran what = Ran::nothing;
    policy::Spec spec;
};

constinit thread_local LastRun last;

}  // namespace

void note_nothing_ran() noexcept {
    last.what = Ran::nothing;
}

void note_reference_ran() noexcept {
    last.what = Ran::reference;
}

void note_ran(const policy::Spec& spec) noexcept {
    last.spec = spec;
    last.what = Ran::kernel;
}

std::string last_run() {
    switch (last.what) {
        case Ran::nothing:
            return {};
        case Ran::reference:
            return "reference";
        case Ran::kernel:
            return policy::text_of(last.spec);
    }
    return {};
}

}  // namespace jitney
