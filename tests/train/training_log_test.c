#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "allocation_sweep.h"
#include "cmocka_test.h"
#include "scratch_folder.h"
#include "train/training_log.h"

static const char header[] = "step,loss,held_out,rate,norm,tokens_per_second\n";

static void add_rows(struct training_log *log, int64_t from, int64_t to)
{
    struct attn_error error;
    for (int64_t step = from; step <= to; step++) {
        struct log_row row = {step, 1.0 / (double)step, step % 2 ? NAN : 0.25, 1e-3, 0.125, 1234.5};
        if (!training_log_add(log, &row, &error))
            fail_msg("%s", error.message);
    }
}

static struct training_log open_log(const char *folder, int64_t last)
{
    struct training_log log;
    struct attn_error error;
    if (!training_log_open(&log, folder, last, &error))
        fail_msg("%s", error.message);
    return log;
}

static void test_rows(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    struct training_log log = open_log(folder, 0);
    add_rows(&log, 1, 3);
    training_log_close(&log);
    char *text = scratch_read_text(folder, "training.csv");
    char expected[512];
    strcpy(expected, header);
    strcat(expected, "1,1,,0.001,0.125,1234.5\n2,0.5,0.25,0.001,0.125,1234.5\n"
                     "3,0.333333333,,0.001,0.125,1234.5\n");
    assert_string_equal(text, expected);
    free(text);
    scratch_folder_remove(folder);
}

/* Rows behind the checkpoint are cut, those before it are read. */
static void test_going_on(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    struct training_log log = open_log(folder, 0);
    add_rows(&log, 1, 10);
    training_log_close(&log);
    char *whole = scratch_read_text(folder, "training.csv");
    log = open_log(folder, 6);
    assert_int_equal(log.count, 6);
    assert_true(log.rows[5].step == 6 && fabs(log.rows[5].loss - 1.0 / 6.0) <= 1e-9);
    assert_true(isnan(log.rows[0].held_out) && log.rows[1].held_out == 0.25);
    add_rows(&log, 7, 10);
    training_log_close(&log);
    char *again = scratch_read_text(folder, "training.csv");
    assert_string_equal(whole, again);
    free(whole);
    free(again);
    /* A new training begins a new file, and one that is missing is begun. */
    log = open_log(folder, 0);
    assert_int_equal(log.count, 0);
    training_log_close(&log);
    again = scratch_read_text(folder, "training.csv");
    assert_string_equal(again, header);
    free(again);
    scratch_folder_remove(folder);
    folder = scratch_folder_create();
    log = open_log(folder, 5);
    assert_int_equal(log.count, 0);
    training_log_close(&log);
    scratch_folder_remove(folder);
}

/* A run that was killed may leave half a line. */
static void test_a_cut_line(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    scratch_write_text(folder, "training.csv",
                       "step,loss,held_out,rate,norm,tokens_per_second\n"
                       "1,2,,0.1,1,10\n2,1.5,,0.");
    struct training_log log = open_log(folder, 9);
    assert_int_equal(log.count, 1);
    training_log_close(&log);
    scratch_folder_remove(folder);
}

static void test_files_that_are_no_log(void **state)
{
    (void)state;
    static const char *const contents[] = {
        "",
        "time,loss\n1,2\n",
        "step,loss,held_out,rate,norm,tokens_per_second\n1,2\n",
        "step,loss,held_out,rate,norm,tokens_per_second\n0,2,,3,4,5\n",
        "step,loss,held_out,rate,norm,tokens_per_second\n1,2,,3,4,5,6\n",
        "step,loss,held_out,rate,norm,tokens_per_second\n1,x,,3,4,5\n"};
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        char *folder = scratch_folder_create();
        struct training_log log;
        struct attn_error error = {""};
        scratch_write_text(folder, "training.csv", contents[i]);
        assert_false(training_log_open(&log, folder, 5, &error));
        assert_message(&error, "training.csv: ");
        char *left = scratch_read_text(folder, "training.csv");
        assert_string_equal(left, contents[i]);
        free(left);
        scratch_folder_remove(folder);
    }
}

/* A limit on the size of files stands for a full disk. */
static void test_a_full_disk(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    struct training_log log = open_log(folder, 0);
    struct rlimit before, limit;
    struct log_row row = {1, 0.1, 0.2, 0.3, 0.4, 0.5};
    struct attn_error error = {""};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = sizeof header + 5;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    bool added = training_log_add(&log, &row, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(added);
    assert_message(&error, "training.csv: cannot be written");
    char *left = scratch_read_text(folder, "training.csv");
    assert_string_equal(left, header);
    free(left);
    training_log_close(&log);
    scratch_folder_remove(folder);
}

static bool open_and_add(void *user, struct attn_error *error)
{
    struct training_log log;
    struct log_row row = {3, 0.1, 0.2, 0.3, 0.4, 0.5};
    if (!training_log_open(&log, user, 2, error))
        return false;
    bool done = training_log_add(&log, &row, error);
    training_log_close(&log);
    return done;
}

static void test_failing_allocations(void **state)
{
    (void)state;
    char *folder = scratch_folder_create();
    struct training_log log = open_log(folder, 0);
    add_rows(&log, 1, 2);
    training_log_close(&log);
    assert_true(allocation_sweep(open_and_add, folder) > 4);
    scratch_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),        cmocka_unit_test(test_going_on),
        cmocka_unit_test(test_a_cut_line),  cmocka_unit_test(test_files_that_are_no_log),
        cmocka_unit_test(test_a_full_disk), cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
