// Rows to normalise and gates to close, with the tensors to run them on.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/compare.hpp"
#include "tests/support/host_tensor.hpp"

namespace jitney::tests {

// What a call gives.
enum class RowCodes {
    none,        // values in the input's dtype
    multiplied,  // E4M3 by a multiplier
    scaled,      // E4M3 by a scale a row
};

struct NormCase {
    DType dtype = DType::bf16;
    std::optional<DType> weight = DType::bf16;  // none: no weight
    RowCodes codes = RowCodes::none;
    std::int64_t rows = 5;
    std::int64_t d = 64;
    std::int64_t gap = 0;  // elements between rows
    bool residual = false;
    bool bias = false;
    bool one_plus_weight = false;
    bool subtract_mean = false;
    bool in_place = false;  // sum in residual, out in x where it has its dtype
    float eps = 1e-5F;

    std::string text() const;
};

struct GateCase {
    DType dtype = DType::bf16;
    RowCodes codes = RowCodes::none;
    std::int64_t rows = 5;
    std::int64_t d = 64;
    std::int64_t gap = 0;
    int activation = 0;
    bool two = false;       // gate and up apart
    bool in_place = false;  // out in the gate, of two

    std::string text() const;
};

// Makes a Tensor of one of the problem's, wherever the test puts it.
using View = std::function<Tensor(HostTensor&)>;

// The tensors of a call; what it writes is poisoned.
class NormProblem {
  public:
    NormProblem(const NormCase& problem, Random& random);

    // The arguments, of RmsNormArgs or of the reference, which name their members alike.
    template <class Call>
    Call call(const View& view) {
        Call call;
        call.x = view(x);
        if (test.residual) {
            call.residual = view(residual);
            call.sum = view(place_of_sum());
        }
        if (test.weight) call.weight = view(weight);
        if (test.bias) call.bias = view(bias);
        call.out = view(place_of_out());
        if (test.codes == RowCodes::multiplied) call.multiplier = view(multiplier);
        if (test.codes == RowCodes::scaled) call.scale = view(scale);
        call.eps = test.eps;
        call.one_plus_weight = test.one_plus_weight;
        call.subtract_mean = test.subtract_mean;
        return call;
    }

    HostTensor& place_of_sum() { return test.in_place ? residual : sum; }
    HostTensor& place_of_out() { return test.in_place && test.codes == RowCodes::none ? x : out; }
    std::vector<HostTensor*> inputs();
    std::vector<HostTensor*> results();

    // Computes `sum`, `out` and `scale` apart from the inputs, in place or not.
    void run_reference();

    NormCase test;
    HostTensor x;
    HostTensor residual;
    HostTensor sum;
    HostTensor weight;
    HostTensor bias;
    HostTensor out;
    HostTensor multiplier;
    HostTensor scale;
};

class GateProblem {
  public:
    GateProblem(const GateCase& problem, Random& random);

    template <class Call>
    Call call(const View& view) {
        Call call;
        call.gate = view(gate);
        if (test.two) call.up = view(up);
        call.out = view(place_of_out());
        if (test.codes == RowCodes::multiplied) call.multiplier = view(multiplier);
        if (test.codes == RowCodes::scaled) call.scale = view(scale);
        call.activation = static_cast<decltype(call.activation)>(test.activation);
        return call;
    }

    HostTensor& place_of_out() {
        return test.two && test.in_place && test.codes == RowCodes::none ? gate : out;
    }
    std::vector<HostTensor*> inputs();
    std::vector<HostTensor*> results();

    void run_reference();

    GateCase test;
    HostTensor gate;
    HostTensor up;
    HostTensor out;
    HostTensor multiplier;
    HostTensor scale;
};

NormCase random_norm_case(Random& random, std::int64_t most_rows, std::int64_t most_d);
GateCase random_gate_case(Random& random, std::int64_t most_rows, std::int64_t most_d);

// Empty where a kernel's result is what the reference has, as far as the arithmetic of fp32 lets it
// be: codes are the next ones at most, and few of them.
std::string difference_of_rows(const HostTensor& actual, const HostTensor& expected);

// All tensors of a problem in places of their own, `Place` being made of a HostTensor.
template <class Place>
class PlacedTensors {
  public:
    // `place(host, written)` makes one.
    template <class Problem, class Make>
    PlacedTensors(Problem& problem, const Make& place) {
        for (HostTensor* tensor : problem.inputs())
            add(*tensor, place(*tensor, is_written(problem, *tensor)));
        for (HostTensor* tensor : problem.results()) {
            if (find(*tensor) == nullptr) add(*tensor, place(*tensor, true));
        }
    }

    Place& of(HostTensor& host) { return *find(host); }
    View view() {
        return [this](HostTensor& host) { return of(host).view(); };
    }

  private:
    template <class Problem>
    static bool is_written(Problem& problem, const HostTensor& tensor) {
        for (const HostTensor* result : problem.results()) {
            if (result == &tensor) return true;
        }
        return false;
    }
    void add(HostTensor& host, Place&& place) {
        hosts_.push_back(&host);
        places_.push_back(std::move(place));
    }
    Place* find(const HostTensor& host) {
        auto place = places_.begin();
        for (const HostTensor* each : hosts_) {
            if (each == &host) return &*place;
            ++place;
        }
        return nullptr;
    }

    std::vector<HostTensor*> hosts_;
    std::list<Place> places_;
};

// The tensors that were written, against the reference. `problem` holds the inputs as they were.
template <class Problem, class Placed, class Check>
void check_results_of(Problem& problem, Placed& placed, const Check& check) {
    struct Result {
        const char* name;
        HostTensor* expected;
        HostTensor actual;
    };
    std::vector<Result> results;
    if constexpr (requires { problem.sum; }) {
        if (problem.test.residual) {
            results.push_back({"sum", &problem.sum, placed.of(problem.place_of_sum()).download()});
        }
    }
    results.push_back({"out", &problem.out, placed.of(problem.place_of_out()).download()});
    if (problem.test.codes == RowCodes::scaled) {
        results.push_back({"scale", &problem.scale, placed.of(problem.scale).download()});
    }
    problem.run_reference();
    for (Result& each : results)
        check(each.name, each.actual, *each.expected);
}

}  // namespace jitney::tests
