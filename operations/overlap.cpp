#include "operations/overlap.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "core/arithmetic.hpp"
#include "core/steps.hpp"

namespace jitney::checks {
namespace {

// The shortest first, of a few.
template <class Item>
void sort_by(std::int64_t Item::*length, std::span<Item> items) noexcept {
    for (std::size_t i = 1; i < items.size(); ++i) {
        for (std::size_t at = i; at > 0 && items[at - 1].*length > items[at].*length; --at)
            std::swap(items[at - 1], items[at]);
    }
}

// Which numbers are a sum of steps, each taken from 0 to `most` times, and of a rest from 0 to
// `slack`: what addresses a view has, and which differences two views' addresses have.
class Sums {
  public:
    explicit Sums(std::int64_t slack) : slack_(slack) {}

    // Equal steps are one: views of one layout have no more of them than one of the views has.
    void add(std::int64_t step, std::int64_t most) noexcept {
        if (step == 0 || most == 0) return;
        for (Term& term : terms()) {
            if (term.step != step) continue;
            term.most += most;
            return;
        }
        terms_[count_++] = {step, most, 0, 0};
    }

    Sharing reach(std::int64_t target) noexcept {
        prepare();
        return find(count_, target);
    }

  private:
    struct Term {
        std::int64_t step;
        std::int64_t most;
        std::int64_t reach;    // the largest sum of this term, those before it and the slack
        std::int64_t divisor;  // of the steps of this term and those before it
    };

    std::span<Term> terms() noexcept { return {terms_.data(), count_}; }

    // The shortest, as long as they leave no gap, are slack: elements of a row, and rows that
    // touch, are one interval.
    void prepare() noexcept {
        sort_by(&Term::step, terms());
        for (; closed_ < count_ && terms_[closed_].step <= slack_ + 1; ++closed_)
            slack_ += terms_[closed_].step * terms_[closed_].most;
        std::int64_t reach = slack_;
        std::int64_t divisor = 0;
        for (Term& term : terms().subspan(closed_)) {
            term.reach = reach += term.step * term.most;
            term.divisor = divisor = std::gcd(divisor, term.step);
        }
    }

    // The rest as a sum of the first terms.
    Sharing find(std::size_t count, std::int64_t rest) noexcept {
        if (count == closed_) return rest >= 0 && rest <= slack_ ? Sharing::some : Sharing::none;
        if (++steps_ > kMostSteps) return Sharing::untold;
        const Term& term = terms_[count - 1];
        if (rest < 0 || rest > term.reach || rest % term.divisor > slack_) return Sharing::none;
        const std::int64_t before = term.reach - term.step * term.most;
        for (std::int64_t times = std::min(term.most, rest / term.step); times >= 0; --times) {
            const std::int64_t left = rest - times * term.step;
            if (left > before) break;
            const Sharing found = find(count - 1, left);
            if (found != Sharing::none) return found;
        }
        return Sharing::none;
    }

    // Each dimension of a layout without much entanglement asks for two or three.
    static constexpr int kMostSteps = 1 << 18;

    std::array<Term, 2 * std::size_t{Tensor::max_dims}> terms_{};
    std::size_t count_ = 0;
    std::size_t closed_ = 0;  // of the first terms, which became slack
    std::int64_t slack_;
    int steps_ = 0;
};

void add_dims(Sums& sums, const Tensor& tensor) noexcept {
    const std::int64_t size = size_of(tensor.dtype);
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.ndim); ++i)
        sums.add(magnitude(step_of(tensor, i)) * size, tensor.shape[i] - 1);
}

struct Dim {
    int number;
    std::int64_t stride;  // without its sign: a view may be walked from either end
    std::int64_t size;
};

}  // namespace

// An address of `a` is its first plus steps forward, one of `b` its last minus steps back: they
// share a byte where the steps of both, and the bytes of an element of either, fill the way
// between.
Sharing shared(const Tensor& a, const Tensor& b) noexcept {
    const Span first = span_of(a);
    const Span second = span_of(b);
    if (!meet(first, second)) return Sharing::none;
    Sums sums(size_of(a.dtype) + size_of(b.dtype) - 2);
    add_dims(sums, a);
    add_dims(sums, b);
    return sums.reach(static_cast<std::int64_t>(second.first - first.first + second.bytes - 1));
}

// Two elements of one address differ by steps that cancel out. Of the dimensions in which they
// differ, one has the longest stride, and those behind it have to lead back.
SelfSharing shared_within(const Tensor& tensor) noexcept {
    if (is_empty(tensor)) return {};
    std::array<Dim, Tensor::max_dims> all{};
    std::size_t count = 0;
    for (int i = 0; i < tensor.ndim; ++i) {
        const auto dim = static_cast<std::size_t>(i);
        if (tensor.shape[dim] > 1)
            all[count++] = {i, magnitude(tensor.strides[dim]), tensor.shape[dim]};
    }
    const std::span<Dim> dims(all.data(), count);
    sort_by(&Dim::stride, dims);
    std::int64_t within = 0;  // how far the shorter strides lead
    for (std::size_t at = 0; at < count; ++at) {
        const Dim& longest = dims[at];
        if (longest.stride <= within || longest.stride == 0) {
            Sums sums(0);
            sums.add(longest.stride, longest.size - 2);
            for (const Dim& other : dims.first(at))
                sums.add(other.stride, 2 * (other.size - 1));
            const Sharing found = longest.stride == 0
                                      ? Sharing::some
                                      : sums.reach(within + longest.stride * (longest.size - 1));
            if (found != Sharing::none) return {found, longest.number};
        }
        within += longest.stride * (longest.size - 1);
    }
    return {};
}

}  // namespace jitney::checks
