/* The functions of a vector vocabulary against plain C, lane by lane. Compiled with
 *   VOCABULARY       its header
 *   VOCABULARY_NAME  the name of its instruction set
 * and the flags of that instruction set. */
#include "vocabulary.h"

#include "harness/test.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "harness/compare.h"
#include "harness/guarded.h"
#include "harness/random.h"
#include "kernel/storage_scalar.h"

#include VOCABULARY

#define PASTE(a, b)    a##b
#define NAMED(a, b)    PASTE(a, b)
#define TEXT(name)     #name
#define TEXT_OF(macro) TEXT(macro)

/* Pairs of all of these go through each function of two arguments. */
static const float numbers[] = {
    0.0f,       -0.0f,       1.0f,    -1.0f,    3.5f,      -2.25f,     1e-38f,        0x1p-149f,
    -0x1p-140f, 16777215.0f, 3.0e38f, -3.0e38f, 0.1f,      -0.3f,      INFINITY,      -INFINITY,
    NAN,        1e-20f,      -87.33f, 88.0f,    0x1p-126f, 1.0000001f, -0.333333343f, 12582912.0f,
};

static vector load_lanes(const float *lanes)
{
    return vector_load(lanes);
}

/* Whether two lanes agree: bits, but any NaN is as good as another. */
static int same(float a, float b)
{
    uint32_t bits_a, bits_b;
    memcpy(&bits_a, &a, sizeof a);
    memcpy(&bits_b, &b, sizeof b);
    return bits_a == bits_b || (isnan(a) && isnan(b));
}

static void check_lanes(const char *what, vector actual, const float *expected)
{
    float lanes[VECTOR_LANES];
    vector_store(lanes, actual);
    for (int n = 0; n < VECTOR_LANES; n++)
        if (!same(lanes[n], expected[n]))
            test_fail(__FILE__, __LINE__, "%s, lane %d: %.9g, expected %.9g", what, n,
                      (double)lanes[n], (double)expected[n]);
}

static void check_mask(const char *what, mask actual, uint32_t expected)
{
    if (mask_bits(actual) != expected)
        test_fail(__FILE__, __LINE__, "%s: mask %x, expected %x", what, mask_bits(actual),
                  expected);
}

static float absolute(float x)
{
    return copysignf(x, 1.0f);
}

/* All that is defined lane by lane, on lanes a, b, c. */
static void check_arithmetic(const float *a, const float *b, const float *c)
{
    vector x = load_lanes(a), y = load_lanes(b), z = load_lanes(c);
    uint32_t less = 0, equal = 0;
    for (int n = 0; n < VECTOR_LANES; n++) {
        less |= (uint32_t)(a[n] < b[n]) << n;
        equal |= (uint32_t)(a[n] == b[n]) << n;
    }
    check_mask("less", vector_less(x, y), less);
    check_mask("equal", vector_equal(x, y), equal);
    check_mask("and", mask_and(vector_less(x, y), vector_equal(x, y)), 0);
    check_mask("and itself", mask_and(vector_less(x, y), vector_less(x, y)), less);

#define CHECK_LANES(call, formula)                                                                 \
    do {                                                                                           \
        float expected[VECTOR_LANES];                                                              \
        for (int n = 0; n < VECTOR_LANES; n++)                                                     \
            expected[n] = (formula);                                                               \
        check_lanes(#call, call, expected);                                                        \
    } while (0)
    CHECK_LANES(vector_add(x, y), a[n] + b[n]);
    CHECK_LANES(vector_subtract(x, y), a[n] - b[n]);
    CHECK_LANES(vector_multiply(x, y), a[n] * b[n]);
    CHECK_LANES(vector_divide(x, y), a[n] / b[n]);
    CHECK_LANES(vector_multiply_add(x, y, z), fmaf(a[n], b[n], c[n]));
    CHECK_LANES(vector_add_product(z, x, y), fmaf(a[n], b[n], c[n]));
    CHECK_LANES(vector_negative_multiply_add(x, y, z), fmaf(-a[n], b[n], c[n]));
    CHECK_LANES(vector_maximum(x, y), a[n] > b[n] ? a[n] : b[n]);
    CHECK_LANES(vector_absolute(x), absolute(a[n]));
    CHECK_LANES(vector_select(vector_less(x, y), x, z), a[n] < b[n] ? a[n] : c[n]);
    CHECK_LANES(vector_clear(vector_less(x, y), z), a[n] < b[n] ? 0.0f : c[n]);
}

static void arithmetic_on_all_pairs(const void *argument)
{
    (void)argument;
    struct random_source source = {21};
    const size_t count = COUNT(numbers);
    float a[VECTOR_LANES], b[VECTOR_LANES], c[VECTOR_LANES];
    for (size_t pair = 0; pair < count * count; pair += VECTOR_LANES) {
        for (size_t n = 0; n < VECTOR_LANES; n++) {
            a[n] = numbers[(pair + n) / count % count];
            b[n] = numbers[(pair + n) % count];
            c[n] = numbers[random_bits(&source) % count];
        }
        check_arithmetic(a, b, c);
    }
    for (int round = 0; round < 200; round++) {
        random_floats(&source, -2, 2, a, VECTOR_LANES);
        random_floats(&source, -2, 2, b, VECTOR_LANES);
        random_floats(&source, -2, 2, c, VECTOR_LANES);
        check_arithmetic(a, b, c);
    }
}

static void constants_and_broadcasts(const void *argument)
{
    (void)argument;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        float zeros[VECTOR_LANES] = {0}, expected[VECTOR_LANES];
        float *one = guarded_floats(1, i % 2 ? GUARD_BEHIND : GUARD_BEFORE);
        *one = numbers[i];
        for (int n = 0; n < VECTOR_LANES; n++)
            expected[n] = numbers[i];
        check_lanes("zero", vector_zero(), zeros);
        check_lanes("set", vector_set(numbers[i]), expected);
        check_lanes("broadcast", vector_broadcast(one), expected);
    }
}

