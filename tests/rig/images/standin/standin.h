/* A stand-in for `vllm serve`: the same command line, log lines, HTTP answers and failures, without a model. */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>
#include <stddef.h>

#define GIB 1073741824.0
#define MAX_NAMES 8

typedef struct {
    const char *model;
    const char *served[MAX_NAMES];
    int served_count;
    const char *host;
    int port;
    long max_model_len; /* 0: not given */
    double utilization;
    bool eager;
    bool trust_mm_kwargs;
    bool reasoning; /* --reasoning-parser */
    bool tools;     /* --tool-call-parser and --enable-auto-tool-choice */
    const char *api_key;
} Options;

typedef struct {
    char *data;
    size_t size;
} Text;

/* options.c: ends the process with argparse's message and status 2 on an argument that vLLM would refuse. */
void parse_options(int argc, char **argv, Options *options);

/* failures.c: STANDIN_FAIL is a comma list of `name` or `name:argument`. */
const char *failing(const char *name); /* NULL, or the argument ("" when it has none) */
double setting(const char *variable, double otherwise);

/* log.c */
void log_line(const char *process, const char *level, const char *place, const char *format, ...);
void raw_line(const char *process, const char *format, ...);
void traceback(const char *process, const char *place, const char *format, ...);

/* engine.c: loads "weights" and plans the "KV cache"; returns when the server may open its port. */
void start_engine(Options *options);

/* server.c, chat.c */
void serve(const Options *options);
void answer_chat(const Options *options, int client, const char *body, bool keep_alive, char *status);
void send_json(int client, int code, const char *reason, const char *body, bool keep_alive);
void send_bytes(int client, const char *bytes, size_t size);
void error_json(Text *out, int code, const char *type, const char *param, const char *message);

/* json.c: a value is a pointer to its first character inside a text that json_valid accepted. */
bool json_valid(const char *text);
const char *json_member(const char *object, const char *key);
const char *json_first(const char *array);
const char *json_next(const char *element);
char *json_text(const char *value); /* decoded UTF-8, malloc'd; NULL when it is no string */
bool json_true(const char *value);
void add(Text *out, const char *format, ...);
extern volatile bool asked_before; /* a chat request came */
void add_quoted(Text *out, const char *utf8, size_t size);

/* curl.c */
int curl_main(int argc, char **argv);

#endif
