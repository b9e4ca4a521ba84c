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

    // Piece `item` of a head (rotary_items() tells how many there are): kPairs pairs, or behind
    // them a copy of what lies past rotary_dim. position() is asked for where there is a rotation.
    template <class Position>
    JITNEY_DEVICE void piece(const T* x, T* out, int item, const Position& position) const {
        const int rotated = params.rotary_dim / 2 / kPairs;
        if (item < rotated) {
            rotate(x, out, position(), item * kPairs);
        } else {
            constexpr int width = rotary_copy_width(kPairs);
            const int dim = params.rotary_dim + (item - rotated) * width;
            store(out + dim, load<width>(x + dim));
        }
    }

    // Rotates pairs [pair, pair + kPairs).
    JITNEY_DEVICE void rotate(const T* x, T* out, long long position, int pair) const {
        Vector<float, kPairs> cos;
        Vector<float, kPairs> sin;
        if (position >= 0 && position < params.table_rows) {
            const long long at = position * params.table_stride + pair;
            cos = load_vector<kPairs>(params.cos + at);
            sin = load_vector<kPairs>(params.sin + at);
        } else {
            // A position that the table lacks shows as NaN; nothing is read outside the table.
            for (int i = 0; i < kPairs; ++i)
                cos.items[i] = sin.items[i] = __int_as_float(0x7fffffff);
        }
        if constexpr (C::style == kInterleaved) {
            const auto from = load<2 * kPairs>(x + 2 * pair);
            Vector<T, 2 * kPairs> to;
#pragma unroll
            for (int i = 0; i < kPairs; ++i) {
                turn(from.items[2 * i], from.items[2 * i + 1], cos.items[i], sin.items[i],
                     to.items[2 * i], to.items[2 * i + 1]);
            }
            store(out + 2 * pair, to);
        } else {
            const int half = params.rotary_dim / 2;
            const auto first = load<kPairs>(x + pair);
            const auto second = load<kPairs>(x + half + pair);
            Vector<T, kPairs> to_first;
            Vector<T, kPairs> to_second;
#pragma unroll
            for (int i = 0; i < kPairs; ++i) {
                turn(first.items[i], second.items[i], cos.items[i], sin.items[i], to_first.items[i],
                     to_second.items[i]);
            }
            store(out + pair, to_first);
            store(out + half + pair, to_second);
        }
    }

    JITNEY_DEVICE static void turn(T a, T b, float cos, float sin, T& to_a, T& to_b) {
        to_a = T::from(a.value() * cos - b.value() * sin);
        to_b = T::from(a.value() * sin + b.value() * cos);
    }
};

}  // namespace jitney
