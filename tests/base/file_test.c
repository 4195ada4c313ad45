#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_test.h"
#include "scratch_folder.h"

static int make_folder(void **state)
{
    *state = scratch_folder_create();
    return 0;
}

static int remove_folder(void **state)
{
    scratch_folder_remove(*state);
    return 0;
}

/* Writes FOLDER/NAME through attn_file_write and checks what is there after. */
static void check_write(const char *folder, const char *name, const char *text)
{
    struct attn_error error;
    char *path = attn_path_join(folder, name);
    if (!attn_file_write(path, text, strlen(text), &error))
        fail_msg("%s", error.message);
    char *found = scratch_read_text(folder, name);
    assert_string_equal(found, text);
    free(found);
    free(path);
}

static void check_write_refused(const char *folder, const char *name, const char *words)
{
    struct attn_error error;
    char *path = attn_path_join(folder, name);
    size_t before = scratch_count(folder);
    assert_false(attn_file_write(path, "text", 4, &error));
    assert_message(&error, path);
    assert_message(&error, words);
    assert_int_equal(scratch_count(folder), before);
    free(path);
}

static mode_t permissions(const char *folder, const char *name)
{
    char *path = attn_path_join(folder, name);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    free(path);
    return status.st_mode & 07777;
}

static void paths_are_joined_by_one_slash(void **state)
{
    (void)state;
    const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b/c", "/b/c"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = attn_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        free(path);
    }
}

static void map_shows_the_bytes(void **state)
{
    const char *folder = *state;
    scratch_write(folder, "file", "a\0b", 3);
    scratch_write(folder, "empty", "", 0);
    struct attn_error error;
    struct attn_file_map map;

    char *path = attn_path_join(folder, "file");
    assert_true(attn_file_map_open(&map, path, &error));
    assert_int_equal(map.size, 3);
    assert_memory_equal(map.data, "a\0b", 3);
    attn_file_map_close(&map);
    assert_null(map.data);
    free(path);

    path = attn_path_join(folder, "empty");
    assert_true(attn_file_map_open(&map, path, &error));
    assert_int_equal(map.size, 0);
    assert_null(map.data);
    attn_file_map_close(&map);
    free(path);
}

static void check_map_refused(const char *path, const char *words)
{
    struct attn_error error;
    struct attn_file_map map;
    assert_false(attn_file_map_open(&map, path, &error));
    assert_message(&error, path);
    assert_message(&error, words);
    attn_file_map_close(&map);
}

static void map_refuses_what_is_no_file(void **state)
{
    char *missing = attn_path_join(*state, "missing");
    char *pipe_path = attn_path_join(*state, "pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    check_map_refused(missing, "no such file");
    check_map_refused(*state, "is a folder, expected a file");
    check_map_refused(pipe_path, "is not a regular file");
    check_map_refused("/dev/null", "is not a regular file");
    free(missing);
    free(pipe_path);
}

static void read_gives_all_bytes(void **state)
{
    struct attn_error error;
    char *path = attn_path_join(*state, "file");
    for (size_t size = 0; size <= 20000; size = size * 3 + 1) {
        char *bytes = malloc(size + 1);
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)(i * 31);
        scratch_write(*state, "file", bytes, size);
        char *data;
        size_t found;
        assert_true(attn_file_read(path, size, &data, &found, &error));
        assert_int_equal(found, size);
        assert_memory_equal(data, bytes, size);
        assert_int_equal(data[size], '\0');
        free(data);
        free(bytes);
    }
    free(path);
}

static void read_refuses_more_than_the_limit(void **state)
{
    struct attn_error error;
    char *data;
    size_t size;
    scratch_write_text(*state, "file", "12345");
    char *path = attn_path_join(*state, "file");
    assert_true(attn_file_read(path, 5, &data, &size, &error));
    free(data);
    assert_false(attn_file_read(path, 4, &data, &size, &error));
    assert_null(data);
    assert_message(&error, path);
    assert_message(&error, "at most 4");
    free(path);

    /* A device tells no size. */
    assert_false(attn_file_read("/dev/zero", 100000, &data, &size, &error));
    assert_message(&error, "100000");
    assert_true(attn_file_read("/dev/null", 0, &data, &size, &error));
    assert_int_equal(size, 0);
    free(data);
}

