#include "standin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Enough of curl for a health check: -f -s -S -o FILE -m SECONDS URL, on IPv4 addresses and localhost.
   Ends with curl's own codes: 22 HTTP error, 7 refused, 28 time-out, 6 unknown host, 3 bad URL, 2 bad option. */
int curl_main(int argc, char **argv) {
    const char *url = NULL, *output = NULL;
    bool fail = false;
    double limit = 0;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        if (argument[0] != '-') {
            url = argument;
        } else if (strcmp(argument, "--max-time") == 0 || strcmp(argument, "--connect-timeout") == 0) {
            limit = ++i < argc ? atof(argv[i]) : 0;
        } else if (strncmp(argument, "--", 2) == 0) {
            if (strcmp(argument, "--fail") == 0) fail = true;
        } else {
            for (const char *letter = argument + 1; *letter != '\0'; letter++) {
                if (*letter == 'f') fail = true;
                if (*letter == 'o' && i + 1 < argc) output = argv[++i];
                if (*letter == 'm' && i + 1 < argc) limit = atof(argv[++i]);
            }
        }
    }
    char host[256] = "", path[1024] = "/", answer[65536];
    int port = 80, code = 0;
    if (url == NULL) return 2;
    if (strncmp(url, "http://", 7) == 0) url += 7;
    size_t size = strcspn(url, ":/");
    snprintf(host, sizeof host, "%.*s", (int)size, url);
    if (url[size] == ':') port = atoi(url + size + 1);
    if (strchr(url, '/') != NULL) snprintf(path, sizeof path, "%s", strchr(url, '/'));
    if (strcmp(host, "localhost") == 0) strcpy(host, "127.0.0.1");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) return 6;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    struct timeval wait = {(time_t)limit, (suseconds_t)((limit - (double)(time_t)limit) * 1e6)};
    if (limit > 0) setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        fprintf(stderr, "curl: (7) Failed to connect to %s port %d: Connection refused\n", host, port);
        return 7;
    }
    Text request = {0};
    add(&request, "GET %s HTTP/1.1\r\nHost: %s:%d\r\nUser-Agent: curl\r\nConnection: close\r\n\r\n", path, host, port);
    send_bytes(server, request.data, request.size);
    size_t got = 0;
    ssize_t part;
    while (got < sizeof answer - 1 && (part = recv(server, answer + got, sizeof answer - 1 - got, 0)) > 0) got += (size_t)part;
    answer[got] = '\0';
    if (sscanf(answer, "HTTP/1.%*d %d", &code) != 1) return limit > 0 ? 28 : 52;
    if (fail && code >= 400) {
        fprintf(stderr, "curl: (22) The requested URL returned error: %d\n", code);
        return 22;
    }
    const char *body = strstr(answer, "\r\n\r\n");
    FILE *to = output != NULL ? fopen(output, "w") : stdout;
    if (to != NULL && body != NULL) fputs(body + 4, to);
    return 0;
}
