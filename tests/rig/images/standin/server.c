#define _GNU_SOURCE
#include "standin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEAD_LIMIT 65536
#define BODY_LIMIT (64u << 20)

static const Options *shared;

typedef struct {
    int client;
    char peer[64];
} Connection;

void send_bytes(int client, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(client, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) return;
        bytes += sent;
        size -= (size_t)sent;
    }
}

static void send_typed(int client, int code, const char *reason, const char *type, const char *body, bool keep_alive) {
    Text out = {0};
    add(&out, "HTTP/1.1 %d %s\r\nserver: uvicorn\r\ncontent-type: %s\r\ncontent-length: %zu\r\n%s\r\n%s", code, reason, type,
        strlen(body), keep_alive ? "" : "connection: close\r\n", body);
    send_bytes(client, out.data, out.size);
    free(out.data);
}

void send_json(int client, int code, const char *reason, const char *body, bool keep_alive) {
    send_typed(client, code, reason, "application/json", body, keep_alive);
}

void error_json(Text *out, int code, const char *type, const char *param, const char *message) {
    add(out, "{\"error\":{\"message\":");
    add_quoted(out, message, strlen(message));
    add(out, ",\"type\":\"%s\",\"param\":", type);
    param != NULL ? add_quoted(out, param, strlen(param)) : add(out, "null");
    add(out, ",\"code\":%d}}", code);
}

static void answer_models(int client, bool keep_alive) {
    Text out = {0};
    long length = failing("wrong_length") != NULL ? shared->max_model_len / 2 : shared->max_model_len;
    add(&out, "{\"object\":\"list\",\"data\":[");
    for (int i = 0; i < shared->served_count; i++) {
        add(&out, "%s{\"id\":", i ? "," : "");
        const char *name = failing("wrong_name") != NULL ? "somebody-else" : shared->served[i];
        add_quoted(&out, name, strlen(name));
        add(&out, ",\"object\":\"model\",\"created\":%ld,\"owned_by\":\"vllm\",\"root\":", (long)time(NULL));
        add_quoted(&out, shared->model, strlen(shared->model));
        add(&out, ",\"parent\":null,\"max_model_len\":%ld,\"permission\":[]}", length);
    }
    add(&out, "]}");
    send_json(client, 200, "OK", out.data, keep_alive);
    free(out.data);
}

static bool header(const char *head, const char *name, char *value, size_t size) {
    for (const char *line = strstr(head, "\r\n"); line != NULL && line[2] != '\0'; line = strstr(line + 2, "\r\n")) {
        size_t length = strlen(name);
        if (strncasecmp(line + 2, name, length) != 0 || line[2 + length] != ':') continue;
        const char *from = line + 3 + length + strspn(line + 3 + length, " ");
        snprintf(value, size, "%.*s", (int)strcspn(from, "\r\n"), from);
        return true;
    }
    return false;
}

static bool authorized(const char *head, const char *path) {
    if (strncmp(path, "/v1", 3) != 0 || shared->api_key == NULL || failing("no_key_check") != NULL) return true;
    char value[512] = "";
    header(head, "authorization", value, sizeof value);
    return strncasecmp(value, "bearer ", 7) == 0 && strcmp(value + 7, shared->api_key) == 0;
}

static const char METRICS[] =
    "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
    "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 0.0\n"
    "# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.\n"
    "# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.0\n";

static void answer(int client, const char *head, const char *body, bool keep_alive, char *status) {
    char method[16] = "", path[2048] = "";
    sscanf(head, "%15s %2047s", method, path);
    path[strcspn(path, "?")] = '\0';
    bool get = strcmp(method, "GET") == 0;
    strcpy(status, "200 OK");
    if (!authorized(head, path)) {
        strcpy(status, "401 Unauthorized");
        send_json(client, 401, "Unauthorized", "{\"error\":\"Unauthorized\"}", keep_alive);
    } else if (get && (strcmp(path, "/health") == 0 || strcmp(path, "/ping") == 0)) {
        bool sick = failing("sick") != NULL || (failing("sick_later") != NULL && asked_before);
        if (sick) strcpy(status, "503 Service Unavailable");
        send_typed(client, sick ? 503 : 200, sick ? "Service Unavailable" : "OK", "text/plain", "", keep_alive);
    } else if (get && strcmp(path, "/version") == 0) {
        send_json(client, 200, "OK", "{\"version\":\"0.33.0\"}", keep_alive);
    } else if (get && strcmp(path, "/metrics") == 0) {
        send_typed(client, 200, "OK", "text/plain; version=0.0.4; charset=utf-8", METRICS, keep_alive);
    } else if (get && strcmp(path, "/v1/models") == 0) {
        answer_models(client, keep_alive);
    } else if (!get && strcmp(path, "/v1/chat/completions") == 0) {
        answer_chat(shared, client, body, keep_alive, status);
    } else if (strcmp(path, "/v1/chat/completions") == 0) {
        strcpy(status, "405 Method Not Allowed");
        send_json(client, 405, "Method Not Allowed", "{\"detail\":\"Method Not Allowed\"}", keep_alive);
    } else {
        strcpy(status, "404 Not Found");
        send_json(client, 404, "Not Found", "{\"detail\":\"Not Found\"}", keep_alive);
    }
    raw_line("APIServer", "INFO:     - \"%s %s HTTP/1.1\" %s", method, path, status);
}

