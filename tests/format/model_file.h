/* What tests of the format room share: files made on the spot, and tensors compared with JSON. */
#ifndef ATTN_TESTS_MODEL_FILE_H
#define ATTN_TESTS_MODEL_FILE_H

#include <jansson.h>

#include "format/stored_tensor.h"
#include "test_data.h"

/* Writes FOLDER/NAME: the length of `header`, the header, `data_size` bytes that count 0, 1, 2, …
 */
void write_safetensors(const char *folder, const char *name, const char *header, size_t data_size);

/* Fails unless the tensor has this shape and reads as these numbers. */
void assert_tensor(const struct stored_tensor *tensor, const json_t *shape, const json_t *data);

#endif
