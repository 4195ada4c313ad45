/* Starting anew where the environment should have been another. */
#ifndef ATTN_CMD_RESTART_H
#define ATTN_CMD_RESTART_H

/* OpenBLAS reads its environment before main: where it took kernels far below the CPU, the program
 * becomes itself once more, with the variable set. Where that cannot be, it goes on as it is. */
void restart_with_fast_blas(char **argv);

#endif
