#include "format/stored_tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "format/safetensors.h"
#include "model_file.h"

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static struct stored_tensor vector(enum stored_type type, const void *data, int64_t elements)
{
    return (struct stored_tensor){
        .name = "w",
        .type = type,
        .rank = 1,
        .shape = {elements},
        .elements = elements,
        .data = data,
        .size = (size_t)elements * stored_type_size(type),
    };
}

/* Each of the 65,536 halves by the definition of binary16. */
static void every_half_is_exact(void **state)
{
    (void)state;
    unsigned char *bytes = malloc(2 * 65536);
    float *floats = malloc(65536 * sizeof *floats);
    for (int i = 0; i < 65536; i++) {
        bytes[2 * i] = (unsigned char)i;
        bytes[2 * i + 1] = (unsigned char)(i >> 8);
    }
    struct stored_tensor tensor = vector(STORED_F16, bytes, 65536);
    struct attn_error error;
    assert_true(stored_tensor_to_floats(&tensor, floats, &error));
    for (int i = 0; i < 65536; i++) {
        int exponent = i >> 10 & 31;
        int fraction = i & 1023;
        float sign = i >> 15 ? -1.0F : 1.0F;
        if (exponent == 31 && fraction) {
            assert_true(isnan(floats[i]));
            continue;
        }
        float expected = exponent == 31  ? INFINITY
                         : exponent == 0 ? ldexpf((float)fraction, -24)
                                         : ldexpf((float)(1024 + fraction), exponent - 25);
        assert_int_equal(bits_of(floats[i]), bits_of(sign * expected));
    }
    free(bytes);
    free(floats);
}

static void every_bfloat_is_the_upper_half_of_a_float(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 65536; i++) {
        unsigned char bytes[2] = {(unsigned char)i, (unsigned char)(i >> 8)};
        struct stored_tensor tensor = vector(STORED_BF16, bytes, 1);
        struct attn_error error;
        float value;
        assert_true(stored_tensor_to_floats(&tensor, &value, &error));
        assert_int_equal(bits_of(value), i << 16);
    }
}

static void doubles_are_rounded_once(void **state)
{
    (void)state;
    double doubles[] = {0.1,    -0.0,  1 + 0x1p-24, 1 + 0x1p-23, 1e300,
                        -1e300, 1e-40, 1e-300,      INFINITY};
    enum { COUNT = sizeof doubles / sizeof *doubles };
    float expected[COUNT] = {0.1F,      -0.0F,  1.0F, 1 + 0x1p-23F, INFINITY,
                             -INFINITY, 1e-40F, 0.0F, INFINITY};
    float floats[COUNT];
    struct stored_tensor tensor = vector(STORED_F64, (unsigned char *)doubles, COUNT);
    struct attn_error error;
    assert_true(stored_tensor_to_floats(&tensor, floats, &error));
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(bits_of(floats[i]), bits_of(expected[i]));
}

/* Each type at each of eight alignments; the sanitizers watch. */
static void data_of_any_alignment(void **state)
{
    (void)state;
    const struct {
        enum stored_type type;
        unsigned char one[8]; /* 1.0 in the type */
    } types[] = {
        {STORED_F64, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
        {STORED_F32, {0, 0, 0x80, 0x3f}},
        {STORED_F16, {0, 0x3c}},
        {STORED_BF16, {0x80, 0x3f}},
    };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        size_t size = stored_type_size(types[t].type);
        for (size_t shift = 0; shift < 8; shift++) {
            unsigned char *memory = malloc(shift + 3 * size);
            for (size_t i = 0; i < 3; i++)
                memcpy(memory + shift + i * size, types[t].one, size);
            struct stored_tensor tensor = vector(types[t].type, memory + shift, 3);
            struct attn_error error;
            float floats[3] = {0};
            assert_true(stored_tensor_to_floats(&tensor, floats, &error));
            for (int i = 0; i < 3; i++)
                assert_true(floats[i] == 1.0F);
            const float *place = stored_tensor_as_floats(&tensor);
            if (types[t].type == STORED_F32 && shift % 4 == 0)
                assert_true(place == NULL || place[2] == 1.0F);
            else
                assert_null(place);
            free(memory);
        }
    }
}

static void other_types_are_refused_by_name(void **state)
{
    (void)state;
    struct attn_error error;
    for (int type = STORED_F64; type <= STORED_F8_E5M2; type++) {
        if (type <= STORED_BF16)
            continue;
        struct stored_tensor tensor = vector((enum stored_type)type, (const unsigned char *)"", 0);
        assert_false(stored_tensor_to_floats(&tensor, NULL, &error));
        assert_message(&error, "tensor w is ");
        assert_message(&error, stored_type_name((enum stored_type)type));
    }
}