static void read_names_what_is_wrong(void **state)
{
    struct attn_error error;
    char *data;
    size_t size;
    assert_false(attn_file_read(*state, 10, &data, &size, &error));
    assert_message(&error, "is a folder");
    assert_false(attn_file_read("/nowhere/file", 10, &data, &size, &error));
    assert_string_equal(error.message, "/nowhere/file: no such file");
}

static void read_takes_standard_input(void **state)
{
    (void)state;
    enum { SIZE = 30000 }; /* fits into a pipe, not into the first block of memory */
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char *bytes = malloc(SIZE);
    memset(bytes, 'z', SIZE);
    assert_int_equal(write(ends[1], bytes, SIZE), SIZE);
    close(ends[1]);
    int kept = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);

    struct attn_error error;
    char *data;
    size_t size;
    bool read = attn_file_read("-", SIZE, &data, &size, &error);
    if (kept >= 0) {
        dup2(kept, STDIN_FILENO);
        close(kept);
    }
    assert_true(read);
    assert_int_equal(size, SIZE);
    assert_memory_equal(data, bytes, SIZE);
    free(data);
    free(bytes);
}

static void write_makes_and_replaces(void **state)
{
    check_write(*state, "file", "first, and longer");
    check_write(*state, "file", "second");
    check_write(*state, "file", "");
    assert_int_equal(scratch_count(*state), 1);
}

static void write_leaves_permissions_as_they_are(void **state)
{
    mode_t mask = umask(027);
    check_write(*state, "new", "x");
    assert_int_equal(permissions(*state, "new"), 0640);
    umask(077);
    char *path = attn_path_join(*state, "new");
    assert_int_equal(chmod(path, 0664), 0);
    check_write(*state, "new", "y");
    assert_int_equal(permissions(*state, "new"), 0664);
    umask(mask);
    free(path);
}

static void write_follows_links(void **state)
{
    char *path = attn_path_join(*state, "link");
    char *chain = attn_path_join(*state, "chain");
    scratch_write_text(*state, "folder/target", "old");
    assert_int_equal(symlink("folder/target", path), 0);
    assert_int_equal(symlink("link", chain), 0);
    check_write(*state, "chain", "new");
    char *text = scratch_read_text(*state, "folder/target");
    assert_string_equal(text, "new");
    free(text);
    struct stat status;
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISLNK(status.st_mode));

    /* Also where the target is not there yet. */
    unlink(path);
    assert_int_equal(symlink("folder/fresh", path), 0);
    check_write(*state, "chain", "made");
    text = scratch_read_text(*state, "folder/fresh");
    assert_string_equal(text, "made");
    free(text);
    free(path);
    free(chain);
}

static void write_refuses_a_circle_of_links(void **state)
{
    char *path = attn_path_join(*state, "circle");
    assert_int_equal(symlink("circle", path), 0);
    check_write_refused(*state, "circle", "cannot be written");
    free(path);
}

static void write_names_what_is_wrong(void **state)
{
    scratch_make_folder(*state, "folder");
    scratch_write_text(*state, "file", "x");
    check_write_refused(*state, "folder", "is a folder");
    check_write_refused(*state, "missing/file", "there is no such folder");
    check_write_refused(*state, "file/below", "cannot be written");
}

static void a_write_that_fails_half_way_leaves_the_old_file(void **state)
{
    static char large[100000];
    struct attn_error error;
    scratch_write_text(*state, "file", "old");
    char *path = attn_path_join(*state, "file");

    /* A limit on file sizes stands in for a disk that fills. */
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 4096, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool written = attn_file_write(path, large, sizeof large, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);

    assert_false(written);
    assert_message(&error, path);
    assert_message(&error, "cannot be written: ");
    assert_int_equal(scratch_count(*state), 1);
    char *text = scratch_read_text(*state, "file");
    assert_string_equal(text, "old");
    free(text);
    free(path);
}

static void write_reports_a_full_disk(void **state)
{
    (void)state;
    struct attn_error error;
    if (access("/dev/full", W_OK) != 0)
        skip_because("there is no /dev/full");
    assert_false(attn_file_write("/dev/full", "text", 4, &error));
    assert_message(&error, "/dev/full: cannot be written");
}