/* Reads one request into `buffer`; what came after it stays at the front for the next.  False: the client is gone. */
static bool read_request(int client, Text *buffer, char **head, char **body) {
    char chunk[16384], value[64];
    char *end;
    while (buffer->data == NULL || (end = memmem(buffer->data, buffer->size, "\r\n\r\n", 4)) == NULL) {
        ssize_t size = recv(client, chunk, sizeof chunk, 0);
        if (size <= 0 || buffer->size > HEAD_LIMIT) return false;
        buffer->data = realloc(buffer->data, buffer->size + (size_t)size + 1);
        memcpy(buffer->data + buffer->size, chunk, (size_t)size);
        buffer->size += (size_t)size;
    }
    size_t head_size = (size_t)(end - buffer->data) + 4;
    *head = strndup(buffer->data, head_size);
    size_t wanted = header(*head, "content-length", value, sizeof value) ? strtoul(value, NULL, 10) : 0;
    if (wanted > BODY_LIMIT) return false;
    if (header(*head, "expect", value, sizeof value)) send_bytes(client, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    buffer->data = realloc(buffer->data, head_size + wanted + sizeof chunk + 1);
    while (buffer->size < head_size + wanted) {
        ssize_t size = recv(client, buffer->data + buffer->size, head_size + wanted - buffer->size, 0);
        if (size <= 0) return false;
        buffer->size += (size_t)size;
    }
    *body = strndup(buffer->data + head_size, wanted);
    buffer->size -= head_size + wanted;
    memmove(buffer->data, buffer->data + head_size + wanted, buffer->size);
    return true;
}

static void *converse(void *argument) {
    Connection *connection = argument;
    Text buffer = {0};
    bool keep_alive = true;
    while (keep_alive) {
        char *head = NULL, *body = NULL, value[64] = "", status[64];
        if (read_request(connection->client, &buffer, &head, &body)) {
            header(head, "connection", value, sizeof value);
            keep_alive = strcasecmp(value, "close") != 0 && strstr(head, "HTTP/1.0\r\n") == NULL;
            answer(connection->client, head, body, keep_alive, status);
        } else {
            keep_alive = false;
        }
        free(head);
        free(body);
    }
    free(buffer.data);
    close(connection->client);
    free(connection);
    return NULL;
}

static void *crash(void *seconds) {
    usleep((useconds_t)(*(double *)seconds * 1e6));
    log_line("APIServer", "ERROR", "async_llm.py:735", "AsyncLLM output_handler failed.");
    raw_line("APIServer", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.");
    _exit(1);
}

void serve(const Options *options) {
    static double seconds;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options->port)};
    int on = 1, server = socket(AF_INET, SOCK_STREAM, 0);
    shared = options;
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    inet_pton(AF_INET, options->host != NULL ? options->host : "0.0.0.0", &address.sin_addr);
    if (bind(server, (struct sockaddr *)&address, sizeof address) != 0 || listen(server, 128) != 0) {
        raw_line("APIServer", "OSError: [Errno %d] error while attempting to bind on address: %s", errno, strerror(errno));
        exit(1);
    }
    log_line("APIServer", "INFO", "entry.py:140", "Starting vLLM server on http://%s:%d", options->host != NULL ? options->host : "0.0.0.0",
             options->port);
    raw_line("APIServer", "INFO:     Started server process [%d]", (int)getpid());
    raw_line("APIServer", "INFO:     Waiting for application startup.");
    raw_line("APIServer", "INFO:     Application startup complete.");
    pthread_t thread;
    if (failing("crash_after_ready") != NULL) {
        seconds = *failing("crash_after_ready") != '\0' ? atof(failing("crash_after_ready")) : 2;
        pthread_create(&thread, NULL, crash, &seconds);
    }
    for (;;) {
        Connection *connection = calloc(1, sizeof *connection);
        connection->client = accept(server, NULL, NULL);
        if (connection->client < 0 || pthread_create(&thread, NULL, converse, connection) != 0) {
            free(connection);
            continue;
        }
        setsockopt(connection->client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_detach(thread);
    }
}
