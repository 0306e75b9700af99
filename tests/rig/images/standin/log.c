#include "standin.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* One write per line: several threads log, and a half line would not be vLLM-shaped. */
static void emit(int stream, const char *head, const char *format, va_list list) {
    char line[8192];
    int size = snprintf(line, sizeof line, "%s", head);
    size += vsnprintf(line + size, sizeof line - (size_t)size - 1, format, list);
    if (size > (int)sizeof line - 2) size = (int)sizeof line - 2;
    line[size++] = '\n';
    if (write(stream, line, (size_t)size) < 0) return;
}

static void stamp(char *head, size_t size, const char *process, const char *level, const char *place) {
    char when[32];
    time_t now = time(NULL);
    strftime(when, sizeof when, "%m-%d %H:%M:%S", gmtime(&now));
    snprintf(head, size, "(%s pid=%d) %s %s [%s] ", process, (int)getpid(), level, when, place);
}

void log_line(const char *process, const char *level, const char *place, const char *format, ...) {
    char head[256];
    va_list list;
    stamp(head, sizeof head, process, level, place);
    va_start(list, format);
    emit(STDOUT_FILENO, head, format, list);
    va_end(list);
}

void raw_line(const char *process, const char *format, ...) {
    char head[64];
    va_list list;
    snprintf(head, sizeof head, "(%s pid=%d) ", process, (int)getpid());
    va_start(list, format);
    emit(STDERR_FILENO, head, format, list);
    va_end(list);
}

void traceback(const char *process, const char *place, const char *format, ...) {
    char message[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    if (strcmp(process, "EngineCore") == 0) {
        log_line(process, "ERROR", "core.py:1436", "EngineCore failed to start.");
        log_line(process, "ERROR", "core.py:1436", "Traceback (most recent call last):");
        log_line(process, "ERROR", "core.py:1436", "  File \"%s", place);
        log_line(process, "ERROR", "core.py:1436", "%s", message);
    }
    raw_line(process, "Traceback (most recent call last):");
    raw_line(process, "  File \"%s", place);
    raw_line(process, "%s", message);
    if (strcmp(process, "EngineCore") == 0)
        raw_line("APIServer", "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}");
}
