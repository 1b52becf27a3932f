// Stream capture and graphs.
//
// Note [ A capture is a list of nodes ]
// While a stream captures, what is put on it is not done but becomes a node of a graph. Each capturing stream has "tails": the
// nodes on which its next one depends. An event that is recorded keeps the stream's tails of that moment; a stream that waits for
// it adds them to its own, and so joins the capture if it was not in it. A capture ends on the stream where it began, and the
// other streams' last nodes must by then be among what that stream depends on.
//
// What a capture forbids is what would have to look at work that has not been done: waiting, asking, allocating. Such a call
// fails, and the capture is void (cuStreamEndCapture says so). Which threads are forbidden what, the mode says.
//
// A graph's nodes run in the order in which they were captured or, where FAKE_GPU_HOLD or FAKE_GPU_ORDER is set, always the last
// of those that may: what two streams forgot to order comes out otherwise.
#include "machine.h"

struct Node {
  CUgraphNodeType type;
  Work work;
  int index;
  struct Node **dependencies;
  size_t dependency_count;
  void **parameters;  // where each of a kernel's parameters is; made when somebody asks
};
struct Graph {
  struct Node **nodes;
  int count;
};
typedef struct {
  Work work;
  int *dependencies;
  int dependency_count, left;
} Step;
struct Executable {
  Step *steps;
  int count;
};
typedef struct Capture {
  struct Stream *origin;
  CUstreamCaptureMode mode;
  pthread_t thread;
  CUgraph graph;
  u64 id;
  int active, valid;
  struct Capture *next;
} Capture;

static Capture *captures;  // also those that have ended: an event may have been recorded there
static u64 ids;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

