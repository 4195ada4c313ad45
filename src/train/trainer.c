#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "nn/dropout.h"
#include "train/gradient_norm.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* One run of the loop. */
struct run {
    struct training *training;
    const struct trainer_watch *watch;
    struct trainer_result *result;
    int64_t part;     /* sequences that a process computes at a time */
    int64_t saved;    /* step of the last checkpoint, −1 for none */
    bool unsummed;    /* there was no memory for a sum of gradients */
    bool alone;       /* a failure that other processes do not know of */
    bool interrupted; /* in one process or another */
};

static const struct train_settings *settings_of(const struct run *run)
{
    return &run->training->state.settings;
}

/* Of this process's share of a batch, its first sequence. */
static int64_t first_sequence(const struct run *run)
{
    return processes_rank(run->training->processes) * settings_of(run)->accumulate * run->part;
}

/* A failure that all processes see alike. */
static bool fail_at(const struct run *run, int64_t step, const char *what, struct attn_error *error)
{
    if (run->saved < 0)
        return attn_error_set(error, "step %lld: %s", (long long)step, what);
    return attn_error_set(error, "step %lld: %s; %s keeps the checkpoint of step %lld",
                          (long long)step, what, run->training->directory, (long long)run->saved);
}

/* What one process cannot do while others wait for it. */
static bool fail_alone(struct run *run)
{
    run->alone = true;
    return false;
}

/* The losses of all processes, and whether one of them is interrupted. */
static void sum_losses(struct run *run, struct cross_entropy *sum)
{
    const struct trainer_watch *watch = run->watch;
    bool interrupted = watch->interrupted && watch->interrupted(watch->user);
    double numbers[] = {sum->loss, (double)sum->counts, interrupted ? 1.0 : 0.0};
    processes_sum(run->training->processes, numbers, 3);
    sum->loss = numbers[0];
    sum->counts = (int64_t)numbers[1];
    run->interrupted = numbers[2] > 0.0;
}

/* 0 where there was nothing to tell. */
static double mean_loss(const struct cross_entropy *sum)
{
    return sum->counts > 0 ? sum->loss / (double)sum->counts : 0.0;
}

/* Gradients of some parameters are final here: their sum over the processes can be on its way. */
static void begin_sum(void *user, int64_t begin, int64_t count)
{
    struct run *run = user;
    struct parameters *parameters = language_model_parameters(run->training->model);
    struct attn_error error;
    if (!processes_begin_sum(run->training->processes, parameters->gradients + begin, count,
                             &error))
        run->unsummed = true;
}

/* This process's share of the batch, forward and backward, part by part. The gradient is that of
 * the mean over all labels of the whole batch, not of means of parts, which would weigh them alike.
 */
static bool learn_share(struct run *run, struct cross_entropy *sum, struct attn_error *error)
{
    struct training *training = run->training;
    const struct train_settings *settings = settings_of(run);
    int64_t labels = training->batches.labels_counted;
    struct language_model_step step = {
        .dropout_seed = dropout_seed((uint64_t)settings->seed, training->state.step, 0),
        .gradient_scale = labels > 0 ? (float)(1.0 / (double)labels) : 0.0f,
        .user = run,
        .times = &run->result->times,
    };
    for (int64_t n = 0; n < settings->accumulate; n++) {
        step.first_sequence = first_sequence(run) + n * run->part;
        step.first_token = step.first_sequence * settings->context;
        step.mode = n == 0 ? GRADIENT_SET : GRADIENT_ADD;
        step.ready = n + 1 == settings->accumulate ? begin_sum : NULL;
        struct language_batch part =
            batches_part(&training->batches, step.first_sequence, run->part);
        if (!language_model_learn(training->model, &training->compute, &part, &step, sum, error))
            return fail_alone(run);
    }
    if (run->unsummed) {
        attn_error_memory(error);
        return fail_alone(run);
    }
    processes_wait(training->processes);
    return true;
}

static bool take_step(struct run *run, struct log_row *row, struct attn_error *error)
{
    struct training *training = run->training;
    const struct train_settings *settings = settings_of(run);
    struct parameters *parameters = language_model_parameters(training->model);
    int64_t done = training->state.step, tokens = settings->batch * settings->context;
    double begun = now();
    *row = (struct log_row){
        .step = done + 1, .held_out = NAN, .rate = schedule_rate(&settings->schedule, done)};

    struct cross_entropy sum = {0};
    batches_fill(&training->batches, done);
    if (!learn_share(run, &sum, error))
        return false;
    sum_losses(run, &sum);
    row->loss = mean_loss(&sum);
    if (!isfinite(row->loss))
        return fail_at(run, row->step, "the loss is not finite", error);
    struct attn_error fault;
    if (!gradient_norm(parameters, &training->compute, &row->norm, &fault))
        return fail_at(run, row->step, fault.message, error);
    optimizer_step(&training->optimizer, parameters, &training->compute, row->rate,
                   gradient_clip_factor(row->norm, settings->clip));

    double seconds = now() - begun;
    row->per_second = (double)tokens / seconds;
    training->state.step = row->step;
    training->state.tokens += tokens;
    run->result->steps++;
    run->result->tokens += tokens;
    run->result->seconds += seconds;
    run->result->loss = row->loss;
    return true;
}

