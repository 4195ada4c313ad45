/* Words for open places against Transformers', on every instruction set, and what is refused. */
#include "model/masked_words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocation_sweep.h"
#include "case_file.h"
#include "cmocka_test.h"
#include "each_isa.h"
#include "model/bert.h"
#include "scratch_folder.h"
#include "tiny_model.h"

static const char *const names[] = {"masked_words", "masked_words_tanh"};
static const char *name; /* of the model that a walk over the instruction sets is about */

static char *golden_path(const char *file)
{
    char path[128];
    snprintf(path, sizeof path, "models/%s/%s", name, file);
    return test_data_path(path);
}

static json_t *golden_json(void)
{
    char path[128];
    snprintf(path, sizeof path, "models/%s/golden.json", name);
    return test_data_json(path);
}

static struct masked_words *open_golden(void)
{
    struct masked_words *model;
    struct attn_error error;
    char *directory = golden_path("");
    if (!masked_words_open(&model, directory, &error))
        fail_msg("%s", error.message);
    free(directory);
    return model;
}

/* A text of golden.json; free all that it points to. */
struct question {
    struct encoding encoding;
    int64_t *places;
    int64_t count;
    float *logits;
};

static struct question read_question(const json_t *entry)
{
    const json_t *ids = case_field(entry, "ids", NULL), *types = case_field(entry, "types", NULL);
    const json_t *places = case_field(entry, "places", NULL);
    const json_t *logits = case_field(entry, "logits", NULL);
    struct question question = {.count = (int64_t)json_array_size(places)};
    question.encoding.token_count = json_array_size(ids);
    question.encoding.tokens = calloc(json_array_size(ids), sizeof *question.encoding.tokens);
    question.places = calloc(json_array_size(places), sizeof *question.places);
    question.logits = calloc(json_array_size(logits), sizeof *question.logits);
    for (size_t t = 0; t < json_array_size(ids); t++)
        question.encoding.tokens[t] =
            (struct token){.id = (int32_t)json_integer_value(json_array_get(ids, t)),
                           .type = (int32_t)json_integer_value(json_array_get(types, t))};
    for (size_t n = 0; n < json_array_size(places); n++)
        question.places[n] = json_integer_value(json_array_get(places, n));
    for (size_t i = 0; i < json_array_size(logits); i++)
        question.logits[i] = (float)json_number_value(json_array_get(logits, i));
    return question;
}

static void release_question(struct question *question)
{
    free(question->encoding.tokens);
    free(question->places);
    free(question->logits);
}

/* The words of one place by the definition: the next one is the likeliest of those that are left.
 */
static void assert_words(const struct masked_word *words, const float *logits, int64_t vocabulary,
                         int64_t top)
{
    double sum = 0;
    bool taken[64] = {false};
    for (int64_t id = 0; id < vocabulary; id++)
        sum += exp((double)logits[id]);
    for (int64_t n = 0; n < top; n++) {
        int64_t best = -1;
        for (int64_t id = 0; id < vocabulary; id++)
            if (!taken[id] && (best < 0 || logits[id] > logits[best]))
                best = id;
        taken[best] = true;
        assert_int_equal(words[n].id, best);
        if (!(fabs(words[n].probability - exp((double)logits[best]) / sum) <= 1e-9))
            fail_msg("%s: word %d has probability %.9g", name, (int)n, words[n].probability);
    }
}

static void tell(const struct compute *compute)
{
    struct masked_words *model = open_golden();
    const int64_t vocabulary = masked_words_vocabulary(model);
    assert_true(vocabulary <= 64);
    json_t *file = golden_json();
    for (size_t n = 0; n < json_array_size(file); n++) {
        struct question question = read_question(json_array_get(file, n));
        const size_t numbers = (size_t)(question.count * vocabulary);
        float *logits = calloc(numbers, sizeof *logits);
        struct masked_word *words = calloc(numbers, sizeof *words);
        struct attn_error error;
        assert_true(masked_words_logits(model, compute, &question.encoding, question.places,
                                        question.count, logits, &error));
        assert_near(logits, question.logits, numbers, 1e-5);
        for (int64_t top = 1; top <= vocabulary; top += vocabulary - 1) {
            assert_true(masked_words_tell(model, compute, &question.encoding, question.places,
                                          question.count, top, words, &error));
            for (int64_t p = 0; p < question.count; p++)
                assert_words(words + p * top, logits + p * vocabulary, vocabulary, top);
        }
        free(words);
        free(logits);
        release_question(&question);
    }
    json_decref(file);
    masked_words_close(model);
}

