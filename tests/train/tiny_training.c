#include "tiny_training.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cmocka_test.h"
#include "scratch_folder.h"

/* Sentences that have something to learn. */
static void write_corpus(const char *folder)
{
    static const char *const subjects[] = {"the cat", "a dog", "the robot", "my friend"};
    static const char *const verbs[] = {"sees", "picks up", "wants", "paints"};
    static const char *const objects[] = {"the box", "a red ball", "the house", "it"};
    struct attn_buffer text = {0};
    for (unsigned i = 0; i < 160; i++)
        attn_buffer_format(&text, "%s %s %s.\n", subjects[i * 7 % 4], verbs[i * 5 / 3 % 4],
                           objects[i * i % 4]);
    scratch_write(folder, "corpus.txt", text.data, text.size);
    attn_buffer_release(&text);
}

struct tiny_training tiny_training_create(enum train_objective objective)
{
    struct tiny_training tiny = {.folder = scratch_folder_create()};
    struct attn_error error;
    write_corpus(tiny.folder);
    tiny.corpus = tiny_training_path(&tiny, "corpus.txt");
    assert_true(processes_open(&tiny.processes, &error));
    struct training_request *request = &tiny.request;
    *request = (struct training_request){
        .corpus = tiny.corpus,
        .sizes = {.layers = 2,
                  .heads = 2,
                  .width = 16,
                  .vocabulary = objective == TRAIN_MLM ? 120 : 0},
        .threads = 1,
        .processes = tiny.processes,
    };
    struct train_settings *settings = &request->settings;
    train_settings_init(settings);
    settings->objective = objective;
    settings->context = 12;
    settings->batch = 6;
    settings->accumulate = 2;
    settings->dropout = 0.1;
    settings->schedule.total = 10;
    settings->schedule.warmup = 2;
    settings->evaluate_every = 3;
    settings->save_every = 4;
    return tiny;
}

void tiny_training_destroy(struct tiny_training *tiny)
{
    processes_close(tiny->processes);
    scratch_folder_remove(tiny->folder);
    free(tiny->corpus);
}

char *tiny_training_path(const struct tiny_training *tiny, const char *name)
{
    char *path = attn_path_join(tiny->folder, name);
    assert_non_null(path);
    return path;
}

static void run(struct training *training, int64_t limit, double *loss)
{
    struct trainer_watch watch = {0};
    struct trainer_result result;
    struct attn_error error;
    bool alone;
    if (!trainer_run(training, limit, &watch, &result, &alone, &error))
        fail_msg("%s", error.message);
    if (loss)
        *loss = result.loss;
    training_close(training);
}

void tiny_training_run(struct tiny_training *tiny, const char *name, int64_t limit, double *loss)
{
    struct training training;
    struct attn_error error;
    char *path = tiny_training_path(tiny, name);
    tiny->request.directory = path;
    if (!training_begin(&training, &tiny->request, &error))
        fail_msg("%s", error.message);
    run(&training, limit, loss);
    free(path);
}

void tiny_training_resume(struct tiny_training *tiny, const char *name, int64_t limit)
{
    struct training training;
    struct attn_error error;
    char *path = tiny_training_path(tiny, name);
    if (!training_resume(&training, path, tiny->corpus, 0, 1, tiny->processes, &error))
        fail_msg("%s", error.message);
    run(&training, limit, NULL);
    free(path);
}

void assert_same_file(const struct tiny_training *tiny, const char *one, const char *other,
                      const char *file)
{
    const char *const names[] = {one, other};
    char *bytes[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        char *folder = tiny_training_path(tiny, names[i]), *path = attn_path_join(folder, file);
        struct attn_error error;
        if (!attn_file_read(path, (size_t)1 << 30, &bytes[i], &sizes[i], &error))
            fail_msg("%s", error.message);
        free(path);
        free(folder);
    }
    if (sizes[0] != sizes[1] || memcmp(bytes[0], bytes[1], sizes[0]) != 0)
        fail_msg("%s is not the same in %s and %s", file, one, other);
    free(bytes[0]);
    free(bytes[1]);
}
