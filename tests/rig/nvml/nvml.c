/* A stub libnvidia-ml.so.1: answers from the text file that STUB_NVML_FILE names (written by write_machine).
 *
 *   driver=580.95.05              return.nvmlInit_v2=18        any call's return code; without _vN: all versions of it
 *   cuda=13000                    gpu0.return.NAME=4           the same for one GPU
 *   count=1                       hang.NAME=1                  the call never comes back
 *   gpu0.name=...                 gpu0.lost=1                  every call on this GPU answers 15
 *
 * The file is read anew at each call, so a test may change the machine while a reader runs.  A fact that the file does
 * not give is NOT_SUPPORTED, as on cards that lack it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_GPUS 16
#define VALUE 512
#define NOT_AVAILABLE 0xFFFFFFFFFFFFFFFFULL

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    LIBRARY_NOT_FOUND = 12,
    GPU_IS_LOST = 15,
    VERSION_MISMATCH = 25
};

typedef unsigned long long u64;
typedef struct {
    int index;
} Gpu;
typedef struct {
    u64 total, free, used;
} Memory;
typedef struct {
    unsigned version;
    u64 total, reserved, free, used;
} MemoryV2;
typedef struct {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} Pci;
typedef struct {
    unsigned pid;
    u64 used;
    unsigned gpu_instance, compute_instance;
} Process;
typedef struct {
    unsigned version, value;
} AddressingMode;
typedef struct {
    unsigned gpu, memory;
} Utilization;

static Gpu gpus[MAX_GPUS];
static int initialized;

static int lookup(const char *key, char *value) {
    const char *path = getenv("STUB_NVML_FILE");
    FILE *file = path != NULL ? fopen(path, "r") : NULL;
    char line[VALUE + 128];
    size_t length = strlen(key);
    int found = 0;
    while (!found && file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, length) != 0 || line[length] != '=') continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(value, VALUE, "%s", line + length + 1);
        found = 1;
    }
    if (file != NULL) fclose(file);
    return found;
}

static u64 number(const char *key, u64 otherwise) {
    char value[VALUE];
    return lookup(key, value) ? strtoull(value, NULL, 0) : otherwise;
}

static int fact(const Gpu *gpu, const char *name, char *value) {
    char key[128];
    snprintf(key, sizeof key, "gpu%d.%s", gpu->index, name);
    return lookup(key, value);
}

static int fact_number(const Gpu *gpu, const char *name, u64 *to) {
    char value[VALUE];
    if (!fact(gpu, name, value)) return NOT_SUPPORTED;
    *to = strtoull(value, NULL, 0);
    return SUCCESS;
}

static int fact_unsigned(const Gpu *gpu, const char *name, unsigned *to) {
    u64 value = 0;
    int code = fact_number(gpu, name, &value);
    if (code == SUCCESS) *to = (unsigned)value;
    return code;
}

/* Looks for `prefix + name`, then for the name without its version, so that one line covers a whole family. */
static u64 told(const char *prefix, const char *name, u64 otherwise) {
    char key[160];
    const char *version = strstr(name, "_v");
    snprintf(key, sizeof key, "%s%s", prefix, name);
    otherwise = number(key, otherwise);
    if (version != NULL) {
        snprintf(key, sizeof key, "%s%.*s", prefix, (int)(version - name), name);
        if (otherwise == SUCCESS) otherwise = number(key, otherwise);
    }
    return otherwise;
}

static int enter(const char *name, const Gpu *gpu) {
    char prefix[32];
    while (told("hang.", name, 0) != 0) sleep(60);
    int code = (int)told("return.", name, SUCCESS);
    if (code != SUCCESS) return code;
    if (!initialized) return UNINITIALIZED;
    if (gpu == NULL) return SUCCESS;
    if (gpu < gpus || gpu >= gpus + MAX_GPUS) return INVALID_ARGUMENT;
    char lost[VALUE];
    if (fact(gpu, "lost", lost) && atoi(lost) != 0) return GPU_IS_LOST;
    snprintf(prefix, sizeof prefix, "gpu%d.return.", gpu->index);
    return (int)told(prefix, name, SUCCESS);
}

#define ENTER(gpu)                          \
    do {                                    \
        int refused = enter(__func__, gpu); \
        if (refused != SUCCESS) return refused; \
    } while (0)

static int put(const char *value, char *to, unsigned size) {
    if (strlen(value) >= size) return INSUFFICIENT_SIZE;
    strcpy(to, value);
    return SUCCESS;
}