static void test_golden(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        name = names[n];
        each_isa(2, tell);
    }
}

/* The head alone, of last hidden states that the model beside it has computed. */
static void head(const struct compute *compute)
{
    char *directory = golden_path("");
    struct masked_words *model = open_golden();
    struct bert *bert;
    struct attn_error error;
    assert_true(bert_open(&bert, directory, &error));
    const int64_t vocabulary = masked_words_vocabulary(model),
                  width = bert_get_config(bert)->hidden;
    json_t *file = golden_json();
    for (size_t n = 0; n < json_array_size(file); n++) {
        struct question question = read_question(json_array_get(file, n));
        const int64_t tokens = (int64_t)question.encoding.token_count;
        int32_t ids[40], types[40];
        assert_true(tokens <= 40);
        for (int64_t t = 0; t < tokens; t++) {
            ids[t] = question.encoding.tokens[t].id;
            types[t] = question.encoding.tokens[t].type;
        }
        const struct bert_input input = {{1, (const int64_t[]){0, tokens}}, ids, types};
        float *hidden = calloc((size_t)(tokens * width), sizeof *hidden);
        float *rows = calloc((size_t)(question.count * width), sizeof *rows);
        float *logits = calloc((size_t)(question.count * vocabulary), sizeof *logits);
        assert_true(hidden && rows && logits);
        assert_true(bert_forward(bert, compute, &input, hidden, NULL, &error));
        for (int64_t p = 0; p < question.count; p++)
            memcpy(rows + p * width, hidden + question.places[p] * width,
                   (size_t)width * sizeof *rows);
        assert_true(masked_words_head(model, compute, rows, question.count, logits, &error));
        assert_near(logits, question.logits, (size_t)(question.count * vocabulary), 1e-5);
        rows[0] = NAN;
        assert_false(masked_words_head(model, compute, rows, question.count, logits, &error));
        assert_message(&error, "not finite");
        free(hidden);
        free(rows);
        free(logits);
        release_question(&question);
    }
    json_decref(file);
    bert_close(bert);
    masked_words_close(model);
    free(directory);
}

static void test_head_alone(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        name = names[n];
        each_isa(2, head);
    }
}

static void test_whether_the_head_is_there(void **state)
{
    (void)state;
    char *with = test_data_path("models/masked_words"), *without;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    without = tiny_model_save(&tiny);
    bool there;
    struct attn_error error;
    assert_true(masked_words_are_there(with, &there, &error));
    assert_true(there);
    assert_true(masked_words_are_there(without, &there, &error));
    assert_false(there);
    assert_false(masked_words_are_there("/nowhere", &there, &error));
    assert_message(&error, "/nowhere");
    scratch_folder_remove(without);
    tiny_model_free(&tiny);
    free(with);
}

static void refuses(struct masked_words *model, const struct question *question, int64_t top,
                    const char *part)
{
    struct compute compute = make_compute(1);
    struct masked_word words[64];
    struct attn_error error = {""};
    assert_false(masked_words_tell(model, &compute, &question->encoding, question->places,
                                   question->count, top, words, &error));
    assert_message(&error, part);
    compute_destroy(&compute);
}