static void loads_and_stores(const void *argument)
{
    (void)argument;
    struct random_source source = {22};
    for (int side = 0; side < 2; side++) {
        enum guard_side guard = side ? GUARD_BEHIND : GUARD_BEFORE;
        float *from = guarded_panel(VECTOR_LANES, guard), *to = guarded_panel(VECTOR_LANES, guard);
        float *loose_from = guarded_floats(VECTOR_LANES, guard);
        float *loose_to = guarded_floats(VECTOR_LANES, guard);
        random_floats(&source, -1, 1, from, VECTOR_LANES);
        random_floats(&source, -1, 1, loose_from, VECTOR_LANES);
        vector_store_aligned(to, vector_load_aligned(from));
        vector_store(loose_to, vector_load(loose_from));
        CHECK_SAME_BITS(to, from, VECTOR_LANES);
        CHECK_SAME_BITS(loose_to, loose_from, VECTOR_LANES);
        for (int64_t count = 0; count <= VECTOR_LANES; count++) {
            test_context("%d lanes, side %d", (int)count, side);
            float *part = guarded_floats((size_t)count, guard), expected[VECTOR_LANES] = {0};
            memcpy(part, from, (size_t)count * sizeof *part);
            memcpy(expected, from, (size_t)count * sizeof *part);
            check_lanes("load_part", vector_load_part(part, count), expected);

            float *written = guarded_floats((size_t)count, guard);
            vector_store_part(written, count, vector_load(from));
            CHECK_SAME_BITS(written, from, (size_t)count);
            float *whole = guarded_floats(VECTOR_LANES, guard);
            vector_store_part(whole, count, vector_load(from));
            CHECK_SAME_BITS(whole, from, (size_t)count);
            CHECK_UNWRITTEN(whole + count, (size_t)(VECTOR_LANES - count));
        }
    }
}

/* n + 1.5·2²³, which holds n in its low bits. */
static vector shifted(int first)
{
    float lanes[VECTOR_LANES];
    for (int n = 0; n < VECTOR_LANES; n++)
        lanes[n] = 12582912.0f + (float)(first + n);
    return load_lanes(lanes);
}

static void powers_of_two(const void *argument)
{
    (void)argument;
    for (int first = -126; first + VECTOR_LANES - 1 <= 127; first++) {
        float expected[VECTOR_LANES];
        for (int n = 0; n < VECTOR_LANES; n++)
            expected[n] = ldexpf(1.0f, first + n);
        check_lanes("power_of_two", vector_power_of_two(shifted(first)), expected);
    }
#if !defined(__aarch64__)
    for (int first = -126 * 8; first + VECTOR_LANES - 1 < 128 * 8; first++) {
        float expected[VECTOR_LANES];
        for (int n = 0; n < VECTOR_LANES; n++)
            expected[n] = (float)exp2((double)(first + n) / 8);
        check_lanes("power_of_eighths", vector_power_of_eighths(shifted(first)), expected);
    }
#endif
}

