// Finds races in a block's shared memory: accesses of two threads to a byte, one of them a
// write, that no barrier orders. It also sees reads of bytes that nobody wrote.
//
// Time of a thread is counted by the barriers it passed. A barrier of the whole block starts a
// new epoch: all before it is ordered. Within an epoch every thread has a clock, and knows of
// every other thread's clock as much as the barriers of warps and of groups told it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace jitney::emulator {

class RaceDetector {
  public:
    // Room for that many bytes of shared memory and threads; a block starts.
    void begin_block(std::size_t bytes, unsigned threads);

    // Every thread of the block passed a barrier.
    void order_all() { ++epoch_; }
    // Those threads met at a barrier that orders their memory accesses.
    void order(const std::vector<unsigned>& threads);

    // An access of a thread, which code at `place` makes. What the thread does wrong, if anything.
    std::string read(unsigned thread, std::size_t offset, std::size_t bytes, const void* place) {
        return each_piece<&RaceDetector::read_piece>(thread, offset, bytes, place);
    }
    std::string write(unsigned thread, std::size_t offset, std::size_t bytes, const void* place) {
        return each_piece<&RaceDetector::write_piece>(thread, offset, bytes, place);
    }
    // An atomic access: in no race with other atomic ones, and not checked against plain ones.
    void atomic(unsigned thread, std::size_t offset, std::size_t bytes);

  private:
    // Memory is watched in pieces of two bytes; of an access to one of them, a mask says which.
    static constexpr std::size_t kPiece = 2;

    // Of an access: its epoch, thread, clock and mask, in 32, 10, 20 and 2 bits.
    using Stamp = std::uint64_t;

    struct Access {
        Stamp stamp = 0;
        const void* place = nullptr;
    };
    struct Piece {
        Access write;
        Access read;          // the newest,
        Access read_earlier;  // and the newest by another thread than that
    };
    struct Clock {
        std::uint32_t own = 1;
        std::uint32_t epoch = 0;          // of `seen`
        std::vector<std::uint32_t> seen;  // the clocks of the others that this thread knows of
    };

    static std::uint32_t epoch_of(Stamp stamp) { return static_cast<std::uint32_t>(stamp >> 32); }
    static unsigned thread_of(Stamp stamp) { return static_cast<unsigned>(stamp >> 22) & 0x3ffu; }
    static std::uint32_t clock_of(Stamp stamp) {
        return static_cast<std::uint32_t>(stamp >> 2) & 0xfffffu;
    }
    Stamp now(unsigned thread) const {
        return Stamp{epoch_} << 32 | Stamp{thread} << 22 | (clocks_[thread].own & 0xfffffu) << 2;
    }

    template <bool (RaceDetector::*note)(Piece&, const Access&) const>
    std::string each_piece(unsigned thread, std::size_t offset, std::size_t bytes,
                           const void* place) {
        const Access access = {now(thread), place};
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
        if (epoch_of(noted) != epoch_ || thread_of(noted) == thread_of(access)) return true;
        return (noted & access & 3u) == 0 || known(noted, thread_of(access));
    }
    bool known(Stamp noted, unsigned thread) const;

    bool read_piece(Piece& piece, const Access& access) const {
        if (epoch_of(piece.write.stamp) < first_epoch_) return false;
        if (!ordered(piece.write.stamp, access.stamp)) return false;
        if (thread_of(piece.read.stamp) != thread_of(access.stamp)) {
            piece.read_earlier = piece.read;
        }
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

    std::string describe(const Piece& piece, const Access& access, std::size_t offset,
                         bool write) const;

    std::vector<Piece> pieces_;
    std::vector<Clock> clocks_;
    std::uint32_t epoch_ = 0;
    std::uint32_t first_epoch_ = 0;  // of this block
};

}  // namespace jitney::emulator
