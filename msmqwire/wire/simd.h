/* The operations worth a vector unit: find code units, compare them with a range, narrow ASCII, print hexadecimal.
 *
 * Each has a form for SSE2 (every x86-64) and a portable one, those that gain from it a form for NEON (every AArch64).
 * With MSMQWIRE_PORTABLE defined only the portable forms are compiled. All read exactly the bytes they name: callers
 * guard the end of the buffer. Numbers on this wire are little-endian, and so are the hosts that this package supports
 * (wire/_guid.pyx refuses others at import).
 */
#ifndef MSMQWIRE_SIMD_H
#define MSMQWIRE_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(MSMQWIRE_PORTABLE)
#elif defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define MSMQWIRE_SSE2 1
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define MSMQWIRE_NEON 1
#endif

#if (defined(__GNUC__) || defined(__clang__)) && !defined(MSMQWIRE_PORTABLE)
#define wire_lowest_bit(mask) ((uint32_t)__builtin_ctzll(mask))
#define wire_popcount(bits) ((uint32_t)__builtin_popcount(bits))
#define wire_bswap32(value) __builtin_bswap32(value)
#define wire_bswap16(value) __builtin_bswap16(value)
#define wire_unlikely(condition) __builtin_expect(!!(condition), 0)
#define wire_prefetch(address) __builtin_prefetch(address)
#else
#define wire_unlikely(condition) (condition)
#define wire_prefetch(address) ((void)(address))

static inline uint32_t wire_popcount(uint32_t bits) {
    bits -= bits >> 1 & 0x55555555u;
    bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
    return ((bits + (bits >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;
}

/* The bits below the lowest one of `mask`, counted. `mask` is not 0. */
static inline uint32_t wire_lowest_bit(uint64_t mask) {
    const uint64_t below = (mask & (0 - mask)) - 1;
    return wire_popcount((uint32_t)below) + wire_popcount((uint32_t)(below >> 32));
}

static inline uint16_t wire_bswap16(uint16_t value) {
    return (uint16_t)(value << 8 | value >> 8);
}

static inline uint32_t wire_bswap32(uint32_t value) {
    return (uint32_t)wire_bswap16((uint16_t)value) << 16 | wire_bswap16((uint16_t)(value >> 16));
}
#endif

/* Bit i is set when code unit i of the 16 at `units` equals `a` or `b`. Reads 32 bytes. */
static inline uint32_t wire_find_units(const uint8_t *units, uint16_t a, uint16_t b) {
#if defined(MSMQWIRE_SSE2)
    const __m128i va = _mm_set1_epi16((short)a), vb = _mm_set1_epi16((short)b);
    const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)units);
    const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(units + 16));
    const __m128i found_low = _mm_or_si128(_mm_cmpeq_epi16(low, va), _mm_cmpeq_epi16(low, vb));
    const __m128i found_high = _mm_or_si128(_mm_cmpeq_epi16(high, va), _mm_cmpeq_epi16(high, vb));
    return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(found_low, found_high));
#elif defined(MSMQWIRE_NEON)
    static const uint8_t weights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t va = vdupq_n_u16(a), vb = vdupq_n_u16(b);
    const uint16x8_t low = vreinterpretq_u16_u8(vld1q_u8(units));
    const uint16x8_t high = vreinterpretq_u16_u8(vld1q_u8(units + 16));
    const uint8x8_t found_low = vmovn_u16(vorrq_u16(vceqq_u16(low, va), vceqq_u16(low, vb)));
    const uint8x8_t found_high = vmovn_u16(vorrq_u16(vceqq_u16(high, va), vceqq_u16(high, vb)));
    const uint8x16_t bits = vandq_u8(vcombine_u8(found_low, found_high), vld1q_u8(weights));
    return (uint32_t)vaddv_u8(vget_low_u8(bits)) | ((uint32_t)vaddv_u8(vget_high_u8(bits)) << 8);
#else
    uint32_t mask = 0;
    for (uint32_t i = 0; i < 16; i++) {
        uint16_t unit;
        memcpy(&unit, units + 2 * i, 2);
        mask |= (uint32_t)(unit == a || unit == b) << i;
    }
    return mask;
#endif
}

/* Bit i is set when code unit i of the 16 at `units` is below `first` or above `last`, of which none exceeds 0x7E.
 * Reads 32 bytes. */
static inline uint32_t wire_units_outside(const uint8_t *units, uint16_t first, uint16_t last) {
#if defined(MSMQWIRE_SSE2)
    const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)units);
    const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(units + 16));
    const __m128i narrow = _mm_packs_epi16(low, high); /* others saturate to 0x7F or to a negative number */
    const __m128i below = _mm_cmplt_epi8(narrow, _mm_set1_epi8((char)first));
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(below, _mm_cmpgt_epi8(narrow, _mm_set1_epi8((char)last))));
#else
    uint32_t mask = 0;
    for (uint32_t i = 0; i < 16; i++) {
        uint16_t unit;
        memcpy(&unit, units + 2 * i, 2);
        mask |= (uint32_t)(unit < first || unit > last) << i;
    }
    return mask;
#endif
}

