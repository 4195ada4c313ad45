#include "golden.h"

#include <stdio.h>
#include <stdlib.h>

#include "case_file.h"
#include "cmocka_test.h"

static int64_t whole(const json_t *object, const char *name)
{
    const json_t *field = case_field(object, name, NULL);
    assert_true(json_is_integer(field));
    return json_integer_value(field);
}

struct golden golden_read(void)
{
    struct golden golden = {.file = test_data_json("golden/bert.json")};
    size_t size;
    golden.numbers = case_file_bytes("golden/bert.bin", &size);
    golden.count = size / sizeof *golden.numbers;
    assert_int_equal(golden.count, whole(golden.file, "floats"));
    golden.hidden = whole(golden.file, "hidden_size");
    golden.layers = whole(golden.file, "layers");
    golden.heads = whole(golden.file, "heads");
    golden.texts = json_array_size(case_field(golden.file, "texts", NULL));
    assert_int_equal(golden.texts, 20);
    return golden;
}

void golden_free(struct golden *golden)
{
    json_decref(golden->file);
    free(golden->numbers);
}

static const float *numbers_at(const struct golden *golden, int64_t begin, size_t count)
{
    assert_true(begin >= 0 && (size_t)begin + count <= golden->count);
    return golden->numbers + begin;
}

const float *golden_numbers(const struct golden *golden, const json_t *item, size_t count)
{
    return numbers_at(golden, whole(item, "begin"), count);
}

static int32_t *integers(const json_t *array)
{
    int32_t *numbers = calloc(json_array_size(array) + 1, sizeof *numbers);
    assert_non_null(numbers);
    for (size_t n = 0; n < json_array_size(array); n++)
        numbers[n] = (int32_t)json_integer_value(json_array_get(array, n));
    return numbers;
}

struct golden_text golden_text_at(const struct golden *golden, size_t index)
{
    const json_t *entry = json_array_get(case_field(golden->file, "texts", NULL), index);
    return (struct golden_text){
        .tokens = (int64_t)json_array_size(case_field(entry, "ids", NULL)),
        .ids = integers(case_field(entry, "ids", NULL)),
        .types = integers(case_field(entry, "types", NULL)),
        .text = json_string_value(case_field(entry, "text", NULL)),
        .pair = json_string_value(case_field(entry, "pair", NULL)),
        .entry = entry,
        .embedding = numbers_at(golden, whole(entry, "embedding"), (size_t)golden->hidden),
        .square_sums = numbers_at(golden, whole(entry, "square_sums"),
                                  (size_t)(golden->layers * golden->heads)),
    };
}

void golden_text_free(struct golden_text *text)
{
    free(text->ids);
    free(text->types);
}

const char *golden_model_directory(void)
{
    const char *directory = getenv("ATTN_TEST_MODEL");
    if (directory && *directory)
        return directory;
    printf("1..0 # SKIP ATTN_TEST_MODEL names no model directory\n");
    return NULL;
}

struct bert *golden_open_model(void)
{
    struct bert *model;
    struct attn_error error;
    if (!bert_open(&model, golden_model_directory(), &error))
        fail_msg("%s", error.message);
    return model;
}
