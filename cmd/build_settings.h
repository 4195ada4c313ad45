/* What the build was made with; the definitions come from build_settings.c.in. */
#ifndef ATTN_CMD_BUILD_SETTINGS_H
#define ATTN_CMD_BUILD_SETTINGS_H

/* The CBLAS that the linear layers were built with, e.g. "openblas 0.3.21". */
extern const char build_cblas[];

#endif
