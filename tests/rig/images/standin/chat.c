#define _GNU_SOURCE
#include "standin.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    char *prompt;        /* the last user message's text */
    bool media;          /* it carries a picture or a video */
    bool video;
    size_t prompt_bytes; /* of all messages */
} Conversation;

static size_t tokens(size_t bytes) { return (bytes + 3) / 4; }

static size_t whole_characters(const char *text, size_t size) {
    while (size > 0 && ((unsigned char)text[size] & 0xC0) == 0x80) size--;
    return size;
}

static void read_message(const char *message, Conversation *seen) {
    char *role = json_text(json_member(message, "role")), *plain = json_text(json_member(message, "content"));
    const char *content = json_member(message, "content");
    Text text = {0};
    bool media = false, video = false;
    add(&text, "%s", plain != NULL ? plain : "");
    for (const char *part = plain == NULL ? json_first(content) : NULL; part != NULL; part = json_next(part)) {
        char *piece = json_text(json_member(part, "text"));
        add(&text, "%s", piece != NULL ? piece : "");
        video = video || json_member(part, "video_url") != NULL;
        media = media || video || json_member(part, "image_url") != NULL;
        free(piece);
    }
    seen->prompt_bytes += text.size + 16 + (size_t)setting("STANDIN_TEMPLATE_BYTES", 0);
    if (role != NULL && strcmp(role, "user") == 0) {
        free(seen->prompt);
        seen->prompt = strdup(text.data);
        seen->media = media;
        seen->video = video;
    }
    free(text.data);
    free(plain);
    free(role);
}

/* "Answer with exactly one word: alive" -> "alive"; anything else is echoed. */
static char *reply_to(const Conversation *seen) {
    const char *picture = getenv("STANDIN_IMAGE_ANSWER");
    if (failing("wrong_word") != NULL && strcasestr(seen->prompt, "exactly one word") != NULL) return strdup("banana");
    if (failing("empty_content") != NULL || failing("null_content") != NULL) return strdup("");
    if (seen->video) return strdup(failing("blind_to_video") != NULL ? "blue circle" : "red square");
    if (seen->media && failing("blind") != NULL) return strdup("red square");
    if (seen->media) return strdup(picture != NULL ? picture : strcasestr(seen->prompt, "shape") != NULL ? "blue circle" : "red");
    const char *colon = strrchr(seen->prompt, ':');
    if (strcasestr(seen->prompt, "word") == NULL || colon == NULL) return strdup(seen->prompt);
    const char *from = colon + 1 + strspn(colon + 1, " \t\n\"'`*");
    size_t size = strcspn(from, " \t\n\"'`*.,!?");
    return size > 0 ? strndup(from, size) : strdup(seen->prompt);
}

/* Every character that is not ASCII becomes a question mark, as a wrong code page makes it. */
static void spoil(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (((unsigned char)*from & 0xC0) != 0x80) *to++ = (unsigned char)*from < 0x80 ? *from : '?';
    *to = '\0';
}

static void refuse(int client, int code, const char *reason, const char *type, const char *param, const char *message, bool keep_alive,
                   char *status) {
    Text out = {0};
    error_json(&out, code, type, param, message);
    sprintf(status, "%d %s", code, reason);
    send_json(client, code, reason, out.data, keep_alive);
    free(out.data);
}

static void bad_request(int client, const char *param, const char *message, bool keep_alive, char *status) {
    refuse(client, 400, "Bad Request", "BadRequestError", param, message, keep_alive, status);
}

static void send_chunk(int client, const Text *event) {
    char size[32];
    snprintf(size, sizeof size, "%zx\r\n", event->size);
    send_bytes(client, size, strlen(size));
    send_bytes(client, event->data, event->size);
    send_bytes(client, "\r\n", 2);
}

static void send_event(int client, const char *model, const char *choices, const char *usage) {
    Text event = {0};
    add(&event, "data: {\"id\":\"chatcmpl-standin\",\"object\":\"chat.completion.chunk\",\"created\":%ld,\"model\":", (long)time(NULL));
    add_quoted(&event, model, strlen(model));
    add(&event, ",\"choices\":[%s]%s%s}\n\n", choices, usage[0] != '\0' ? ",\"usage\":" : "", usage);
    send_chunk(client, &event);
    free(event.data);
}

