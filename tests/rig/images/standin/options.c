#include "standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which arguments exist, by what they take: those of vLLM 0.32.0, less what 0.33 dropped. */
static const char SWITCHES[] =
    " aggregate-engine-logging allow-credentials allow-deprecated-quantization async-scheduling "
    "cohere-is-reasoning-model cudagraph-metrics data-parallel-external-lb data-parallel-hybrid-lb "
    "data-parallel-multi-port-external-lb dcp-q-replicate disable-chunked-mm-input disable-custom-all-reduce "
    "disable-fastapi-docs disable-hybrid-kv-cache-manager disable-log-stats disable-nccl-for-dp-synchronization "
    "disable-sliding-window disable-uvicorn-access-log enable-auto-tool-choice enable-batch-sharded-sampling "
    "enable-chunked-prefill enable-cumem-allocator enable-dbo enable-elastic-ep enable-ep-weight-filter enable-eplb "
    "enable-expert-parallel enable-fault-tolerance enable-flash-late-interaction enable-flashinfer-autotune "
    "enable-force-include-usage enable-hc-sp enable-layerwise-nvtx-tracing enable-log-deltas enable-log-outputs "
    "enable-log-requests enable-logging-iteration-details enable-lora enable-mamba-cache-stochastic-rounding "
    "enable-mamba-shared-prefix-checkpoint enable-mfu-metrics enable-mixed-moe-lora-format enable-mm-embeds "
    "enable-moe-shared-loras enable-nccl-comm-suspend enable-offline-docs enable-per-request-metrics "
    "enable-prefix-caching enable-prompt-embeds enable-prompt-tokens-details enable-request-id-headers "
    "enable-return-routed-experts enable-scale-out enable-server-load-tracking enable-shm-tensor-arena "
    "enable-sleep-mode enable-ssl-refresh enable-tokenizer-info-endpoint enable-tower-connector-lora "
    "enable-trace-replay enforce-eager exclude-tools-when-tool-choice-none fail-on-environ-validation "
    "fully-sharded-loras grpc headless interleave-mm-strings jit-monitor-verbose kv-cache-metrics "
    "kv-sharing-fast-prefill language-model-only log-error-stack long-prefill-token-threshold-adaptive "
    "mm-device-do-normalize mm-encoder-only numa-bind ray-workers-use-nsight return-sampling-mask "
    "return-tokens-as-token-ids scheduler-reserve-full-isl skip-mm-profiling skip-tokenizer-init "
    "sleep-mode-offload-cudagraph specialize-active-lora swa-bounded-replay tokens-only trust-remote-code "
    "trust-request-chat-template trust-request-mm-kwargs use-fp64-gumbel use-replayssm use-tqdm-on-load -dpe -dph "
    "-dpm -ep ";
static const char INTEGERS[] =
    " api-server-count block-size cp-kv-cache-interleave-size cpu-distributed-timeout-seconds data-parallel-rank "
    "data-parallel-rpc-port data-parallel-size data-parallel-size-local data-parallel-start-rank "
    "data-parallel-supervisor-port dbo-decode-token-threshold dbo-prefill-token-threshold "
    "dcp-kv-cache-interleave-size decode-context-parallel-size distributed-timeout-seconds "
    "dp-supervisor-probe-failure-threshold dp-sync-interval elastic-ep-max-dp-size grpc-port h11-max-header-count "
    "h11-max-incomplete-event-size kv-cache-memory-bytes long-prefill-token-threshold mamba-block-size "
    "mamba-cache-philox-rounds master-port max-cpu-loras max-cudagraph-capture-size max-log-len max-logprobs "
    "max-lora-cls-labels max-loras max-model-len max-num-active-seqs max-num-batched-tokens max-num-queued-reqs "
    "max-num-queued-tokens max-num-scheduled-tokens max-num-seqs max-parallel-loading-workers "
    "mm-shm-cache-max-object-size-mb nnodes node-rank num-gpu-blocks-override offload-group-size offload-num-in-group "
    "offload-prefetch-step pipeline-parallel-size port prefill-context-parallel-size prefill-schedule-interval "
    "prefix-cache-retention-interval prefix-match-unit renderer-num-workers replayssm-buffer-len "
    "safetensors-prefetch-block-size safetensors-prefetch-num-threads seed shutdown-timeout spec-tokens "
    "sse-keep-alive-interval ssl-cert-reqs stream-interval tensor-parallel-size ubatch-size -dcp -dp -dpl -dpn -dpp "
    "-dpr -n -pcp -pp -r -tp ";
