/* What opens as GGUF and what is refused; cases_test.c has the handed files beside these. */
#include "format/gguf.h"

#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "gguf_builder.h"
#include "scratch_folder.h"
#include "test_data.h"

enum { F32 = 0, Q8_0 = 8, Q4_K = 12, U32 = 4, STRING = 8, ARRAY = 9, F64 = 12 };

static char *folder;

static int create_folder(void **state)
{
    (void)state;
    folder = scratch_folder_create();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    scratch_folder_remove(folder);
    return 0;
}

static struct gguf *assert_opens(struct gguf_builder *builder)
{
    char *path = gguf_build(builder, folder, "valid.gguf");
    struct attn_error error;
    struct gguf *file;
    if (!gguf_open(&file, path, &error))
        fail_msg("%s", error.message);
    assert_string_equal(gguf_path(file), path);
    free(path);
    return file;
}

static void assert_refused(struct gguf_builder *builder, const char *words)
{
    char *path = gguf_build(builder, folder, "invalid.gguf");
    struct attn_error error = {""};
    struct gguf *file;
    assert_false(gguf_open(&file, path, &error));
    assert_null(file);
    assert_message(&error, path);
    assert_message(&error, words);
    free(path);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Bits, since -0 is not 0; what is not a float type is refused. */
static void check_floats(const struct stored_tensor *tensor, const json_t *expected)
{
    struct attn_error error;
    float *floats = malloc((size_t)tensor->elements * sizeof *floats);
    assert_non_null(floats);
    assert_true(stored_tensor_to_floats(tensor, floats, &error) == json_is_array(expected));
    size_t i;
    const json_t *bits;
    json_array_foreach (expected, i, bits)
        if (bits_of(floats[i]) != strtoul(json_string_value(bits), NULL, 16))
            fail_msg("%s[%zu] is %08x, expected %s", tensor->name, i, bits_of(floats[i]),
                     json_string_value(bits));
    free(floats);
}

static void every_type_as_its_reference_reads_it(void **state)
{
    (void)state;
    struct attn_error error;
    struct gguf *file;
    char *path = test_data_path("golden/gguf.gguf");
    assert_true(gguf_open(&file, path, &error));
    json_t *golden = test_data_json("golden/gguf.json");
    assert_int_equal(gguf_tensor_count(file), json_object_size(golden));
    size_t index = 0;
    const char *name;
    json_t *expected;
    json_object_foreach (golden, name, expected) {
        const struct stored_tensor *tensor = gguf_tensor(file, name);
        assert_non_null(tensor);
        assert_ptr_equal(tensor, gguf_tensor_at(file, index++));
        assert_string_equal(stored_type_name(tensor->type),
                            json_string_value(json_object_get(expected, "type")));
        const json_t *shape = json_object_get(expected, "shape");
        assert_int_equal(tensor->rank, json_array_size(shape));
        for (int i = 0; i < tensor->rank; i++)
            assert_int_equal(tensor->shape[i],
                             json_integer_value(json_array_get(shape, (size_t)i)));
        check_floats(tensor, json_object_get(expected, "floats"));
    }
    assert_null(gguf_tensor(file, "q4_"));
    json_decref(golden);
    gguf_close(file);
    free(path);
}

static void a_file_of_nothing_but_its_header(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        struct gguf_builder builder = {0};
        gguf_add_header(&builder, version, 0, 0);
        struct gguf *file = assert_opens(&builder);
        assert_int_equal(gguf_key_count(file), 0);
        assert_int_equal(gguf_tensor_count(file), 0);
        assert_null(gguf_tensor(file, "w"));
        assert_false(gguf_has(file, "general.architecture"));
        gguf_close(file);
    }
    gguf_close(NULL);
}

