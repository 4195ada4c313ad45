/* Sentence embeddings of the default model against PyTorch's: see scripts/golden_bert.py. */
#include <math.h>
#include <stdlib.h>

#include "cmocka_test.h"
#include "each_isa.h"
#include "golden.h"
#include "model/embedding.h"

static void test_embeddings(void **state)
{
    (void)state;
    struct golden golden = golden_read();
    const size_t count = golden.texts, width = (size_t)golden.hidden;
    struct bert *model = golden_open_model();
    struct embedding_settings settings;
    struct attn_error error;
    assert_true(embedding_settings_read(&settings, golden_model_directory(), &error));

    struct encoding *encodings = calloc(count, sizeof *encodings);
    float *vectors = malloc(count * width * sizeof *vectors);
    assert_true(encodings && vectors);
    for (size_t n = 0; n < count; n++) {
        struct golden_text text = golden_text_at(&golden, n);
        encodings[n].token_count = (size_t)text.tokens;
        encodings[n].tokens = calloc((size_t)text.tokens, sizeof *encodings[n].tokens);
        assert_non_null(encodings[n].tokens);
        for (int64_t t = 0; t < text.tokens; t++) {
            encodings[n].tokens[t].id = text.ids[t];
            encodings[n].tokens[t].type = text.types[t];
        }
        golden_text_free(&text);
    }
    struct compute compute = make_compute(1);
    assert_true(embedding_compute(model, &compute, &settings, encodings, count, vectors, &error));
    for (size_t n = 0; n < count; n++) {
        struct golden_text text = golden_text_at(&golden, n);
        double product = 0.0, ours = 0.0, theirs = 0.0;
        for (size_t c = 0; c < width; c++) {
            double a = (double)vectors[n * width + c], b = (double)text.embedding[c];
            product += a * b;
            ours += a * a;
            theirs += b * b;
        }
        assert_true(product / sqrt(ours * theirs) >= 0.999999);
        assert_true(fabs(ours - 1.0) <= 1e-6);
        golden_text_free(&text);
        free(encodings[n].tokens);
    }
    free(encodings);
    free(vectors);
    compute_destroy(&compute);
    bert_close(model);
    golden_free(&golden);
}

int main(void)
{
    if (!golden_model_directory())
        return 0;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_embeddings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