/* Sums of whole numbers are exact in any order; each lane has a weight of its own. */
static void sums_of_lanes(const void *argument)
{
    (void)argument;
    float lanes[VECTOR_LANES] = {0};
    for (int n = 0; n < VECTOR_LANES; n++) {
        lanes[n] = (float)(1 << n);
        CHECK(vector_sum(load_lanes(lanes)) == (float)((2 << n) - 1));
    }
    lanes[VECTOR_LANES / 2] = NAN;
    CHECK(isnan(vector_sum(load_lanes(lanes))));
}

/* Each row's sum in its lane, in an order that is the same for all rows. */
static void sums_of_rows(const void *argument)
{
    (void)argument;
    struct random_source source = {25};
    float row[VECTOR_LANES], sums[VECTOR_LANES];
    vector rows[VECTOR_LANES];
    for (int i = 0; i < VECTOR_LANES; i++) {
        sums[i] = 0;
        for (int n = 0; n < VECTOR_LANES; n++) {
            row[n] = (float)random_integer(&source, -1000, 1000);
            sums[i] += row[n];
        }
        rows[i] = load_lanes(row);
    }
    check_lanes("sums", vector_sums(rows), sums);

    for (int round = 0; round < 100; round++) {
        random_floats(&source, -1, 1, row, VECTOR_LANES);
        for (int i = 0; i < VECTOR_LANES; i++)
            rows[i] = load_lanes(row);
        vector_store(sums, vector_sums(rows));
        for (int i = 1; i < VECTOR_LANES; i++)
            CHECK(same(sums[i], sums[0]));
    }
}

static void transposition(const void *argument)
{
    (void)argument;
    vector rows[VECTOR_LANES];
    for (int i = 0; i < VECTOR_LANES; i++) {
        float lanes[VECTOR_LANES];
        for (int j = 0; j < VECTOR_LANES; j++)
            lanes[j] = (float)(100 * i + j);
        rows[i] = load_lanes(lanes);
    }
    vector_transpose(rows);
    for (int i = 0; i < VECTOR_LANES; i++) {
        float expected[VECTOR_LANES];
        for (int j = 0; j < VECTOR_LANES; j++)
            expected[j] = (float)(100 * j + i);
        check_lanes("transpose", rows[i], expected);
    }
}

static void shifts_move_lanes_up(const void *argument)
{
    (void)argument;
    float a[VECTOR_LANES], before[VECTOR_LANES], expected[VECTOR_LANES];
    for (int n = 0; n < VECTOR_LANES; n++) {
        a[n] = (float)n;
        before[n] = (float)(100 + n);
        expected[n] = n == 0 ? (float)(100 + VECTOR_LANES - 1) : (float)(n - 1);
    }
    check_lanes("shift_in", vector_shift_in(load_lanes(before), load_lanes(a)), expected);
}

static void stored_elements_are_widened(const void *argument)
{
    (void)argument;
    float expected[VECTOR_LANES];
    uint16_t *halves = guarded_bytes(VECTOR_LANES * sizeof *halves, sizeof *halves, GUARD_BEHIND);
    for (uint32_t first = 0; first < 65536; first += VECTOR_LANES) {
        for (uint32_t n = 0; n < VECTOR_LANES; n++)
            halves[n] = (uint16_t)(first + n);
        attn_widen_scalar(ATTN_STORAGE_F16, halves, 1.0f, VECTOR_LANES, expected);
        check_lanes("load_f16", vector_load_f16(halves), expected);
        attn_widen_scalar(ATTN_STORAGE_BF16, halves, 1.0f, VECTOR_LANES, expected);
        check_lanes("load_bf16", vector_load_bf16(halves), expected);
    }
    uint16_t *pairs = guarded_bytes(2 * VECTOR_LANES * sizeof *pairs, 2, GUARD_BEHIND);
    for (uint32_t first = 0; first < 65536; first += 2 * VECTOR_LANES) {
        float all[2 * VECTOR_LANES], even[VECTOR_LANES], odd[VECTOR_LANES];
        for (uint32_t n = 0; n < 2 * VECTOR_LANES; n++)
            pairs[n] = (uint16_t)(first + n);
        attn_widen_scalar(ATTN_STORAGE_BF16, pairs, 1.0f, 2 * VECTOR_LANES, all);
        for (int n = 0; n < VECTOR_LANES; n++) {
            even[n] = all[2 * n];
            odd[n] = all[2 * n + 1];
        }
        check_lanes("load_bf16_even", vector_load_bf16_even(pairs), even);
        check_lanes("load_bf16_odd", vector_load_bf16_odd(pairs), odd);
    }
    int8_t *bytes = guarded_bytes(VECTOR_LANES, 1, GUARD_BEHIND);
    for (int first = -128; first < 128; first += VECTOR_LANES) {
        for (int n = 0; n < VECTOR_LANES; n++) {
            bytes[n] = (int8_t)(first + n);
            expected[n] = (float)(first + n);
        }
        check_lanes("load_i8", vector_load_i8(bytes), expected);
    }
}