static int put_fact(const Gpu *gpu, const char *name, char *to, unsigned size) {
    char value[VALUE];
    return fact(gpu, name, value) ? put(value, to, size) : NOT_SUPPORTED;
}

static int start(const char *name) {
    char value[VALUE];
    initialized = 1;
    for (int i = 0; i < MAX_GPUS; i++) gpus[i].index = i;
    int code = enter(name, NULL);
    if (code == SUCCESS) code = (int)told("return.", "nvmlInit_v2", SUCCESS);
    if (code == SUCCESS && !lookup("driver", value)) code = LIBRARY_NOT_FOUND;
    initialized = code == SUCCESS;
    return code;
}

EXPORT int nvmlInit_v2(void) { return start("nvmlInit_v2"); }

EXPORT int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    while (told("hang.", "nvmlInit_v2", 0) != 0) sleep(60);
    return start("nvmlInitWithFlags");
}

EXPORT int nvmlShutdown(void) {
    ENTER(NULL);
    initialized = 0;
    return SUCCESS;
}

EXPORT const char *nvmlErrorString(int code) {
    switch (code) {
    case 0: return "Success";
    case 1: return "Uninitialized";
    case 2: return "Invalid Argument";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 6: return "Not Found";
    case 7: return "Insufficient Size";
    case 9: return "Driver Not Loaded";
    case 10: return "Timeout";
    case 12: return "NVML Shared Library Not Found";
    case 13: return "Function Not Found";
    case 15: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 18: return "Driver/library version mismatch";
    case 25: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned size) {
    char value[VALUE];
    ENTER(NULL);
    return lookup("driver", value) ? put(value, version, size) : NOT_SUPPORTED;
}

EXPORT int nvmlSystemGetNVMLVersion(char *version, unsigned size) {
    ENTER(NULL);
    return put("13.580.95.05", version, size);
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version) {
    ENTER(NULL);
    *version = (int)number("cuda", 13000);
    return SUCCESS;
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

EXPORT int nvmlSystemGetProcessName(unsigned pid, char *name, unsigned size) {
    char key[64], value[VALUE];
    ENTER(NULL);
    snprintf(key, sizeof key, "process.%u.name", pid);
    return lookup(key, value) ? put(value, name, size) : NOT_FOUND;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count) {
    ENTER(NULL);
    *count = (unsigned)number("count", 0);
    return SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu **handle) {
    ENTER(NULL);
    if (index >= number("count", 0) || index >= MAX_GPUS) return INVALID_ARGUMENT;
    *handle = &gpus[index];
    return enter(__func__, *handle);
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, Gpu **handle) {
    char value[VALUE];
    ENTER(NULL);
    for (unsigned i = 0; i < number("count", 0) && i < MAX_GPUS; i++) {
        if (!fact(&gpus[i], "uuid", value) || strcmp(value, uuid) != 0) continue;
        *handle = &gpus[i];
        return enter(__func__, *handle);
    }
    return NOT_FOUND;
}

EXPORT int nvmlDeviceGetIndex(Gpu *gpu, unsigned *index) {
    ENTER(gpu);
    *index = (unsigned)gpu->index;
    return SUCCESS;
}

EXPORT int nvmlDeviceGetName(Gpu *gpu, char *name, unsigned size) {
    ENTER(gpu);
    return put_fact(gpu, "name", name, size);
}

EXPORT int nvmlDeviceGetUUID(Gpu *gpu, char *uuid, unsigned size) {
    ENTER(gpu);
    return put_fact(gpu, "uuid", uuid, size);
}

EXPORT int nvmlDeviceGetSerial(Gpu *gpu, char *serial, unsigned size) {
    ENTER(gpu);
    return put_fact(gpu, "serial", serial, size);
}

static int read_memory(const Gpu *gpu, MemoryV2 *to) {
    to->reserved = 0;
    to->free = 0;
    int code = fact_number(gpu, "total", &to->total);
    fact_number(gpu, "free", &to->free);
    fact_number(gpu, "reserved", &to->reserved);
    to->used = to->total - to->free - to->reserved;
    return code;
}

EXPORT int nvmlDeviceGetMemoryInfo(Gpu *gpu, Memory *memory) {
    MemoryV2 all = {0};
    ENTER(gpu);
    int code = read_memory(gpu, &all);
    *memory = (Memory){all.total, all.free, all.used + all.reserved};
    return code;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(Gpu *gpu, MemoryV2 *memory) {
    ENTER(gpu);
    return memory->version == (sizeof *memory | 2u << 24) ? read_memory(gpu, memory) : VERSION_MISMATCH;
}

EXPORT int nvmlDeviceGetCudaComputeCapability(Gpu *gpu, int *major, int *minor) {
    char value[VALUE];
    ENTER(gpu);
    return fact(gpu, "capability", value) && sscanf(value, "%d.%d", major, minor) == 2 ? SUCCESS : NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetDriverModel_v2(Gpu *gpu, unsigned *current, unsigned *pending) {
    ENTER(gpu);
    int code = fact_unsigned(gpu, "driver_model", current);
    *pending = *current;
    return code;
}

EXPORT int nvmlDeviceGetDriverModel(Gpu *gpu, unsigned *current, unsigned *pending) {
    return nvmlDeviceGetDriverModel_v2(gpu, current, pending);
}

EXPORT int nvmlDeviceGetMigMode(Gpu *gpu, unsigned *current, unsigned *pending) {
    ENTER(gpu);
    int code = fact_unsigned(gpu, "mig", current);
    *pending = *current;
    return code;
}

EXPORT int nvmlDeviceGetAddressingMode(Gpu *gpu, AddressingMode *mode) {
    ENTER(gpu);
    return mode->version == (sizeof *mode | 1u << 24) ? fact_unsigned(gpu, "addressing", &mode->value) : VERSION_MISMATCH;
}

EXPORT int nvmlDeviceGetPersistenceMode(Gpu *gpu, unsigned *mode) {
    ENTER(gpu);
    return fact_unsigned(gpu, "persistence", mode);
}

EXPORT int nvmlDeviceGetPerformanceState(Gpu *gpu, unsigned *state) {
    ENTER(gpu);
    return fact_unsigned(gpu, "pstate", state);
}

EXPORT int nvmlDeviceGetPowerState(Gpu *gpu, unsigned *state) {
    ENTER(gpu);
    return fact_unsigned(gpu, "pstate", state);
}

EXPORT int nvmlDeviceGetUtilizationRates(Gpu *gpu, Utilization *rates) {
    ENTER(gpu);
    int code = fact_unsigned(gpu, "utilization", &rates->gpu);
    fact_unsigned(gpu, "memory_utilization", &rates->memory);
    return code;
}

EXPORT int nvmlDeviceGetPciInfo_v3(Gpu *gpu, Pci *pci) {
    char value[VALUE];
    ENTER(gpu);
    memset(pci, 0, sizeof *pci);
    if (!fact(gpu, "pci", value) || sscanf(value, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) != 3) return NOT_SUPPORTED;
    snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xFF, pci->device & 0xFF);
    snprintf(pci->legacy, sizeof pci->legacy, "%04X:%02X:%02X.0", pci->domain & 0xFFFF, pci->bus & 0xFF, pci->device & 0xFF);
    fact_unsigned(gpu, "pci_device_id", &pci->device_id);
    return SUCCESS;
}

/* NVML's own protocol: too little room answers INSUFFICIENT_SIZE and the count that is needed. */
static int list_processes(const Gpu *gpu, const char *kind, unsigned *count, Process *to) {
    unsigned room = *count, found = 0;
    char key[64], value[VALUE];
    for (int i = 0;; i++) {
        snprintf(key, sizeof key, "process%d.kind", i);
        if (!fact(gpu, key, value)) break;
        if (strcmp(value, kind) != 0) continue;
        if (to != NULL && found < room) {
            u64 pid = 0, used = NOT_AVAILABLE;
            snprintf(key, sizeof key, "process%d.pid", i);
            fact_number(gpu, key, &pid);
            snprintf(key, sizeof key, "process%d.used", i);
            fact_number(gpu, key, &used);
            to[found] = (Process){(unsigned)pid, used, 0xFFFFFFFFu, 0xFFFFFFFFu};
        }
        found++;
    }
    *count = found;
    return found > room || (found > 0 && to == NULL) ? INSUFFICIENT_SIZE : SUCCESS;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(Gpu *gpu, unsigned *count, Process *to) {
    ENTER(gpu);
    return list_processes(gpu, "compute", count, to);
}

EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(Gpu *gpu, unsigned *count, Process *to) {
    ENTER(gpu);
    return list_processes(gpu, "graphics", count, to);
}
