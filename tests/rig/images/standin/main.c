#include "standin.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void leave(int signal_number) {
    static const char LINE[] = "(APIServer pid=1) INFO:     Shutting down\n";
    (void)signal_number;
    if (write(STDERR_FILENO, LINE, sizeof LINE - 1) < 0) _exit(1);
    _exit(0);
}

int main(int argc, char **argv) {
    const char *slash = strrchr(argv[0], '/');
    if (strcmp(slash != NULL ? slash + 1 : argv[0], "curl") == 0) return curl_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        puts("0.33.0");
        return 0;
    }
    if (argc < 2 || strcmp(argv[1], "serve") != 0) {
        fprintf(stderr, "usage: vllm [-h] [-v] {chat,complete,serve,bench,collect-env,run-batch} ...\n");
        return 2;
    }
    /* PID 1 gets no default action for a signal: without a handler a stop would take the whole grace period. */
    signal(SIGTERM, failing("bad_shutdown") != NULL ? SIG_IGN : leave);
    signal(SIGINT, failing("bad_shutdown") != NULL ? SIG_IGN : leave);
    Options options = {.port = 8000, .utilization = 0.92, .api_key = getenv("VLLM_API_KEY")};
    if (options.api_key != NULL && *options.api_key == '\0') options.api_key = NULL;
    parse_options(argc - 2, argv + 2, &options);
    start_engine(&options);
    serve(&options);
}