static void names_and_sizes_of_types(void **state)
{
    (void)state;
    enum stored_type type;
    for (int i = STORED_F64; i <= STORED_F8_E5M2; i++) {
        assert_true(stored_type_from_name(stored_type_name((enum stored_type)i), &type));
        assert_int_equal(type, i);
    }
    assert_false(stored_type_from_name("f32", &type));
    assert_false(stored_type_from_name("", &type));
    assert_int_equal(stored_type_size(STORED_F64), 8);
    assert_int_equal(stored_type_size(STORED_BF16), 2);
    assert_int_equal(stored_type_size(STORED_BOOL), 1);
    assert_int_equal(stored_type_block(STORED_F32), 1);
}

/* Of GGML's source; safetensors has no such types. */
static void blocks_of_types(void **state)
{
    (void)state;
    static const struct {
        enum stored_type type;
        int64_t block;
        size_t size;
    } expected[] = {
        {STORED_Q8_0, 32, 34},   {STORED_Q4_0, 32, 18},   {STORED_Q4_1, 32, 20},
        {STORED_Q5_0, 32, 22},   {STORED_Q5_1, 32, 24},   {STORED_Q4_K, 256, 144},
        {STORED_Q5_K, 256, 176}, {STORED_Q6_K, 256, 210},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        enum stored_type type;
        assert_false(stored_type_from_name(stored_type_name(expected[i].type), &type));
        assert_int_equal(stored_type_block(expected[i].type), expected[i].block);
        assert_int_equal(stored_type_size(expected[i].type), expected[i].size);
    }
}

static void shapes_as_text(void **state)
{
    (void)state;
    struct stored_tensor tensor = {.rank = 3, .shape = {12, 0, INT64_MAX}};
    char text[64];
    stored_tensor_shape_text(&tensor, text, sizeof text);
    assert_string_equal(text, "[12, 0, 9223372036854775807]");
    tensor.rank = 0;
    stored_tensor_shape_text(&tensor, text, sizeof text);
    assert_string_equal(text, "[]");
    tensor.rank = 2;
    for (size_t size = 1; size < 8; size++) {
        memset(text, 'x', sizeof text);
        stored_tensor_shape_text(&tensor, text, size);
        assert_memory_equal(text, "[12, 0]", size - 1);
        assert_int_equal(text[size - 1], '\0');
        assert_int_equal(text[size], 'x');
    }
}

/* scripts/golden_safetensors.py */
static void what_pytorch_wrote(void **state)
{
    (void)state;
    struct attn_error error;
    struct safetensors *file;
    char *path = test_data_path("golden/types.safetensors");
    if (!safetensors_open(&file, path, &error))
        fail_msg("%s", error.message);
    assert_string_equal(safetensors_metadata(file, "format"), "pt");
    assert_null(safetensors_metadata(file, "absent"));
    json_t *golden = test_data_json("golden/types.json");
    assert_int_equal(safetensors_count(file), json_object_size(golden));
    const char *name;
    json_t *expected;
    json_object_foreach (golden, name, expected) {
        const struct stored_tensor *tensor = safetensors_find(file, name);
        assert_non_null(tensor);
        const json_t *shape = json_object_get(expected, "shape");
        assert_int_equal(tensor->rank, json_array_size(shape));
        for (int i = 0; i < tensor->rank; i++)
            assert_int_equal(tensor->shape[i],
                             json_integer_value(json_array_get(shape, (size_t)i)));
        const json_t *values = json_object_get(expected, "floats");
        float floats[16];
        assert_true(tensor->elements <= 16);
        bool converted = stored_tensor_to_floats(tensor, floats, &error);
        assert_true(converted == json_is_array(values));
        for (size_t i = 0; i < json_array_size(values); i++) {
            const char *bits = json_string_value(json_array_get(values, i));
            if (strcmp(bits, "nan") == 0)
                assert_true(isnan(floats[i]));
            else
                assert_int_equal(bits_of(floats[i]), strtoul(bits, NULL, 16));
        }
    }
    json_decref(golden);
    safetensors_close(file);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_is_exact),
        cmocka_unit_test(every_bfloat_is_the_upper_half_of_a_float),
        cmocka_unit_test(doubles_are_rounded_once),
        cmocka_unit_test(data_of_any_alignment),
        cmocka_unit_test(other_types_are_refused_by_name),
        cmocka_unit_test(names_and_sizes_of_types),
        cmocka_unit_test(blocks_of_types),
        cmocka_unit_test(shapes_as_text),
        cmocka_unit_test(what_pytorch_wrote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
