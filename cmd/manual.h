/* What the tool says about itself. Each text ends with a line end. */
#ifndef ATTN_CMD_MANUAL_H
#define ATTN_CMD_MANUAL_H

extern const char manual_usage[];    /* a few lines */
extern const char manual_overview[]; /* `attn --help` */
extern const char manual_look[];
extern const char manual_heads[];
extern const char manual_serve[];
extern const char manual_embed[];
extern const char manual_tokenize[];
extern const char manual_generate[];
extern const char manual_fill[];
extern const char manual_train[];
extern const char manual_info[];
extern const char manual_bench[];
extern const char manual_help[];

#endif
