#include "tests/emulator/machine/race.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/emulator/machine/where.hpp"

namespace jitney::emulator {

void RaceDetector::begin_block(std::size_t bytes, unsigned threads) {
    const std::size_t pieces = (bytes + kPiece - 1) / kPiece;
    if (pieces_.size() < pieces) pieces_.resize(pieces);
    if (clocks_.size() < threads) clocks_.resize(threads);
    for (Clock& clock : clocks_)
        clock.own = 1;
    first_epoch_ = ++epoch_;
}

bool RaceDetector::known(Stamp noted, unsigned thread) const {
    const Clock& clock = clocks_[thread];
    const unsigned other = thread_of(noted);
    return clock.epoch == epoch_ && other < clock.seen.size() &&
           clock.seen[other] >= clock_of(noted);
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

std::string RaceDetector::describe(const Piece& piece, const Access& access, std::size_t offset,
                                   bool write) const {
    const char* does = write ? "writes" : "reads";
    if (!write && epoch_of(piece.write.stamp) < first_epoch_) {
        return fmt::format("reads byte {} of shared memory, which nobody wrote, at {}", offset,
                           place_of_code(access.place));
    }
    const bool against_write = !ordered(piece.write.stamp, access.stamp | 3u);
    const bool against_read = !ordered(piece.read.stamp, access.stamp | 3u);
    const Access& other =
        against_write ? piece.write : (against_read ? piece.read : piece.read_earlier);
    return fmt::format(
        "{} byte {} of shared memory at {}, in a race: thread {} {} it at {}, and no barrier "
        "orders the two",
        does, offset, place_of_code(access.place), thread_of(other.stamp),
        against_write ? "wrote" : "read", place_of_code(other.place));
}

void RaceDetector::atomic(unsigned thread, std::size_t offset, std::size_t bytes) {
    for (std::size_t at = offset / kPiece; at <= (offset + bytes - 1) / kPiece; ++at) {
        // Written in this block: of no use to say by whom.
        if (epoch_of(pieces_[at].write.stamp) < first_epoch_) {
            pieces_[at].write = {now(thread), nullptr};
        }
    }
}

}  // namespace jitney::emulator