static void test_refuses_what_is_out_of_range(void **state)
{
    (void)state;
    name = names[0];
    struct masked_words *model = open_golden();
    struct token tokens[40] = {{.id = 2}, {.id = 4}, {.id = 4}, {.id = 3}};
    int64_t places[] = {1, 2};
    struct question question = {{.tokens = tokens, .token_count = 4}, places, 2, NULL};

    refuses(model, &question, masked_words_vocabulary(model) + 1,
            "32 words are asked for, but must be 1 to 31");
    refuses(model, &question, 0, "0 words");
    question.encoding.token_count = 33;
    refuses(model, &question, 1, "33 tokens, the model has 32 positions");
    question.encoding.token_count = 0;
    refuses(model, &question, 1, "place 1 is outside the text's 0 tokens");
    question.encoding.token_count = 2;
    refuses(model, &question, 1, "place 2 is outside the text's 2 tokens");
    question.encoding.token_count = 4;
    places[0] = 2;
    refuses(model, &question, 1, "place 2 does not stand behind place 2");
    places[0] = -1;
    refuses(model, &question, 1, "place -1");
    places[0] = 1;
    tokens[3].type = 2;
    refuses(model, &question, 1, "token 3 is of type 2, but the model has 2 types");
    tokens[3].type = -1;
    refuses(model, &question, 1, "type -1");
    tokens[3].type = 0;
    tokens[2].id = 31;
    refuses(model, &question, 1, "token id 31");
    masked_words_close(model);
}

static void refuses_to_open(const char *directory, const char *part)
{
    struct masked_words *model;
    struct attn_error error = {""};
    assert_false(masked_words_open(&model, directory, &error));
    assert_null(model);
    assert_message(&error, part);
}

static void test_refuses_other_models(void **state)
{
    (void)state;
    struct tiny_model tiny = tiny_model_read("tiny_bert");
    char *folder = tiny_model_save(&tiny);
    refuses_to_open(folder, "has no masked-word head (cls.predictions.");
    scratch_folder_remove(folder);
    tiny_model_free(&tiny);

    char *gpt2 = test_data_path("models/gpt2");
    refuses_to_open(gpt2, "gpt2");
    free(gpt2);
    refuses_to_open("/nowhere", "/nowhere");
}

/* The model whose weights are all NaN: behind the header, which an 8-byte length begins. */
static char *save_without_numbers(void)
{
    size_t size;
    unsigned char *file = case_file_bytes("models/masked_words/model.safetensors", &size);
    const size_t begin = 8 + file[0] + ((size_t)file[1] << 8);
    memset(file + begin, 0xff, size - begin);
    char *folder = scratch_folder_create();
    scratch_write(folder, "model.safetensors", file, size);
    free(file);
    file = case_file_bytes("models/masked_words/config.json", &size);
    scratch_write(folder, "config.json", file, size);
    free(file);
    return folder;
}

static void test_refuses_logits_that_are_not_finite(void **state)
{
    (void)state;
    char *folder = save_without_numbers();
    struct masked_words *model;
    struct attn_error error;
    if (!masked_words_open(&model, folder, &error))
        fail_msg("%s", error.message);
    struct token tokens[] = {{.id = 1}, {.id = 2}};
    int64_t places[] = {1};
    const struct question question = {{.tokens = tokens, .token_count = 2}, places, 1, NULL};
    refuses(model, &question, 1, "not finite");
    masked_words_close(model);
    scratch_folder_remove(folder);
}

struct attempt {
    struct compute compute;
    char *directory;
};

static bool tell_once(void *user, struct attn_error *error)
{
    const struct attempt *attempt = user;
    struct token tokens[] = {{.id = 2}, {.id = 4}, {.id = 3}};
    const struct encoding encoding = {.tokens = tokens, .token_count = 3};
    const int64_t place = 1;
    struct masked_word words[3];
    struct masked_words *model;
    const bool done =
        masked_words_open(&model, attempt->directory, error) &&
        masked_words_tell(model, &attempt->compute, &encoding, &place, 1, 3, words, error);
    masked_words_close(model);
    return done;
}

static void test_allocations(void **state)
{
    (void)state;
    name = names[0];
    struct attempt attempt = {make_compute(1), golden_path("")};
    assert_true(allocation_sweep(tell_once, &attempt) >= 8);
    compute_destroy(&attempt.compute);
    free(attempt.directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_head_alone),
        cmocka_unit_test(test_whether_the_head_is_there),
        cmocka_unit_test(test_refuses_what_is_out_of_range),
        cmocka_unit_test(test_refuses_other_models),
        cmocka_unit_test(test_refuses_logits_that_are_not_finite),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
