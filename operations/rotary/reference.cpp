#include "operations/rotary/reference.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "jitney/error.hpp"
#include "operations/reference/check.hpp"
#include "operations/reference/parallel.hpp"
#include "operations/reference/rows.hpp"

namespace jitney::reference {

namespace {

std::int64_t rotary_dim_of(const Rotary& call) {
    return 2 * call.cos.shape[1];
}

void check_tables(const Rotary& call) {
    for (const auto& [table, name] : {std::pair{&call.cos, "cos"}, std::pair{&call.sin, "sin"}}) {
        require_host(*table, name);
        require(table->dtype == DType::fp32, std::string(name) + " must be fp32");
        require(table->ndim == 2, std::string(name) + " has the shape " + text_of_shape(*table) +
                                      "; it must be [positions, rotary_dim / 2]");
    }
    require_shape(call.sin, "sin", {call.cos.shape[0], call.cos.shape[1]});
}

void check_turned(const Rotary& call, const Tensor& x, const Tensor& out, const std::string& name) {
    require_heads(x, name);
    require_heads(out, name + "_out");
    require_shape(out, name + "_out", {x.shape[0], x.shape[1], x.shape[2], x.shape[3]});
    require(out.dtype == x.dtype, name + "_out must have the format of " + name);
    require(rotary_dim_of(call) <= x.shape[3],
            "cos has " + std::to_string(call.cos.shape[1]) + " angles, for a rotary_dim of " +
                std::to_string(rotary_dim_of(call)) + ", more than the head_dim of " + name +
                ", which is " + std::to_string(x.shape[3]));
}

bool is_one_row(const Tensor& positions) {
    return positions.ndim == 1 || positions.shape[0] == 1;
}

// The row of cos and sin for every token, [batch * length], all of them in range.
std::vector<std::int64_t> table_rows(const Rotary& call) {
    const std::int64_t batch = call.q.shape[0];
    const std::int64_t length = call.q.shape[1];
    if (call.positions) {
        const Tensor& positions = *call.positions;
        require_host(positions, "positions");
        require(positions.dtype == DType::int32 || positions.dtype == DType::int64,
                "positions must be int32 or int64");
        require((positions.ndim == 1 && positions.shape[0] == length) ||
                    (positions.ndim == 2 && positions.shape[1] == length &&
                     (positions.shape[0] == batch || positions.shape[0] == 1)),
                "positions has the shape " + text_of_shape(positions) + "; it must be [" +
                    std::to_string(length) + "] or [" + std::to_string(batch) + " or 1, " +
                    std::to_string(length) + "]");
    }

    std::vector<std::int64_t> rows(static_cast<std::size_t>(batch * length));
    for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t l = 0; l < length; ++l) {
            const std::int64_t row = call.positions ? position_at(*call.positions, b, l) : l;
            rows[static_cast<std::size_t>(b * length + l)] = row;
            if (has_row(call.cos, row)) continue;
            refuse_position(call.cos, row,
                            call.positions
                                ? position_name(*call.positions, b, l) + " is"
                                : "without positions, token " + std::to_string(l) + " stands at");
        }
    }
    return rows;
}

// Copies elements of equal format, bit for bit.
void copy_row(const Row& from, const Row& to, std::int64_t begin, std::int64_t end) {
    const auto bytes = static_cast<std::size_t>(size_of(from.dtype));
    for (std::int64_t i = begin; i < end; ++i)
        std::memmove(to.at(i), from.at(i), bytes);
}

struct Angles {
    std::vector<double> cos;
    std::vector<double> sin;
};

void turn(std::vector<double>& head, const Angles& angles, RotaryStyle style) {
    const std::size_t half = angles.cos.size();
    const bool interleaved = style == RotaryStyle::interleaved;
    for (std::size_t i = 0; i < half; ++i) {
        double& first = head[interleaved ? 2 * i : i];
        double& second = head[interleaved ? 2 * i + 1 : i + half];
        const double a = first;
        const double b = second;
        first = a * angles.cos[i] - b * angles.sin[i];
        second = b * angles.cos[i] + a * angles.sin[i];
    }
}

void turn_token(const Tensor& x, const Tensor& out, std::int64_t batch, std::int64_t token,
                const Angles& angles, RotaryStyle style) {
    std::vector<double> head(2 * angles.cos.size());
    const auto rotary_dim = static_cast<std::int64_t>(head.size());
    for (std::int64_t h = 0; h < x.shape[2]; ++h) {
        const Row from = Blhd{x}.row(batch, token, h);
        const Row to = Blhd{out}.row(batch, token, h);
        read_row(from, rotary_dim, head.data());
        turn(head, angles, style);
        write_row(to, rotary_dim, head.data());
        copy_row(from, to, rotary_dim, x.shape[3]);
    }
}

}  // namespace

std::int64_t position_at(const Tensor& positions, std::int64_t batch, std::int64_t token) {
    const std::int64_t offset =
        (is_one_row(positions) ? 0 : batch * positions.strides[0]) +
        token * positions.strides[static_cast<std::size_t>(positions.ndim - 1)];
    const std::byte* address =
        static_cast<const std::byte*>(positions.data) + offset * size_of(positions.dtype);
    return positions.dtype == DType::int32 ? load_bits<std::int32_t>(address)
                                           : load_bits<std::int64_t>(address);
}

std::string position_name(const Tensor& positions, std::int64_t batch, std::int64_t token) {
    const std::string row = is_one_row(positions) ? "0" : std::to_string(batch);
    return "positions[" + (positions.ndim == 1 ? "" : row + ", ") + std::to_string(token) + "]";
}

bool has_row(const Tensor& cos, std::int64_t position) {
    return position >= 0 && position < cos.shape[0];
}

void refuse_position(const Tensor& cos, std::int64_t position, const std::string& what) {
    throw Error(ErrorCode::invalid_argument,
                what + " " + std::to_string(position) + ", and cos and sin have " +
                    std::to_string(cos.shape[0]) +
                    " rows, numbered from 0: make the tables longer, or correct the position");
}

void rotary(const Rotary& call) {
    check_tables(call);
    check_turned(call, call.q, call.q_out, "q");
    require(call.k.has_value() == call.k_out.has_value(),
            "k and k_out go together; give both or neither");
    const std::int64_t batch = call.q.shape[0];
    const std::int64_t length = call.q.shape[1];
    if (call.k) {
        check_turned(call, *call.k, *call.k_out, "k");
        require_shape(*call.k, "k", {batch, length, call.k->shape[2], call.k->shape[3]});
    }
    const std::vector<std::int64_t> rows = table_rows(call);

    parallel_for(batch * length, [&](std::int64_t token) {
        const std::int64_t row = rows[static_cast<std::size_t>(token)];
        const auto half = static_cast<std::size_t>(call.cos.shape[1]);
        Angles angles{std::vector<double>(half), std::vector<double>(half)};
        read_row(row_of(call.cos, row * call.cos.strides[0], 1), call.cos.shape[1],
                 angles.cos.data());
        read_row(row_of(call.sin, row * call.sin.strides[0], 1), call.sin.shape[1],
                 angles.sin.data());
        const std::int64_t b = token / length;
        const std::int64_t l = token % length;
        turn_token(call.q, call.q_out, b, l, angles, call.style);
        if (call.k) turn_token(*call.k, *call.k_out, b, l, angles, call.style);
    });
}

}  // namespace jitney::reference
