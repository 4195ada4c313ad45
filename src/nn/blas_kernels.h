/* Which kernels an OpenBLAS uses. It chooses them when it is loaded, by the CPU's model number, and
 * for a model newer than itself takes the oldest ones that it has (SSE3, a quarter of the speed of
 * AVX-512 and less), unless the environment variable OPENBLAS_CORETYPE names others at that moment.
 */
#ifndef ATTN_NN_BLAS_KERNELS_H
#define ATTN_NN_BLAS_KERNELS_H

#define BLAS_KERNELS_VARIABLE "OPENBLAS_CORETYPE"

/* "SkylakeX", for example; "" where the CBLAS does not say. */
const char *blas_kernels_name(void);

/* What the variable should have been, or NULL where nothing is to be mended: the kernels fit the
 * CPU, the variable is set, or the CBLAS is another. */
const char *blas_kernels_to_ask_for(void);

#endif
