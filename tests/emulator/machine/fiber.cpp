#include "tests/emulator/machine/fiber.hpp"

#include <boost/context/detail/fcontext.hpp>
#include <new>

#include "tests/emulator/machine/pages.hpp"
#include "tests/emulator/machine/sanitizer.hpp"

namespace jitney::emulator {
namespace {

namespace context = boost::context::detail;

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

}  // namespace

// The lower level of Boost.Context is used, because a fiber that is given up must be forgotten
// without unwinding: a fault can stop a thread in places where nothing may be thrown.
struct Fiber::Switch {
    static void enter(context::transfer_t from) {
        auto* fiber = static_cast<Fiber*>(from.data);
        sanitizer::switched(nullptr, &fiber->resumer_stack_, &fiber->resumer_stack_size_);
        fiber->resumer_ = from.fctx;
        fiber->entry_(fiber->argument_);
        for (;;)
            fiber->suspend();
    }
};

Fiber::Fiber() : stack_(map_pages(kStackBytes + kPageBytes) + kPageBytes) {
    open_pages(stack_, kStackBytes);
}

Fiber::~Fiber() {
    sanitizer::allow(stack_, kStackBytes);
    unmap_pages(stack_ - kPageBytes, kStackBytes + kPageBytes);
}

void Fiber::start(Entry entry, void* argument) {
    sanitizer::allow(stack_, kStackBytes);
    entry_ = entry;
    argument_ = argument;
    fake_stack_ = nullptr;
    context_ = context::make_fcontext(stack_ + kStackBytes, kStackBytes, &Switch::enter);
}

void Fiber::resume() {
    void* fake_stack = nullptr;
    sanitizer::switching(&fake_stack, stack_, kStackBytes);
    context_ = context::jump_fcontext(context_, this).fctx;
    sanitizer::switched(fake_stack, nullptr, nullptr);
}

void Fiber::suspend() {
    sanitizer::switching(&fake_stack_, resumer_stack_, resumer_stack_size_);
    resumer_ = context::jump_fcontext(resumer_, nullptr).fctx;
    sanitizer::switched(fake_stack_, &resumer_stack_, &resumer_stack_size_);
}

}  // namespace jitney::emulator