static const char FLOATS[] =
    " cpu-offload-gb device-memory-utilization dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s "
    "gpu-memory-utilization kv-cache-metrics-sample kv-offloading-size mm-ipc-gpu-memory-gb mm-processor-cache-gb "
    "video-pruning-rate watermark ";
static const char OBJECTS[] =
    " additional-config allowed-headers allowed-methods allowed-origins attention-config aux-output-config "
    "compilation-config default-chat-template-kwargs default-mm-loras diffusion-config ec-manager-config "
    "ec-transfer-config engram-config eplb-config fault-tolerance-config hf-overrides ir-op-priority kernel-config "
    "kv-events-config kv-transfer-config limit-mm-per-prompt logging-config media-io-kwargs mm-processor-kwargs "
    "model-class-overrides model-loader-extra-config override-generation-config pooler-config profiler-config "
    "quantization-config reasoning-config speculative-config structured-outputs-config watermark-config "
    "weight-transfer-config -ac -cc -dc -sc ";
static const char LISTS[] =
    " allowed-media-domains api-key collect-detailed-traces cpu-offload-params cudagraph-capture-sizes device-ids "
    "ignore-patterns kv-cache-dtype-skip-layers logits-processors lora-modules lora-target-modules numa-bind-cpus "
    "numa-bind-nodes offload-params served-model-name sleep-preserve-parameter-names ";
static const char VALUES[] =
    " all2all-backend allowed-local-media-path anthropic-disabled-thinking-effort attention-backend chat-template "
    "chat-template-content-format code-revision cohere-format config config-format convert custom-histogram-buckets "
    "data-parallel-address data-parallel-backend dcp-comm-backend disable-access-log-for-endpoints "
    "distributed-executor-backend download-dir dtype expert-placement-strategy fingerprint-mode fingerprint-value "
    "gdn-prefill-backend generation-config hf-config-path hf-token host io-processor-plugin jit-monitor-mode "
    "kda-decode-backend kda-prefill-backend kv-cache-dtype kv-offloading-backend linear-backend load-format "
    "log-config-file log-level logprobs-mode lora-dtype mamba-backend mamba-cache-dtype mamba-cache-mode "
    "mamba-ssm-cache-dtype mamba-ssu-algorithm master-addr max-lora-rank middleware mm-encoder-attn-backend "
    "mm-encoder-attn-dtype mm-encoder-fp8-scale-path mm-encoder-fp8-scale-save-margin mm-encoder-fp8-scale-save-path "
    "mm-encoder-tp-mode mm-hasher-algorithm mm-processor-cache-type mm-processor-device mm-tensor-ipc model "
    "model-impl moe-backend offload-backend optimization-level otlp-traces-endpoint per-request-spec-decode-metrics "
    "performance-mode prefix-caching-hash-algo pt-load-map-location quantization reasoning-parser "
    "reasoning-parser-plugin response-role revision root-path runner safetensors-load-strategy scheduler-cls "
    "scheduling-policy show-hidden-metrics-for-version sparse-indexer-topk-backend spec-method spec-model "
    "ssl-ca-certs ssl-certfile ssl-ciphers ssl-keyfile tokenizer tokenizer-mode tokenizer-revision tool-call-parser "
    "tool-parser-plugin tool-server tool-strict-level uds uvicorn-log-level video-pruning-method worker-cls "
    "worker-extension-cls -dpa -dpb -q ";

static _Noreturn void refuse(const char *format, const char *first, const char *second) {
    fprintf(stderr, "usage: vllm serve [model_tag] [options]\nvllm serve: error: ");
    fprintf(stderr, format, first, second);
    fputc('\n', stderr);
    exit(2);
}

static bool listed(const char *table, const char *name) {
    char wanted[160];
    snprintf(wanted, sizeof wanted, " %s ", name);
    return strstr(table, wanted) != NULL;
}

/* `--tokenizer_mode` is `--tokenizer-mode`; `--compilation-config.mode 3` sets one key of an object. */
static void plain_name(const char *argument, char *name, size_t size) {
    const char *from = strncmp(argument, "--", 2) == 0 ? argument + 2 : argument;
    size_t i = 0;
    for (; from[i] != '\0' && from[i] != '=' && from[i] != '.' && i + 1 < size; i++)
        name[i] = from == argument || from[i] != '_' ? from[i] : '-';
    name[i] = '\0';
}

