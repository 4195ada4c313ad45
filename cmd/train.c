/* attn train: a GPT or a BERT learns from a text. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/locate.h"
#include "train/trainer.h"

#include "output.h"
#include "train_curve.h"
#include "train_options.h"
#include "train_progress.h"
#include "train_sample.h"
#include "verb.h"

static volatile sig_atomic_t signalled;

static void take_signal(int number)
{
    (void)number;
    signalled = 1;
}

/* The first of these signals asks for a checkpoint and the end; another one of its kind ends at
 * once. One that is ignored from the start (nohup, a job in the background) stays so. */
static void watch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action, before;
        memset(&action, 0, sizeof action);
        action.sa_handler = take_signal;
        action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

static bool is_interrupted(void *user)
{
    (void)user;
    return signalled != 0;
}

static void show_step(void *user, const struct training *training, const struct log_row *row)
{
    train_progress_step(user, training, row);
}

static bool draw_curve(void *user, const struct training *training, struct attn_error *error)
{
    (void)user;
    return train_curve_write(&training->log, training->directory, error);
}

static void add_times(const struct language_model_times *times, struct attn_buffer *out)
{
    double all = times->attention + times->linear + times->rest;
    if (all > 0.0)
        attn_buffer_format(out, "time:         attention %.0f%%, linear %.0f%%, rest %.0f%%\n",
                           100.0 * times->attention / all, 100.0 * times->linear / all,
                           100.0 * times->rest / all);
}

/* Without the padding between parameters. */
static int64_t count_parameters(const struct parameters *parameters)
{
    int64_t count = 0;
    for (size_t n = 0; n < parameters->item_count; n++)
        count += parameters->items[n].count;
    return count;
}

static bool print_summary(const struct training *training, const struct trainer_result *result,
                          struct attn_error *error)
{
    const struct training_state *state = &training->state;
    struct attn_buffer out = {0};
    attn_buffer_format(&out, "steps:        %lld of %lld\n", (long long)state->step,
                       (long long)state->settings.schedule.total);
    attn_buffer_format(&out, "tokens:       %lld\n", (long long)state->tokens);
    if (isfinite(result->loss))
        attn_buffer_format(&out, "loss:         %.4f\n", result->loss);
    if (isfinite(result->held_out))
        attn_buffer_format(&out, "held out:     %.4f\n", result->held_out);
    if (result->seconds > 0.0)
        attn_buffer_format(&out, "tokens/s:     %.0f\n", (double)result->tokens / result->seconds);
    add_times(&result->times, &out);
    const int64_t parameters = count_parameters(language_model_parameters(training->model));
    const int64_t vocabulary = language_model_get_settings(training->model)->vocabulary;
    attn_buffer_format(&out, "parameters:   %lld\n", (long long)parameters);
    attn_buffer_format(&out, "vocabulary:   %lld\n", (long long)vocabulary);
    attn_buffer_format(&out, "model:        %s\n", training->directory);
    bool done = output_write(&out, error);
    attn_buffer_release(&out);
    return done;
}

static bool begin(const struct train_options *options, struct processes *processes,
                  struct training *training, struct attn_error *error)
{
    struct training_request request = options->request;
    char *directory = NULL, *name = NULL;
    const char *model = options->shared.model;
    bool located = !model || model_locate(MODEL_FOR_LOOKING, model, &directory, &name, error);
    request.checkpoint = directory;
    request.processes = processes;
    bool done =
        processes_agree(processes, located, error) && training_begin(training, &request, error);
    free(directory);
    free(name);
    return done;
}

static bool open_training(const struct train_options *options, struct processes *processes,
                          struct training *training, struct attn_error *error)
{
    const char *corpus = options->request.corpus;
    if (processes_count(processes) > 1 && strcmp(corpus, "-") == 0)
        return attn_error_set(error, "-f -: standard input cannot be read by several processes");
    bool done = options->resume
                    ? training_resume(training, options->resume, corpus, options->more_steps,
                                      options->shared.threads, processes, error)
                    : begin(options, processes, training, error);
    if (!done || options->sample == 0 || training->state.settings.objective == TRAIN_GPT)
        return done;
    training_folder_undo(&training->folder);
    training_close(training);
    return attn_error_set(error, "--sample needs a model that tells the next word; this one is a "
                                 "BERT");
}

/* What comes behind the last step; only one process prints. */
static enum status finish(const struct train_options *options, struct training *training,
                          const struct trainer_result *result, struct attn_error *error)
{
    bool done = processes_rank(training->processes) > 0 ||
                (print_summary(training, result, error) &&
                 (options->sample == 0 || result->end != TRAINER_DONE ||
                  train_sample_print(training, options->sample, error)));
    if (!done)
        return STATUS_FAILURE;
    if (result->end != TRAINER_INTERRUPTED)
        return STATUS_SUCCESS;
    attn_error_set(error, "interrupted; --resume %s goes on behind step %lld", training->directory,
                   (long long)training->state.step);
    return STATUS_INTERRUPTED;
}

static enum status run(const struct train_options *options, struct processes *processes,
                       struct attn_error *error)
{
    struct training training = {0};
    struct trainer_result result;
    struct train_progress progress;
    bool alone = false;
    if (!open_training(options, processes, &training, error))
        return STATUS_FAILURE;

    struct trainer_watch watch = {show_step, draw_curve, is_interrupted, &progress};
    train_progress_begin(&progress, training.state.step);
    watch_signals();
    bool done = trainer_run(&training, options->stop_after, &watch, &result, &alone, error);
    progress_end();
    enum status status = done ? finish(options, &training, &result, error) : STATUS_FAILURE;
    training_close(&training);
    if (alone && processes_count(processes) > 1) {
        fprintf(stderr, "attn train: process %d of %d: %s\n", processes_rank(processes),
                processes_count(processes), error->message);
        processes_abort(processes);
    }
    return status;
}

static enum status parse_and_run(int argc, char **argv, struct processes *processes,
                                 struct attn_error *error)
{
    struct train_options options;
    if (!train_options_parse(argc, argv, &options, error))
        return STATUS_USAGE;
    if (!options.shared.help)
        return run(&options, processes, error);
    if (processes_rank(processes) > 0)
        return STATUS_SUCCESS;
    return options_print_help(argv[0], error) ? STATUS_SUCCESS : STATUS_FAILURE;
}

/* Of several processes that failed alike one tells it, and before any of them ends: mpirun stops
 * the others then. */
static void tell_for_all(const struct processes *processes, struct attn_error *error)
{
    if (processes_count(processes) == 1)
        return;
    if (processes_rank(processes) == 0 && error->message[0])
        fprintf(stderr, "attn train: %s\n", error->message);
    error->message[0] = '\0';
}

enum status verb_train(int argc, char **argv, struct attn_error *error)
{
    struct processes *processes;
    if (!processes_open(&processes, error))
        return STATUS_FAILURE;
    enum status status = parse_and_run(argc, argv, processes, error);
    tell_for_all(processes, error);
    processes_close(processes);
    return status;
}