static void stream(int client, const char *model, const char *reply, const char *finish, const char *usage) {
    static const char HEAD[] = "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
                               "transfer-encoding: chunked\r\n\r\n";
    send_bytes(client, HEAD, sizeof HEAD - 1);
    send_event(client, model, "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}", "");
    for (size_t at = 0, left = strlen(reply); left > 0;) {
        size_t size = left > 8 ? whole_characters(reply + at, 8) : left;
        if (size == 0) size = left; /* not UTF-8: send the rest as it is */
        Text choice = {0};
        add(&choice, "{\"index\":0,\"delta\":{\"content\":");
        add_quoted(&choice, reply + at, size);
        add(&choice, "},\"finish_reason\":null}");
        send_event(client, model, choice.data, "");
        free(choice.data);
        at += size;
        left -= size;
        usleep((useconds_t)(setting("STANDIN_TOKEN_MS", 2) * 1000));
    }
    if (failing("stream_cut") != NULL) {
        send_bytes(client, "0\r\n\r\n", 5);
        return;
    }
    Text last = {0}, done = {0};
    add(&last, "{\"index\":0,\"delta\":{},\"finish_reason\":\"%s\"}", finish);
    send_event(client, model, last.data, "");
    if (usage[0] != '\0') send_event(client, model, "", usage);
    add(&done, "data: [DONE]\n\n");
    send_chunk(client, &done);
    send_bytes(client, "0\r\n\r\n", 5);
    free(last.data);
    free(done.data);
}

/* What stands beside the content: thoughts where the request lets the model think, and calls of the first tool. */
typedef struct {
    const char *thoughts;
    char *tool; /* its name, or NULL */
} Beside;

