#include "draw/attention_map.h"

#include <stdio.h>
#include <string.h>

#include "draw/map_check.h"

/* Magic, version 1.0 and the header's length in two bytes stand before the header; data begin at a
 * multiple of 64 bytes (the format's description, numpy.lib.format). */
enum { NPY_PREFIX = 10, NPY_ALIGNMENT = 64, NPY_HEADER_LIMIT = 3 * NPY_ALIGNMENT };

static void add_header(const struct attention_map *map, struct attn_buffer *out)
{
    char header[NPY_HEADER_LIMIT];
    int written = snprintf(header, sizeof header,
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu, %zu), }",
                           map->panel_count, map->rows, map->columns);
    size_t end = NPY_PREFIX + (size_t)written + 1;
    size_t size = (end + NPY_ALIGNMENT - 1) / NPY_ALIGNMENT * NPY_ALIGNMENT - NPY_PREFIX;
    memset(header + written, ' ', size - (size_t)written);
    header[size - 1] = '\n';
    const unsigned char prefix[NPY_PREFIX] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)size, (unsigned char)(size >> 8)};
    attn_buffer_add(out, prefix, sizeof prefix);
    attn_buffer_add(out, header, size);
}

/* Little-endian whatever the machine is. */
static void add_row(const float *weights, size_t count, struct attn_buffer *out)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &weights[i], sizeof bits);
        const unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8),
                                        (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
        attn_buffer_add(out, bytes, sizeof bytes);
    }
}

bool draw_npy(const struct attention_map *map, struct attn_buffer *out, struct attn_error *error)
{
    if (!map_check(map, error))
        return false;
    add_header(map, out);
    for (size_t p = 0; p < map->panel_count; p++)
        add_row(map->panels[p].weights, map->rows * map->columns, out);
    return !out->failed || attn_error_memory(error);
}
