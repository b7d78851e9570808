/* The C ABI between ferry and a device backend: the CPU, a vendor's accelerator, or a simulator of
 * one.
 *
 * A backend is a shared library `ferry-backend-*.so` with one exported symbol, or is linked in (the
 * CPU). Rules:
 *  - Every table and every struct that crosses begins with `size`, set by who fills it in; members
 * are only ever appended. Read a member only where FERRY_HAS says that the other side has it.
 *  - Members marked (optional) may be null. All others are set.
 *  - Pointers belong to who handed them out; strings are UTF-8, zero-terminated, and live as long
 * as the object they came from. Arrays hold pointers to structs, never structs, so that structs may
 * grow.
 *  - Nothing throws across. A function that can fail returns a ferry_code, and says why through
 * host->set_error first.
 *  - A backend library is never unloaded.
 *  - Threads: a device and a plan may be used by several threads at once, a context by one at a
 * time.
 */
#ifndef FERRY_BACKEND_H_
#define FERRY_BACKEND_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised only when an old backend can no longer work; appending members does not raise it. */
#define FERRY_BACKEND_ABI 1

/* True when `table` is new enough to have `member`, and it is set. */
#define FERRY_HAS(table, member)                                                        \
  ((table)->size >= offsetof(__typeof__(*(table)), member) + sizeof((table)->member) && \
   (table)->member != NULL)

/* The values of ferry::Code, and success. */
typedef enum ferry_code {
  FERRY_OK = 0,
  FERRY_INVALID = 1,
  FERRY_UNSUPPORTED = 2,
  FERRY_NOT_FOUND = 3,
  FERRY_IO = 4,
  FERRY_DEVICE = 5,
  FERRY_NO_MEMORY = 6,
  FERRY_CANCELLED = 7,
  FERRY_BUG = 8
} ferry_code;

/* The values of ferry::graph::DType. */
typedef enum ferry_dtype {
  FERRY_F32 = 0,
  FERRY_F16 = 1,
  FERRY_BF16 = 2,
  FERRY_F64 = 3,
  FERRY_I64 = 4,
  FERRY_I32 = 5,
  FERRY_I16 = 6,
  FERRY_I8 = 7,
  FERRY_U16 = 8,
  FERRY_U8 = 9,
  FERRY_BOOL = 10
} ferry_dtype;

/* How the elements of a tensor lie in memory; always dense. The dims of a picture are written [n,
 * c, h, w] in either. */
typedef enum ferry_layout {
  FERRY_ROW_MAJOR = 0, /* the last dimension is contiguous: NCHW for pictures */
  FERRY_NHWC = 1       /* pictures only: the channels of a pixel are contiguous */
} ferry_layout;

/* --- the graph, as a backend sees it --- */

typedef struct ferry_value {
  size_t size;
  const char* name;
  int32_t dtype; /* ferry_dtype */
  int32_t rank;
  const int64_t* dims;
  const void* data; /* (optional) the bytes of a constant, row-major; null for a computed value */
  /* The same for the same constant in every graph of this process, never reused: a key for packed
   * weights. */
  uint64_t identity;
  /* How the elements of an fp32 value are kept in memory: FERRY_F32, as they are; FERRY_BF16,
   * rounded to the nearest; FERRY_U8, (q - zero_point) * scales[0]; FERRY_I8 (constants only), q *
   * scales[slice of dimension 0]. The data of a constant is fp32 whatever its storage, rounded to
   * it.
   */
  int32_t storage; /* ferry_dtype; for values that are not fp32 the same as dtype */
  const float* scales;
  int64_t scale_count;
  int32_t zero_point;
} ferry_value;

typedef enum ferry_attr_kind {
  FERRY_ATTR_INT = 0,
  FERRY_ATTR_FLOAT = 1,
  FERRY_ATTR_STRING = 2,
  FERRY_ATTR_INTS = 3,
  FERRY_ATTR_FLOATS = 4
} ferry_attr_kind;

typedef struct ferry_attr {
  size_t size;
  const char* name;
  int32_t kind; /* ferry_attr_kind: says which of the following holds the value */
  int64_t i;
  double f;
  const char* s;
  const int64_t* ints;
  const double* floats;
  int64_t count; /* of ints or floats */
} ferry_attr;

typedef struct ferry_node {
  size_t size;
  const char* op;        /* the name of a row of src/ops */
  const char* name;      /* where it came from: "model.4.cv1.conv" */
  const int32_t* inputs; /* indices of values; -1 where an optional input is absent */
  int32_t input_count;
  const int32_t* outputs;
  int32_t output_count;
  const ferry_attr* const* attrs; /* every attribute of the op, defaults included */
  int32_t attr_count;
  int64_t macs; /* multiply-adds of one run */
} ferry_node;

/* Nodes stand in an order that can be executed. Types are inferred and verified. */
typedef struct ferry_graph {
  size_t size;
  const ferry_value* const* values;
  int32_t value_count;
  const ferry_node* const* nodes;
  int32_t node_count;
  const int32_t* inputs;
  int32_t input_count;
  const int32_t* outputs;
  int32_t output_count;
} ferry_graph;

/* --- what the host offers --- */