// ----------------------------------------------------------------------------------------------- what is forbidden
CUresult unsafe_in_capture(void) {
  CUresult error = CUDA_SUCCESS;
  for (Capture *capture = captures; capture; capture = capture->next) {
    if (!capture->active || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    int mine = pthread_equal(capture->thread, pthread_self());
    int everybody = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED || !(mine || everybody)) continue;
    capture->valid = 0;
    error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return error;
}

static CUresult ruined(Capture *capture, CUresult error) {
  capture->valid = 0;
  return error;
}

CUresult waiting_in_capture(struct Stream *stream) {
  return stream->capture ? ruined(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}

CUresult waiting_for_captured(struct Event *event) {
  return event->capture ? ruined(event->capture, CUDA_ERROR_CAPTURED_EVENT) : CUDA_SUCCESS;
}

static struct Stream *capturing_stream(int device, int only_blocking) {
  for (struct Stream *stream = next_stream(0); stream; stream = next_stream(stream))
    if (stream->device == device && stream->capture && (!only_blocking || is_blocking(stream))) return stream;
  return 0;
}

CUresult waiting_for_device(int device) {
  struct Stream *stream = capturing_stream(device, 0);
  return stream ? ruined(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}

CUresult implicit_in_capture(int device) {
  struct Stream *stream = capturing_stream(device, 1);
  return stream ? ruined(stream->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

// ----------------------------------------------------------------------------------------------------------- nodes
static void set_tails(CUgraphNode **tails, size_t *count, CUgraphNode *nodes, size_t number) {
  CUgraphNode *mine = malloc((number + 1) * sizeof *mine);
  if (number) memcpy(mine, nodes, number * sizeof *mine);
  free(*tails);
  *tails = mine;
  *count = number;
}

static void add_tails(struct Stream *stream, CUgraphNode *nodes, size_t number) {
  for (size_t i = 0; i < number; i++) {
    size_t k = 0;
    while (k < stream->tail_count && stream->tails[k] != nodes[i]) k++;
    if (k < stream->tail_count) continue;
    stream->tails = realloc(stream->tails, (stream->tail_count + 1) * sizeof *nodes);
    stream->tails[stream->tail_count++] = nodes[i];
  }
}

static CUgraphNode add_node(CUgraph graph, Work work, CUgraphNode *dependencies, size_t count) {
  static const CUgraphNodeType types[] = {
      [COPY] = CU_GRAPH_NODE_TYPE_MEMCPY,       [SET] = CU_GRAPH_NODE_TYPE_MEMSET,
      [LAUNCH] = CU_GRAPH_NODE_TYPE_KERNEL,     [RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      [WAIT] = CU_GRAPH_NODE_TYPE_WAIT_EVENT,   [HOST_CALL] = CU_GRAPH_NODE_TYPE_HOST,
      [GRAPH] = CU_GRAPH_NODE_TYPE_GRAPH,
  };
  struct Node *node = calloc(1, sizeof *node);
  node->type = types[work.kind];
  node->work = work;
  node->index = graph->count;
  set_tails(&node->dependencies, &node->dependency_count, dependencies, count);
  graph->nodes = realloc(graph->nodes, (graph->count + 1) * sizeof *graph->nodes);
  graph->nodes[graph->count++] = node;
  return node;
}

CUresult capture_work(struct Stream *stream, Work work) {
  if (!stream->capture->valid) {
    free(work.launch);
    free(work.staged);
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  CUgraphNode node = add_node(stream->capture->graph, work, stream->tails, stream->tail_count);
  set_tails(&stream->tails, &stream->tail_count, &node, 1);
  return CUDA_SUCCESS;
}

CUresult capture_record(struct Stream *stream, struct Event *event) {
  if (!stream->capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->capture = stream->capture;
  set_tails(&event->tails, &event->tail_count, stream->tails, stream->tail_count);
  return CUDA_SUCCESS;
}

CUresult capture_wait(struct Stream *stream, struct Event *event) {
  Capture *capture = stream->capture;
  if (!event->capture) return ruined(capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (!event->capture->active) return CUDA_ERROR_CAPTURED_EVENT;
  if (!event->capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture && capture != event->capture) {
    ruined(event->capture, 0);
    return ruined(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (!capture && (u64)stream_of(0, stream->device) == (u64)stream)
    return ruined(event->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  stream->capture = event->capture;
  add_tails(stream, event->tails, event->tail_count);
  return CUDA_SUCCESS;
}

// --------------------------------------------------------------------------------------------------------- capture
#define STREAM                                                 \
  ENTER_CONTEXT;                                               \
  if (!is_stream(handle)) FAIL(CUDA_ERROR_INVALID_HANDLE);     \
  struct Stream *stream = stream_of(handle, device)

API cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  STREAM;
  if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED) FAIL(CUDA_ERROR_INVALID_VALUE);
  if (stream == stream_of(0, device)) FAIL(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (stream->capture) FAIL(CUDA_ERROR_ILLEGAL_STATE);
  Capture *capture = calloc(1, sizeof *capture);
  *capture = (Capture){stream, mode, pthread_self(), calloc(1, sizeof(struct Graph)), ++ids, 1, 1, captures};
  captures = stream->capture = capture;
  set_tails(&stream->tails, &stream->tail_count, 0, 0);
  note("cuStreamBeginCapture stream %p mode %d", (void *)handle, mode);
  return CUDA_SUCCESS;
}

API cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) { return cuStreamBeginCapture(handle, mode); }

// Has every node either a node behind it or a place among the tails of the stream where the capture began?
static int is_joined(Capture *capture) {
  CUgraph graph = capture->graph;
  u8 *followed = calloc(graph->count + 1, 1);
  for (int i = 0; i < graph->count; i++)
    for (size_t k = 0; k < graph->nodes[i]->dependency_count; k++) followed[graph->nodes[i]->dependencies[k]->index] = 1;
  for (size_t k = 0; k < capture->origin->tail_count; k++) followed[capture->origin->tails[k]->index] = 1;
  int joined = 1;
  for (int i = 0; i < graph->count; i++) joined &= followed[i];
  free(followed);
  return joined;
}

static void leave_capture(Capture *capture) {
  for (struct Stream *stream = next_stream(0); stream; stream = next_stream(stream)) {
    if (stream->capture != capture) continue;
    stream->capture = 0;
    set_tails(&stream->tails, &stream->tail_count, 0, 0);
  }
  capture->active = 0;
}

API cuStreamEndCapture(CUstream handle, CUgraph *graph) {
  STREAM;
  Capture *capture = stream->capture;
  if (graph) *graph = 0;
  if (!capture) FAIL(CUDA_ERROR_ILLEGAL_STATE);
  if (capture->origin != stream) FAIL(ruined(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
    FAIL(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  CUresult error = !capture->valid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                   : !is_joined(capture) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                         : CUDA_SUCCESS;
  leave_capture(capture);
  if (error) FAIL(error);
  *graph = capture->graph;
  note("cuStreamEndCapture stream %p: %d nodes", (void *)handle, capture->graph->count);
  return CUDA_SUCCESS;
}

static CUstreamCaptureStatus status_of(Capture *capture) {
  if (!capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  return capture->valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

API cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  STREAM;
  if (stream == stream_of(0, device) && capturing_stream(device, 1)) FAIL(implicit_in_capture(device));
  *status = status_of(stream->capture);
  return CUDA_SUCCESS;
}

// A CUgraphEdgeData for each dependency: all zero, as there are only dependencies of whole nodes.
enum { EDGE_BYTES = 8 };

static const void *plain_edges(size_t count) {
  static u8 *zeros;
  static size_t room;
  if (count >= room) {
    free(zeros);
    zeros = calloc(room = count + 64, EDGE_BYTES);
  }
  return zeros;
}

API cuStreamGetCaptureInfo_v3(CUstream handle, CUstreamCaptureStatus *status, u64 *id, CUgraph *graph,
                              const CUgraphNode **dependencies, const void **edges, size_t *count) {
  STREAM;
  *status = status_of(stream->capture);
  if (edges) *edges = plain_edges(stream->tail_count);
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id) *id = stream->capture->id;
  if (graph) *graph = stream->capture->graph;
  if (dependencies) *dependencies = stream->tails;
  if (count) *count = stream->tail_count;
  return CUDA_SUCCESS;
}

API cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, u64 *id, CUgraph *graph,
                              const CUgraphNode **dependencies, size_t *count) {
  return cuStreamGetCaptureInfo_v3(handle, status, id, graph, dependencies, 0, count);
}

API cuStreamUpdateCaptureDependencies_v2(CUstream handle, CUgraphNode *nodes, const void *edges, size_t count,
                                         unsigned set) {
  STREAM;
  (void)edges;
  if (!stream->capture) FAIL(CUDA_ERROR_ILLEGAL_STATE);
  if (set) set_tails(&stream->tails, &stream->tail_count, nodes, count);
  else add_tails(stream, nodes, count);
  return CUDA_SUCCESS;
}

API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENTER;
  CUstreamCaptureMode before = thread_mode;
  if (*mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) FAIL(CUDA_ERROR_INVALID_VALUE);
  thread_mode = *mode;
  *mode = before;
  return CUDA_SUCCESS;
}

// ---------------------------------------------------------------------------------------------------------- graphs
API cuGraphCreate(CUgraph *graph, unsigned flags) {
  ENTER;
  if (flags) FAIL(CUDA_ERROR_INVALID_VALUE);
  *graph = calloc(1, sizeof **graph);
  return CUDA_SUCCESS;
}

API cuGraphDestroy(CUgraph graph) {
  ENTER;
  if (!graph) FAIL(CUDA_ERROR_INVALID_VALUE);
  for (int i = 0; i < graph->count; i++) {
    struct Node *node = graph->nodes[i];
    free(node->work.launch);
    free(node->work.staged);
    free(node->dependencies);
    free(node->parameters);
    free(node);
  }
  free(graph->nodes);
  free(graph);
  return CUDA_SUCCESS;
}

API cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  ENTER;
  if (!graph) FAIL(CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; nodes && i < *count; i++) nodes[i] = i < (size_t)graph->count ? graph->nodes[i] : 0;
  if (!nodes || *count > (size_t)graph->count) *count = graph->count;
  return CUDA_SUCCESS;
}

API cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
  ENTER;
  if (!graph) FAIL(CUDA_ERROR_INVALID_VALUE);
  size_t roots = 0;
  for (int i = 0; i < graph->count; i++) {
    if (graph->nodes[i]->dependency_count) continue;
    if (nodes && roots < *count) nodes[roots] = graph->nodes[i];
    roots++;
  }
  *count = roots;
  return CUDA_SUCCESS;
}

API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to, void *data, size_t *count) {
  ENTER;
  if (data) memset(data, 0, *count * EDGE_BYTES);
  if (!graph) FAIL(CUDA_ERROR_INVALID_VALUE);
  size_t edges = 0;
  for (int i = 0; i < graph->count; i++)
    for (size_t k = 0; k < graph->nodes[i]->dependency_count; k++, edges++)
      if (from && edges < *count) from[edges] = graph->nodes[i]->dependencies[k], to[edges] = graph->nodes[i];
  *count = edges;
  return CUDA_SUCCESS;
}

API cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
  ENTER;
  if (!node) FAIL(CUDA_ERROR_INVALID_VALUE);
  *type = node->type;
  return CUDA_SUCCESS;
}

API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *nodes, void *data, size_t *count) {
  ENTER;
  if (!node) FAIL(CUDA_ERROR_INVALID_VALUE);
  if (data) memset(data, 0, *count * EDGE_BYTES);
  for (size_t i = 0; nodes && i < *count && i < node->dependency_count; i++) nodes[i] = node->dependencies[i];
  *count = node->dependency_count;
  return CUDA_SUCCESS;
}

API cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *parameters) {
  ENTER;
  if (!node) FAIL(CUDA_ERROR_INVALID_VALUE);
  if (node->type != CU_GRAPH_NODE_TYPE_KERNEL) FAIL(CUDA_ERROR_INVALID_VALUE);
  Launch *launch = node->work.launch;
  struct Kernel *kernel = launch->kernel;
  if (!node->parameters) node->parameters = calloc(kernel->parameters + 1, sizeof *node->parameters);
  for (int i = 0; i < kernel->parameters; i++) node->parameters[i] = launch->parameters + kernel->offset[i];
  *parameters = (CUDA_KERNEL_NODE_PARAMS){.function = kernel, .shared = launch->shared, .parameters = node->parameters};
  memcpy(parameters->grid, launch->grid, sizeof launch->grid);
  memcpy(parameters->block, launch->block, sizeof launch->block);
  return CUDA_SUCCESS;
}

API cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned flags) {
  ENTER;
  (void)flags;
  FILE *file = fopen(path, "w");
  if (!graph || !file) FAIL(CUDA_ERROR_INVALID_VALUE);
  fprintf(file, "digraph dot {\n");
  for (int i = 0; i < graph->count; i++) {
    struct Node *node = graph->nodes[i];
    const char *name = node->work.launch ? node->work.launch->kernel->name : "";
    fprintf(file, "  n%d [label=\"%d: type %d %s\"];\n", i, i, node->type, name);
    for (size_t k = 0; k < node->dependency_count; k++) fprintf(file, "  n%d -> n%d;\n", node->dependencies[k]->index, i);
  }
  fprintf(file, "}\n");
  fclose(file);
  return CUDA_SUCCESS;
}

// ---------------------------------------------------------------------------------------------- graphs that can run
static void make_step(Step *step, struct Node *node) {
  step->work = node->work;
  if (node->work.launch) {
    step->work.launch = malloc(node->work.launch->bytes);
    memcpy(step->work.launch, node->work.launch, node->work.launch->bytes);
  }
  step->dependency_count = node->dependency_count;
  step->dependencies = malloc((node->dependency_count + 1) * sizeof *step->dependencies);
  for (size_t k = 0; k < node->dependency_count; k++) step->dependencies[k] = node->dependencies[k]->index;
}

API cuGraphInstantiateWithFlags(CUgraphExec *handle, CUgraph graph, u64 flags) {
  ENTER_CONTEXT;
  (void)flags;
  if (!graph) FAIL(CUDA_ERROR_INVALID_VALUE);
  struct Executable *made = calloc(1, sizeof *made);
  made->count = graph->count;
  made->steps = calloc(graph->count + 1, sizeof *made->steps);
  for (int i = 0; i < graph->count; i++) make_step(&made->steps[i], graph->nodes[i]);
  *handle = made;
  note("cuGraphInstantiate: %d nodes", made->count);
  return CUDA_SUCCESS;
}

API cuGraphExecDestroy(CUgraphExec graph) {
  ENTER;
  if (!graph) FAIL(CUDA_ERROR_INVALID_VALUE);
  for (int other = 0; other < settings.devices; other++) finish_device(other);
  for (int i = 0; i < graph->count; i++) {
    free(graph->steps[i].work.launch);
    free(graph->steps[i].dependencies);
  }
  free(graph->steps);
  free(graph);
  return CUDA_SUCCESS;
}

API cuGraphUpload(CUgraphExec graph, CUstream handle) {
  STREAM;
  (void)stream;
  if (!graph) FAIL(CUDA_ERROR_INVALID_VALUE);
  return CUDA_SUCCESS;
}

API cuGraphLaunch(CUgraphExec graph, CUstream handle) {
  STREAM;
  if (!graph) FAIL(CUDA_ERROR_INVALID_VALUE);
  note("cuGraphLaunch %d nodes stream %p", graph->count, (void *)handle);
  CUresult error = meet_default_stream(stream);
  if (!error) error = put(stream, (Work){.kind = GRAPH, .graph = graph});
  if (error) FAIL(error);
  return CUDA_SUCCESS;
}

static int may_run(struct Executable *graph, int i) {
  Step *step = &graph->steps[i];
  if (!step->left) return 0;
  for (int k = 0; k < step->dependency_count; k++)
    if (graph->steps[step->dependencies[k]].left) return 0;
  return 1;
}

void run_graph(int device, struct Executable *graph) {
  int last_first = settings.hold || settings.order != IN_ORDER;
  for (int i = 0; i < graph->count; i++) graph->steps[i].left = 1;
  for (int done = 0; done < graph->count; done++) {
    int i = last_first ? graph->count - 1 : done;
    while (last_first && !may_run(graph, i)) i--;
    do_work(device, &graph->steps[i].work);
    graph->steps[i].left = 0;
  }
}
