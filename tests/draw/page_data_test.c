#include "draw/page_data.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_test.h"
#include "draw/base64.h"
#include "draw/page_weights.h"
#include "draw/strongest.h"
#include "small_map.h"

static const float numbers[12] = {1, -2, 3};
static const size_t row_tokens[] = {0, 1, 2}, row_token_counts[] = {1, 1, 1};

static struct map_vectors vectors_of_three(void)
{
    return (struct map_vectors){.layers = 1,
                                .heads = 2,
                                .key_heads = 1,
                                .d = 2,
                                .tokens = 3,
                                .scale = 1,
                                .queries = numbers,
                                .keys = numbers,
                                .values = numbers,
                                .labels = words,
                                .row_tokens = row_tokens,
                                .row_token_counts = row_token_counts};
}

static void assert_base64(const char *bytes, const char *expected)
{
    struct attn_buffer out = {0};
    struct base64 text = {.out = &out};
    for (const char *c = bytes; *c; c++)
        base64_add(&text, (unsigned char)*c);
    base64_end(&text);
    assert_string_equal(out.data, expected);
    assert_int_equal(base64_text_size(strlen(bytes)), strlen(expected));
    attn_buffer_release(&out);
}

/* The test vectors of RFC 4648, section 10. */
static void base64_is_that_of_the_standard(void **state)
{
    (void)state;
    assert_base64("f", "Zg==");
    assert_base64("fo", "Zm8=");
    assert_base64("foo", "Zm9v");
    assert_base64("foob", "Zm9vYg==");
    assert_base64("fooba", "Zm9vYmE=");
    assert_base64("foobar", "Zm9vYmFy");
    assert_true(base64_text_size(SIZE_MAX) == SIZE_MAX);
}

static void assert_strongest(const float *weights, size_t columns, size_t limit,
                             const uint32_t *expected, size_t count)
{
    struct attention_map map = map_of_three();
    map.rows = 1;
    map.columns = columns;
    struct map_panel row = {0, 0, weights, NULL};
    struct strongest strongest;
    strongest_find(&map, &row, 0, limit, &strongest);
    assert_int_equal(strongest.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(strongest.links[i].column, expected[i]);
        assert_memory_equal(&strongest.links[i].weight, &weights[expected[i]], sizeof *weights);
    }
}

static void the_strongest_hold_most_of_a_row(void **state)
{
    (void)state;
    static const float falling[] = {0.1f, 0.2f, 0.3f, 0.4f};
    assert_strongest(falling, 4, 9, (const uint32_t[]){3, 2}, 2);
    assert_strongest(falling, 4, 1, (const uint32_t[]){3}, 1);
    static const float equal[] = {0, 0.25f, 0.25f, 0.25f, 0.25f, -1};
    assert_strongest(equal, 6, 9, (const uint32_t[]){1, 2, 3}, 3);
    static const float broken[] = {0.5f, NAN, 0.5f, -INFINITY, 1e-40f};
    assert_strongest(broken, 5, 9, (const uint32_t[]){1, 3, 0, 2}, 4);
    assert_strongest(broken, 5, 1, (const uint32_t[]){1}, 1);
    static const float nothing[] = {0, -0.0f, -1};
    assert_strongest(nothing, 3, 9, NULL, 0);
    static const float holes[] = {NAN, 0, NAN};
    assert_strongest(holes, 3, 9, (const uint32_t[]){0, 2}, 2);
}

static void a_row_has_no_more_links_than_a_byte_counts(void **state)
{
    (void)state;
    float weights[1000];
    uint32_t expected[STRONGEST_LIMIT];
    for (size_t i = 0; i < 1000; i++)
        weights[i] = (float)(i * 7919 % 1000 + 1000);
    for (size_t i = 0; i < 1000; i++)
        if (weights[i] >= 2000 - STRONGEST_LIMIT)
            expected[1999 - (size_t)weights[i]] = (uint32_t)i;
    assert_strongest(weights, 1000, STRONGEST_LIMIT, expected, STRONGEST_LIMIT);
}

static void links_are_counted_before_they_are_written(void **state)
{
    (void)state;
    struct attention_map map = map_of_three(); /* rows of 1, 2 and 1 links */
    struct page_links links;
    page_links_count(&map, 16, &links);
    assert_int_equal(links.rows[1], 2);
    assert_int_equal(links.rows[2], 1);
    assert_int_equal(page_links_size(&links, 1), 20);
    assert_int_equal(page_links_size(&links, 2), 28); /* 19 bytes, against the whole map's 18 */
    assert_int_equal(page_links_size(&links, 16), 28);
    assert_int_equal(page_links_fit(&links, 1000), 2);
    assert_int_equal(page_links_fit(&links, 28), 2);
    assert_int_equal(page_links_fit(&links, 27), 1);
    assert_int_equal(page_links_fit(&links, 19), 0);
    page_links_count(&map, 1, &links);
    assert_int_equal(links.rows[1], 3);
    assert_int_equal(page_weights_whole_size(&map), 24);
}