/* The mean loss of the held-out text, which the processes share; NaN where there is none. */
static bool evaluate(struct run *run, double *loss, struct attn_error *error)
{
    struct training *training = run->training;
    struct batches *batches = &training->batches;
    int64_t sequences = batches_held_out_sequences(batches);
    int64_t rank = processes_rank(training->processes);
    int64_t others = processes_count(training->processes);
    struct cross_entropy sum = {0};
    *loss = NAN;
    for (int64_t first = rank * run->part; first < sequences; first += others * run->part) {
        int64_t left = sequences - first, count = left < run->part ? left : run->part;
        batches_fill_held_out(batches, first, count);
        struct language_batch part = batches_part(batches, 0, count);
        if (!language_model_evaluate(training->model, &training->compute, &part, &sum, error))
            return fail_alone(run);
    }
    if (sequences == 0)
        return true;
    sum_losses(run, &sum);
    *loss = mean_loss(&sum);
    run->result->held_out = *loss;
    return isfinite(*loss) ||
           fail_at(run, training->state.step, "the loss of the held-out text is not finite", error);
}

/* Whether the model still tells a finite loss, of what it would learn from next: a checkpoint that
 * does not is none to go on from. */
static bool check_model(struct run *run, struct attn_error *error)
{
    struct training *training = run->training;
    struct cross_entropy sum = {0};
    batches_fill(&training->batches, training->state.step);
    struct language_batch part = batches_part(&training->batches, first_sequence(run), run->part);
    if (!language_model_evaluate(training->model, &training->compute, &part, &sum, error))
        return fail_alone(run);
    sum_losses(run, &sum);
    return isfinite(sum.loss) ||
           fail_at(run, training->state.step, "the loss is no longer finite", error);
}

static bool save(struct run *run, struct attn_error *error)
{
    struct training *training = run->training;
    const struct trainer_watch *watch = run->watch;
    if (!check_model(run, error))
        return false;
    bool done = processes_rank(training->processes) > 0 ||
                (training_save(training, error) &&
                 (!watch->saved || watch->saved(watch->user, training, error)));
    if (!processes_agree(training->processes, done, error))
        return false;
    run->saved = training->state.step;
    return true;
}

/* The row of a step to the log and the watch, after the evaluation where one is due. */
static bool report(struct run *run, struct log_row *row, struct attn_error *error)
{
    struct training *training = run->training;
    const struct train_settings *settings = settings_of(run);
    bool due = row->step % settings->evaluate_every == 0 || row->step == settings->schedule.total;
    if (due && !evaluate(run, &row->held_out, error))
        return false;
    bool writer = processes_rank(training->processes) == 0;
    bool done = !writer || training_log_add(&training->log, row, error);
    if (!processes_agree(training->processes, done, error))
        return false;
    if (writer && run->watch->step)
        run->watch->step(run->watch->user, training, row);
    return true;
}

static bool take_steps(struct run *run, int64_t limit, struct attn_error *error)
{
    struct trainer_result *result = run->result;
    const struct training_state *state = &run->training->state;
    while (state->step < state->settings.schedule.total) {
        struct log_row row;
        if (!take_step(run, &row, error) || !report(run, &row, error))
            return false;
        result->end = run->interrupted         ? TRAINER_INTERRUPTED
                      : result->steps == limit ? TRAINER_STOPPED
                                               : TRAINER_DONE;
        bool ends = result->end != TRAINER_DONE;
        if ((ends || state->step % state->settings.save_every == 0) && !save(run, error))
            return false;
        if (ends)
            return true;
    }
    result->end = TRAINER_DONE;
    return run->saved == state->step || save(run, error);
}

bool trainer_run(struct training *training, int64_t limit, const struct trainer_watch *watch,
                 struct trainer_result *result, bool *alone, struct attn_error *error)
{
    const struct train_settings *settings = &training->state.settings;
    bool is_new = training->state.step == 0;
    *result = (struct trainer_result){.loss = NAN, .held_out = NAN};
    struct run run = {
        .training = training,
        .watch = watch,
        .result = result,
        .part = settings->batch / (settings->accumulate * processes_count(training->processes)),
        .saved = is_new ? -1 : training->state.step,
    };
    bool done = !is_new || save(&run, error);
    if (!done && !run.alone)
        training_folder_undo(&training->folder);
    done = done && take_steps(&run, limit, error);
    *alone = run.alone;
    return done;
}
