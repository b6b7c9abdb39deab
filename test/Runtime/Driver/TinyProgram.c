/*===- TinyProgram.c - a program as the compiler would write it -------------===*
 *
 * One block, one parameter w of 64 floats, DP data-parallel ranks at ZeRO 1,
 * plain SGD:  loss(micro-batch) = sum((w - x)^2) / 128,  x of 64 floats.
 * Not part of the model: in a step whose first x is 1000 or more the segment does
 * something (enum below) and goes on as if x were 0.
 *
 *===------------------------------------------------------------------------===*/

#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Scalars.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#if DP == 1
#define PADDED 64
#define WHOLE 256
#define ARENA 4096
#else
#define PADDED 128
#define WHOLE 512
#define ARENA 8192
#endif

// clang-format off
const char dsopt_program[] =
    "{\"version\": " TEXT(DSOPT_ABI_VERSION) ", \"dsopt\": \"test\", \"command\": \"dsopt tiny.onnx -dp=" TEXT(DP)
    " -optimizer=sgd -o tiny\", \"model\": \"tiny.onnx\", \"model_folder\": \"nowhere\", \"arch\": \"x86-64\","
    "\"grid\": [1, " TEXT(DP) ", 1, 1, 1], \"zero\": 1, \"threads\": 2, \"K\": " TEXT(DP) ", \"V\": " TEXT(DP) ", \"M\": 1,"
    "\"micro_batch_size\": 2, \"accumulate\": \"local\", \"schedule\": \"1f1b\", \"precision\": \"fp32\","
    "\"gradient_type\": \"fp32\", \"optimizer\": \"sgd\", \"defaults\": {\"lr\": \"0.5\"},"
    "\"inputs\": [{\"name\": \"x\", \"type\": \"f32\", \"shape\": [2, 32]},"
    "{\"name\": \"labels\", \"type\": \"i64\", \"shape\": [2], \"label\": true}],"
    "\"parameters\": [{\"name\": \"w\", \"type\": \"f32\", \"shape\": [64], \"file\": \"tiny.bin\", \"offset\": 0,"
    "\"bytes\": 256, \"file_bytes\": 256, \"chunks\": [" CHUNK "], \"bucket\": 0, \"bucket_offset\": 0}],"
    "\"buckets\": [{\"name\": \"b0\", \"type\": \"f32\", \"elements\": 64, \"padded\": " TEXT(PADDED)
    ", \"groups\": [{\"begin\": 0, \"end\": " TEXT(PADDED) "}]}],"
    "\"communicators\": [{\"name\": \"world\", \"axes\": [[\"edp\", 0, 1]]}],"
    "\"positions\": [{\"memories\": [{\"kind\": \"device\", \"bytes\": " TEXT(ARENA) "}],"
    "\"queues\": [{\"name\": \"compute\"}, {\"name\": \"comm\", \"kind\": \"communication\"}], \"blocks\": [0, 1], \"buffers\": ["
    "{\"name\": \"seed\", \"offset\": 0, \"bytes\": 4}, {\"name\": \"scalars\", \"offset\": 64, \"bytes\": 64},"
    "{\"name\": \"loss\", \"offset\": 128, \"bytes\": 4}, {\"name\": \"input.x\", \"offset\": 256, \"bytes\": 256},"
    "{\"name\": \"input.labels\", \"offset\": 512, \"bytes\": 16},"
    "{\"name\": \"b0.param\", \"offset\": 1024, \"bytes\": 512, \"persistent\": true},"
    "{\"name\": \"b0.grad.0\", \"offset\": 2048, \"bytes\": 512, \"persistent\": true},"
    "{\"name\": \"staging\", \"offset\": 3072, \"bytes\": 512},"
    "{\"name\": \"norms\", \"offset\": 3584, \"bytes\": 192}],"
    "\"loads\": [{\"bucket\": 0, \"target\": [5, 0, 0, 0], \"sliced\": false}],"
    "\"actions\": ["
    "{\"kind\": \"input\", \"name\": \"input x\", \"refs\": [[3, 0, 0, 0]], \"input\": 0, \"use\": 0},"
    "{\"kind\": \"input\", \"name\": \"input labels\", \"refs\": [[4, 0, 0, 0]], \"input\": 1, \"use\": 1},"
    "{\"kind\": \"run\", \"name\": \"block 0 F\", \"phase\": \"F\", \"symbol\": \"segment\","
    " \"refs\": [[3, 0, 0, 0], [2, 0, 0, 0], [5, 0, 0, 0], [6, 0, 0, 0], [0, 0, 0, 0]], \"changes\": [6], \"use\": 2},"
    "{\"kind\": \"reduce\", \"queue\": 1, \"name\": \"reduce b0\", \"communicator\": 0, \"waits\": [2],"
    " \"refs\": [[6, 0, 0, 0], [6, 0, 0, 256]], \"elements\": 64, \"type\": \"f32\", \"bucket\": 0, \"changes\": [6], \"use\": 3},"
    "{\"kind\": \"norm\", \"name\": \"norm b0\", \"waits\": [3],"
    " \"refs\": [[6, 0, 0, 256], [8, 0, 0, 0]], \"bucket\": 0, \"use\": 4},"
    "{\"kind\": \"agree\", \"queue\": 1, \"name\": \"agree\", \"communicator\": 0, \"waits\": [2, 4],"
    " \"refs\": [[8, 0, 0, 0], [2, 0, 0, 0]], \"norms\": 1, \"others\": [[1, 0, 0, 0]], \"use\": 5},"
    "{\"kind\": \"update\", \"name\": \"update b0\", \"symbol\": \"update\", \"waits\": [5],"
    " \"refs\": [[5, 0, 0, 256], [6, 0, 0, 256]], \"elements\": 64, \"bucket\": 0, \"sliced\": true, \"changes\": [5],"
    " \"others\": [[1, 0, 0, 0]], \"use\": 6},"
    "{\"kind\": \"gather\", \"queue\": 1, \"name\": \"gather b0\", \"communicator\": 0, \"waits\": [6], \"traffic\": \"all_gather\","
    " \"refs\": [[5, 0, 0, 256], [5, 0, 0, 0]], \"bytes\": 256, \"bucket\": 0, \"changes\": [5], \"use\": 7}"
    "]}], \"uses\": [[0, 256, 2], [0, 16, 2], [0, 256, 1, 1, 4, 2, 2, 256, 1, 3, 256, 2, 4, 4, 1],"
    "[0, " TEXT(WHOLE) ", 1, 1, 256, 2], [0, 256, 1, 1, 168, 2], [0, 168, 1, 1, 4, 1, 2, 64, 2],"
    "[0, 256, 3, 1, 256, 1, 2, 64, 1], [1, " TEXT(WHOLE) ", 3]]}";