static bool switch_name(const char *name) {
    return listed(SWITCHES, name) || (strncmp(name, "no-", 3) == 0 && listed(SWITCHES, name + 3));
}

/* vLLM's human-readable integers: 32768, 32k (thousands), 32K (1024s), and `auto` for the length. */
static long integer(const char *name, const char *value) {
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value && strcmp(name, "max-model-len") == 0 && strcmp(value, "auto") == 0) return -1;
    const char *units = "kmgKMG", *unit = *end != '\0' && end[1] == '\0' ? strchr(units, *end) : NULL;
    if (end == value || (*end != '\0' && unit == NULL)) {
        char flag[128];
        snprintf(flag, sizeof flag, "--%s", name);
        refuse("argument %s: invalid int value: '%s'", flag, value);
    }
    if (unit != NULL)
        for (long i = (unit - units) % 3; i >= 0; i--) number *= unit - units < 3 ? 1000 : 1024;
    return number;
}

static void keep(Options *options, const char *name, const char *value) {
    if (strcmp(name, "model") == 0) options->model = value;
    if (strcmp(name, "host") == 0) options->host = value;
    if (strcmp(name, "port") == 0) options->port = (int)integer(name, value);
    if (strcmp(name, "max-model-len") == 0) options->max_model_len = integer(name, value);
    if (strcmp(name, "gpu-memory-utilization") == 0) options->utilization = atof(value);
    if (strcmp(name, "api-key") == 0) options->api_key = value;
    if (strcmp(name, "reasoning-parser") == 0) options->reasoning = true;
    if (strcmp(name, "served-model-name") == 0 && options->served_count < MAX_NAMES)
        options->served[options->served_count++] = value;
}

static void check(const char *argument, const char *name, const char *value, bool dotted) {
    char *end;
    if (listed(INTEGERS, name)) integer(name, value);
    if (listed(FLOATS, name) && (strtod(value, &end), end == value || *end != '\0'))
        refuse("argument %s: invalid float value: '%s'", argument, value);
    if (listed(OBJECTS, name) && !dotted && !json_valid(value))
        refuse("argument %s: Value '%s' cannot be converted to <function loads>.", argument, value);
}

void parse_options(int argc, char **argv, Options *options) {
    char unknown[2048] = "", name[128];
    for (int i = 0; i < argc; i++) {
        char *argument = argv[i], *value = strchr(argument, '=');
        if (argument[0] != '-' || argument[1] == '\0') {
            if (options->model == NULL) {
                options->model = argument;
                continue;
            }
            snprintf(unknown + strlen(unknown), sizeof unknown - strlen(unknown), " %s", argument);
            continue;
        }
        plain_name(argument, name, sizeof name);
        bool dotted = strchr(argument, '.') != NULL && (value == NULL || strchr(argument, '.') < value);
        if (switch_name(name)) {
            if (strcmp(name, "enforce-eager") == 0) options->eager = true;
            if (strcmp(name, "enable-auto-tool-choice") == 0) options->tools = true;
            if (strcmp(name, "trust-request-mm-kwargs") == 0) options->trust_mm_kwargs = true;
        } else if (strncmp(argument, "-O", 2) == 0 && argument[2] != '\0') {
            continue; /* -O2 */
        } else if (listed(INTEGERS, name) || listed(FLOATS, name) || listed(OBJECTS, name) || listed(VALUES, name) ||
                   listed(LISTS, name)) {
            if (value == NULL && (i + 1 >= argc || strncmp(argv[i + 1], "--", 2) == 0))
                refuse("argument %s: expected %s", argument, listed(LISTS, name) ? "at least one argument" : "one argument");
            value = value != NULL ? value + 1 : argv[++i];
            check(argument, name, value, dotted);
            keep(options, name, value);
            while (listed(LISTS, name) && i + 1 < argc && argv[i + 1][0] != '-') keep(options, name, argv[++i]);
        } else {
            snprintf(unknown + strlen(unknown), sizeof unknown - strlen(unknown), " %s", argument);
        }
    }
    if (unknown[0] != '\0') refuse("unrecognized arguments:%s%s", unknown, "");
    if (options->model == NULL) options->model = "Qwen/Qwen3-0.6B";
    if (options->served_count == 0) options->served[options->served_count++] = options->model;
}
