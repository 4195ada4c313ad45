#include "contexts.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>
#include <unistd.h>

#include "host_threads.h"

struct pooled_context {
    attn_context *context;
    int threads; /* as asked for */
    int host_threads;
    bool shares; /* the host's threads */
    struct pooled_context *next;
};

/* Those that nobody uses, the last one first: its memory is warm. All is guarded by the GIL. */
static struct pooled_context *idle;
static int idle_count;
enum { MOST_IDLE = 16 };

static int default_threads;
static bool share;
static pid_t sharing_process; /* that asked for it */

static void destroy(struct pooled_context *one)
{
    attn_context_destroy(one->context);
    free(one);
}

static struct pooled_context *make(int threads)
{
    struct pooled_context *one = malloc(sizeof *one);
    if (!one) {
        PyErr_NoMemory();
        return NULL;
    }
    *one = (struct pooled_context){.threads = threads, .shares = share};
    attn_options options;
    attn_options_init(&options);
    options.threads = threads;
    /* A child of fork has a copy of the runtime without its threads: there a region never ends. */
    if (share && getpid() != sharing_process)
        options.threads = 1;
    else if (share) {
        one->host_threads = options.threads;
        options.parallel_for = host_threads_loop;
        options.parallel_user = &one->host_threads;
    }
    attn_status status = attn_context_create(&one->context, &options);
    if (status == ATTN_SUCCESS)
        return one;
    free(one);
    if (status == ATTN_ERROR_MEMORY)
        PyErr_NoMemory();
    else
        PyErr_SetString(PyExc_ValueError,
                        "the environment variable ATTN_ISA must be scalar, avx2, avx512 or neon");
    return NULL;
}

/* A host's number may change at any time, as by torch.set_num_threads. */
static int default_number(void)
{
    return default_threads || !share ? default_threads : host_threads_default();
}

struct pooled_context *contexts_take(int threads)
{
    int wanted = threads ? threads : default_number();
    for (struct pooled_context **place = &idle; *place; place = &(*place)->next)
        if ((*place)->threads == wanted && (*place)->shares == share) {
            struct pooled_context *found = *place;
            *place = found->next;
            idle_count--;
            return found;
        }
    return make(wanted);
}

void contexts_give(struct pooled_context *context)
{
    context->next = idle;
    idle = context;
    if (++idle_count <= MOST_IDLE)
        return;
    struct pooled_context **last = &idle;
    while ((*last)->next)
        last = &(*last)->next;
    struct pooled_context *oldest = *last;
    *last = NULL;
    idle_count--;
    destroy(oldest);
}

attn_context *contexts_inside(struct pooled_context *context)
{
    return context->context;
}

void contexts_set_threads(int threads)
{
    default_threads = threads;
}

int contexts_threads(void)
{
    struct pooled_context *context = contexts_take(0);
    if (!context)
        return -1;
    int threads = attn_context_threads(context->context);
    contexts_give(context);
    return threads;
}

bool contexts_share_threads(void)
{
    if (!share && host_threads_find()) {
        share = true;
        sharing_process = getpid();
    }
    return share;
}
