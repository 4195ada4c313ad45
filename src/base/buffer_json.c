/* The parts of JSON that a writer cannot get from printf: strings and floats. */
#include "base/buffer.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The code point of the character at `text` where it must be escaped, with its size in bytes;
 * 0 bytes for a character that stands for itself. */
static size_t character_to_escape(const unsigned char *text, size_t size, unsigned *code)
{
    unsigned char c = text[0];
    if (c < 0x20 || c == 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&') {
        *code = c;
        return 1;
    }
    /* U+0080 to U+009F: control characters that some terminals obey. */
    if (c == 0xc2 && size >= 2 && text[1] < 0xa0) {
        *code = text[1];
        return 2;
    }
    /* Line ends to JavaScript, though not to JSON. */
    if (c == 0xe2 && size >= 3 && text[1] == 0x80 && (text[2] == 0xa8 || text[2] == 0xa9)) {
        *code = text[2] == 0xa8 ? 0x2028 : 0x2029;
        return 3;
    }
    return 0;
}

static void add_escape(struct attn_buffer *buffer, unsigned code)
{
    switch (code) {
    case '"':
        attn_buffer_add_text(buffer, "\\\"");
        break;
    case '\\':
        attn_buffer_add_text(buffer, "\\\\");
        break;
    case '\n':
        attn_buffer_add_text(buffer, "\\n");
        break;
    case '\r':
        attn_buffer_add_text(buffer, "\\r");
        break;
    case '\t':
        attn_buffer_add_text(buffer, "\\t");
        break;
    default:
        attn_buffer_format(buffer, "\\u%04x", code);
    }
}

void attn_buffer_add_json_string(struct attn_buffer *buffer, const char *text, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t plain = 0; /* where the run of characters that stand for themselves began */
    attn_buffer_add(buffer, "\"", 1);
    for (size_t i = 0; i < size;) {
        unsigned code;
        size_t length = character_to_escape(bytes + i, size - i, &code);
        if (length == 0) {
            i++;
            continue;
        }
        attn_buffer_add(buffer, bytes + plain, i - plain);
        add_escape(buffer, code);
        i += length;
        plain = i;
    }
    if (size > plain)
        attn_buffer_add(buffer, bytes + plain, size - plain);
    attn_buffer_add(buffer, "\"", 1);
}

/* digits · 10^exponent; 9 digits tell any two floats apart. */
struct decimal {
    uint32_t digits;
    int exponent;
};

enum {
    SURE_DIGITS = FLT_DIG,           /* each decimal of so few digits survives a normal float … */
    ENOUGH_DIGITS = FLT_DECIMAL_DIG, /* … and each float one of so many */
    FAST_MINIMUM_EXPONENT = -5,
    FAST_MAXIMUM_EXPONENT = 5
};

/* Whether the double nearest to a quotient shows which float is nearest to that quotient: not where
 * it stands half-way between two floats, for the true quotient may lie on either side. */
static bool rounds_once(double quotient)
{
    uint64_t bits;
    memcpy(&bits, &quotient, sizeof bits);
    uint64_t below_float = (UINT64_C(1) << (DBL_MANT_DIG - FLT_MANT_DIG)) - 1;
    return (bits & below_float) != (below_float + 1) / 2;
}

/* For 1e-5 ≤ value < 1e6, where all powers of ten that are needed are exact doubles. False where
 * the last bit cannot be told this way. */
static bool shortest_by_doubles(float value, struct decimal *decimal)
{
    static const double power[] = {1e0, 1e1, 1e2, 1e3,  1e4,  1e5,  1e6,
                                   1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};
    static const double floor_of[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4, 1e5};
    int exponent = FAST_MAXIMUM_EXPONENT;
    while (exponent > FAST_MINIMUM_EXPONENT &&
           (double)value < floor_of[exponent - FAST_MINIMUM_EXPONENT])
        exponent--;
    for (int count = SURE_DIGITS; count <= ENOUGH_DIGITS; count++) {
        int shift = count - 1 - exponent;
        double digits = nearbyint((double)value * power[shift]);
        double quotient = digits / power[shift];
        if (!rounds_once(quotient))
            return false;
        if ((float)quotient == value) {
            *decimal = (struct decimal){(uint32_t)digits, -shift};
            return true;
        }
    }
    return false;
}

/* The decimal of `count` digits nearest to a positive value. */
static struct decimal nearest_decimal(float value, int count)
{
    char text[64];
    snprintf(text, sizeof text, "%.*e", count - 1, (double)value);
    struct decimal decimal = {0, 1 - count};
    const char *c = text;
    for (; *c != 'e'; c++) /* passing over whatever the locale puts for a point */
        if (*c >= '0' && *c <= '9')
            decimal.digits = decimal.digits * 10 + (uint32_t)(*c - '0');
    decimal.exponent += (int)strtol(c + 1, NULL, 10);
    return decimal;
}

static bool reads_as(struct decimal decimal, float value)
{
    char text[32];
    snprintf(text, sizeof text, "%lue%d", (unsigned long)decimal.digits, decimal.exponent);
    return strtof(text, NULL) == value;
}

/* For any positive value, through the C library. */
static struct decimal shortest_by_printing(float value)
{
    int count = value < FLT_MIN ? 1 : SURE_DIGITS; /* denormals have less precision */
    for (;; count++) {
        struct decimal decimal = nearest_decimal(value, count);
        if (count == ENOUGH_DIGITS || reads_as(decimal, value))
            return decimal;
        /* Floats lie wider above a power of two than below it: the next decimal above may read back
         * where a nearer one below does not. */
        decimal.digits++;
        if (reads_as(decimal, value))
            return decimal;
    }
}

/* Writes 0.00123, 12.5, 1200 or 1.5e-12. */
static void add_decimal(struct attn_buffer *buffer, struct decimal decimal)
{
    char digits[16];
    int count = snprintf(digits, sizeof digits, "%lu", (unsigned long)decimal.digits);
    while (count > 1 && digits[count - 1] == '0') {
        count--;
        decimal.exponent++;
    }
    int leading = decimal.exponent + count - 1; /* the power of ten of the first digit */

    char text[48];
    int size = 0;
    if (leading < FAST_MINIMUM_EXPONENT || leading > ENOUGH_DIGITS) {
        text[size++] = digits[0];
        if (count > 1) {
            text[size++] = '.';
            memcpy(text + size, digits + 1, (size_t)count - 1);
            size += count - 1;
        }
        size += snprintf(text + size, sizeof text - (size_t)size, "e%d", leading);
    } else {
        for (int place = leading < 0 ? 0 : leading; place >= 0 || place >= decimal.exponent;
             place--) {
            if (place == -1)
                text[size++] = '.';
            int index = leading - place;
            text[size++] = index >= 0 && index < count ? digits[index] : '0';
        }
    }
    attn_buffer_add(buffer, text, (size_t)size);
}

void attn_buffer_add_json_float(struct attn_buffer *buffer, float value)
{
    if (!isfinite(value)) {
        attn_buffer_add_text(buffer, "null");
        return;
    }
    if (signbit(value))
        attn_buffer_add(buffer, "-", 1);
    if (value == 0) {
        /* Readers take "-0" for a whole number, which has no sign. */
        attn_buffer_add_text(buffer, signbit(value) ? "0.0" : "0");
        return;
    }
    float magnitude = fabsf(value);
    struct decimal decimal;
    bool in_fast_range = magnitude >= 1e-5F && magnitude < 1e6F;
    if (!in_fast_range || !shortest_by_doubles(magnitude, &decimal))
        decimal = shortest_by_printing(magnitude);
    add_decimal(buffer, decimal);
}
