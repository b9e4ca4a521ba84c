// Single flight within a process: of the threads that want one key, one computes and the others
// wait for its result. A failure is nobody's result: the next of the waiters computes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace jitney::cache {

struct Outcome;

class Flights {
  public:
    // Leads the flight of a name until it is destroyed, or holds the result of another's.
    class Seat {
      public:
        Seat(Flights& flights, std::string name, std::chrono::milliseconds timeout);
        Seat(const Seat&) = delete;
        Seat& operator=(const Seat&) = delete;
        ~Seat();

        // The leader's result; null when this seat has to compute for itself.
        const std::shared_ptr<const Outcome>& result() const { return result_; }
        void land(std::shared_ptr<const Outcome> result);

      private:
        Flights& flights_;
        const std::string name_;
        bool leads_ = false;
        std::shared_ptr<const Outcome> result_;
    };

  private:
    struct Flight {
        bool over = false;
        std::shared_ptr<const Outcome> result;
    };
    std::mutex mutex_;
    std::condition_variable landed_;
    std::map<std::string, std::shared_ptr<Flight>> flights_;
};

}  // namespace jitney::cache
