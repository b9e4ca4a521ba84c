#include "tests/emulator/machine/race.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tests/emulator/machine/where.hpp"

namespace jitney::emulator {

void RaceDetector::begin_block(std::size_t bytes, const Clocks& clocks) {
    clocks_ = &clocks;
    const std::size_t pieces = (bytes + kPiece - 1) / kPiece;
    if (pieces_.size() < pieces) pieces_.resize(pieces);
    chunks_ = (bytes + kChunk - 1) / kChunk;
    agents_.clear();
}

std::string RaceDetector::race(const char* does, std::size_t offset, const void* place,
                               const char* did, const Access& other) const {
    return fmt::format(
        "{} byte {} of shared memory at {}, in a race: {} {} it at {}, and no barrier or wait "
        "orders the two",
        does, offset, place_of_code(place), clocks_->name_of(number_of(other.stamp)), did,
        place_of_code(other.place));
}

std::string RaceDetector::describe(const Piece& piece, const Access& access, std::size_t offset,
                                   bool write) const {
    const char* does = write ? "writes" : "reads";
    if (!write && !is_written(piece)) {
        return fmt::format("reads byte {} of shared memory, which nobody wrote, at {}", offset,
                           place_of_code(access.place));
    }
    const bool against_write = !ordered(piece.write.stamp, access.stamp | 3u);
    const bool against_read = !ordered(piece.read.stamp, access.stamp | 3u);
    const Access& other =
        against_write ? piece.write : (against_read ? piece.read : piece.read_earlier);
    return race(does, offset, access.place, against_write ? "wrote" : "read", other);
}

std::string RaceDetector::unfenced(const char* does, std::size_t offset, const void* place,
                                   const Access& other) const {
    return fmt::format(
        "has byte {} of shared memory {} at {}, past the ordinary way to memory: {} wrote it at "
        "{}, "
        "and made no fence between the two ways that this thread knows of",
        offset, does, place_of_code(place), clocks_->name_of(number_of(other.stamp)),
        place_of_code(other.place));
}

void RaceDetector::atomic(unsigned thread, std::size_t offset, std::size_t bytes) {
    for (std::size_t at = offset / kPiece; at <= (offset + bytes - 1) / kPiece; ++at) {
        // Written in this block: of no use to say by whom.
        if (!is_written(pieces_[at])) pieces_[at].write = {clocks_->now(thread), nullptr};
    }
}

RaceDetector::Agent* RaceDetector::reader(unsigned agent) {
    for (Agent& known : agents_) {
        if (known.number == agent) return &known;
    }
    if (agents_.size() == kMostAgents) return nullptr;
    if (agents_.empty()) read_by_.assign(chunks_, 0);
    agents_.push_back({agent, std::vector<Access>(chunks_)});
    return &agents_.back();
}

std::string RaceDetector::against_agents(unsigned thread, std::size_t offset, std::size_t bytes,
                                         const void* place) const {
    for (std::size_t chunk = offset / kChunk; bytes != 0 && chunk <= (offset + bytes - 1) / kChunk;
         ++chunk) {
        for (std::uint64_t left = read_by_[chunk]; left != 0; left &= left - 1) {
            const Access& other =
                agents_[static_cast<std::size_t>(std::countr_zero(left))].reads[chunk];
            if (clocks_->ordered(other.stamp, thread)) continue;
            return race("writes", std::max(offset, chunk * kChunk), place, "reads", other);
        }
    }
    return {};
}

std::string RaceDetector::agent_read(unsigned thread, unsigned agent, std::size_t offset,
                                     std::size_t bytes, const void* place) {
    const Access access = {clocks_->now(agent), place};
    Stamp fine = 0;  // that was looked at last
    for (std::size_t at = offset; at < offset + bytes; at += kPiece) {
        const Piece& piece = pieces_[at / kPiece];
        if (piece.write.stamp == fine) continue;
        if (!is_written(piece) || !clocks_->ordered(piece.write.stamp, thread)) {
            return describe(piece, {clocks_->now(thread), place}, at, false);
        }
        if (!clocks_->fenced(piece.write.stamp, thread)) {
            return unfenced("read", at, place, piece.write);
        }
        fine = piece.write.stamp;
    }
    Agent* const known = reader(agent);
    if (known == nullptr) return "is one of more than 64 that read shared memory beside threads";
    const std::uint64_t bit = std::uint64_t{1} << (known - agents_.data());
    for (std::size_t chunk = offset / kChunk; chunk < (offset + bytes) / kChunk; ++chunk) {
        known->reads[chunk] = access;
        read_by_[chunk] |= bit;
    }
    return {};
}

std::string RaceDetector::agent_will_write(unsigned thread, std::size_t offset, std::size_t bytes,
                                           const void* place) {
    if (!agents_.empty()) {
        std::string wrong = against_agents(thread, offset, bytes, place);
        if (!wrong.empty()) return wrong;
    }
    const Access access = {clocks_->now(thread) | 3u, place};
    for (std::size_t at = offset; at < offset + bytes; at += kPiece) {
        Piece& piece = pieces_[at / kPiece];
        if (!ordered(piece.write.stamp, access.stamp) || !ordered(piece.read.stamp, access.stamp) ||
            !ordered(piece.read_earlier.stamp, access.stamp)) {
            return describe(piece, access, at, true);
        }
        if (!clocks_->fenced(piece.write.stamp, thread)) {
            return unfenced("written", at, place, piece.write);
        }
    }
    return {};
}

void RaceDetector::agent_wrote(unsigned agent, std::size_t offset, std::size_t bytes,
                               const void* place) {
    const Access access = {clocks_->now(agent) | 3u, place};
    for (std::size_t at = offset; at < offset + bytes; at += kPiece)
        pieces_[at / kPiece].write = access;
}

}  // namespace jitney::emulator