typedef struct ferry_host {
  size_t size;
  int32_t abi;
  /* The reason of the failure that the calling backend function is about to return. Copied; per
   * thread. */
  void (*set_error)(const char* message);
  /* Evaluates one node by ferry's reference loops. Pointers are row-major host memory by the
   * values' types, null for absent inputs. For ops that a backend has no kernel for. REQUIRES:
   * `graph` is one that the host handed over and still lives. */
  ferry_code (*evaluate)(const ferry_graph* graph, int32_t node, const void* const* inputs,
                         void* const* outputs);
  /* During `compile` only: the backend has packed this constant and will not read its data again,
   * so that the host may let go of the bytes at once instead of holding every weight twice. */
  void (*constant_done)(const ferry_graph* graph, int32_t value);
} ferry_host;

/* --- what a backend offers --- */

typedef struct ferry_device ferry_device; /* one opened device, with its threads or streams */
typedef struct ferry_plan
    ferry_plan; /* a compiled graph with its weights; immutable, shared by contexts */
typedef struct ferry_context
    ferry_context; /* what one stream of frames needs: activations, input and output buffers */

typedef struct ferry_device_options {
  size_t size;
  int32_t index;   /* which device of the backend */
  int32_t threads; /* host threads that one run may use; at least 1 */
} ferry_device_options;

typedef enum ferry_tune {
  FERRY_TUNE_OFF = 0, /* kernels by a fixed rule: the same choice on every run */
  FERRY_TUNE_FAST = 1 /* candidates are timed on this machine while compiling */
} ferry_tune;

typedef struct ferry_compile_options {
  size_t size;
  int32_t tune; /* ferry_tune */
} ferry_compile_options;

/* A host-visible buffer of a context. Written (input) or read (output) between runs; stays where it
 * is. */
typedef struct ferry_io {
  size_t size;
  void* data;     /* 64-byte aligned */
  int32_t dtype;  /* of the elements: the value's storage */
  int32_t layout; /* ferry_layout */
  int32_t rank;
  const int64_t* dims;
  /* dtype FERRY_U8 for an fp32 value that is stored so: (q - zero_point) * scale. Else 1 and 0. */
  float scale;
  int32_t zero_point;
} ferry_io;

/* One step of a plan, for profiles. */
typedef struct ferry_step {
  size_t size;
  const char* node; /* the node's name */
  const char* op;
  const char* kernel; /* what computes it: "winograd 4x4 avx512" */
  int64_t macs;
  int64_t bytes;        /* read and written, weights included: what must move at least */
  int32_t dtype;        /* ferry_dtype: what it computes in */
  int64_t layout_bytes; /* moved only to change layouts around it; not in `bytes` */
} ferry_step;

typedef struct ferry_plan_info {
  size_t size;
  int64_t weight_bytes;  /* held by the plan, shared by its contexts and by other plans of the same
                            constants */
  int64_t context_bytes; /* what each context adds */
  int64_t peak_bytes; /* of those, the activations that live at one time at most: the memory plan's
                         floor */
  int32_t step_count;
} ferry_plan_info;

typedef struct ferry_backend {
  size_t size;
  int32_t abi; /* FERRY_BACKEND_ABI it was built with */
  const char* name;
  const char* version;

  int32_t (*device_count)(void);
  ferry_code (*device_open)(const ferry_device_options* options, ferry_device** device);
  void (*device_close)(ferry_device* device);             /* REQUIRES: no plan of it is left */
  const char* (*device_text)(const ferry_device* device); /* for people: "avx512, 2 threads"; lives
                                                             as long as the device */

  /* reasons[i] becomes null where node i can run, else a sentence that lives as long as the device.
   */
  ferry_code (*supports)(ferry_device* device, const ferry_graph* graph, const char** reasons);

  /* The graph must stay alive and unchanged as long as the plan; the data of its constants only
   * during this call, except of those that `plan_uses_constant` names. */
  ferry_code (*compile)(ferry_device* device, const ferry_graph* graph,
                        const ferry_compile_options* options, ferry_plan** plan);
  void (*plan_free)(ferry_plan* plan); /* REQUIRES: no context of it is left */
  int32_t (*plan_uses_constant)(const ferry_plan* plan,
                                int32_t value); /* 1 when its data must stay */
  void (*plan_info)(const ferry_plan* plan, ferry_plan_info* info);
  void (*plan_step)(const ferry_plan* plan, int32_t index, ferry_step* step);

  ferry_code (*context_new)(ferry_plan* plan, ferry_context** context);
  void (*context_free)(ferry_context* context);
  void (*context_input)(ferry_context* context, int32_t index, ferry_io* io);
  void (*context_output)(ferry_context* context, int32_t index, ferry_io* io);
  /* From the input buffers to the output buffers. Returns when the outputs are there. */
  ferry_code (*run)(ferry_context* context);
  /* The same, and the milliseconds of each step. (optional) */
  ferry_code (*run_timed)(ferry_context* context, double* step_ms);

  /* Backend-specific powers by name; null when it has none of that name. (optional) */
  void* (*query)(const char* name);
} ferry_backend;

/* The one exported symbol. `host` outlives the backend. Null when the backend cannot work on this
 * machine; the reason has been given to host->set_error. */
typedef const ferry_backend* (*ferry_backend_entry_fn)(const ferry_host* host);
#define FERRY_BACKEND_ENTRY "ferry_backend_entry"

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* FERRY_BACKEND_H_ */
