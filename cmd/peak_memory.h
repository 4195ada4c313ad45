/* How much memory this process has had. */
#ifndef ATTN_CMD_PEAK_MEMORY_H
#define ATTN_CMD_PEAK_MEMORY_H

/* MiB of the most memory so far, NaN where the system does not tell. */
double peak_memory_mib(void);

#endif
