#include "tests/emulator/machine/race.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/emulator/machine/where.hpp"

namespace jitney::emulator {

void RaceDetector::begin_block(std::size_t bytes, unsigned threads) {
    if (bytes_.size() < bytes) bytes_.resize(bytes);
    if (clocks_.size() < threads) clocks_.resize(threads);
    for (Clock& clock : clocks_)
        clock.own = 1;
    first_epoch_ = ++epoch_;
}

bool RaceDetector::known(Stamp access, unsigned thread) const {
    const Clock& clock = clocks_[thread];
    const unsigned other = thread_of(access);
    return clock.epoch == epoch_ && other < clock.seen.size() &&
           clock.seen[other] >= (access & 0xfffffu);
}

void RaceDetector::order(const std::vector<unsigned>& threads) {
    std::vector<std::uint32_t> all(clocks_.size(), 0);
    for (const unsigned thread : threads) {
        Clock& clock = clocks_[thread];
        if (clock.epoch == epoch_) {
            for (std::size_t i = 0; i < clock.seen.size(); ++i)
                all[i] = std::max(all[i], clock.seen[i]);
        }
        all[thread] = std::max(all[thread], clock.own);
    }
    for (const unsigned thread : threads) {
        Clock& clock = clocks_[thread];
        clock.seen = all;
        clock.epoch = epoch_;
        ++clock.own;
    }
}

std::string RaceDetector::conflict(std::size_t offset, const char* does, const void* place,
                                   const Access& other, const char* did) const {
    return fmt::format(
        "{} byte {} of shared memory at {}, in a race: thread {} {} it at {}, and no barrier "
        "orders "
        "the two",
        does, offset, place_of_code(place), thread_of(other.stamp), did,
        place_of_code(other.place));
}

std::optional<std::string> RaceDetector::read(unsigned thread, std::size_t offset,
                                              std::size_t bytes, const void* place) {
    const Stamp stamp = now(thread);
    for (std::size_t i = offset; i < offset + bytes; ++i) {
        Byte& byte = bytes_[i];
        if (epoch_of(byte.write.stamp) < first_epoch_) {
            return fmt::format(
                "thread {} reads byte {} of shared memory, which nobody wrote, at {}", thread, i,
                place_of_code(place));
        }
        if (!ordered(byte.write.stamp, thread)) {
            return conflict(i, "reads", place, byte.write, "wrote");
        }
        if (thread_of(byte.read.stamp) != thread) byte.read_earlier = byte.read;
        byte.read = {stamp, place};
    }
    return std::nullopt;
}

std::optional<std::string> RaceDetector::write(unsigned thread, std::size_t offset,
                                               std::size_t bytes, const void* place) {
    const Stamp stamp = now(thread);
    for (std::size_t i = offset; i < offset + bytes; ++i) {
        Byte& byte = bytes_[i];
        if (!ordered(byte.write.stamp, thread)) {
            return conflict(i, "writes", place, byte.write, "wrote");
        }
        for (const Access* read : {&byte.read, &byte.read_earlier}) {
            if (!ordered(read->stamp, thread)) {
                return conflict(i, "writes", place, *read, "read");
            }
        }
        byte.write = {stamp, place};
    }
    return std::nullopt;
}

void RaceDetector::atomic(unsigned thread, std::size_t offset, std::size_t bytes) {
    for (std::size_t i = offset; i < offset + bytes; ++i) {
        // Written in this block, long ago: at the epoch's start, by the thread itself.
        if (epoch_of(bytes_[i].write.stamp) < first_epoch_)
            bytes_[i].write = {now(thread), nullptr};
    }
}

}  // namespace jitney::emulator