static void stored_elements_are_rounded(const void *argument)
{
    (void)argument;
    struct random_source source = {23};
    uint16_t *halves = guarded_bytes(VECTOR_LANES * sizeof *halves, sizeof *halves, GUARD_BEHIND);
    uint16_t expected[VECTOR_LANES];
    for (int round = 0; round < 20000; round++) {
        uint32_t bits[VECTOR_LANES];
        for (int n = 0; n < VECTOR_LANES; n++) {
            /* Any float, and one in four with the low bits of a tie. */
            bits[n] = (uint32_t)random_bits(&source);
            if (n % 4 == 0)
                bits[n] = (bits[n] & UINT32_C(0xffff0000)) | UINT32_C(0x8000);
            if (n % 4 == 1)
                bits[n] = (bits[n] & UINT32_C(0xbfffe000)) | UINT32_C(0x30001000);
        }
        float lanes[VECTOR_LANES];
        memcpy(lanes, bits, sizeof lanes);
        attn_narrow_scalar(ATTN_STORAGE_F16, lanes, VECTOR_LANES, expected);
        vector_store_f16(halves, load_lanes(lanes));
        CHECK(memcmp(halves, expected, sizeof expected) == 0);
        attn_narrow_scalar(ATTN_STORAGE_BF16, lanes, VECTOR_LANES, expected);
        vector_store_bf16(halves, load_lanes(lanes));
        CHECK(memcmp(halves, expected, sizeof expected) == 0);
    }
}

static void bits_of_words_and_zero_bytes(const void *argument)
{
    (void)argument;
    struct random_source source = {24};
    uint32_t *words = guarded_bytes(VECTOR_LANES * sizeof *words, 64, GUARD_BEHIND);
    unsigned char *bytes = guarded_bytes(32, 1, GUARD_BEHIND);
    for (int round = 0; round < 200; round++) {
        for (int n = 0; n < VECTOR_LANES; n++)
            words[n] = (uint32_t)random_bits(&source);
        for (int bit = 0; bit < 32; bit++) {
            uint32_t expected = 0;
            for (int n = 0; n < VECTOR_LANES; n++)
                expected |= (words[n] >> bit & 1) << n;
            check_mask("bit", vector_bit(words, UINT32_C(1) << bit), expected);
        }
        uint32_t zeros = 0;
        for (int t = 0; t < 32; t++) {
            bytes[t] = (unsigned char)(random_integer(&source, 0, 2) ? random_bits(&source) : 0);
            zeros |= (uint32_t)(bytes[t] == 0) << t;
        }
        CHECK_EQUAL(vector_zero_bytes(bytes), zeros);
    }
}

static uint32_t random_word(struct random_source *source)
{
    const uint32_t edges[] = {0, 1, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff};
    return random_integer(source, 0, 3) ? (uint32_t)random_bits(source)
                                        : edges[random_integer(source, 0, COUNT(edges) - 1)];
}

/* Every `apart`-th lane. */
static void check_words(const char *what, word_vector actual, const uint32_t *expected, int apart)
{
    uint32_t lanes[VECTOR_LANES];
    memcpy(lanes, &actual, sizeof lanes);
    for (int n = 0; n < VECTOR_LANES; n += apart)
        if (lanes[n] != expected[n])
            test_fail(__FILE__, __LINE__, "%s, lane %d: %x, expected %x", what, n, lanes[n],
                      expected[n]);
}

