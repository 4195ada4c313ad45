/* attn_buffer_add_json_float: each float reads back as itself, and no shorter decimal does. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "cmocka_test.h"

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void print_float(float value, char text[64])
{
    struct attn_buffer buffer = {0};
    attn_buffer_add_json_float(&buffer, value);
    assert_true(buffer.size < 64);
    strcpy(text, buffer.data);
    attn_buffer_release(&buffer);
}

static void check_text(float value, const char *expected)
{
    char text[64];
    print_float(value, text);
    assert_string_equal(text, expected);
}

static void spellings(void **state)
{
    (void)state;
    check_text(0.0F, "0");
    check_text(-0.0F, "-0.0");
    check_text(1.0F, "1");
    check_text(-1.0F, "-1");
    check_text(0.1F, "0.1");
    check_text(0.119F, "0.119");
    check_text(-12.5F, "-12.5");
    check_text(100.0F, "100");
    check_text(123456.0F, "123456");
    check_text(1234567.0F, "1234567");
    check_text(16777216.0F, "16777216");
    check_text(0.00012F, "0.00012");
    check_text(1e-5F, "0.00001");
    check_text(1.5e-6F, "1.5e-6");
    check_text(0.333333343F, "0.33333334");
    check_text(nextafterf(1e-4F, 0), "0.00009999999");
    check_text(999999.94F, "999999.94");
    check_text(FLT_MAX, "3.4028235e38");
    check_text(FLT_MIN, "1.1754944e-38");
    check_text(from_bits(1), "1e-45");
    check_text(from_bits(0x007fffff), "1.1754942e-38");
    check_text(-1e20F, "-1e20");
}

static void what_json_cannot_say_is_null(void **state)
{
    (void)state;
    check_text(NAN, "null");
    check_text(INFINITY, "null");
    check_text(-INFINITY, "null");
}

/* Digits without leading and trailing zeros. */
static int significant_digits(const char *text)
{
    int count = 0;
    int zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (count == 0 && *text == '0'))
            continue;
        count++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return count - zeros;
}

/* Whether one of the decimals around `value` that have `digits` digits reads back as it. */
static int decimal_exists(float value, int digits)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", digits - 1, (double)value);
    char *exponent = strchr(text, 'e');
    double step = pow(10, atoi(exponent + 1) - (digits - 1));
    for (int i = -1; i <= 1; i++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, (double)value + i * step);
        if (strtof(text, NULL) == value)
            return 1;
    }
    return 0;
}

static void check_shortest(float value)
{
    char text[64];
    print_float(value, text);
    float back = strtof(text, NULL);
    if (memcmp(&back, &value, sizeof value) != 0)
        fail_msg("%.9g is printed as %s, which reads back as %.9g", (double)value, text,
                 (double)back);
    int digits = significant_digits(text);
    if (digits > 1 && decimal_exists(value, digits - 1))
        fail_msg("%.9g is printed as %s, though %d digits are enough", (double)value, text,
                 digits - 1);
}

static void powers_of_two_and_their_neighbours(void **state)
{
    (void)state;
    for (uint32_t exponent = 1; exponent < 255; exponent++)
        for (uint32_t i = 0; i < 3; i++)
            check_shortest(from_bits((exponent << 23) + i - 1));
}

static void floats_of_all_sizes(void **state)
{
    (void)state;
    for (uint32_t bits = 1; bits < 0x7f800000; bits += 104729)
        check_shortest(from_bits(bits));
}

static void floats_of_usual_sizes(void **state)
{
    (void)state;
    uint32_t first = 0x37000000; /* 7.6e-6, below the range of the fast path */
    uint32_t last = 0x49800000;  /* 1048576, above it */
    for (uint32_t bits = first; bits < last; bits += 7919)
        check_shortest(from_bits(bits));
}

static void floats_nearest_to_short_decimals(void **state)
{
    (void)state;
    for (int i = 1; i < 100000; i++)
        check_shortest((float)(i / 1e5));
}

static void a_comma_in_the_locale_changes_nothing(void **state)
{
    (void)state;
    const char *names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]);
    if (!found)
        skip_because("no locale with a decimal comma is installed");
    char fast[64];
    char slow[64];
    print_float(0.25F, fast);
    print_float(1.5e-12F, slow);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(fast, "0.25");
    assert_string_equal(slow, "1.5e-12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spellings),
        cmocka_unit_test(what_json_cannot_say_is_null),
        cmocka_unit_test(powers_of_two_and_their_neighbours),
        cmocka_unit_test(floats_of_all_sizes),
        cmocka_unit_test(floats_of_usual_sizes),
        cmocka_unit_test(floats_nearest_to_short_decimals),
        cmocka_unit_test(a_comma_in_the_locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
