#include "cache/usage.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "cache/lock.hpp"

namespace jitney::cache {

namespace {

constexpr std::string_view kTitle = "jitney-usage 1 ";
constexpr std::uint64_t kReservationsBetweenCounts = 64;
// A sweep of a large directory takes this long at most, by far; after it nobody is waited for.
constexpr auto kTimeout = std::chrono::seconds(10);

struct Sum {
    std::uint64_t bytes = 0;
    std::uint64_t reservations = 0;  // since bytes was counted
};

// Takes a number and the character behind it.
std::optional<std::uint64_t> take_number(std::string_view& text, char behind) {
    std::uint64_t number = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, number);
    if (error != std::errc() || end == last || *end != behind) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return number;
}

std::optional<Sum> parse(std::string_view text) {
    if (!text.starts_with(kTitle)) return std::nullopt;
    text.remove_prefix(kTitle.size());
    const auto bytes = take_number(text, ' ');
    const auto reservations = bytes ? take_number(text, '\n') : std::nullopt;
    if (!reservations || !text.empty()) return std::nullopt;
    return Sum{*bytes, *reservations};
}

// The file of the sum, its lock held if it could be had.
class Account {
  public:
    explicit Account(Layer& layer) : layer_(layer), root_(layer.open(true)) {
        if (root_) lock_.acquire(layer, root_->get(), std::string(kUsageName), kTimeout);
    }

    std::optional<Sum> read() {
        constexpr std::uint64_t kMostBytes = 128;
        std::string text;
        if (!lock_ || !read_bytes(layer_.files(), lock_.get(), kMostBytes, &text))
            return std::nullopt;
        return parse(text);
    }

    void write(const Sum& sum) {
        if (!lock_) return;
        constexpr int kFlags = O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
        const Handle file =
            open_file(layer_.files(), root_->get(), std::string(kUsageName), kFlags);
        // What is cut short by an error or a kill is no such text, and counted anew.
        if (file) {
            write_bytes(layer_.files(), file.get(),
                        fmt::format("{}{} {}\n", kTitle, sum.bytes, sum.reservations));
        }
    }

    // By the clock of the file system, which on a network is not this machine's.
    std::int64_t now() {
        struct stat status {};
        if (lock_ && layer_.files().touch(lock_.get()) == 0 &&
            layer_.files().stat(lock_.get(), &status) == 0) {
            return status.st_mtim.tv_sec;
        }
        return layer_.files().now();
    }

  private:
    Layer& layer_;
    std::shared_ptr<const Handle> root_;
    NamedLock lock_;
};

std::uint64_t less(std::uint64_t a, std::uint64_t b) {
    return a > b ? a - b : 0;
}

std::uint64_t nine_tenths(std::uint64_t bytes) {
    return bytes - bytes / 10;
}

}  // namespace

std::string reserve(Layer& layer, std::uint64_t bytes, std::uint64_t max_bytes) {
    Account account(layer);
    std::optional<Sum> sum = account.read();
    const std::uint64_t room = less(max_bytes, bytes);
    if (!sum || sum->bytes > room || sum->reservations >= kReservationsBetweenCounts) {
        const std::uint64_t target = less(nine_tenths(max_bytes), bytes);
        SweepResult swept = sweep(layer, room, target, account.now());
        // An entry that was replaced or used meanwhile was left alone, and is another by now.
        if (swept.entry_bytes > room) swept = sweep(layer, room, target, account.now());
        // What others are writing now counts, and does not stop this process.
        if (swept.entry_bytes > room) {
            return fmt::format(
                "holds {} bytes in entries that can't be removed, and {} more would pass its "
                "limit (JITNEY_CACHE_MAX_BYTES, {})",
                swept.entry_bytes, bytes, max_bytes);
        }
        sum = Sum{swept.entry_bytes + swept.temp_bytes, 0};
    }
    account.write({sum->bytes + bytes, sum->reservations + 1});
    return {};
}

SweepResult prune(Layer& layer, std::uint64_t max_bytes) {
    if (!layer.open()) {
        SweepResult nothing;
        nothing.gaps = scan(layer).gaps;
        return nothing;
    }
    Account account(layer);
    SweepResult swept = sweep(layer, max_bytes, max_bytes, account.now());
    account.write({swept.entry_bytes + swept.temp_bytes, 0});
    return swept;
}

}  // namespace jitney::cache
