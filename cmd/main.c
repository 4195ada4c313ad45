/* The attn tool: finds the verb, runs it, and says in one line what went wrong. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "manual.h"
#include "output.h"
#include "restart.h"
#include "verb.h"

/* With a standard stream closed, a file opened later would take its number, and a message could end
 * in that file. Standard output is filled so that writing to it still fails. */
static void keep_standard_streams(void)
{
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) == -1)
            (void)open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

static enum status print_version(struct attn_error *error)
{
    struct attn_buffer text = {0};
    attn_buffer_format(&text, "attn %s\n", attn_version());
    bool written = output_write(&text, error);
    attn_buffer_release(&text);
    return written ? STATUS_SUCCESS : STATUS_FAILURE;
}

static enum status run(int argc, char **argv, const struct verb **verb, struct attn_error *error)
{
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0)
        return print_version(error);
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        return output_write_text(manual_overview, error) ? STATUS_SUCCESS : STATUS_FAILURE;
    if (first[0] == '-') {
        attn_error_set(error, "there is no option '%s' before the verb; see 'attn --help'", first);
        return STATUS_USAGE;
    }
    *verb = verb_find(first, error);
    return *verb ? (*verb)->run(argc - 1, argv + 1, error) : STATUS_USAGE;
}

int main(int argc, char **argv)
{
    restart_with_fast_blas(argv);
    keep_standard_streams();
    /* A limit on file sizes is then an error that is told and cleaned up after, as a full disk is.
     */
    signal(SIGXFSZ, SIG_IGN);
    if (argc < 2) {
        fputs(manual_usage, stderr);
        return STATUS_USAGE;
    }

    struct attn_error error = {""};
    const struct verb *verb = NULL;
    enum status status = run(argc, argv, &verb, &error);
    if (status != STATUS_SUCCESS && error.message[0])
        fprintf(stderr, "attn%s%s: %s\n", verb ? " " : "", verb ? verb->name : "", error.message);
    return (int)status;
}
