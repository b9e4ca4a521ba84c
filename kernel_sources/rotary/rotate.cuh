// Rotating pairs of elements of one head by the angle of a position (RoFormer, Su et al. 2021,
// arXiv:2104.09864), a piece of the head at a time.
#pragma once

#include "common/element.cuh"
#include "common/numeric.cuh"
#include "common/vector.cuh"
#include "rotary/params.h"

namespace jitney {

// C has a format, a style (a RotaryPairing) and how many pairs are rotated at once.
template <class C>
struct Rotation {
    using T = Element<C::format>;
    static constexpr int kPairs = C::pairs;

    const RotaryParams& params;

    // The position that the call gives a row; `otherwise` where it gives none.
    JITNEY_DEVICE long long position_of(long long batch, long long row, long long otherwise) const {
        if (params.positions == nullptr) return otherwise;
        const long long index = batch * params.positions_batch + row * params.positions_row;
        return params.positions_are_64_bit != 0
                   ? static_cast<const long long*>(params.positions)[index]
                   : static_cast<const int*>(params.positions)[index];
    }

    // Elements of a head: at once where the launch moves several pairs at a time, and one by one
    // where it moves single pairs, because then nothing is known of their alignment.
    template <int count>
    JITNEY_DEVICE static Vector<T, count> load(const T* from) {
        if constexpr (kPairs > 1) return load_vector<count>(from);
        Vector<T, count> elements;
#pragma unroll
        for (int i = 0; i < count; ++i)
            elements.items[i] = from[i];
        return elements;
    }

    template <int count>
    JITNEY_DEVICE static void store(T* to, const Vector<T, count>& elements) {
        if constexpr (kPairs > 1) {
            store_vector(to, elements);
        } else {
#pragma unroll
            for (int i = 0; i < count; ++i)
                to[i] = elements.items[i];
        }
    }

    // Cosines and sines of kPairs neighbouring pairs.
    struct Angles {
        Vector<float, kPairs> cos;
        Vector<float, kPairs> sin;
    };
    JITNEY_DEVICE Angles angles_at(long long position, int pair) const {
        Angles angles;
        if (position >= 0 && position < params.table_rows) {
            const long long at = position * params.table_stride + pair;
            angles.cos = load_vector<kPairs>(params.cos + at);
            angles.sin = load_vector<kPairs>(params.sin + at);
        } else {
            // A position that the table lacks shows as NaN; nothing is read outside the table.
            for (int i = 0; i < kPairs; ++i)
                angles.cos.items[i] = angles.sin.items[i] = __int_as_float(0x7fffffff);
        }
        return angles;
    }

    // Pairs [pair, pair + kPairs) of a head, as they lie there: one run where pairs are
    // neighbours, else a run of firsts and behind it one of seconds.
    using Held = Vector<T, 2 * kPairs>;
    JITNEY_DEVICE Held take(const T* x, int pair) const {
        if constexpr (C::style == kInterleaved) return load<2 * kPairs>(x + 2 * pair);
        const auto first = load<kPairs>(x + pair);
        const auto second = load<kPairs>(x + params.rotary_dim / 2 + pair);
        Held held;
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            held.items[i] = first.items[i];
            held.items[kPairs + i] = second.items[i];
        }
        return held;
    }
    JITNEY_DEVICE void put_rotated(T* out, int pair, const Held& from, const Angles& by) const {
        if constexpr (C::style == kInterleaved) {
            Held to;
#pragma unroll
            for (int i = 0; i < kPairs; ++i) {
                turn(from.items[2 * i], from.items[2 * i + 1], by.cos.items[i], by.sin.items[i],
                     to.items[2 * i], to.items[2 * i + 1]);
            }
            store(out + 2 * pair, to);
        } else {
            Vector<T, kPairs> first;
            Vector<T, kPairs> second;
#pragma unroll
            for (int i = 0; i < kPairs; ++i) {
                turn(from.items[i], from.items[kPairs + i], by.cos.items[i], by.sin.items[i],
                     first.items[i], second.items[i]);
            }
            store(out + pair, first);
            store(out + params.rotary_dim / 2 + pair, second);
        }
    }

    // Pieces of a head that are rotated; those behind them are copied.
    JITNEY_DEVICE int rotated_pieces() const {
        return params.rotary_dim / 2 / kPairs;
    }
    JITNEY_DEVICE void copy_piece(const T* x, T* out, int item) const {
        constexpr int width = rotary_copy_width(kPairs);
        const int dim = params.rotary_dim + (item - rotated_pieces()) * width;
        store(out + dim, load<width>(x + dim));
    }

    // Piece `item` of a head (rotary_items() tells how many there are): kPairs pairs, or behind
    // them a copy of what lies past rotary_dim. position() is asked for where there is a rotation.
    template <class Position>
    JITNEY_DEVICE void piece(const T* x, T* out, int item, const Position& position) const {
        if (item < rotated_pieces()) {
            const int pair = item * kPairs;
            put_rotated(out, pair, take(x, pair), angles_at(position(), pair));
        } else {
            copy_piece(x, out, item);
        }
    }

    JITNEY_DEVICE static void turn(T a, T b, float cos, float sin, T& to_a, T& to_b) {
        to_a = T::from(a.value() * cos - b.value() * sin);
        to_b = T::from(a.value() * sin + b.value() * cos);
    }
};

}  // namespace jitney
