#include "look_page.h"

#include <stdlib.h>

struct look_head *look_page_heads(const struct text_model_settings *model,
                                  enum look_measure measure, size_t *count)
{
    struct look_head *heads =
        calloc((size_t)(1 + model->layers * (1 + model->heads)), sizeof *heads);
    *count = 0;
    if (!heads)
        return NULL;
    heads[(*count)++] = (struct look_head){LOOK_MEAN, LOOK_MEAN};
    for (int64_t layer = 0; layer < model->layers; layer++)
        heads[(*count)++] = (struct look_head){layer, LOOK_MEAN};
    for (int64_t layer = 0; measure != LOOK_ROLLOUT && layer < model->layers; layer++)
        for (int64_t head = 0; head < model->heads; head++)
            heads[(*count)++] = (struct look_head){layer, head};
    return heads;
}

bool look_page_holds(size_t head_count, size_t units)
{
    const size_t row_limit = 360000; /* a little less than 7 bytes a row */
    return head_count <= row_limit / units;
}

size_t look_page_fit(const struct text_model_settings *model, size_t head_count, size_t units)
{
    const size_t means = (size_t)model->layers + 1;
    if (look_page_holds(head_count, units))
        return head_count;
    return look_page_holds(means, units) ? means : 1;
}

size_t look_page_links(size_t head_count, size_t units)
{
    const double whole_limit = 256e6; /* bytes */
    enum { LINKS = 32 };
    const double whole = (double)head_count * (double)units * (double)units * sizeof(float);
    return whole <= whole_limit ? 0 : LINKS;
}

bool look_page_vectors(const struct text_model_settings *model, size_t tokens)
{
    const double limit = 64e6; /* bytes */
    const double numbers = 3.0 * (double)model->layers * (double)model->width * (double)tokens;
    return numbers * sizeof(float) <= limit;
}
