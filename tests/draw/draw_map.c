/* Draws what a test asks for: draw_map svg|png|html|json|npy|data|form [BUDGET] < request > file.
 *
 * The request is JSON (map_request.h); "data" is a page's data alone, of at most BUDGET bytes or as
 * its page has it, "form" the page without. A refusal goes to stderr, with exit status 1. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/attention_map.h"
#include "draw/page_data.h"
#include "map_request.h"

static bool draw_form(const struct attention_map *map, struct attn_buffer *out,
                      struct attn_error *error)
{
    return draw_page_form(map->model, out, error);
}

static bool draw(const char *format, const struct attention_map *map, struct attn_buffer *out,
                 struct attn_error *error)
{
    static const struct {
        const char *name;
        bool (*draw)(const struct attention_map *, struct attn_buffer *, struct attn_error *);
    } formats[] = {{"svg", draw_svg},   {"png", draw_png}, {"html", draw_html},
                   {"json", draw_json}, {"npy", draw_npy}, {"data", draw_page_data},
                   {"form", draw_form}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (!strcmp(format, formats[i].name))
            return formats[i].draw(map, out, error);
    return attn_error_set(error, "%s is no format", format);
}

int main(int argc, char **argv)
{
    json_error_t where;
    json_t *request = argc == 2 || argc == 3 ? json_loadf(stdin, 0, &where) : NULL;
    if (!request) {
        fprintf(stderr, "usage: draw_map FORMAT [BUDGET] < request.json\n");
        return 1;
    }
    static struct attention_map map; /* what it points to is never released */
    struct attn_buffer out = {0};
    struct attn_error error;
    map_request_read(request, &map);
    bool drawn = argc == 3 ? page_data_add(&map, strtoul(argv[2], NULL, 10), &out, &error)
                           : draw(argv[1], &map, &out, &error);
    if (drawn)
        fwrite(out.data, 1, out.size, stdout);
    else
        fprintf(stderr, "%s\n", error.message);
    attn_buffer_release(&out);
    json_decref(request);
    return drawn ? 0 : 1;
}
