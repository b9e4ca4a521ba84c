// Finds races in a block's shared memory: accesses of two threads to a byte, one of them a
// write, that no barrier orders. It also sees reads of bytes that nobody wrote.
//
// Time of a thread is counted by the barriers it passed. A barrier of the whole block starts a
// new epoch: all before it is ordered. Within an epoch every thread has a clock, and knows of
// every other thread's clock as much as the barriers of warps and of groups told it.
#pragma once

#include <cstdint>
#include <optional>
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

    // An access of a thread, which code at `place` makes. Says what the thread
    // does wrong, if so.
    std::optional<std::string> read(unsigned thread, std::size_t offset, std::size_t bytes,
                                    const void* place);
    std::optional<std::string> write(unsigned thread, std::size_t offset, std::size_t bytes,
                                     const void* place);
    // An atomic access: in no race with other atomic ones, and not checked against plain ones.
    void atomic(unsigned thread, std::size_t offset, std::size_t bytes);

  private:
    // Epoch, thread and clock of an access: 32, 12 and 20 bits.
    using Stamp = std::uint64_t;

    struct Access {
        Stamp stamp = 0;
        const void* place = nullptr;
    };
    struct Byte {
        Access write;
        Access read;          // the newest,
        Access read_earlier;  // and the newest by another thread than that
    };
    struct Clock {
        std::uint32_t own = 1;
        std::uint32_t epoch = 0;          // of `seen`
        std::vector<std::uint32_t> seen;  // the clocks of the others that this thread knows of
    };

    static unsigned thread_of(Stamp stamp) { return static_cast<unsigned>(stamp >> 20) & 0xfffu; }
    static std::uint32_t epoch_of(Stamp stamp) { return static_cast<std::uint32_t>(stamp >> 32); }
    Stamp now(unsigned thread) const {
        return Stamp{epoch_} << 32 | Stamp{thread} << 20 | (clocks_[thread].own & 0xfffffu);
    }
    // Whether that access happened before whatever the thread does now.
    bool ordered(Stamp access, unsigned thread) const {
        if (epoch_of(access) != epoch_ || thread_of(access) == thread) return true;
        return known(access, thread);
    }
    bool known(Stamp access, unsigned thread) const;
    std::string conflict(std::size_t offset, const char* does, const void* place,
                         const Access& other, const char* did) const;

    std::vector<Byte> bytes_;
    std::vector<Clock> clocks_;
    std::uint32_t epoch_ = 0;
    std::uint32_t first_epoch_ = 0;  // of this block
};

}  // namespace jitney::emulator