static void write_goes_into_devices_and_pipes(void **state)
{
    struct attn_error error;
    assert_true(attn_file_write("/dev/null", "text", 4, &error));
    struct stat status;
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));

    char *path = attn_path_join(*state, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_true(attn_file_write(path, "through", 7, &error));
    char text[8] = "";
    assert_int_equal(read(reader, text, 7), 7);
    assert_string_equal(text, "through");
    close(reader);
    assert_int_equal(stat(path, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    free(path);
}

static void write_to_standard_output_keeps_what_is_there(void **state)
{
    if (access("/dev/stdout", F_OK) != 0)
        skip_because("there is no /dev/stdout");
    struct attn_error error;
    scratch_write_text(*state, "log", "before ");
    char *path = attn_path_join(*state, "log");
    int log = open(path, O_WRONLY | O_APPEND);
    assert_true(log >= 0);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    dup2(log, STDOUT_FILENO);
    bool written = attn_file_write("/dev/stdout", "after", 5, &error);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(log);
    assert_true(written);
    char *text = scratch_read_text(*state, "log");
    assert_string_equal(text, "before after");
    free(text);
    free(path);
}

static void write_respects_a_read_only_file(void **state)
{
    scratch_write_text(*state, "file", "kept");
    char *path = attn_path_join(*state, "file");
    assert_int_equal(chmod(path, 0444), 0);

    /* The superuser may write to every file: be another one meanwhile. */
    enum { NOBODY = 65534 };
    uid_t user = geteuid();
    bool superuser = user == 0;
    if (superuser && (chown(*state, NOBODY, (gid_t)-1) != 0 || seteuid(NOBODY) != 0)) {
        free(path);
        skip_because("the superuser cannot become another user here");
    }
    struct attn_error error;
    bool written = attn_file_write(path, "text", 4, &error);
    assert_int_equal(seteuid(user), 0);
    assert_false(written);
    assert_message(&error, path);
    assert_message(&error, "cannot be written: ");
    assert_int_equal(scratch_count(*state), 1);
    char *text = scratch_read_text(*state, "file");
    assert_string_equal(text, "kept");
    free(text);
    free(path);
}

static void write_is_not_stopped_by_what_a_crash_left(void **state)
{
    char name[64];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, ".attn-%ld-%d.tmp", (long)getpid(), i);
        scratch_write_text(*state, name, "left");
    }
    check_write(*state, "file", "text");
    assert_int_equal(scratch_count(*state), 4);
}

static void a_check_tells_what_writing_would(void **state)
{
    struct attn_error error;
    scratch_write_text(*state, "file", "kept");
    const char *const names[] = {"file", "new", "none/file", "."};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = attn_path_join(*state, names[i]);
        const bool can = i < 2;
        assert_int_equal(attn_file_check_write(path, &error), can);
        if (!can)
            assert_message(&error, path);
        free(path);
    }
    assert_int_equal(scratch_count(*state), 1);
    char *text = scratch_read_text(*state, "file");
    assert_string_equal(text, "kept");
    free(text);

    char *pipe = attn_path_join(*state, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_true(attn_file_check_write(pipe, &error)); /* and does not wait for a reader */
    free(pipe);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths_are_joined_by_one_slash),
        TEST(map_shows_the_bytes),
        TEST(map_refuses_what_is_no_file),
        TEST(read_gives_all_bytes),
        TEST(read_refuses_more_than_the_limit),
        TEST(read_names_what_is_wrong),
        TEST(read_takes_standard_input),
        TEST(write_makes_and_replaces),
        TEST(write_leaves_permissions_as_they_are),
        TEST(write_follows_links),
        TEST(write_refuses_a_circle_of_links),
        TEST(write_names_what_is_wrong),
        TEST(a_write_that_fails_half_way_leaves_the_old_file),
        TEST(write_reports_a_full_disk),
        TEST(write_goes_into_devices_and_pipes),
        TEST(write_to_standard_output_keeps_what_is_there),
        TEST(write_respects_a_read_only_file),
        TEST(write_is_not_stopped_by_what_a_crash_left),
        TEST(a_check_tells_what_writing_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