static void versions(void **state)
{
    (void)state;
    static const struct {
        uint32_t version;
        const char *words;
    } refused[] = {
        {0, "GGUF version 0 is not supported, only 2 and 3 are"},
        {4, "GGUF version 4 is not supported, only 2 and 3 are"},
        {0x03000000, "the file is big-endian"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct gguf_builder builder = {0};
        gguf_add_header(&builder, refused[i].version, 0, 0);
        assert_refused(&builder, refused[i].words);
    }
}

static void counts_that_the_file_cannot_hold(void **state)
{
    (void)state;
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 0, UINT64_MAX);
    assert_refused(&builder, "the file ends inside the metadata");
    gguf_add_header(&builder, 3, UINT64_MAX, 0);
    assert_refused(&builder, "the file ends inside the list of tensors");
    gguf_add_header(&builder, 3, 1, 0);
    gguf_add_tensor(&builder, "w", 1, F32, 0);
    builder.bytes.size -= 8;
    assert_refused(&builder, "the file ends inside the list of tensors");
    attn_buffer_add_text(&builder.bytes, "GGUF123");
    assert_refused(&builder, "the file ends inside the header");
}

static void names(void **state)
{
    (void)state;
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 2, 0);
    gguf_add_tensor(&builder, "w", 1, F32, 0);
    gguf_add_tensor(&builder, "w", 1, F32, 32);
    gguf_add_data(&builder, 64);
    assert_refused(&builder, "tensor w is there twice");

    gguf_add_header(&builder, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        gguf_add_key(&builder, "general.name", U32);
        gguf_add_u32(&builder, 7);
    }
    assert_refused(&builder, "general.name is there twice");

    gguf_add_header(&builder, 3, 1, 0);
    gguf_add_u64(&builder, 2);
    attn_buffer_add(&builder.bytes, "w", 2);
    gguf_add_data(&builder, 64);
    assert_refused(&builder, "a name in the list of tensors has a NUL in it");
}

static void types_of_values(void **state)
{
    (void)state;
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 0, 1);
    gguf_add_key(&builder, "k", F64 + 1);
    gguf_add_u64(&builder, 0);
    assert_refused(&builder, "k has unknown type 13");

    gguf_add_header(&builder, 3, 0, 1);
    gguf_add_key(&builder, "k", ARRAY);
    gguf_add_u32(&builder, ARRAY);
    gguf_add_u64(&builder, 1);
    gguf_add_u32(&builder, U32);
    gguf_add_u64(&builder, 0);
    assert_refused(&builder, "k is an array of arrays, which is not supported");

    gguf_add_header(&builder, 3, 0, 1);
    gguf_add_key(&builder, "k", ARRAY);
    gguf_add_u32(&builder, STRING);
    gguf_add_u64(&builder, 2);
    gguf_add_string(&builder, "first");
    gguf_add_u64(&builder, 6);
    attn_buffer_add_text(&builder.bytes, "short");
    assert_refused(&builder, "a string of 6 bytes is beyond the end of the file");
}

static void types_of_tensors(void **state)
{
    (void)state;
    static const struct {
        uint32_t type;
        const char *words;
    } refused[] = {
        {4, "tensor w has unknown type 4"},
        {UINT32_MAX, "tensor w has unknown type 4294967295"},
        {17, "tensor w is IQ2_XS, which is not supported"},
        {31, "tensor w is Q4_0_4_4, which is not supported"},
        {39, "tensor w is MXFP4, which is not supported"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct gguf_builder builder = {0};
        gguf_add_header(&builder, 3, 1, 0);
        gguf_add_tensor(&builder, "w", 256, refused[i].type, 0);
        gguf_add_data(&builder, 1024);
        assert_refused(&builder, refused[i].words);
    }
}

static void add_one_tensor(struct gguf_builder *builder, uint64_t dimension, uint32_t type,
                           uint64_t offset, size_t data)
{
    gguf_add_header(builder, 3, 1, 0);
    gguf_add_tensor(builder, "w", dimension, type, offset);
    gguf_add_data(builder, data);
}

/* Names are any bytes; messages are one line that a terminal shows as it is. */
static void a_name_that_would_steer_a_terminal(void **state)
{
    (void)state;
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 1, 0);
    gguf_add_tensor(&builder, "a\nb\x1b[2J\xC2\x9B\xFF", 256, 17, 0);
    gguf_add_data(&builder, 1024);
    assert_refused(&builder, "tensor a?b?[2J?? is IQ2_XS");
    gguf_add_header(&builder, 3, 0, 1);
    gguf_add_key(&builder, "k\r\xC2\x85", 13);
    gguf_add_u64(&builder, 0);
    assert_refused(&builder, "k?? has unknown type 13");
}

