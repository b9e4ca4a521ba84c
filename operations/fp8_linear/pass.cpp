#include "operations/fp8_linear/pass.hpp"

#include <algorithm>
#include <vector>

#include "operations/decision.hpp"
#include "operations/fp8_linear/launches.hpp"
#include "operations/fp8_linear/reference.hpp"
#include "operations/kernel_launch.hpp"
#include "operations/last_run.hpp"

namespace jitney {
namespace {

// Codes begin at multiples of 16 bytes, and so do their rows.
std::size_t round_up(std::size_t bytes) {
    return (bytes + 15) / 16 * 16;
}

std::size_t bytes_of(const Fp8OwnCodes& own) {
    std::size_t bytes = 0;
    for (const Tensor* codes : own) {
        if (codes != nullptr)
            bytes += static_cast<std::size_t>(codes->shape[0] * codes->strides[0]);
    }
    return bytes;
}

// The codes lie behind what the launches need, which use the same memory one after the other.
ScratchBytes with_codes(const ScratchBytes& launches, const Fp8OwnCodes& own) {
    const std::size_t codes = bytes_of(own);
    return {launches.counters, codes == 0 ? launches.data : round_up(launches.data) + codes};
}

void place(const Fp8OwnCodes& own, void* memory) {
    auto* at = static_cast<std::byte*>(memory);
    for (Tensor* codes : own) {
        if (codes == nullptr) continue;
        codes->data = at;
        at += codes->shape[0] * codes->strides[0];
    }
}

using Casts = std::array<checks::Fp8QuantizeCall, 2>;

// Of a pass with all addresses: what its casts come to. Its products are refused here, too.
Casts check(const Fp8LinearPass& pass) {
    Casts casts;
    for (std::size_t i = 0; i < casts.size(); ++i) {
        if (pass.casts[i]) casts[i] = checks::check(pass.casts[i]->args);
    }
    for (const auto& product : pass.products) {
        if (product) static_cast<void>(checks::check(*product));
    }
    return casts;
}

// Whether nothing is computed of a tensor.
bool is_empty(const Fp8LinearPass& pass) {
    const auto& sums = pass.sums;
    if (pass.casts[0] || (sums && sums->out.shape[0] != 0)) return false;
    return std::ranges::all_of(pass.products, [](const std::optional<Fp8GemmArgs>& product) {
        return !product || checks::has_no_rows(checks::check(*product, checks::Data::absent));
    });
}

void run_on_host(const Fp8LinearPass& pass) {
    const Casts casts = check(pass);
    for (std::size_t i = 0; i < casts.size(); ++i) {
        if (pass.casts[i]) quantize_on_host(pass.casts[i]->args, casts[i], pass.casts[i]->state);
    }
    if (pass.update) reference::fp8_update(*pass.update);
    const auto& sums = pass.sums;
    if (sums && sums->out.shape[0] != 0) reference::column_sums(sums->x, sums->out);
    for (const auto& product : pass.products) {
        if (product) fp8_gemm(*product);
    }
    // Whatever the last of them was, and if it was nothing.
    if (!is_empty(pass)) note_reference_ran();
}

// The kernels of a pass.
class Launches {
  public:
    Launches(const Fp8LinearPass& pass, const Device& device, Stream stream) {
        constexpr auto absent = checks::Data::absent;
        for (std::size_t i = 0; i < casts_.size(); ++i) {
            if (!pass.casts[i]) continue;
            const Fp8QuantizeArgs& cast = pass.casts[i]->args;
            add(casts_[i].emplace(cast, checks::check(cast, absent).problem, stream).needs());
        }
        if (pass.update) update_.emplace(device, stream);
        for (std::size_t i = 0; i < products_.size(); ++i) {
            if (!pass.products[i]) continue;
            const policy::Fp8GemmProblem problem = checks::check(*pass.products[i], absent);
            add(products_[i].emplace(problem, device, stream).needs());
        }
        if (pass.sums) add(sums_.emplace(pass.sums->x, pass.sums->out, stream).needs());
    }

    const ScratchBytes& needs() const noexcept { return needs_; }

    void run(const Fp8LinearPass& pass, const Casts& casts, const Scratch& scratch,
             Stream stream) const {
        for (std::size_t i = 0; i < casts_.size(); ++i) {
            if (!casts_[i]) continue;
            const Fp8LinearCast& cast = *pass.casts[i];
            casts_[i]->run(cast.args, casts[i], scratch, stream, cast.state);
        }
        if (update_) update_->run(*pass.update, stream);
        if (sums_) sums_->run(pass.sums->x, pass.sums->out, scratch, stream);
        for (std::size_t i = 0; i < products_.size(); ++i) {
            if (products_[i]) products_[i]->run(*pass.products[i], scratch, stream);
        }
    }

  private:
    void add(const ScratchBytes& needs) noexcept { needs_ = larger(needs_, needs); }

    std::array<std::optional<Fp8QuantizeLaunches>, 2> casts_;
    std::optional<Fp8UpdateLaunch> update_;
    std::array<std::optional<Fp8GemmLaunch>, 2> products_;
    std::optional<ColumnSumsLaunch> sums_;
    ScratchBytes needs_;
};

void run_on_gpu(const std::function<Fp8LinearPass()>& make, const Fp8OwnCodes& own,
                const Workspace& workspace, const Device& device, Stream stream) {
    const Launches launches(make(), device, stream);
    const HeldScratch held(workspace, with_codes(launches.needs(), own), stream);
    const Scratch& scratch = held.place();
    if (bytes_of(own) != 0) {
        place(own, static_cast<std::byte*>(scratch.data) + round_up(launches.needs().data));
    }
    const Fp8LinearPass pass = make();
    launches.run(pass, check(pass), scratch, stream);
}

}  // namespace

std::size_t workspace_bytes(const Fp8LinearPass& pass, const Fp8OwnCodes& own,
                            const Device& device) {
    if (decide("fp8_gemm", device).backend == Backend::reference) return 0;
    return workspace_bytes(pass, own, facts_of(runtime::device(device.index)));
}

std::size_t workspace_bytes(const Fp8LinearPass& pass, const Fp8OwnCodes& own,
                            const policy::DeviceFacts& facts) {
    constexpr auto absent = checks::Data::absent;
    ScratchBytes needs;
    for (const auto& cast : pass.casts) {
        if (!cast) continue;
        needs = larger(needs, needed(cast->args, checks::check(cast->args, absent).problem));
    }
    for (const auto& product : pass.products) {
        if (product) needs = larger(needs, needed(checks::check(*product, absent), facts));
    }
    if (pass.sums) needs = larger(needs, needed(pass.sums->x, pass.sums->out, facts));
    return own_workspace_bytes(with_codes(needs, own));
}

void run_pass(const std::function<Fp8LinearPass()>& make, const Fp8OwnCodes& own,
              const Workspace& workspace, const Device& device, Stream stream) {
    const Decision decision = decide("fp8_gemm", device);
    if (decision.backend == Backend::jit) return run_on_gpu(make, own, workspace, device, stream);
    std::vector<std::byte> memory(bytes_of(own));
    if (!memory.empty()) place(own, memory.data());
    run_on_host(make());
}

}  // namespace jitney
