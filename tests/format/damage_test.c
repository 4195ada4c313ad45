/* A valid file cut at every byte and damaged at every byte: it is refused with a message or opens
 * to tensors that can be read. The sanitizers watch what is read. */
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "damaged_file.h"
#include "format/safetensors.h"

static struct damaged_file damaged;
static size_t header_end;

/* With names, types, a tensor without elements and metadata: scripts/golden_safetensors.py. */
static int read_valid(void **state)
{
    (void)state;
    damaged_file_create(&damaged, "golden/types.safetensors");
    header_end = 8 + damaged.valid[0] + 256U * damaged.valid[1];
    return header_end < damaged.size ? 0 : -1;
}

static int release_valid(void **state)
{
    (void)state;
    damaged_file_release(&damaged);
    return 0;
}

static int write_valid(void **state)
{
    (void)state;
    damaged_file_restore(&damaged);
    return 0;
}

/* Whether the file opens. Reads all that it then offers. */
static bool file_opens(void)
{
    struct attn_error error = {""};
    struct safetensors *file;
    if (!safetensors_open(&file, damaged.path, &error)) {
        assert_null(file);
        assert_message(&error, damaged.path);
        return false;
    }
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct stored_tensor *tensor = safetensors_at(file, i);
        assert_ptr_equal(safetensors_find(file, tensor->name), tensor);
        unsigned char *bytes = malloc(tensor->size + 1);
        float *floats = malloc(((size_t)tensor->elements + 1) * sizeof *floats);
        assert_true(bytes && floats);
        memcpy(bytes, tensor->data, tensor->size);
        stored_tensor_to_floats(tensor, floats, &error);
        free(floats);
        free(bytes);
    }
    safetensors_close(file);
    return true;
}

static void the_file_itself_opens(void **state)
{
    (void)state;
    assert_true(file_opens());
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    for (size_t size = damaged.size; size-- > 0;) {
        damaged_file_cut(&damaged, size);
        assert_false(file_opens());
    }
}

static void every_damaged_header_byte_is_survived(void **state)
{
    (void)state;
    size_t refused = 0;
    for (size_t i = 0; i < header_end; i++) {
        for (unsigned flip = 1; flip < 256; flip *= 2) {
            damaged_file_put(&damaged, i, (unsigned char)(damaged.valid[i] ^ flip));
            refused += !file_opens();
        }
        damaged_file_put(&damaged, i, damaged.valid[i]);
    }
    assert_true(refused > header_end);
    assert_true(file_opens());
}

static void every_changed_digit_is_survived(void **state)
{
    (void)state;
    for (size_t i = 8; i < header_end; i++) {
        if (damaged.valid[i] < '0' || damaged.valid[i] > '9')
            continue;
        for (const char *other = "-.e0123456789"; *other; other++) {
            damaged_file_put(&damaged, i, (unsigned char)*other);
            file_opens();
        }
        damaged_file_put(&damaged, i, damaged.valid[i]);
    }
    assert_true(file_opens());
}

#define TEST(name) cmocka_unit_test_setup(name, write_valid)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_file_itself_opens),
        TEST(every_truncation_is_refused),
        TEST(every_damaged_header_byte_is_survived),
        TEST(every_changed_digit_is_survived),
    };
    return cmocka_run_group_tests(tests, read_valid, release_valid);
}
