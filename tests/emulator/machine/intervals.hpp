// Bytes by their offsets, as few runs as they make.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace jitney::emulator {

class Intervals {
  public:
    struct Run {
        std::size_t first;
        std::size_t end;
    };

    // Runs may touch and overlap; those that come in order are added fastest.
    void add(std::size_t first, std::size_t end) {
        if (first == end) return;
        auto begin = std::lower_bound(runs_.begin(), runs_.end(), first,
                                      [](const Run& run, std::size_t at) { return run.end < at; });
        auto behind = begin;
        while (behind != runs_.end() && behind->first <= end) {
            first = std::min(first, behind->first);
            end = std::max(end, behind->end);
            ++behind;
        }
        if (begin == behind) {
            runs_.insert(begin, {first, end});
        } else {
            *begin = {first, end};
            runs_.erase(begin + 1, behind);
        }
    }

    // Whether any of these bytes is among them.
    bool touch(std::size_t first, std::size_t end) const {
        const auto run = std::upper_bound(
            runs_.begin(), runs_.end(), first,
            [](std::size_t at, const Run& candidate) { return at < candidate.end; });
        return run != runs_.end() && run->first < end;
    }

    // What of the first `size` bytes is not among them.
    Intervals gaps(std::size_t size) const {
        Intervals between;
        std::size_t at = 0;
        for (const Run& run : runs_) {
            between.add(at, run.first);
            at = run.end;
        }
        between.add(at, size);
        return between;
    }

    std::size_t bytes() const {
        std::size_t sum = 0;
        for (const Run& run : runs_)
            sum += run.end - run.first;
        return sum;
    }
    const std::vector<Run>& runs() const { return runs_; }
    bool empty() const { return runs_.empty(); }
    void clear() { runs_.clear(); }

  private:
    std::vector<Run> runs_;  // in order, apart from each other
};

}  // namespace jitney::emulator
