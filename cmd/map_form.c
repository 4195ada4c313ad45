#include "map_form.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "output.h"

bool map_form_choose(const char *option, const char *path, map_draw **draw,
                     struct attn_error *error)
{
    static const struct {
        const char *suffix;
        map_draw *draw;
    } forms[] = {{".json", draw_json},
                 {".npy", draw_npy},
                 {".svg", draw_svg},
                 {".png", draw_png},
                 {".html", draw_html}};
    const char *suffix = strrchr(path, '.');
    for (size_t i = 0; suffix && i < sizeof forms / sizeof forms[0]; i++)
        if (strcasecmp(suffix, forms[i].suffix) == 0) {
            *draw = forms[i].draw;
            return true;
        }
    return attn_error_set(error, "%s is '%s', but must end with .json, .npy, .svg, .png or .html",
                          option, path);
}

bool map_form_write(const char *verb, const char *path, map_draw *draw,
                    const struct attention_map *map, struct attn_error *error)
{
    struct attn_buffer content = {0};
    bool done = draw(map, &content, error);
    if (done && content.failed)
        done = attn_error_memory(error);
    done = done && attn_file_write(path, content.data, content.size, error);
    attn_buffer_release(&content);
    if (done && progress_is_shown())
        fprintf(stderr, "attn %s: wrote %s\n", verb, path);
    return done;
}
