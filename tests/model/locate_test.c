/* Where a model is found, in a home that each test makes for itself. */
#include "model/locate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "allocation_sweep.h"
#include "base/buffer.h"
#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"

/* Each test runs in FOLDER/here with FOLDER/home as its home and no other setting. */
struct world {
    char *folder;
    char *before; /* the working directory to go back to */
};

static void set_folder(const struct world *world, const char *variable, const char *name)
{
    char *path = attn_path_join(world->folder, name);
    assert_int_equal(setenv(variable, path, 1), 0);
    free(path);
}

static int make_world(void **state)
{
    static const char *const variables[] = {
        "ATTN_MODEL",    "ATTN_GENERATOR",       "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME",
        "XDG_DATA_HOME", "HUGGINGFACE_HUB_CACHE"};
    struct world *world = malloc(sizeof *world);
    assert_non_null(world);
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    world->before = strdup(before);
    world->folder = scratch_folder_create();
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    set_folder(world, "HOME", "home");
    scratch_make_folder(world->folder, "home");
    scratch_make_folder(world->folder, "here");
    char *here = attn_path_join(world->folder, "here");
    assert_int_equal(chdir(here), 0);
    free(here);
    *state = world;
    return 0;
}

static int remove_world(void **state)
{
    struct world *world = *state;
    assert_int_equal(chdir(world->before), 0);
    scratch_folder_remove(world->folder);
    free(world->before);
    free(world);
    return 0;
}

/* The request finds this directory, spelled so, and this name. */
static void check_found_for(enum model_purpose purpose, const char *request, const char *directory,
                            const char *name)
{
    struct attn_error error;
    char *found;
    char *found_name;
    if (!model_locate(purpose, request, &found, &found_name, &error))
        fail_msg("%s", error.message);
    assert_string_equal(found, directory);
    assert_string_equal(found_name, name);
    free(found);
    free(found_name);
}

static void check_found(const char *request, const char *directory, const char *name)
{
    check_found_for(MODEL_FOR_LOOKING, request, directory, name);
}

/* The same with a directory of the world. */
static void check_found_in(const struct world *world, const char *request, const char *directory,
                           const char *name)
{
    char *path = attn_path_join(world->folder, directory);
    check_found(request, path, name);
    free(path);
}

static void check_refused_for(enum model_purpose purpose, const char *request, const char *words)
{
    struct attn_error error;
    char *found;
    char *name;
    assert_false(model_locate(purpose, request, &found, &name, &error));
    assert_null(found);
    assert_null(name);
    assert_message(&error, words);
}

static void check_refused(const char *request, const char *words)
{
    check_refused_for(MODEL_FOR_LOOKING, request, words);
}

static void installed_models(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, "home/.local/share/attn/models/tiny");
    scratch_make_folder(world->folder, "data/attn/models/other");
    check_found_in(world, "tiny", "home/.local/share/attn/models/tiny", "tiny");
    setenv("XDG_DATA_HOME", "relative", 1); /* the specification has it ignored */
    check_found_in(world, "tiny", "home/.local/share/attn/models/tiny", "tiny");
    set_folder(world, "XDG_DATA_HOME", "data");
    check_found_in(world, "other", "data/attn/models/other", "other");
    check_refused("tiny", "data/attn/models/tiny");
}

static void an_installed_model_comes_before_a_folder_here(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, "here/tiny");
    check_found("tiny", "tiny", "tiny");
    scratch_make_folder(world->folder, "home/.local/share/attn/models/tiny");
    check_found_in(world, "tiny", "home/.local/share/attn/models/tiny", "tiny");
    check_found("./tiny", "./tiny", "tiny");
}

static void the_default(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, "home/.local/share/attn/models/" MODEL_DEFAULT_NAME);
    const char *installed = "home/.local/share/attn/models/" MODEL_DEFAULT_NAME;
    check_found_in(world, NULL, installed, MODEL_DEFAULT_NAME);
    check_found_in(world, "", installed, MODEL_DEFAULT_NAME);
    setenv("ATTN_MODEL", "", 1);
    check_found_in(world, NULL, installed, MODEL_DEFAULT_NAME);
    scratch_make_folder(world->folder, "here/mine");
    setenv("ATTN_MODEL", "./mine", 1);
    check_found(NULL, "./mine", "mine");
    check_found_in(world, MODEL_DEFAULT_NAME, installed, MODEL_DEFAULT_NAME);
}

