/* Instead of mapped files copies of exactly their size, so that AddressSanitizer sees a read behind
 * the end; behind a mapped file the rest of its page can be read. An executable that links this has
 * the linker lead attn_file_map_open and attn_file_map_close through here. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

bool __real_attn_file_map_open(struct attn_file_map *map, const char *path,
                               struct attn_error *error);
void __real_attn_file_map_close(struct attn_file_map *map);
bool __wrap_attn_file_map_open(struct attn_file_map *map, const char *path,
                               struct attn_error *error);
void __wrap_attn_file_map_close(struct attn_file_map *map);

bool __wrap_attn_file_map_open(struct attn_file_map *map, const char *path,
                               struct attn_error *error)
{
    if (!__real_attn_file_map_open(map, path, error))
        return false;
    if (!map->data)
        return true;
    struct attn_file_map copy = {malloc(map->size), map->size};
    if (copy.data)
        memcpy((void *)(uintptr_t)copy.data, map->data, map->size);
    __real_attn_file_map_close(map);
    if (!copy.data)
        return attn_error_memory(error);
    *map = copy;
    return true;
}

void __wrap_attn_file_map_close(struct attn_file_map *map)
{
    free((void *)(uintptr_t)map->data);
    *map = (struct attn_file_map){0};
}
