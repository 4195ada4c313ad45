#include "step_parameters.h"

#include <math.h>

#include "cmocka_test.h"

void add_tensor(struct parameters *parameters, const char *name, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    struct attn_error error;
    int64_t begin;
    if (!parameters_add(parameters, name, columns > 0 ? 2 : 1, shape, &begin, &error))
        fail_msg("%s", error.message);
}

void allocate_parameters(struct parameters *parameters)
{
    struct attn_error error;
    assert_true(parameters_allocate(parameters, &error));
    assert_true(parameters_want_gradients(parameters, &error));
}

void fill_parameters(struct parameters *parameters)
{
    for (size_t i = 0; i < parameters->item_count; i++) {
        const struct parameter *item = &parameters->items[i];
        for (int64_t n = item->begin; n < item->begin + item->count; n++) {
            parameters->values[n] = 0.5f + 0.4f * sinf((float)n);
            parameters->gradients[n] = powf(10.0f, (float)(-(n % 7))) * cosf((float)n * 0.7f);
        }
    }
}
