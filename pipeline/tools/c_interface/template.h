/* @FILE@: @TITLE@, compiled by pipeline @VERSION@ for the CPU @CPU@.

@SUMMARY@

   @p@ model;
   if (@p@_open(&model@OPEN_EXAMPLE@) || @p@_run(&model@RUN_EXAMPLE@)) fprintf(stderr, "%s\n", model.error);
   @p@_close(&model);

   Tensors are DLPack's: on the CPU, row-major (strides NULL or those), of just these dtypes and shapes; sizes in letters
   are any that agree. What is written to must not overlap with anything else. Functions return 0, or -1 with the reason
   in `error`. One model runs one call at a time; other threads open models of their own, which share the code.
   This header has all of it, in C11 or C++; link with @LINK@. */

#ifndef @P@_H
#define @P@_H

#ifndef __@MACHINE@__
#error "@FILE@ was compiled for @MACHINE@ machines"
#endif

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#ifndef __cplusplus
long syscall(long number, ...); /* strict C11 has none in unistd.h */
#endif

#ifndef DLPACK_DLPACK_H_ /* what we need of dlpack.h, where that was not included before */
#define DLPACK_DLPACK_H_
typedef struct {
  int32_t device_type;
  int32_t device_id;
} DLDevice;
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The compiled code. Call it through the functions below. */
void @p@_code_main(int64_t *slots);
@DECLARATIONS@
/* A model that is ready to run.
   error: why the last function failed.
   threads: how many threads share the work of a kernel; 0, as at first, for as many as OpenMP says. Without
     libgomp.so.1 it is one. Results do not depend on it. Models that run at once go by the number of the last call.
   seed: random numbers are a function of it; each call adds 1. */
typedef struct {
  char error[512];
  int32_t threads;
  uint64_t seed;
  const char *file; /* what is mapped, and how much of it */
  size_t file_size;
  void *weights[@WEIGHT_COUNT@ + 1];
  void *prepared[@PREPARED_COUNT@ + 1];
  char *workspace;
  size_t workspace_size;
  char *nothing; /* what tensors without elements point to */
  size_t nothing_size;
} @p@;

static inline int @p@_fail(@p@ *model, const char *what, const char *why) {
  snprintf(model->error, sizeof model->error, "%s: %s", what, why);
  return -1;
}

static inline void *@p@_allocate(size_t size) { return aligned_alloc(64, (size / 64 + 1) * 64); }

/* At least so many aligned bytes at *memory. */
static inline int @p@_reserve(@p@ *model, char **memory, size_t *size, size_t wanted) {
  if (*memory && *size >= wanted) return 0;
  free(*memory);
  *memory = (char *)@p@_allocate(wanted);
  *size = *memory ? wanted : 0;
  return *memory ? 0 : @p@_fail(model, "memory", "there is not enough");
}

static inline int64_t @p@_elements(const DLTensor *tensor) {
  int64_t count = 1;
  for (int dim = 0; dim < tensor->ndim; ++dim) count *= tensor->shape[dim];
  return count;
}

static inline size_t @p@_bytes(const DLTensor *tensor) { return (size_t)@p@_elements(tensor) * tensor->dtype.bits / 8; }

static inline void *@p@_data(const DLTensor *tensor) { return (char *)tensor->data + tensor->byte_offset; }

