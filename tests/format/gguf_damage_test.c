/* Valid GGUF files cut at every byte and damaged at every byte: each is refused with a message or
 * opens to values and tensors that can be read. The sanitizers watch what is read. */
#include "cmocka_test.h"
#include "damaged_file.h"
#include "gguf_contents.h"

/* Whether the file opens. Reads all that it then offers. */
static bool file_opens(const struct damaged_file *damaged)
{
    struct attn_error error = {""};
    struct gguf *file;
    if (!gguf_open(&file, damaged->path, &error)) {
        assert_null(file);
        assert_message(&error, damaged->path);
        return false;
    }
    assert_true(gguf_contents_read(file));
    gguf_close(file);
    return true;
}

static const char small[] = "cases/files/alignment-64.gguf";
static const char every_type[] = "golden/gguf.gguf";

/* Neither file ends with padding. */
static void every_truncation_is_refused(void **state)
{
    (void)state;
    const char *const names[] = {small, every_type};
    for (int i = 0; i < 2; i++) {
        struct damaged_file damaged;
        damaged_file_create(&damaged, names[i]);
        assert_true(file_opens(&damaged));
        for (size_t size = damaged.size; size-- > 0;) {
            damaged_file_cut(&damaged, size);
            assert_false(file_opens(&damaged));
        }
        damaged_file_release(&damaged);
    }
}

static void every_changed_byte_of_a_small_file_is_survived(void **state)
{
    (void)state;
    struct damaged_file damaged;
    damaged_file_create(&damaged, small);
    size_t refused = 0;
    for (size_t i = 0; i < damaged.size; i++) {
        for (unsigned change = 1; change < 256; change++) {
            damaged_file_put(&damaged, i, (unsigned char)(damaged.valid[i] ^ change));
            refused += !file_opens(&damaged);
        }
        damaged_file_put(&damaged, i, damaged.valid[i]);
    }
    assert_true(refused > 255 * 24); /* the header alone */
    assert_true(file_opens(&damaged));
    damaged_file_release(&damaged);
}

static void every_changed_bit_of_every_type_is_survived(void **state)
{
    (void)state;
    struct damaged_file damaged;
    damaged_file_create(&damaged, every_type);
    for (size_t i = 0; i < damaged.size; i++) {
        for (unsigned flip = 1; flip < 256; flip *= 2) {
            damaged_file_put(&damaged, i, (unsigned char)(damaged.valid[i] ^ flip));
            file_opens(&damaged);
        }
        damaged_file_put(&damaged, i, damaged.valid[i]);
    }
    assert_true(file_opens(&damaged));
    damaged_file_release(&damaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_changed_byte_of_a_small_file_is_survived),
        cmocka_unit_test(every_changed_bit_of_every_type_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
