// The GPU's global memory: buffers whose every byte a kernel must be entitled to touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tests/emulator/machine/address_space.hpp"
#include "tests/emulator/machine/intervals.hpp"

namespace jitney::emulator {

// A buffer lies between closed pages, ends 0 to 15 bytes before one, and is filled with 0xff: NaN
// in every floating format. The address is a multiple of 16 and promises nothing more.
class Buffer {
  public:
    explicit Buffer(std::size_t bytes, std::string name = "buffer");
    // `bytes` of address space, of which these alone exist: the rest is forbidden for ever, and
    // takes no memory. What lies terabytes apart can be so.
    Buffer(std::size_t bytes, const Intervals& existing, std::string name = "buffer");
    ~Buffer();
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;

    std::byte* data() const { return begin_; }
    std::size_t bytes() const { return bytes_; }
    const std::string& name() const { return name_; }
    template <class T>
    T* as() const {
        return reinterpret_cast<T*>(begin_);
    }

    // From here on nobody writes it.
    void make_read_only();
    // Kernels must neither read nor write these bytes (the rows past a request's length...).
    void forbid(std::size_t offset, std::size_t bytes);
    // Ends that, so that a test can look at what lies there; of a buffer that exists as a whole.
    void allow_all();
    // Copies bytes from `offset` on, forbidden or not, that exist.
    void copy_out(std::size_t offset, std::span<std::byte> to) const;

    bool read_only() const { return read_only_; }
    bool forbids(std::size_t offset, std::size_t bytes) const;
    // What of `bytes` from `offset` on is forbidden becomes ones in `copy`, which starts there.
    void spoil_forbidden(std::size_t offset, std::span<std::byte> copy) const;

  private:
    std::byte* first_page() const;
    std::size_t mapped_bytes() const;
    template <class Body>
    void for_open_pages(const Body& body) const;
    void release();

    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
    std::string name_;
    bool read_only_ = false;
    Intervals forbidden_;
    Intervals open_pages_;  // from the first page on
};

// A buffer behind terabytes of address space that is nobody's: the end of one that large.
Buffer lonely(std::size_t bytes, std::string name = "buffer");

// Copies bytes that a copy engine brings along: those that are no kernel's business arrive as ones,
// so that nothing may depend on them. They lie within one buffer.
void copy_or_spoil(const std::byte* from, std::span<std::byte> to);

// Why a kernel may not touch these bytes: empty where it may, and where they are no concern of
// the buffers at all (the host's own memory).
std::string objection(const void* begin, std::size_t bytes, bool write);
// The same for reads of a copy engine, which may bring along what is no kernel's business.
std::string objection_to_bringing(const void* begin, std::size_t bytes);

}  // namespace jitney::emulator