static void places_of_tensors(void **state)
{
    (void)state;
    struct gguf_builder builder = {0};
    add_one_tensor(&builder, 8, F32, 16, 64);
    assert_refused(&builder, "tensor w: its offset 16 is not a multiple of 32");
    add_one_tensor(&builder, 9, F32, 32, 64);
    assert_refused(&builder, "tensor w is beyond the end of the file");
    add_one_tensor(&builder, 128, Q4_K, 0, 144);
    assert_refused(&builder, "tensor w: a row of 128 is not a multiple of 256");
    add_one_tensor(&builder, INT64_MAX - 31, Q8_0, 0, 64);
    assert_refused(&builder, "tensor w: the size is too large");
    add_one_tensor(&builder, (uint64_t)INT64_MAX + 1, F32, 0, 64);
    assert_refused(&builder, "tensor w: the size is too large");

    add_one_tensor(&builder, 8, F32, 32, 64);
    struct gguf *file = assert_opens(&builder);
    assert_int_equal(gguf_tensor(file, "w")->size, 32);
    gguf_close(file);
}

static void a_scalar_and_a_tensor_without_elements(void **state)
{
    (void)state;
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 2, 0);
    gguf_add_string(&builder, "scalar");
    gguf_add_u32(&builder, 0); /* dimensions */
    gguf_add_u32(&builder, F32);
    gguf_add_u64(&builder, 0);
    gguf_add_tensor(&builder, "empty", 0, Q8_0, 32);
    gguf_add_data(&builder, 32);
    struct gguf *file = assert_opens(&builder);
    const struct stored_tensor *scalar = gguf_tensor(file, "scalar");
    assert_int_equal(scalar->rank, 0);
    assert_int_equal(scalar->elements, 1);
    assert_int_equal(scalar->size, 4);
    const struct stored_tensor *empty = gguf_tensor(file, "empty");
    assert_int_equal(empty->rank, 1);
    assert_int_equal(empty->elements, 0);
    assert_int_equal(empty->size, 0);
    gguf_close(file);
}

static void alignments(void **state)
{
    (void)state;
    static const struct {
        uint32_t alignment;
        const char *words;
    } refused[] = {
        {24, "general.alignment is 24, expected a power of two"},
        {0x80000000, "general.alignment is 2147483648, expected a power of two"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct gguf_builder builder = {0};
        gguf_add_header(&builder, 3, 0, 1);
        gguf_add_key(&builder, "general.alignment", U32);
        gguf_add_u32(&builder, refused[i].alignment);
        assert_refused(&builder, refused[i].words);
    }
    struct gguf_builder builder = {0};
    gguf_add_header(&builder, 3, 0, 1);
    gguf_add_key(&builder, "general.alignment", STRING);
    gguf_add_string(&builder, "32");
    assert_refused(&builder, "general.alignment is string, expected a whole number");
}

static void files_that_are_none(void **state)
{
    (void)state;
    struct attn_error error;
    struct gguf *file;
    assert_false(gguf_open(&file, folder, &error));
    assert_message(&error, "is a folder");
    assert_false(gguf_open(&file, "/nowhere/model.gguf", &error));
    assert_message(&error, "/nowhere/model.gguf: no such file");
    struct gguf_builder builder = {0};
    attn_buffer_add_text(&builder.bytes, "GGU");
    assert_refused(&builder, "not a GGUF file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_as_its_reference_reads_it),
        cmocka_unit_test(a_file_of_nothing_but_its_header),
        cmocka_unit_test(versions),
        cmocka_unit_test(counts_that_the_file_cannot_hold),
        cmocka_unit_test(names),
        cmocka_unit_test(types_of_values),
        cmocka_unit_test(types_of_tensors),
        cmocka_unit_test(a_name_that_would_steer_a_terminal),
        cmocka_unit_test(places_of_tensors),
        cmocka_unit_test(a_scalar_and_a_tensor_without_elements),
        cmocka_unit_test(alignments),
        cmocka_unit_test(files_that_are_none),
    };
    return cmocka_run_group_tests(tests, create_folder, remove_folder);
}