static void a_missing_default_names_the_command(void **state)
{
    (void)state;
    check_refused(NULL, "fetch it with attn-fetch-model");
    check_refused(NULL, "home/.local/share/attn/models/all-MiniLM-L6-v2");
    check_refused(MODEL_DEFAULT_NAME, "fetch it with attn-fetch-model");
    setenv("ATTN_MODEL", "unknown", 1);
    check_refused(NULL, "model unknown");
}

static void the_default_that_writes(void **state)
{
    const struct world *world = *state;
    check_refused_for(MODEL_FOR_WRITING, NULL, "fetch it with attn-fetch-model generator");
    check_refused_for(MODEL_FOR_WRITING, NULL, "attn/models/SmolLM2-135M-Instruct)");
    check_refused(MODEL_DEFAULT_GENERATOR, "fetch it with attn-fetch-model generator");
    check_refused_for(MODEL_FOR_WRITING, "unknown",
                      "attn-fetch-model generator fetches SmolLM2-135M-Instruct");
    scratch_make_folder(world->folder, "here/mine");
    scratch_make_folder(world->folder, "here/looking");
    setenv("ATTN_MODEL", "./looking", 1); /* is for looking alone */
    scratch_make_folder(world->folder, "home/.local/share/attn/models/" MODEL_DEFAULT_GENERATOR);
    char *installed =
        attn_path_join(world->folder, "home/.local/share/attn/models/" MODEL_DEFAULT_GENERATOR);
    check_found_for(MODEL_FOR_WRITING, NULL, installed, MODEL_DEFAULT_GENERATOR);
    check_found_for(MODEL_FOR_WRITING, "", installed, MODEL_DEFAULT_GENERATOR);
    free(installed);
    setenv("ATTN_GENERATOR", "mine", 1);
    check_found_for(MODEL_FOR_WRITING, NULL, "mine", "mine");
    check_found(NULL, "./looking", "looking");
}

static void gguf_files(void **state)
{
    const struct world *world = *state;
    scratch_write_text(world->folder, "here/tiny.gguf", "x");
    scratch_write_text(world->folder, "here/sub/tiny.gguf", "x");
    check_found("tiny.gguf", "tiny.gguf", "tiny.gguf");
    check_found("./tiny.gguf", "./tiny.gguf", "tiny.gguf");
    check_found("sub/tiny.gguf", "sub/tiny.gguf", "tiny.gguf");
    char *absolute = attn_path_join(world->folder, "here/sub/tiny.gguf");
    check_found(absolute, absolute, "tiny.gguf");
    free(absolute);
    check_refused("other.gguf", "model other.gguf: no such file");
    check_refused("sub/other.gguf", "model sub/other.gguf: no such file");
    check_refused("./other.gguf", "model ./other.gguf: no such file");
}

static void folders(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, "here/sub/model");
    char *absolute = attn_path_join(world->folder, "here/sub/model");
    check_found(absolute, absolute, "model");
    free(absolute);
    check_found("sub/model", "sub/model", "model");
    check_found("sub/model/", "sub/model/", "model");
    check_found("sub/model///", "sub/model///", "model");
    check_found("./sub", "./sub", "sub");
    check_found("../here/sub", "../here/sub", "sub");
    check_found(".", ".", "here");
    check_found("sub/model/..", "sub/model/..", "sub");
    check_found("/", "/", "/");
}

static void paths_that_are_no_folders(void **state)
{
    const struct world *world = *state;
    scratch_write_text(world->folder, "here/file", "x");
    scratch_write_text(world->folder, "here/sub/file", "x");
    check_refused("./missing", "model ./missing: no such folder");
    check_refused("/nowhere/model", "model /nowhere/model: no such folder");
    check_refused("./file", "model ./file: is a file, expected a folder");
    check_refused("file", "model file: is a file, expected a folder");
    check_refused("sub/file", "model sub/file: is a file, expected a folder");
}

static void an_unknown_name_says_where_was_looked(void **state)
{
    (void)state;
    check_refused("unknown", "home/.local/share/attn/models/unknown");
    check_refused("unknown", "a folder unknown here");
    check_refused("org/unknown", "home/.cache/huggingface/hub/models--org--unknown");
}

#define CACHE "home/.cache/huggingface/hub/"

static void the_snapshot_that_main_names(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, CACHE "models--org--name/snapshots/aaa");
    scratch_make_folder(world->folder, CACHE "models--org--name/snapshots/bbb");
    scratch_write_text(world->folder, CACHE "models--org--name/refs/main", "bbb\n");
    check_found_in(world, "org/name", CACHE "models--org--name/snapshots/bbb", "name");
    scratch_write_text(world->folder, CACHE "models--org--name/refs/main", "aaa");
    check_found_in(world, "org/name", CACHE "models--org--name/snapshots/aaa", "name");
    scratch_write_text(world->folder, CACHE "models--org--name/refs/main", "ccc");
    check_refused("org/name", "snapshots/ccc: no such folder");
}

