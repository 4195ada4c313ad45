/* From what a user calls a model to the folder or file that holds it. Never the network. */
#ifndef ATTN_MODEL_LOCATE_H
#define ATTN_MODEL_LOCATE_H

#include <stdbool.h>

#include "base/error.h"

/* The model for whoever names none. */
#define MODEL_DEFAULT_NAME      "all-MiniLM-L6-v2"      /* to look at texts */
#define MODEL_DEFAULT_GENERATOR "SmolLM2-135M-Instruct" /* to write */

/* The commands that fetch them; `make install` installs the program. */
#define MODEL_FETCH_COMMAND           "attn-fetch-model"
#define MODEL_FETCH_GENERATOR_COMMAND "attn-fetch-model generator"

/* What the model is for: which one is the default. */
enum model_purpose { MODEL_FOR_LOOKING, MODEL_FOR_WRITING };

/* Finds, in this order:
 *   NAME       a folder of that name in $XDG_DATA_HOME/attn/models (~/.local/share where unset)
 *   DIR        a folder on the disk (anything that begins with '/' or '.', or that is there)
 *   FILE.gguf  a file on the disk
 *   ORG/NAME   the snapshot in the user's Hugging Face cache: $HF_HUB_CACHE, else $HF_HOME/hub,
 *              else $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub; the revision
 *              that refs/main names, else the only snapshot
 * request NULL or "": $ATTN_MODEL, else MODEL_DEFAULT_NAME; for writing $ATTN_GENERATOR, else
 * MODEL_DEFAULT_GENERATOR. *path, for model_source_open, is newly allocated, *name (for output; the
 * last component or NAME) too; the caller frees both. What a folder holds is not looked at. An
 * error says where was looked, and for a default model names the command that fetches it. */
bool model_locate(enum model_purpose purpose, const char *request, char **path, char **name,
                  struct attn_error *error);

#endif