static void words_of_random_numbers(const void *argument)
{
    (void)argument;
    struct random_source source = {26};
    uint32_t *a = guarded_bytes(VECTOR_LANES * sizeof *a, 64, GUARD_BEHIND);
    uint32_t *b = guarded_bytes(VECTOR_LANES * sizeof *b, 64, GUARD_BEHIND);
    for (int round = 0; round < 2000; round++) {
        uint32_t same[VECTOR_LANES], either[VECTOR_LANES], products[VECTOR_LANES];
        uint32_t moved[VECTOR_LANES] = {0}, woven[VECTOR_LANES], less = 0;
        for (int n = 0; n < VECTOR_LANES; n++) {
            a[n] = random_word(&source);
            b[n] = n % 3 ? random_word(&source) : a[n];
        }
        for (int n = 0; n < VECTOR_LANES; n++) {
            int even = n - n % 2;
            uint64_t product = (uint64_t)a[even] * b[even];
            same[n] = a[0];
            either[n] = a[n] ^ b[n];
            products[n] = (uint32_t)(n % 2 ? product >> 32 : product);
            moved[even] = a[n]; /* in the end the odd lane */
            woven[n] = n % 2 ? b[even] : a[even];
            less |= (uint32_t)(a[n] < b[n]) << n;
        }
        word_vector x = words_load_aligned(a), y = words_load_aligned(b);
        check_words("load_aligned", x, a, 1);
        check_words("set", words_set(a[0]), same, 1);
        check_words("xor", words_xor(x, y), either, 1);
        check_words("multiply_even", words_multiply_even(x, y), products, 1);
        check_words("odd_to_even", words_odd_to_even(x), moved, 2);
        check_words("interleave", words_interleave(x, y), woven, 1);
        check_mask("less", words_less(x, y), less);
    }
}

static float float_of_word(uint32_t word)
{
    return (float)word;
}

static void words_of_bytes(const void *argument)
{
    (void)argument;
    struct random_source source = {27};
    unsigned char *bytes = guarded_bytes(VECTOR_LANES, 1, GUARD_BEHIND);
    uint32_t *a = guarded_bytes(VECTOR_LANES * sizeof *a, 64, GUARD_BEHIND);
    uint32_t *b = guarded_bytes(VECTOR_LANES * sizeof *b, 64, GUARD_BEHIND);
    for (int round = 0; round < 2000; round++) {
        uint32_t wide[VECTOR_LANES], both[VECTOR_LANES], any[VECTOR_LANES];
        uint32_t left[VECTOR_LANES], right[VECTOR_LANES];
        float nibbles[VECTOR_LANES], floats[VECTOR_LANES];
        int bits = (int)random_integer(&source, 0, 31);
        for (int n = 0; n < VECTOR_LANES; n++) {
            wide[n] = bytes[n] = (unsigned char)random_bits(&source);
            a[n] = random_word(&source);
            b[n] = random_word(&source);
            both[n] = a[n] & b[n];
            any[n] = a[n] | b[n];
            left[n] = a[n] << bits;
            right[n] = a[n] >> bits;
            nibbles[n] = float_of_word(a[n] & 15);
            floats[n] = float_of_word(bytes[n]);
        }
        word_vector x = words_load_aligned(a), y = words_load_aligned(b);
        check_words("load_bytes", words_load_bytes(bytes), wide, 1);
        check_words("and", words_and(x, y), both, 1);
        check_words("or", words_or(x, y), any, 1);
        check_words("shift_left", words_shift_left(x, bits), left, 1);
        check_words("shift_right", words_shift_right(x, bits), right, 1);
        check_lanes("low_nibble", words_low_nibble(x), nibbles);
        check_lanes("to_floats", words_to_floats(words_load_bytes(bytes)), floats);
        check_mask("from_bits", mask_from_bits(a[0]),
                   a[0] & (uint32_t)((UINT64_C(1) << VECTOR_LANES) - 1));
    }
}

#define RUN(name, body) test_run(body, NULL, "vocabulary: " name " [" TEXT_OF(VOCABULARY_NAME) "]")

void NAMED(vocabulary_, VOCABULARY_NAME)(void)
{
    RUN("constants and broadcasts", constants_and_broadcasts);
    RUN("loads and stores, whole and in part", loads_and_stores);
    RUN("arithmetic, comparisons and selection", arithmetic_on_all_pairs);
    RUN("powers of two", powers_of_two);
    RUN("sums of lanes", sums_of_lanes);
    RUN("sums of rows", sums_of_rows);
    RUN("transposition", transposition);
    RUN("shifts move lanes up", shifts_move_lanes_up);
    RUN("stored elements are widened", stored_elements_are_widened);
    RUN("stored elements are rounded", stored_elements_are_rounded);
    RUN("bits of words and zero bytes", bits_of_words_and_zero_bytes);
    RUN("words of random numbers", words_of_random_numbers);
    RUN("words of bytes", words_of_bytes);
}