static void the_only_snapshot(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, CACHE "models--org--name");
    check_refused("org/name", "snapshots: no such folder");
    scratch_make_folder(world->folder, CACHE "models--org--name/snapshots");
    check_refused("org/name", "holds no snapshot");
    scratch_make_folder(world->folder, CACHE "models--org--name/snapshots/aaa");
    check_found_in(world, "org/name", CACHE "models--org--name/snapshots/aaa", "name");
    scratch_make_folder(world->folder, CACHE "models--org--name/snapshots/bbb");
    check_refused("org/name", "holds several snapshots");
}

static void a_revision_cannot_lead_out(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, CACHE "models--org--name/snapshots/aaa");
    scratch_make_folder(world->folder, CACHE "secret");
    const char *const revisions[] = {"../../../secret", "..",  ".", "", " \n", "/",
                                     "aaa/..",          "a\nb"};
    for (size_t i = 0; i < sizeof revisions / sizeof *revisions; i++) {
        scratch_write_text(world->folder, CACHE "models--org--name/refs/main", revisions[i]);
        check_refused("org/name", "refs/main: holds no revision");
    }
    char longest[1000];
    memset(longest, 'a', sizeof longest);
    scratch_write(world->folder, CACHE "models--org--name/refs/main", longest, sizeof longest);
    check_refused("org/name", "refs/main: has 1000 bytes");
}

static void names_cannot_lead_out(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, CACHE "models--a--/snapshots/aaa");
    scratch_make_folder(world->folder, "home/.local/share/attn/models");
    const char *const requests[] = {"a/../b", "a/..", "a/",    "a//b",
                                    "a/b/c",  "a/.b", "a b/c", "a/b\n"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        check_refused(requests[i], "no name of the form ORG/NAME");
}

static void places_of_the_cache(void **state)
{
    const struct world *world = *state;
    const char *const caches[] = {"xdg/huggingface/hub", "hf/hub", "hub"};
    const char *const variables[][2] = {
        {"XDG_CACHE_HOME", "xdg"}, {"HF_HOME", "hf"}, {"HF_HUB_CACHE", "hub"}};
    /* Each goes before those above it. */
    for (size_t i = 0; i < 3; i++) {
        struct attn_buffer snapshot = {0};
        attn_buffer_format(&snapshot, "%s/models--org--name/snapshots/aaa", caches[i]);
        set_folder(world, variables[i][0], variables[i][1]);
        check_refused("org/name", caches[i]);
        scratch_make_folder(world->folder, snapshot.data);
        check_found_in(world, "org/name", snapshot.data, "name");
        attn_buffer_release(&snapshot);
    }
}

static void a_folder_comes_before_the_cache(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, CACHE "models--org--name/snapshots/aaa");
    check_found_in(world, "org/name", CACHE "models--org--name/snapshots/aaa", "name");
    scratch_make_folder(world->folder, "here/org/name");
    check_found("org/name", "org/name", "name");
}

static bool locate_once(void *user, struct attn_error *error)
{
    char *directory;
    char *name;
    if (!model_locate(MODEL_FOR_LOOKING, user, &directory, &name, error)) {
        assert_null(directory);
        assert_null(name);
        return false;
    }
    free(directory);
    free(name);
    return true;
}

static void failing_allocations(void **state)
{
    const struct world *world = *state;
    scratch_make_folder(world->folder, "home/.local/share/attn/models/tiny");
    scratch_make_folder(world->folder, CACHE "models--org--name/snapshots/aaa");
    char *requests[] = {strdup("tiny"), strdup("org/name"), strdup("./")};
    for (size_t i = 0; i < 3; i++) {
        assert_true(allocation_sweep(locate_once, requests[i]) >= 2);
        free(requests[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_world, remove_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(installed_models),
        TEST(an_installed_model_comes_before_a_folder_here),
        TEST(the_default),
        TEST(a_missing_default_names_the_command),
        TEST(the_default_that_writes),
        TEST(gguf_files),
        TEST(folders),
        TEST(paths_that_are_no_folders),
        TEST(an_unknown_name_says_where_was_looked),
        TEST(the_snapshot_that_main_names),
        TEST(the_only_snapshot),
        TEST(a_revision_cannot_lead_out),
        TEST(names_cannot_lead_out),
        TEST(places_of_the_cache),
        TEST(a_folder_comes_before_the_cache),
        TEST(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