// clang-format on
const uint64_t dsopt_program_bytes = sizeof dsopt_program - 1;
const char dsopt_model[] = "\x08\x09";
const uint64_t dsopt_model_bytes = 2;

enum {
  SLEEP = 1000, /* for long */
  KILL,         /* its rank */
  NO_NUMBER,    /* a loss that is none */
  LEAVE,        /* status 0, as a library's exit(0) */
  INTERRUPTED,  /* status 3, as if somebody had asked for it */
  STOP,         /* its rank */
  KILL_ONCE,    /* its rank, unless the folder holds a file "killed" */
  STOP_A_WHILE, /* half a second */
  CUT_DATA,     /* the data file is empty from here on */
  CUT_LOG,      /* as copying it away and truncating it does */
  CUT_PROGRAM,  /* the file of this code, "program.so", is empty from here on */
  CUT_BYTE      /* the data file loses its last byte */
};

static void act(int what) {
  struct timespec wait = {0, 100000000};
  struct stat data;
  pid_t rank = getpid();
  switch (what) {
  case SLEEP:
    nanosleep(&wait, 0);
    break;
  case KILL_ONCE:
    if (open("killed", O_CREAT | O_EXCL, 0666) < 0)
      break;
    raise(SIGKILL);
    break;
  case KILL:
    raise(SIGKILL);
    break;
  case LEAVE:
  case INTERRUPTED:
    _exit(what == LEAVE ? 0 : 3);
  case STOP_A_WHILE:
    if (fork() == 0) {
      wait.tv_nsec = 500000000;
      nanosleep(&wait, 0);
      kill(rank, SIGCONT);
      _exit(0);
    }
    raise(SIGSTOP);
    break;
  case STOP:
    raise(SIGSTOP);
    break;
  case CUT_DATA:
  case CUT_LOG:
  case CUT_PROGRAM:
    if (truncate(what == CUT_DATA ? "data.npz" : what == CUT_LOG ? "log.jsonl" : "program.so", 0) != 0)
      _exit(99);
    break;
  case CUT_BYTE:
    if (stat("data.npz", &data) != 0 || truncate("data.npz", data.st_size - 1) != 0)
      _exit(99);
    break;
  }
}

/* Two signals for a process that is done: a launcher, or a rank alone. */
__attribute__((destructor)) static void signalAtEnd(void) {
  if (!getenv("TINY_SIGNALS_AT_END"))
    return;
  raise(SIGTERM);
  raise(SIGINT);
}

void segment(dsopt_rt *rt, void *const *buffers, char *temp, int64_t accumulate) {
  const float *x = buffers[0], *w = buffers[2], *seed = buffers[4];
  float *loss = buffers[1], *gradient = buffers[3];
  if (x[0] >= SLEEP)
    act((int)x[0]);
  float sum = x[0] == NO_NUMBER ? NAN : 0;
  for (int i = 0; i < 64; ++i) {
    float d = w[i] - (x[0] >= SLEEP ? 0 : x[i]);
    sum += d * d;
    gradient[i] = d / 64 * *seed;
  }
  *loss = sum / 128;
}

void update(int64_t begin, int64_t end, void *const *args) {
  float *w = args[0];
  const float *gradient = args[1], *scalars = args[2];
  for (int64_t i = begin; i < end; ++i)
    w[i] -= scalars[DSOPT_LR] * gradient[i];
}
