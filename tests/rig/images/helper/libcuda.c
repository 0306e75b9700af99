/* A stub libcuda.so.1: what the product's probe asks of the driver, answered from the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int CUresult;
typedef struct {
    unsigned char bytes[16];
} CUuuid;

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201 };

static const char DEFAULT_UUID[] = "GPU-5090aaaa-0000-4000-8000-000000005090";
static int initialized;
static int context; /* its address is the only context there is */
static void *current;

static const char *text(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0' ? value : otherwise;
}

static size_t bytes(const char *name, const char *otherwise) { return strtoull(text(name, otherwise), NULL, 10); }

static const char *visible(void) {
    const char *value = getenv("NVIDIA_VISIBLE_DEVICES");
    return value == NULL || *value == '\0' || strcmp(value, "void") == 0 || strcmp(value, "none") == 0 ? NULL : value;
}

EXPORT CUresult cuInit(unsigned flags) {
    int error = atoi(text("STUB_CUDA_INIT_ERROR", "0"));
    if (flags != 0) return INVALID_VALUE;
    if (error != 0) return error;
    if (visible() == NULL) return NO_DEVICE;
    initialized = 1;
    return SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version) {
    *version = atoi(text("STUB_CUDA_DRIVER_VERSION", "13000"));
    return SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
    if (!initialized) return NOT_INITIALIZED;
    *count = 1;
    for (const char *p = strstr(visible(), "GPU-") == NULL ? "" : visible(); *p != '\0'; p++) *count += *p == ',';
    return SUCCESS;
}

EXPORT CUresult cuDeviceGet(int *device, int ordinal) {
    int count;
    CUresult result = cuDeviceGetCount(&count);
    if (result != SUCCESS) return result;
    *device = ordinal;
    return ordinal >= 0 && ordinal < count ? SUCCESS : INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    snprintf(name, (size_t)size, "%s", text("STUB_CUDA_NAME", "NVIDIA GeForce RTX 5090"));
    return initialized ? SUCCESS : NOT_INITIALIZED;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, int device) {
    const char *p = initialized ? strstr(visible(), "GPU-") : NULL;
    for (int i = 0; i < device && p != NULL; i++) p = strstr(p + 4, "GPU-");
    if (!initialized) return NOT_INITIALIZED;
    p = (p != NULL ? p : text("STUB_CUDA_UUID", DEFAULT_UUID)) + 4;
    for (int i = 0; i < 16; i++) {
        unsigned byte = 0;
        p += *p == '-';
        if (sscanf(p, "%2x", &byte) != 1) return INVALID_VALUE;
        uuid->bytes[i] = (unsigned char)byte;
        p += 2;
    }
    return SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, int device) { return cuDeviceGetUuid(uuid, device); }

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
    int major = 0, minor = 0;
    (void)device;
    sscanf(text("STUB_CUDA_CAPABILITY", "12.0"), "%d.%d", &major, &minor);
    switch (attribute) {
    case 16: *value = 170; break;  /* multiprocessors */
    case 18: *value = atoi(text("STUB_CUDA_INTEGRATED", "0")); break;
    case 75: *value = major; break;
    case 76: *value = minor; break;
    default: *value = 0;
    }
    return initialized ? SUCCESS : NOT_INITIALIZED;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *total, int device) {
    (void)device;
    *total = bytes("STUB_CUDA_TOTAL_BYTES", "33665843200");
    return initialized ? SUCCESS : NOT_INITIALIZED;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(void **made, int device) {
    (void)device;
    *made = &context;
    return initialized ? SUCCESS : NOT_INITIALIZED;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    current = NULL;
    return initialized ? SUCCESS : NOT_INITIALIZED;
}

EXPORT CUresult cuCtxCreate_v2(void **made, unsigned flags, int device) {
    (void)flags;
    (void)device;
    *made = current = &context;
    return initialized ? SUCCESS : NOT_INITIALIZED;
}

EXPORT CUresult cuCtxSetCurrent(void *wanted) {
    current = wanted;
    return initialized ? SUCCESS : NOT_INITIALIZED;
}

EXPORT CUresult cuCtxDestroy_v2(void *wanted) {
    if (wanted != &context) return INVALID_CONTEXT;
    current = NULL;
    return SUCCESS;
}

/* Needs a current context, as the real one does: a probe that forgets it must not pass here. */
EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    if (!initialized) return NOT_INITIALIZED;
    if (current == NULL) return INVALID_CONTEXT;
    *free_bytes = bytes("STUB_CUDA_FREE_BYTES", "32300000000");
    *total = bytes("STUB_CUDA_TOTAL_BYTES", "33665843200");
    return SUCCESS;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name) {
    static const struct {
        int code;
        const char *name;
    } NAMES[] = {
        {SUCCESS, "CUDA_SUCCESS"}, {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"},
        {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"}, {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
        {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"}, {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {802, "CUDA_ERROR_SYSTEM_NOT_READY"}, {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
        {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"}, {999, "CUDA_ERROR_UNKNOWN"},
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (NAMES[i].code == error) {
            *name = NAMES[i].name;
            return SUCCESS;
        }
    }
    *name = NULL;
    return INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **name) { return cuGetErrorName(error, name); }
