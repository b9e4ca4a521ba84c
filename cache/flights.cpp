#include "cache/flights.hpp"

namespace jitney::cache {

Flights::Seat::Seat(Flights& flights, std::string name, std::chrono::milliseconds timeout)
    : flights_(flights), name_(std::move(name)) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::unique_lock lock(flights_.mutex_);
    while (true) {
        const auto [place, is_new] = flights_.flights_.try_emplace(name_);
        if (is_new) {
            place->second = std::make_shared<Flight>();
            leads_ = true;
            return;
        }
        const std::shared_ptr<Flight> flight = place->second;
        // After the deadline this seat computes beside the leader, and leads nobody.
        if (!flights_.landed_.wait_until(lock, deadline, [&] { return flight->over; })) return;
        if (flight->result) {
            result_ = flight->result;
            return;
        }
    }
}

Flights::Seat::~Seat() {
    if (leads_) land(nullptr);
}

void Flights::Seat::land(std::shared_ptr<const Outcome> result) {
    if (!leads_) return;
    leads_ = false;
    {
        const std::lock_guard guard(flights_.mutex_);
        const auto place = flights_.flights_.find(name_);
        place->second->over = true;
        place->second->result = std::move(result);
        flights_.flights_.erase(place);
    }
    flights_.landed_.notify_all();
}

}  // namespace jitney::cache
