/* From what a user calls a model to the directory that holds it. Never the network. */
#ifndef ATTN_MODEL_LOCATE_H
#define ATTN_MODEL_LOCATE_H

#include <stdbool.h>

#include "base/error.h"

#define MODEL_DEFAULT_NAME "all-MiniLM-L6-v2"

/* The command that `make install` installs and that fetches the default model. */
#define MODEL_FETCH_COMMAND "attn-fetch-model"

/* Finds, in this order:
 *   NAME      a folder of that name in $XDG_DATA_HOME/attn/models (~/.local/share where unset)
 *   DIR       a folder on the disk (anything that begins with '/' or '.', or that is there)
 *   ORG/NAME  the snapshot in the user's Hugging Face cache: $HF_HUB_CACHE, else $HF_HOME/hub, else
 *             $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub; the revision that
 *             refs/main names, else the only snapshot
 * request NULL or "": $ATTN_MODEL, else MODEL_DEFAULT_NAME. *directory is newly allocated, *name
 * (for output; the last component or NAME) too; the caller frees both. An error says where was
 * looked, and for the default model names the command that fetches it. */
bool model_locate(const char *request, char **directory, char **name, struct attn_error *error);

#endif
