#include "standin.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CORE "EngineCore"
#define KV_BYTES_PER_TOKEN 65536.0

static void pause_for(double seconds) {
    struct timespec rest = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&rest, &rest) != 0) {
    }
}

static _Noreturn void die(void) {
    fflush(NULL);
    _exit(1);
}

/* 1234567 -> 1,234,567 */
static void grouped(char *to, long number) {
    char digits[24];
    int size = sprintf(digits, "%ld", number);
    for (int i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
}

static int is_safetensors(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot != NULL && strcmp(dot, ".safetensors") == 0;
}

/* The context length that the model itself declares. */
static long declared_length(const char *folder) {
    char path[4096], text[65536];
    snprintf(path, sizeof path, "%s/config.json", folder);
    int file = open(path, O_RDONLY);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[size > 0 ? size : 0] = '\0';
    const char *key = strstr(text, "\"max_position_embeddings\"");
    return key == NULL ? 32768 : atol(strchr(key, ':') + 1);
}

/* Every shard is opened and its header read, as a file that is not there must stop the start. */
static double load_shards(const char *folder, double seconds) {
    struct dirent **shards;
    int count = scandir(folder, &shards, is_safetensors, alphasort);
    if (count <= 0) {
        traceback(CORE, "vllm/model_executor/model_loader/default_loader.py\", line 259, in _prepare_weights",
                  "RuntimeError: Cannot find any model weights with `%s`", folder);
        die();
    }
    double bytes = 0;
    for (int i = 0; i < count; i++) {
        char path[4096], head[8];
        struct stat facts;
        raw_line(CORE, "\rLoading safetensors checkpoint shards: %3d%% Completed | %d/%d [00:%02d<?, ?it/s]", i * 100 / count, i,
                 count, (int)(seconds * i / count) % 60);
        snprintf(path, sizeof path, "%s/%s", folder, shards[i]->d_name);
        int file = open(path, O_RDONLY);
        if (file < 0 || fstat(file, &facts) != 0 || read(file, head, sizeof head) != (ssize_t)sizeof head) {
            traceback(CORE, "vllm/model_executor/model_loader/weight_utils.py\", line 1101, in safetensors_weights_iterator",
                      "safetensors_rust.SafetensorError: Error while deserializing header: header too small");
            die();
        }
        close(file);
        bytes += (double)facts.st_size;
        pause_for(seconds / count);
        free(shards[i]);
    }
    free(shards);
    raw_line(CORE, "\rLoading safetensors checkpoint shards: 100%% Completed | %d/%d [00:%02d<00:00,  1.00it/s]", count, count,
             (int)seconds % 60);
    return bytes;
}

static double load_weights(const Options *options, double seconds) {
    struct stat facts;
    log_line(CORE, "INFO", "gpu_model_runner.py:5104", "Starting to load model %s...", options->model);
    if (failing("killed") != NULL) {
        raw_line(CORE, "\rLoading safetensors checkpoint shards:   0%% Completed | 0/4 [00:00<?, ?it/s]");
        pause_for(seconds / 2);
        _exit(137); /* PID 1 cannot kill itself; the engine shows the same exit code */
    }
    if (failing("nvfp4") != NULL)
        log_line(CORE, "INFO", "nvfp4_utils.py:96", "Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM");
    if (failing("marlin") != NULL)
        log_line(CORE, "WARNING", "marlin_utils_fp4.py:282",
                 "Your GPU does not have native support for FP4 computation but FP4 quantization is being used. Weight-only FP4 "
                 "compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads.");
    double bytes = 8.0 * GIB;
    if (stat(options->model, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        bytes = load_shards(options->model, seconds);
    } else {
        pause_for(seconds);
    }
    log_line(CORE, "INFO", "default_loader.py:501", "Loading weights took %.2f seconds", seconds);
    log_line(CORE, "INFO", "gpu_model_runner.py:5149", "Model loading took %.2f GiB memory and %.6f seconds", bytes / GIB, seconds);
    return bytes;
}

static void check_model(const Options *options) {
    struct stat facts;
    bool there = stat(options->model, &facts) == 0;
    const char *offline = getenv("HF_HUB_OFFLINE");
    if (there || (options->model[0] != '/' && (offline == NULL || strcmp(offline, "1") != 0))) return;
    traceback("APIServer", "vllm/transformers_utils/config.py\", line 740, in get_config",
              "OSError: Can't load the configuration of '%s'. If you were trying to load it from 'https://huggingface.co/models', make "
              "sure you don't have a local directory with the same name. Otherwise, make sure '%s' is the correct path to a directory "
              "containing a config.json file",
              options->model, options->model);
    die();
}

static void check_free_memory(const Options *options, double *free_gib, double *total_gib) {
    const char *numbers = failing("free_memory");
    if (numbers == NULL || sscanf(numbers, "%lf/%lf", free_gib, total_gib) != 2) return;
    double wanted = *total_gib * options->utilization;
    if (wanted <= *free_gib) return;
    traceback(CORE, "vllm/v1/worker/utils.py\", line 762, in request_memory",
              "ValueError: Free memory on device cuda:0 (%g/%g GiB) on startup is less than desired GPU memory utilization (%g, %.2f "
              "GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
              *free_gib, *total_gib, options->utilization, wanted);
    die();
}

static void plan_cache(Options *options, double available) {
    const char *limit = failing("kv_too_small");
    if (limit != NULL) available = atof(limit) * KV_BYTES_PER_TOKEN;
    if (failing("no_cache_blocks") != NULL) available = -0.5 * GIB;
    log_line(CORE, "INFO", "gpu_worker.py:759", "Available KV cache memory: %.2f GiB", available / GIB);
    if (available <= 0) {
        traceback(CORE, "vllm/v1/core/kv_cache_utils.py\", line 1010, in _check_enough_kv_cache_memory",
                  "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the "
                  "engine (this flag also controls CPU memory reservation on the CPU backend, despite its name). See "
                  "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.");
        die();
    }
    long fits = (long)(available / KV_BYTES_PER_TOKEN);
    if (options->max_model_len < 0) {
        long declared = declared_length(options->model);
        options->max_model_len = fits < declared ? fits : declared;
    }
    if (options->max_model_len > fits) {
        traceback(CORE, "vllm/v1/core/kv_cache_utils.py\", line 1030, in _check_enough_kv_cache_memory",
                  "ValueError: To serve at least one request with the model's max seq len (%ld), (%.2f GiB KV cache is needed, which is "
                  "larger than the available KV cache memory (%.2f GiB). Based on the available memory, the estimated maximum model "
                  "length is %ld. Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or "
                  "decreasing `max_model_len` when initializing the engine. See "
                  "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.",
                  options->max_model_len, (double)options->max_model_len * KV_BYTES_PER_TOKEN / GIB, available / GIB, fits);
        die();
    }
    char tokens[32], length[32];
    if (failing("small_cache") != NULL) fits = options->max_model_len / 2;
    grouped(tokens, fits);
    grouped(length, options->max_model_len);
    log_line(CORE, "INFO", "kv_cache_utils.py:2327", "GPU KV cache size: %s tokens, Maximum concurrency for %s tokens per request: %.2fx",
             tokens, length, (double)fits / (double)options->max_model_len);
}

static void capture_graphs(const Options *options, double total_gib) {
    if (options->eager) {
        log_line(CORE, "INFO", "vllm.py:1180", "Cudagraph is disabled under eager mode");
        return;
    }
    if (failing("graph_oom") != NULL) {
        traceback(CORE, "vllm/v1/worker/gpu_model_runner.py\", line 6540, in capture_model",
                  "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 784.00 MiB. GPU 0 has a total capacity of %.2f GiB of "
                  "which 47.00 MiB is free. Including non-PyTorch memory, this process has %.2f GiB memory in use. If reserved but "
                  "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
                  total_gib, total_gib - 0.05);
        die();
    }
    log_line(CORE, "INFO", "gpu_model_runner.py:6582", "Graph capturing finished in 1 secs, took 0.36 GiB");
}

void start_engine(Options *options) {
    double seconds = setting("STANDIN_LOAD_SECONDS", 2), total_gib = 31.36, free_gib = 30.85;
    if (failing("never_healthy") != NULL)
        for (;;) pause();
    if (failing("slow") != NULL && *failing("slow") != '\0') seconds = atof(failing("slow"));
    log_line("APIServer", "INFO", "utils.py:299", "vLLM API server version 0.33.0");
    log_line("APIServer", "INFO", "utils.py:233", "non-default args: {'model_tag': '%s'}", options->model);
    if (failing("exit") != NULL) {
        traceback(CORE, "vllm/v1/engine/core.py\", line 1427, in run_engine_core", "RuntimeError: stand-in told to fail");
        die();
    }
    check_model(options);
    if (options->max_model_len == 0) options->max_model_len = declared_length(options->model);
    log_line(CORE, "INFO", "core.py:112", "Initializing a V1 LLM engine (v0.33.0) with config: model='%s', max_seq_len=%ld", options->model,
             options->max_model_len);
    check_free_memory(options, &free_gib, &total_gib);
    double weights = load_weights(options, seconds);
    plan_cache(options, (total_gib * options->utilization - 1.5) * GIB - weights);
    capture_graphs(options, total_gib);
    log_line(CORE, "INFO", "core.py:284", "init engine (profile, create kv cache, warmup model) took %.2f s", seconds);
}