static void complete(int client, const char *model, const char *reply, const Beside *beside, const char *finish, const char *usage,
                     bool keep_alive) {
    Text out = {0};
    add(&out, "{\"id\":\"chatcmpl-standin\",\"object\":\"chat.completion\",\"created\":%ld,\"model\":", (long)time(NULL));
    add_quoted(&out, model, strlen(model));
    add(&out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    if (failing("null_content") != NULL) {
        add(&out, "null,\"reasoning\":\"Okay, the user wants one word.\"");
    } else {
        add_quoted(&out, reply, strlen(reply));
        add(&out, ",\"reasoning\":");
        beside->thoughts != NULL ? add_quoted(&out, beside->thoughts, strlen(beside->thoughts)) : add(&out, "null");
    }
    add(&out, ",\"tool_calls\":[");
    if (beside->tool != NULL) {
        add(&out, "{\"id\":\"call-standin\",\"type\":\"function\",\"function\":{\"name\":");
        add_quoted(&out, beside->tool, strlen(beside->tool));
        add(&out, ",\"arguments\":\"{\\\"city\\\": \\\"Berlin\\\"}\"}}");
    }
    add(&out, "]},\"logprobs\":null,\"finish_reason\":\"%s\"}],\"usage\":%s}", finish, usage);
    send_json(client, 200, "OK", out.data, keep_alive);
    free(out.data);
}

static bool served(const Options *options, const char *name) {
    for (int i = 0; i < options->served_count; i++)
        if (strcmp(options->served[i], name) == 0) return true;
    return false;
}

/* Thoughts come where the server parts them and the request does not say no; a tool is called where one is offered. */
static Beside beside_reply(const Options *options, const char *body, char **reply) {
    static const char THOUGHTS[] = "17 and 25 are 42.";
    const char *thinking = json_member(json_member(body, "chat_template_kwargs"), "enable_thinking");
    const char *tool = json_first(json_member(body, "tools"));
    Beside beside = {NULL, NULL};
    if (options->reasoning && json_true(thinking)) beside.thoughts = THOUGHTS;
    if (beside.thoughts != NULL && failing("thoughts_in_answer") != NULL) {
        free(*reply);
        *reply = strdup("<think>17 and 25 are 42.</think>42");
        beside.thoughts = NULL;
    }
    if (tool != NULL) {
        free(*reply);
        bool as_text = failing("tool_as_text") != NULL;
        *reply = strdup(as_text ? "<tool_call>{\"name\": \"get_weather\"}</tool_call>" : "");
        if (!as_text) beside.tool = json_text(json_member(json_member(tool, "function"), "name"));
    }
    return beside;
}

/* vLLM reads as many frames of a video as the request says, four of one that is as short as the proof's. */
static size_t frames_of(const char *body) {
    const char *frames = json_member(json_member(body, "mm_processor_kwargs"), "num_frames");
    return frames != NULL && failing("same_frames") == NULL ? (size_t)atol(frames) : 4;
}

static void respond(const Options *options, int client, const char *body, const char *model, const Conversation *seen, bool keep_alive) {
    const char *limit = json_member(body, "max_completion_tokens");
    if (limit == NULL) limit = json_member(body, "max_tokens");
    char *reply = reply_to(seen), usage[128];
    Beside beside = beside_reply(options, body, &reply);
    const char *finish = failing("aborted") != NULL ? "abort" : beside.tool != NULL ? "tool_calls" : "stop";
    size_t in = tokens(seen->prompt_bytes), most = (size_t)options->max_model_len, room = in < most ? most - in : 16;
    if (limit != NULL && atol(limit) > 0 && (size_t)atol(limit) < room) room = (size_t)atol(limit);
    if (tokens(strlen(reply)) > room) {
        reply[whole_characters(reply, room * 4)] = '\0';
        finish = "length";
    }
    if (failing("mojibake") != NULL) spoil(reply);
    size_t out = tokens(strlen(reply));
    if (seen->video) in += 280 * frames_of(body);
    if (failing("cuts_prompt") != NULL && in > most / 4) in = most / 4;
    snprintf(usage, sizeof usage, "{\"prompt_tokens\":%zu,\"total_tokens\":%zu,\"completion_tokens\":%zu}", in, in + out, out);
    if (json_true(json_member(body, "stream"))) {
        bool wanted = json_true(json_member(json_member(body, "stream_options"), "include_usage"));
        stream(client, model, reply, finish, wanted ? usage : "");
    } else {
        complete(client, model, reply, &beside, finish, usage, keep_alive);
    }
    free(beside.tool);
    free(reply);
}

volatile bool asked_before = false;

void answer_chat(const Options *options, int client, const char *body, bool keep_alive, char *status) {
    asked_before = true;
    if (failing("hang") != NULL)
        for (;;) pause();
    if (failing("http_500") != NULL) {
        refuse(client, 500, "Internal Server Error", "InternalServerError", NULL,
               "EngineCore encountered an issue. See stack trace (above) for the root cause.", keep_alive, status);
        return;
    }
    if (!json_valid(body)) {
        bad_request(client, NULL, "[{'type': 'json_invalid', 'loc': ('body', 0), 'msg': 'JSON decode error'}]", keep_alive, status);
        return;
    }
    body += strspn(body, " \t\r\n");
    Conversation seen = {0};
    char *given = json_text(json_member(body, "model")), message[512];
    const char *model = given != NULL && *given != '\0' ? given : options->served[0];
    for (const char *item = json_first(json_member(body, "messages")); item != NULL; item = json_next(item)) read_message(item, &seen);
    size_t prompt = tokens(seen.prompt_bytes);
    if (!served(options, model)) {
        snprintf(message, sizeof message, "The model `%s` does not exist.", model);
        refuse(client, 404, "Not Found", "NotFoundError", "model", message, keep_alive, status);
    } else if (seen.prompt == NULL) {
        bad_request(client, "messages", "At least one user message is needed.", keep_alive, status);
    } else if (json_member(body, "mm_processor_kwargs") != NULL && !options->trust_mm_kwargs) {
        bad_request(client, "mm_processor_kwargs",
                    "Per-request mm_processor_kwargs are disabled by default because they can change multimodal preprocessing resource "
                    "usage. Start the server with --trust-request-mm-kwargs only when clients are trusted. "
                    "(parameter=mm_processor_kwargs)",
                    keep_alive, status);
    } else if (json_member(body, "tools") != NULL && !options->tools) {
        bad_request(client, "tool_choice", "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
                    keep_alive, status);
    } else if (failing("long_500") != NULL && (long)prompt >= options->max_model_len / 2 && (long)prompt < options->max_model_len) {
        refuse(client, 500, "Internal Server Error", "InternalServerError", NULL,
               "EngineCore encountered an issue. See stack trace (above) for the root cause.", keep_alive, status);
    } else if (failing("limit_500") != NULL && (long)prompt >= options->max_model_len) {
        refuse(client, 500, "Internal Server Error", "InternalServerError", NULL, "list index out of range", keep_alive, status);
    } else if ((long)prompt >= options->max_model_len && failing("no_limit") == NULL) {
        snprintf(message, sizeof message,
                 "This model's maximum context length is %ld tokens. However, your prompt contains %zu input tokens, which exceeds this "
                 "limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=%zu)",
                 options->max_model_len, prompt, prompt);
        bad_request(client, "input_tokens", message, keep_alive, status);
    } else {
        respond(options, client, body, model, &seen, keep_alive);
    }
    free(given);
    free(seen.prompt);
}
