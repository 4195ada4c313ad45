/* Floating-point modes: the default in between, what was there afterwards. */
#include "base/float_mode.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cmocka_test.h"
#include "float_control.h"

/* What the modes change, computed at run time. */
struct sums {
    float above_one, below_one;     /* 1 ± 2⁻²⁵ */
    float subnormal;                /* FLT_MIN / 2 */
    float from_subnormal;           /* a subnormal number times 2 */
    float infinity, overflow, none; /* 1 / 0, FLT_MAX · 2, 0 / 0 */
};

static struct sums compute(void)
{
    volatile float one = 1, little = 0x1p-25f, two = 2, zero = 0, smallest = FLT_MIN,
                   largest = FLT_MAX, tiny = 0x1p-149f;
    return (struct sums){
        .above_one = one + little,
        .below_one = -one - little,
        .subnormal = smallest / two,
        .from_subnormal = tiny * two,
        .infinity = one / zero,
        .overflow = largest * two,
        .none = zero / zero,
    };
}

static bool is_default(const struct sums *sums)
{
    return sums->above_one == 1 && sums->below_one == -1 && sums->subnormal == 0x1p-127f &&
           sums->from_subnormal == 0x1p-148f && sums->infinity == INFINITY &&
           sums->overflow == INFINITY && isnan(sums->none);
}

static void need_controls(void)
{
    if (float_control_count == 0)
        skip_because("floating-point modes of this architecture are not known");
}

static void the_default_holds_between_enter_and_leave(void **state)
{
    (void)state;
    need_controls();
    for (int i = 0; i < float_control_count; i++) {
        float_control_write(float_controls[i].word);
        uint64_t mode = attn_float_mode_enter();
        struct sums sums = compute();
        attn_float_mode_leave(mode);
        float_control_write(float_control_default);
        if (!is_default(&sums))
            fail_msg("not the default: %s", float_controls[i].name);
    }
}

static void every_bit_is_put_back(void **state)
{
    (void)state;
    need_controls();
    for (int i = 0; i < float_control_count; i++) {
        float_control_write(float_controls[i].word);
        uint64_t before = float_control_read();
        uint64_t mode = attn_float_mode_enter();
        struct sums sums = compute();
        attn_float_mode_leave(mode);
        uint64_t after = float_control_read();
        float_control_write(float_control_default);
        (void)sums;
        if (after != before)
            fail_msg("%s: %#llx became %#llx", float_controls[i].name, (unsigned long long)before,
                     (unsigned long long)after);
    }
}

/* Without enter the modes do change results: else the other tests prove nothing. */
static void these_modes_matter(void **state)
{
    (void)state;
    need_controls();
    for (int i = 0; i < float_control_count; i++) {
        const char *name = float_controls[i].name;
        if (!strstr(name, "rounding") && !strstr(name, "zero") && !strstr(name, "flush"))
            continue;
        if (strstr(name, "trap"))
            continue;
        float_control_write(float_controls[i].word);
        struct sums sums = compute();
        float_control_write(float_control_default);
        if (is_default(&sums))
            fail_msg("%s changes nothing", name);
    }
}

static void enter_may_stand_within_enter(void **state)
{
    (void)state;
    need_controls();
    float_control_write(float_controls[0].word);
    uint64_t before = float_control_read();
    uint64_t outer = attn_float_mode_enter();
    uint64_t inner = attn_float_mode_enter();
    attn_float_mode_leave(inner);
    struct sums sums = compute();
    attn_float_mode_leave(outer);
    uint64_t after = float_control_read();
    float_control_write(float_control_default);
    assert_true(is_default(&sums));
    assert_true(after == before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(these_modes_matter),
        cmocka_unit_test(the_default_holds_between_enter_and_leave),
        cmocka_unit_test(every_bit_is_put_back),
        cmocka_unit_test(enter_may_stand_within_enter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
