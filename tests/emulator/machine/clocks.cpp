#include "tests/emulator/machine/clocks.hpp"

#include <utility>

namespace jitney::emulator {
namespace {

template <class T>
void raise(std::vector<T>& to, const std::vector<T>& from) {
    if (to.size() < from.size()) to.resize(from.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i)
        to[i] = std::max(to[i], from[i]);
}

}  // namespace

void Known::learn(const Known& other) {
    raise(moments, other.moments);
    if (other.epoch < epoch) return;  // all of that is ordered anyway
    if (other.epoch > epoch) {
        epoch = other.epoch;
        clocks = other.clocks;
        return;
    }
    raise(clocks, other.clocks);
}

void Clocks::begin(unsigned blocks, unsigned threads_a_block) {
    threads_ = blocks * threads_a_block;
    threads_a_block_ = threads_a_block;
    if (known_.size() < threads_) known_.resize(threads_);
    for (unsigned thread = 0; thread < threads_; ++thread) {
        known_[thread].own = 1;
        known_[thread].known.moments.clear();
    }
    agents_.clear();
    common_.clear();
    first_epoch_ = ++epoch_;
}

std::string Clocks::name_of(unsigned number) const {
    if (!is_thread(number)) return agents_[number - threads_].name;
    std::string name = "thread " + std::to_string(number % threads_a_block_);
    if (threads_ != threads_a_block_) {
        name += " of the cluster's block " + std::to_string(number / threads_a_block_);
    }
    return name;
}

unsigned Clocks::add_agent(std::string name) {
    agents_.push_back({std::move(name), 1});
    return threads_ + static_cast<unsigned>(agents_.size()) - 1;
}

void Clocks::order_all() {
    for (unsigned thread = 0; thread < threads_; ++thread)
        raise(common_, known_[thread].known.moments);
    ++epoch_;
}

void Clocks::order(const std::vector<unsigned>& threads) {
    Known all;
    for (const unsigned thread : threads)
        release(thread, all);
    for (const unsigned thread : threads)
        known_[thread].known = all;
}

void Clocks::release(unsigned thread, Known& into) {
    Own& own = known_[thread];
    if (into.epoch != epoch_) {
        into.epoch = epoch_;
        into.clocks.assign(threads_, 0);
    }
    if (own.known.epoch == epoch_) raise(into.clocks, own.known.clocks);
    raise(into.moments, own.known.moments);
    into.clocks[thread] = std::max(into.clocks[thread], own.own);
    ++own.own;
}

}  // namespace jitney::emulator
