#include "standin.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *space(const char *p) {
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r') p++;
    return p;
}

static const char *skip_string(const char *p) {
    if (*p != '"') return NULL;
    for (p++; *p != '"'; p++) {
        if ((unsigned char)*p < 0x20) return NULL;
        if (*p == '\\' && *++p == '\0') return NULL;
    }
    return p + 1;
}

static const char *skip_value(const char *p, int depth);

static const char *skip_group(const char *p, char close, int depth) {
    p = space(p + 1);
    if (*p == close) return p + 1;
    for (;;) {
        if (close == '}') {
            p = skip_string(p);
            if (p == NULL || *(p = space(p)) != ':') return NULL;
            p = space(p + 1);
        }
        p = skip_value(p, depth + 1);
        if (p == NULL) return NULL;
        p = space(p);
        if (*p == close) return p + 1;
        if (*p != ',') return NULL;
        p = space(p + 1);
    }
}

static const char *skip_value(const char *p, int depth) {
    if (depth > 100) return NULL;
    if (*p == '{') return skip_group(p, '}', depth);
    if (*p == '[') return skip_group(p, ']', depth);
    if (*p == '"') return skip_string(p);
    if (strncmp(p, "true", 4) == 0 || strncmp(p, "null", 4) == 0) return p + 4;
    if (strncmp(p, "false", 5) == 0) return p + 5;
    char *end;
    if (*p != '-' && !isdigit((unsigned char)*p)) return NULL;
    strtod(p, &end);
    return end == p ? NULL : end;
}

bool json_valid(const char *text) {
    const char *end = skip_value(space(text), 0);
    return end != NULL && *space(end) == '\0';
}

const char *json_member(const char *object, const char *key) {
    if (object == NULL || *(object = space(object)) != '{') return NULL;
    for (const char *p = space(object + 1); *p == '"';) {
        char *name = json_text(p);
        const char *value = space(space(skip_string(p)) + 1);
        bool found = strcmp(name, key) == 0;
        free(name);
        if (found) return value;
        p = space(skip_value(value, 0));
        if (*p == ',') p = space(p + 1);
    }
    return NULL;
}

const char *json_first(const char *array) {
    if (array == NULL || *(array = space(array)) != '[') return NULL;
    array = space(array + 1);
    return *array == ']' ? NULL : array;
}

const char *json_next(const char *element) {
    const char *p = space(skip_value(element, 0));
    return *p == ',' ? space(p + 1) : NULL;
}

bool json_true(const char *value) { return value != NULL && strncmp(value, "true", 4) == 0; }

static unsigned hex4(const char *p) {
    char digits[5] = {0};
    strncpy(digits, p, 4);
    return (unsigned)strtoul(digits, NULL, 16);
}

static char *put_utf8(char *to, unsigned code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xF0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

char *json_text(const char *value) {
    const char *end = value == NULL || *value != '"' ? NULL : skip_string(value);
    if (end == NULL) return NULL;
    char *out = malloc((size_t)(end - value) + 1), *to = out;
    for (const char *p = value + 1; p < end - 1; p++) {
        if (*p != '\\') {
            *to++ = *p;
            continue;
        }
        p++;
        if (*p == 'u' && end - p > 4) {
            unsigned code = hex4(p + 1);
            p += 4;
            if (code >= 0xD800 && code < 0xDC00 && p[1] == '\\' && p[2] == 'u') {
                code = 0x10000 + ((code - 0xD800) << 10) + (hex4(p + 3) - 0xDC00);
                p += 6;
            }
            to = put_utf8(to, code);
        } else {
            const char *plain = "nrtbf\"\\/", *real = "\n\r\t\b\f\"\\/", *at = strchr(plain, *p);
            *to++ = at ? real[at - plain] : *p;
        }
    }
    *to = '\0';
    return out;
}

static void append(Text *out, const char *bytes, size_t size) {
    out->data = realloc(out->data, out->size + size + 1);
    memcpy(out->data + out->size, bytes, size);
    out->size += size;
    out->data[out->size] = '\0';
}

void add(Text *out, const char *format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    int size = vsnprintf(NULL, 0, format, list);
    char *line = malloc((size_t)size + 1);
    vsnprintf(line, (size_t)size + 1, format, again);
    append(out, line, (size_t)size);
    free(line);
    va_end(again);
    va_end(list);
}

void add_quoted(Text *out, const char *utf8, size_t size) {
    append(out, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)utf8[i];
        if (c == '"' || c == '\\') {
            append(out, c == '"' ? "\\\"" : "\\\\", 2);
        } else if (c < 0x20) {
            add(out, "\\u%04x", c);
        } else {
            append(out, utf8 + i, 1);
        }
    }
    append(out, "\"", 1);
}