static void rows_of_links_begin_with_their_number(void **state)
{
    (void)state;
    struct attention_map map = map_of_three();
    struct attn_buffer out = {0};
    double share = 0;
    page_weights_add(&map, 2, 1, &out, &share);
    /* 1: (0, 65534); 2: (0, 32767), (1, 32767); 1: (0, 49151) */
    assert_string_equal(out.data, "AQAA/v8CAAD/fwEA/38BAAD/vw==");
    assert_true(!(fabs(share - 2.75 / 3) > 1e-6));
    attn_buffer_release(&out);
}

/* Of growing budgets: never more than it, never less than before. */
static void a_page_holds_as_much_as_fits(void **state)
{
    (void)state;
    float flat[40];
    const char *labels[40];
    for (size_t i = 0; i < 40; i++) {
        flat[i] = 1.0f / 40;
        labels[i] = "w";
    }
    const struct map_panel row = {0, 0, flat, NULL};
    struct map_vectors vectors = vectors_of_three();
    struct attention_map map = map_of_three();
    map.rows = map.row_label_count = 1;
    map.columns = map.column_label_count = 40;
    map.column_labels = labels;
    map.panels = &row;
    map.vectors = &vectors;
    struct attn_buffer all = {0};
    struct attn_error error;
    assert_true(page_data_add(&map, 1000000, &all, &error));
    assert_non_null(strstr(all.data, "\"strongest\": 0"));
    assert_non_null(strstr(all.data, "\"queries\""));
    int links = 0, most = 0;
    for (size_t budget = 0; budget < all.size + 300; budget += 3) {
        struct attn_buffer out = {0};
        if (!page_data_add(&map, budget, &out, &error)) {
            assert_int_equal(most, 0);
            assert_message(&error, "MB even with one link a row");
        } else {
            assert_true(out.size <= budget);
            int now = atoi(strstr(out.data, "\"strongest\": ") + 13);
            if (now) {
                assert_true(most != INT_MAX && now >= most);
                most = now;
                links++;
            } else {
                most = INT_MAX;
            }
        }
        attn_buffer_release(&out);
    }
    assert_true(links > 10 && most == INT_MAX);
    attn_buffer_release(&all);
}

static void assert_refused(const struct attention_map *map, const char *message)
{
    struct attn_buffer out = {0};
    struct attn_error error = {""};
    assert_false(draw_page_data(map, &out, &error));
    assert_message(&error, message);
    assert_int_equal(out.size, 0);
    attn_buffer_release(&out);
}

static void vectors_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct map_vectors vectors = vectors_of_three();
    struct attention_map map = map_of_three();
    map.vectors = &vectors;
    vectors.key_heads = 0;
    assert_refused(&map, "2 heads, 0 key heads");
    vectors.key_heads = 3;
    assert_refused(&map, "2 heads, 3 key heads");
    vectors = vectors_of_three();
    vectors.layers = vectors.d = SIZE_MAX / 2;
    assert_refused(&map, "too many");
    vectors = vectors_of_three();
    vectors.values = NULL;
    assert_refused(&map, "vectors without numbers");
    static const char *const holes[] = {"a", NULL, "c"};
    vectors = vectors_of_three();
    vectors.labels = holes;
    assert_refused(&map, "token label 1 is missing");
    static const size_t late[] = {0, 2, 2}, many[] = {1, 2, 1};
    vectors = vectors_of_three();
    vectors.row_tokens = late;
    vectors.row_token_counts = many;
    assert_refused(&map, "row 1 has tokens from 2, 2 of them, of 3");
}

static void links_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct map_link links[] = {{2, 1}, {1, 0.5f}, {3, 0.25f}};
    const struct map_panel wrong = {0, 0, NULL, links}, missing = {0, 0, causal, NULL};
    struct attention_map map = map_of_three();
    map.links_a_row = 1;
    map.panels = &wrong;
    assert_refused(&map, "row 2 of panel 0 has a link to column 3 of 3");
    map.panels = &missing;
    assert_refused(&map, "panel 0 has no links");
    map.links_a_row = SIZE_MAX / 8;
    assert_refused(&map, "links a row are too many");
    map.links_a_row = 0;
    map.panels = &wrong;
    assert_refused(&map, "panel 0 has no weights");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_is_that_of_the_standard),
        cmocka_unit_test(the_strongest_hold_most_of_a_row),
        cmocka_unit_test(a_row_has_no_more_links_than_a_byte_counts),
        cmocka_unit_test(links_are_counted_before_they_are_written),
        cmocka_unit_test(rows_of_links_begin_with_their_number),
        cmocka_unit_test(a_page_holds_as_much_as_fits),
        cmocka_unit_test(vectors_that_do_not_fit_are_refused),
        cmocka_unit_test(links_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
