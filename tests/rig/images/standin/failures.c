#include "standin.h"

#include <stdlib.h>
#include <string.h>

const char *failing(const char *name) {
    static char arguments[64];
    const char *list = getenv("STANDIN_FAIL");
    size_t length = strlen(name);
    while (list != NULL && *list != '\0') {
        size_t item = strcspn(list, ",");
        if (strncmp(list, name, length) == 0 && (item == length || list[length] == ':')) {
            size_t from = item == length ? length : length + 1, size = item - from;
            if (size >= sizeof arguments) size = sizeof arguments - 1;
            memcpy(arguments, list + from, size);
            arguments[size] = '\0';
            return arguments;
        }
        list += item;
        if (*list == ',') list++;
    }
    return NULL;
}

double setting(const char *variable, double otherwise) {
    const char *value = getenv(variable);
    return value != NULL && *value != '\0' ? atof(value) : otherwise;
}
