// Finds races in a block's shared memory: accesses of two to a byte, one of them a write, that
// nothing orders. It also sees reads of bytes that nobody wrote, and agents (clocks.hpp) that come
// upon bytes that a thread wrote and made no fence behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/emulator/machine/clocks.hpp"

namespace jitney::emulator {

class RaceDetector {
  public:
    // Room for that many bytes of shared memory; a block starts. Threads are those of `clocks`.
    void begin_block(std::size_t bytes, const Clocks& clocks);

    // An access of a thread, which code at `place` makes. What the thread does wrong, if anything.
    std::string read(unsigned thread, std::size_t offset, std::size_t bytes, const void* place) {
        return each_piece<&RaceDetector::read_piece>(thread, offset, bytes, place);
    }
    std::string write(unsigned thread, std::size_t offset, std::size_t bytes, const void* place) {
        if (!agents_.empty()) {
            std::string wrong = against_agents(thread, offset, bytes, place);
            if (!wrong.empty()) return wrong;
        }
        return each_piece<&RaceDetector::write_piece>(thread, offset, bytes, place);
    }
    // An atomic access: in no race with other atomic ones, and not checked against plain ones.
    void atomic(unsigned thread, std::size_t offset, std::size_t bytes);

    // A read that a thread tells an agent to do, of whole 16 bytes: until somebody has waited for
    // the agent nobody may write there.
    std::string agent_read(unsigned thread, unsigned agent, std::size_t offset, std::size_t bytes,
                           const void* place);
    // A write that a thread tells an agent to do: what it does wrong; and, later, the agent's
    // doing.
    std::string agent_will_write(unsigned thread, std::size_t offset, std::size_t bytes,
                                 const void* place);
    void agent_wrote(unsigned agent, std::size_t offset, std::size_t bytes, const void* place);

  private:
    // Memory is watched in pieces of two bytes; the last bits of a stamp say which of them.
    static constexpr std::size_t kPiece = 2;
    static constexpr std::size_t kChunk = 16;  // what agents read at least
    static constexpr unsigned kMostAgents = 64;

    struct Access {
        Stamp stamp = 0;
        const void* place = nullptr;
    };
    struct Piece {
        Access write;
        Access read;          // the newest,
        Access read_earlier;  // and the newest by another thread than that
    };
    // One that reads shared memory, and its last read of each chunk.
    struct Agent {
        unsigned number;
        std::vector<Access> reads;
    };

    template <bool (RaceDetector::*note)(Piece&, const Access&) const>
    std::string each_piece(unsigned thread, std::size_t offset, std::size_t bytes,
                           const void* place) {
        const Access access = {clocks_->now(thread), place};
        const std::size_t end = offset + bytes;
        for (std::size_t at = offset / kPiece * kPiece; at < end; at += kPiece) {
            const Stamp mask = (at >= offset ? 1u : 0u) | (at + 1 < end ? 2u : 0u);
            if (!(this->*note)(pieces_[at / kPiece], {access.stamp | mask, access.place})) {
                return describe(pieces_[at / kPiece], access, at,
                                note == &RaceDetector::write_piece);
            }
        }
        return {};
    }

    // Whether what was noted happened before the access, or touched other bytes.
    bool ordered(Stamp noted, Stamp access) const {
        return (noted & access & 3u) == 0 || clocks_->ordered(noted, number_of(access));
    }
    bool is_written(const Piece& piece) const {
        return epoch_of(piece.write.stamp) >= clocks_->first_epoch();
    }

    bool read_piece(Piece& piece, const Access& access) const {
        if (!is_written(piece)) return false;
        if (!ordered(piece.write.stamp, access.stamp)) return false;
        if (number_of(piece.read.stamp) != number_of(access.stamp)) piece.read_earlier = piece.read;
        piece.read = access;
        return true;
    }
    bool write_piece(Piece& piece, const Access& access) const {
        if (!ordered(piece.write.stamp, access.stamp) || !ordered(piece.read.stamp, access.stamp) ||
            !ordered(piece.read_earlier.stamp, access.stamp)) {
            return false;
        }
        piece.write = access;
        return true;
    }

    Agent* reader(unsigned agent);
    std::string against_agents(unsigned thread, std::size_t offset, std::size_t bytes,
                               const void* place) const;
    std::string race(const char* does, std::size_t offset, const void* place, const char* did,
                     const Access& other) const;
    std::string describe(const Piece& piece, const Access& access, std::size_t offset,
                         bool write) const;
    std::string unfenced(const char* does, std::size_t offset, const void* place,
                         const Access& other) const;

    const Clocks* clocks_ = nullptr;
    std::vector<Piece> pieces_;
    std::vector<Agent> agents_;
    std::vector<std::uint64_t> read_by_;  // of each chunk, which of agents_
    std::size_t chunks_ = 0;
};

}  // namespace jitney::emulator
