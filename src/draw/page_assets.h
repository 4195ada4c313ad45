/* The files of page/, embedded at build by scripts/embed_assets.py. */
#ifndef ATTN_DRAW_PAGE_ASSETS_H
#define ATTN_DRAW_PAGE_ASSETS_H

/* NUL-terminated UTF-8; the style sheets joined, and the scripts, but for what only a page that
 * asks for a text has. */
extern const char page_html[], page_css[], page_js[], form_js[];

#endif
