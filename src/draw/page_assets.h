/* The files of page/, embedded at build by scripts/embed_assets.py. */
#ifndef ATTN_DRAW_PAGE_ASSETS_H
#define ATTN_DRAW_PAGE_ASSETS_H

/* NUL-terminated UTF-8. */
extern const char page_html[];
extern const char page_css[];
extern const char page_js[];

#endif