/* Bit i is set when code unit i of the 16 at `units` equals `unit`, below 0x7F; of `nulls`: it is U+0000. */
static inline uint64_t wire_find_unit_and_nulls(const uint8_t *units, uint16_t unit, uint64_t *nulls) {
#if defined(MSMQWIRE_SSE2)
    const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)units);
    const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(units + 16));
    const __m128i narrow = _mm_packs_epi16(low, high); /* others saturate to 0x7F or 0x80 */
    *nulls = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(narrow, _mm_setzero_si128()));
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(narrow, _mm_set1_epi8((char)unit)));
#else
    *nulls = wire_find_units(units, 0, 0);
    return wire_find_units(units, unit, unit);
#endif
}

/* Bit i of the result: code unit i of `count`, at most 64, equals `unit`, below 0x7F; of `nulls`: it is U+0000.
 * The last sixteen are loaded so that they end with the array: 32 bytes in front of it must be readable. */
static inline uint64_t wire_find_in_block(const uint8_t *array, uint32_t count, uint16_t unit, uint64_t *nulls) {
    uint64_t found = 0, zeros = 0, more;
    uint32_t i = 0;
    for (; i + 16 <= count; i += 16) {
        found |= wire_find_unit_and_nulls(array + 2 * i, unit, &more) << i;
        zeros |= more << i;
    }
    if (i < count) {
        found |= wire_find_unit_and_nulls(array + 2 * count - 32, unit, &more) >> (16 - (count - i)) << i;
        zeros |= more >> (16 - (count - i)) << i;
    }
    *nulls = zeros;
    return found;
}

/* How many of 16 code units are ASCII before the first that is not; they are narrowed to bytes at `out`, which takes 16
 * bytes: those after them are of no use. */
static inline uint32_t wire_narrow_ascii(const uint8_t *units, uint8_t *out) {
#if defined(MSMQWIRE_SSE2)
    const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)units);
    const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(units + 16));
    const __m128i beyond = _mm_set1_epi16((short)0xFF80), zero = _mm_setzero_si128();
    const __m128i ascii = _mm_packs_epi16(
        _mm_cmpeq_epi16(_mm_and_si128(low, beyond), zero), _mm_cmpeq_epi16(_mm_and_si128(high, beyond), zero));
    _mm_storeu_si128((__m128i *)(void *)out, _mm_packus_epi16(low, high));
    return wire_lowest_bit(~(uint32_t)_mm_movemask_epi8(ascii));
#else
    uint32_t count = 16;
#if defined(MSMQWIRE_NEON)
    const uint16x8_t low = vreinterpretq_u16_u8(vld1q_u8(units));
    const uint16x8_t high = vreinterpretq_u16_u8(vld1q_u8(units + 16));
    vst1q_u8(out, vcombine_u8(vmovn_u16(low), vmovn_u16(high)));
    if (vmaxvq_u16(vorrq_u16(low, high)) < 0x80)
        return count;
#endif
    for (uint32_t i = 16; i-- > 0;) {
        uint16_t unit;
        memcpy(&unit, units + 2 * i, 2);
        out[i] = (uint8_t)unit;
        if (unit >= 0x80)
            count = i;
    }
    return count;
#endif
}

/* The 32 lower-case hexadecimal digits of 16 bytes. */
static inline void wire_hexadecimal(const uint8_t *bytes, uint8_t *digits) {
#if defined(MSMQWIRE_SSE2)
    const __m128i nibble = _mm_set1_epi8(0x0F), nine = _mm_set1_epi8(9);
    const __m128i value = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    const __m128i high = _mm_and_si128(_mm_srli_epi16(value, 4), nibble);
    const __m128i low = _mm_and_si128(value, nibble);
    const __m128i halves[2] = {_mm_unpacklo_epi8(high, low), _mm_unpackhi_epi8(high, low)};
    for (int i = 0; i < 2; i++) {
        const __m128i letter = _mm_and_si128(_mm_cmpgt_epi8(halves[i], nine), _mm_set1_epi8('a' - '0' - 10));
        const __m128i text = _mm_add_epi8(_mm_add_epi8(halves[i], _mm_set1_epi8('0')), letter);
        _mm_storeu_si128((__m128i *)(void *)(digits + 16 * i), text);
    }
#else
    for (int i = 0; i < 16; i++) {
        digits[2 * i] = (uint8_t)"0123456789abcdef"[bytes[i] >> 4];
        digits[2 * i + 1] = (uint8_t)"0123456789abcdef"[bytes[i] & 15];
    }
#endif
}

/* The two halves of the product of 128 bits, combined by xor: a hash, where both factors are combined with secrets. */
static inline uint64_t wire_folded_product(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__) && !defined(MSMQWIRE_PORTABLE)
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    const uint64_t low = (uint32_t)a * (uint64_t)(uint32_t)b, high = (a >> 32) * (b >> 32);
    const uint64_t one = (a >> 32) * (uint32_t)b, other = (uint32_t)a * (b >> 32);
    const uint64_t middle = (low >> 32) + (uint32_t)one + (uint32_t)other;
    return (middle << 32 | (uint32_t)low) ^ (high + (one >> 32) + (other >> 32) + (middle >> 32));
#endif
}

#endif
