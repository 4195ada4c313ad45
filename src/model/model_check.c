#include "model/model_check.h"

#include <string.h>

bool model_check_batch(const struct packed_batch *batch, int64_t positions,
                       struct attn_error *error)
{
    if (batch->sequences < 1)
        return attn_error_set(error, "the batch has no text");
    if (batch->starts[0] != 0)
        return attn_error_set(error, "the batch starts at token %lld instead of 0",
                              (long long)batch->starts[0]);
    for (int64_t n = 0; n < batch->sequences; n++) {
        if (batch->starts[n + 1] < batch->starts[n])
            return attn_error_set(error, "the batch's starts fall from token %lld to %lld",
                                  (long long)batch->starts[n], (long long)batch->starts[n + 1]);
        int64_t length = packed_batch_length(batch, n);
        if (length == 0)
            return attn_error_set(error, "a text has no token");
        if (length > positions)
            return attn_error_set(error, "a text has %lld tokens, the model has %lld positions",
                                  (long long)length, (long long)positions);
    }
    return true;
}

bool model_check_ids(const int32_t *ids, int64_t tokens, int64_t vocabulary,
                     struct attn_error *error)
{
    for (int64_t t = 0; t < tokens; t++)
        if (ids[t] < 0 || ids[t] >= vocabulary)
            return attn_error_set(error,
                                  "token id %ld is outside the model's vocabulary of %lld (token "
                                  "%lld of the batch)",
                                  (long)ids[t], (long long)vocabulary, (long long)t);
    return true;
}

bool model_check_finite(const float *x, int64_t count, struct attn_error *error)
{
    const uint32_t exponent = 0x7f800000; /* whose bits are all set where x is not finite */
    uint32_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return found == 0 ||
           attn_error_set(error,
                          "the model gives numbers that are not finite: its weights hold NaN "
                          "or Inf, or are too large");
}