/* Whether a tensor has this dtype and shape (-1: any size), and lies row-major on the CPU. */
static inline int @p@_check(@p@ *model, const char *name, const DLTensor *tensor, const char *type, int code, int bits,
                            int ndim, const int64_t *shape) {
  if (!tensor) return @p@_fail(model, name, "is NULL");
  if (tensor->ndim > 0 && !tensor->shape) return @p@_fail(model, name, "has no shape");
  if (tensor->device.device_type != 1) return @p@_fail(model, name, "expected a tensor on the CPU");
  int fits = tensor->dtype.code == code && tensor->dtype.bits == bits && tensor->dtype.lanes == 1 && tensor->ndim == ndim;
  for (int dim = 0; fits && dim < ndim; ++dim)
    fits = tensor->shape[dim] >= 0 && (shape[dim] < 0 || tensor->shape[dim] == shape[dim]);
  if (!fits) {
    int used = snprintf(model->error, sizeof model->error, "%s: expected %s, got %s%d[", name, type,
                        tensor->dtype.code == 2   ? "float"
                        : tensor->dtype.code == 0 ? "int"
                        : tensor->dtype.code == 1 ? "uint"
                        : tensor->dtype.code == 4 ? "bfloat"
                        : tensor->dtype.code == 5 ? "complex"
                        : tensor->dtype.code == 6 ? "bool"
                                                  : "another dtype of ",
                        tensor->dtype.bits);
    for (int dim = 0; dim < tensor->ndim && used > 0 && (size_t)used < sizeof model->error; ++dim)
      used += snprintf(model->error + used, sizeof model->error - (size_t)used, "%s%" PRId64, dim ? ", " : "",
                       tensor->shape[dim]);
    if (used > 0 && (size_t)used < sizeof model->error - 1) strcpy(model->error + used, "]");
    return -1;
  }
  if (!@p@_elements(tensor)) return 0;
  if (!tensor->data) return @p@_fail(model, name, "has no data");
  for (int64_t dim = ndim - 1, stride = 1; tensor->strides && dim >= 0; stride *= tensor->shape[dim--])
    if (tensor->shape[dim] != 1 && tensor->strides[dim] != stride)
      return @p@_fail(model, name, "is not row-major; pass a copy that is");
  return 0;
}

/* A size that the model does not take. */
static inline int @p@_fail_size(@p@ *model, const char *what, int64_t size, const char *wanted) {
  snprintf(model->error, sizeof model->error, "%s is %" PRId64 ", expected %s", what, size, wanted);
  return -1;
}

/* The address that code takes for a tensor. Of one without elements it may read a row, after a check has failed. */
static inline int @p@_place(@p@ *model, const DLTensor *tensor, int64_t *slot) {
  *slot = (int64_t)(intptr_t)@p@_data(tensor);
  if (@p@_elements(tensor)) return 0;
  size_t size = tensor->dtype.bits / 8;
  for (int dim = 0; dim < tensor->ndim; ++dim) size *= tensor->shape[dim] ? (size_t)tensor->shape[dim] : 1;
  if (@p@_reserve(model, &model->nothing, &model->nothing_size, size)) return -1;
  *slot = (int64_t)(intptr_t)model->nothing;
  return 0;
}

/* Has memory for a tensor without elements, so that placing it moves no other one. */
static inline int @p@_room(@p@ *model, const DLTensor *tensor) {
  int64_t place;
  return @p@_place(model, tensor, &place);
}

/* Gives what the code has allocated to the caller of a call, as a tensor whose data free() takes. */
static inline int @p@_hand_out(@p@ *model, DLTensor *tensor, const int64_t *slots, int is_taken, int code, int bits,
                               int ndim) {
  size_t size = (size_t)bits / 8;
  for (int dim = 0; dim < ndim; ++dim) size *= (size_t)(tensor->shape[dim] = slots[3 + dim]);
  tensor->data = (void *)(intptr_t)slots[1];
  if (is_taken || slots[0] != slots[1]) {
    tensor->data = malloc(size + 1);
    if (!tensor->data) return @p@_fail(model, "memory", "there is not enough");
    memcpy(tensor->data, (void *)(intptr_t)slots[1], size);
  }
  const int32_t cpu = 1;
  memset(&tensor->device, 0, sizeof tensor->device);
  memcpy(&tensor->device, &cpu, sizeof cpu);
  tensor->ndim = ndim;
  tensor->dtype.code = (uint8_t)code;
  tensor->dtype.bits = (uint8_t)bits;
  tensor->dtype.lanes = 1;
  tensor->strides = NULL;
  tensor->byte_offset = 0;
  return 0;
}
@OPEN@
@RUN@
#ifdef __cplusplus
}
#endif

#endif
