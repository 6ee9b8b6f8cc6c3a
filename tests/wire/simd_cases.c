/* Compares every operation of simd.h with its plain definition, over 200,000 seeded cases; prints the form and their number.
 *
 * The arrays end where their memory ends on the heap, so that valgrind and sanitizers see what is read beyond.
 */
#include <stdio.h>
#include <stdlib.h>

#include "msmqwire/wire/simd.h"

#define CASES 200000

static uint64_t state = 0x9E3779B97F4A7C15u;

static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* A code unit: often one that is looked for, or next to a bound */
static uint16_t unit(void) {
    static const uint16_t frequent[] = {0, 1, 0x2C, 0x5C, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xD7FF, 0xD800, 0xFFFF};
    const uint64_t random = next();
    return random % 3 ? (uint16_t)(random >> 16) : frequent[(random >> 8) % (sizeof frequent / 2)];
}

static void check(int holds, const char *operation, int number) {
    if (!holds) {
        fprintf(stderr, "%s differs in case %d\n", operation, number);
        exit(1);
    }
}

static void check_units(int number) {
    const size_t count = 16 + next() % 120;
    /* 32 readable bytes come before the array of wire_find_in_block */
    uint8_t *memory = malloc(32 + 2 * count), *array = memory + 32;
    uint16_t units[16 + 120];
    const uint16_t a = unit(), b = unit(), c = a % 0x7F, d = b % 0x7F, first = c < d ? c : d, last = c < d ? d : c;
    const int ascii = next() % 2;
    for (size_t i = 0; i < count; i++) {
        units[i] = ascii ? unit() & 0x7F : unit();
    }
    memset(memory, 0, 32);
    memcpy(array, units, 2 * count);

    uint32_t found = 0, outside = 0;
    uint32_t narrow = 16;
    for (uint32_t i = 0; i < 16; i++) {
        found |= (uint32_t)(units[i] == a || units[i] == b) << i;
        outside |= (uint32_t)(units[i] < first || units[i] > last) << i;
        if (units[i] >= 0x80 && narrow == 16) {
            narrow = i;
        }
    }
    check(wire_find_units(array, a, b) == found, "wire_find_units", number);
    check(wire_units_outside(array, first, last) == outside, "wire_units_outside", number);
    uint8_t out[16];
    check(wire_narrow_ascii(array, out) == narrow, "wire_narrow_ascii", number);
    for (uint32_t i = 0; i < narrow; i++) {
        check(out[i] == units[i], "wire_narrow_ascii", number);
    }
    const uint16_t wanted = a % 0x7F;
    for (size_t block = 0; block < count; block += 64) {
        const uint32_t here = count - block < 64 ? (uint32_t)(count - block) : 64;
        uint64_t nulls, matches = 0, zeros = 0;
        for (size_t i = block; i < block + here; i++) {
            matches |= (uint64_t)(units[i] == wanted) << (i - block);
            zeros |= (uint64_t)(units[i] == 0) << (i - block);
        }
        check(wire_find_in_block(array + 2 * block, here, wanted, &nulls) == matches, "wire_find_in_block", number);
        check(nulls == zeros, "nulls of wire_find_in_block", number);
    }
    free(memory);
}

static void check_numbers(int number) {
    const uint64_t a = next() >> next() % 64, b = next() >> next() % 64;
    uint64_t high = 0, low = 0;
    uint32_t bits = 0, lowest = 0;
    for (int i = 0; i < 64; i++) {
        /* Add a shifted by i, with the carry */
        if (b >> i & 1) {
            const uint64_t before = low;
            low += a << i;
            high += (i ? a >> (64 - i) : 0) + (low < before);
        }
        bits += (uint32_t)a >> (i % 32) & (i < 32);
    }
    while (a && !(a >> lowest & 1)) {
        lowest++;
    }
    check(wire_folded_product(a, b) == (low ^ high), "wire_folded_product", number);
    check(wire_popcount((uint32_t)a) == bits, "wire_popcount", number);
    check(!a || wire_lowest_bit(a) == lowest, "wire_lowest_bit", number);
    uint32_t value = (uint32_t)b, swapped = 0;
    for (int i = 0; i < 4; i++) {
        swapped = swapped << 8 | (value >> 8 * i & 0xFF);
    }
    check(wire_bswap32(value) == swapped, "wire_bswap32", number);
    check(wire_bswap16((uint16_t)value) == (uint16_t)(swapped >> 16), "wire_bswap16", number);
}

static void check_hexadecimal(int number) {
    uint8_t bytes[16], digits[32];
    char expected[33];
    for (int i = 0; i < 16; i++) {
        bytes[i] = (uint8_t)next();
        snprintf(expected + 2 * i, 3, "%02x", bytes[i]);
    }
    wire_hexadecimal(bytes, digits);
    check(!memcmp(digits, expected, 32), "wire_hexadecimal", number);
}

int main(void) {
    for (int number = 0; number < CASES; number++) {
        check_units(number);
        check_numbers(number);
        if (number % 16 == 0) {
            check_hexadecimal(number);
        }
    }
#if defined(MSMQWIRE_SSE2)
    printf("SSE2 %d\n", CASES);
#elif defined(MSMQWIRE_NEON)
    printf("NEON %d\n", CASES);
#else
    printf("portable %d\n", CASES);
#endif
    return 0;
}
