/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "control.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <netobs/netobs.h>

#include "base/clock_ms.h"
#include "base/json.h"
#include "base/options.h"
#include "base/util.h"
#include "control_client.h"

enum {
	STATUS_MS = 100,     /* how long a status is used again */
	FLOW_MAX = 64 << 10, /* bytes of a record as JSON */
	MESSAGES_MAX = 32 << 10,
};

struct control {
	const struct control_ops *ops;
	void *user;
	struct control_clients clients;

	char *status; /* NULL: not made yet */
	int64_t status_ms;
	const char *metrics; /* while they are written into an answer */
	/* The mappings that are written into an answer, and the outcome of that. */
	uint64_t cursor;
	struct netobs_mapping_query query;
	int mappings_left;

	unsigned int n_noting;	     /* requests that are being handled */
	char messages[MESSAGES_MAX]; /* a line each: E or W, and the text */
	size_t messages_len;
	char flow[FLOW_MAX];
};

/* ---- Answers ---------------------------------------------------------------------- */

/* The parts of an answer that differ. */
struct answer {
	const char *error, *message; /* NULL: no error */
	void (*add)(struct json *json, const struct control *control);
	size_t room; /* to begin with; 0: little */
};

static int answer_write(const struct control *control,
			const struct answer *answer, char *text, size_t size)
{
	struct json json;

	json_begin(&json, text, size);
	json_open(&json, '{');
	json_key_u64(&json, "protocol", CONTROL_PROTOCOL);
	json_key_string(&json, "version", netobs_version());
	json_key_bool(&json, "ok", !answer->error);
	if (answer->error) {
		json_key_string(&json, "error", answer->error);
		json_key_string(&json, "message", answer->message);
	}
	if (answer->add)
		answer->add(&json, control);
	json_close(&json, '}');
	return json_end(&json);
}

/* @return a line, the caller's; NULL: there is no memory */
static char *answer_make(const struct control *control,
			 const struct answer *answer)
{
	for (size_t size = answer->room ?: 16 << 10; size <= CONTROL_ANSWER_MAX;
	     size *= 4) {
		char *text = malloc(size), *fit;
		int len = text ? answer_write(control, answer, text, size - 1) :
				 -ENOMEM;

		if (len >= 0) {
			memcpy(text + len, "\n", 2);
			fit = realloc(text, (size_t)len + 2);
			return fit ? fit : text;
		}
		free(text);
		if (len != -ENOBUFS)
			return NULL;
	}
	return NULL;
}

static void answer_refusal(const struct control *control,
			   struct control_client *client, const char *error,
			   const char *message)
{
	const struct answer answer = { .error = error, .message = message };

	control_client_answer(client, answer_make(control, &answer));
}

static void add_status(struct json *json, const struct control *control)
{
	json_key_open(json, "status", '{');
	control->ops->add_status(json, control->user);
	json_key_open(json, "clients", '{');
	json_key_u64(json, "connected", control->clients.server.n);
	json_key_u64(json, "live", control->clients.n_live);
	json_close(json, '}');
	json_close(json, '}');
}

/* Make the status a few times per second, however many clients ask, and however often. */
static void answer_status(struct control *control, struct control_client *client)
{
	static const struct answer answer = { .add = add_status };

	if (!control->status || now_ms() - control->status_ms >= STATUS_MS) {
		free(control->status);
		control->status = answer_make(control, &answer);
		control->status_ms = now_ms();
	}
	control_client_answer(client,
			      control->status ? strdup(control->status) : NULL);
}

static void add_metrics(struct json *json, const struct control *control)
{
	json_key_string(json, "metrics", control->metrics);
}

static void answer_metrics(struct control *control, struct control_client *client)
{
	static const struct answer answer = { .add = add_metrics };

	control->metrics = control->ops->metrics(control->user);
	if (control->metrics)
		control_client_answer(client, answer_make(control, &answer));
	else
		answer_refusal(control, client, "failed", "out of memory");
	control->metrics = NULL;
}

static void forget_status(struct control *control)
{
	free(TAKE_PTR(control->status));
}

static void add_messages(struct json *json, const struct control *control)
{
	cleanup_free char *text =
		strndup(control->messages, control->messages_len);
	char *rest = text, *line;

	json_key_open(json, "messages", '[');
	while (rest && (line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		json_open(json, '{');
		json_key_string(json, "level",
				*line == 'E' ? "error" : "warning");
		json_key_string(json, "text", line + 1);
		json_close(json, '}');
	}
	json_close(json, ']');
}

static void begin_noting(struct control *control)
{
	if (!control->n_noting++)
		control->messages_len = 0;
}

/* Have the service do @work, and answer with the outcome and the messages logged. */
static void answer_work(struct control *control, struct control_client *client,
			int (*work)(void *user), const char *failure)
{
	struct answer answer = { .add = add_messages };

	begin_noting(control);
	if (work(control->user) < 0) {
		answer.error = "failed";
		answer.message = failure;
	}
	control->n_noting--;
	forget_status(control);
	control_client_answer(client, answer_make(control, &answer));
}

/* Let the client wait until the service has read its configuration again. */
static void answer_reload(struct control *control, struct control_client *client)
{
	control->ops->request_reload(control->user);
	control_client_wait(client);
}

void control_begin_reload(struct control *control)
{
	if (!control)
		return;
	begin_noting(control);
	control_clients_claim(&control->clients);
}

void control_end_reload(struct control *control, const char *failure)
{
	const struct answer answer = {
		.add = add_messages,
		.error = failure ? "failed" : NULL,
		.message = failure,
	};
	cleanup_free char *text = NULL;

	if (!control)
		return;
	control->n_noting--;
	forget_status(control);
	if (!control_clients_are_claimed(&control->clients))
		return;
	text = answer_make(control, &answer);
	control_clients_answer(&control->clients, text);
}

static void answer_flows(struct control *control, struct control_client *client)
{
	static const struct answer answer = { 0 };
	cleanup_free char *text = NULL;

	if (!control_clients_find_place(&control->clients)) {
		answer_refusal(control, client, "busy",
			       "too many clients follow the records");
		return;
	}
	text = answer_make(control, &answer);
	if (text)
		control_client_follow(client, text);
	else
		control_client_answer(client, NULL);
}

/* If there is more, the last member is the cursor for the next page. */
static void add_mappings(struct json *json, const struct control *control)
{
	struct control *changed = (struct control *)control;
	uint64_t next = control->cursor;

	json_key_open(json, "mappings", '[');
	changed->mappings_left = control->ops->mappings(
		json, &next, &control->query, control->user);
	json_close(json, ']');
	if (control->mappings_left > 0)
		json_key_u64(json, "next", next);
}

/* @argument: FROM[,TUPLE], or NULL. @return false: FROM is no number */
static bool read_cursor(const char *argument, uint64_t *ret_cursor)
{
	const size_t len = argument ? strcspn(argument, ",") : 0;
	char number[24];

	*ret_cursor = 0;
	if (!argument)
		return true;
	snprintf(number, sizeof(number), "%.*s",
		 (int)min_u64(len, sizeof(number)), argument);
	return !value_parse(VALUE_NUMBER, number, 0, UINT64_MAX, ret_cursor);
}

/* @argument: as read_cursor() */
static void answer_mappings(struct control *control,
			    struct control_client *client, const char *argument)
{
	/* Room for the longest answer, so that no search is repeated: unused memory costs nothing. */
	static const struct answer answer = { .add = add_mappings,
					      .room = CONTROL_ANSWER_MAX };
	const char *comma = argument ? strchr(argument, ',') : NULL;
	cleanup_free char *text = NULL;
	char why[160];

	if (!read_cursor(argument, &control->cursor)) {
		answer_refusal(control, client, "request",
			       "mappings: it needs a number, and maybe ',TUPLE'");
		return;
	}
	control->query =
		(struct netobs_mapping_query){ .sz = sizeof(control->query) };
	if (comma && netobs_mapping_query_parse(comma + 1, &control->query, why,
						sizeof(why))) {
		answer_refusal(control, client, "request", why);
		return;
	}
	text = answer_make(control, &answer);
	if (control->mappings_left == -ENOTSUP)
		answer_refusal(
			control, client, "absent",
			"the service keeps no mappings: its configuration has no "
			"'nat = yes' in [capture]; netobsctl map --netns /proc/self/ns/net "
			"lists those of the kernel");
	else if (control->mappings_left < 0)
		answer_refusal(control, client, "failed",
			       control->mappings_left == -EINVAL ?
				       "the service does not observe now" :
				       strerror(-control->mappings_left));
	else
		control_client_answer(client, TAKE_PTR(text));
}

/* ---- Requests --------------------------------------------------------------------- */

static void handle_command(struct control *control, struct control_client *client,
			   const char *command, const char *argument)
{
	if (control_is_change(command) && !client->may_change)
		answer_refusal(
			control, client, "permission",
			"only root and the user of the service may do that");
	else if (!strcmp(command, "mappings"))
		answer_mappings(control, client, argument);
	else if (argument)
		answer_refusal(control, client, "request",
			       "there is more than a command");
	else if (!strcmp(command, "status"))
		answer_status(control, client);
	else if (!strcmp(command, "metrics"))
		answer_metrics(control, client);
	else if (!strcmp(command, "flows"))
		answer_flows(control, client);
	else if (!strcmp(command, "reload"))
		answer_reload(control, client);
	else if (!strcmp(command, "reopen"))
		answer_work(control, client, control->ops->reopen,
			    "not all files could be opened again");
	else
		answer_refusal(control, client, "request",
			       "there is no such command: there are status, metrics, "
			       "flows, mappings, reload and reopen");
}

/* @return the number of words, at most @max; the others are NULL */
static size_t split_words(char *text, const char **ret_words, size_t max)
{
	size_t n = 0;

	for (char *word; n < max && (word = strsep(&text, " \t\r"));)
		if (*word)
			ret_words[n++] = word;
	for (size_t i = n; i < max; i++)
		ret_words[i] = NULL;
	return n;
}

/* [PROTOCOL] COMMAND [ARGUMENT] */
static void on_request(struct control_client *client, void *user)
{
	struct control *control = user;
	const char *words[4], **command = words;
	size_t n = split_words(client->request, words, ARRAY_SIZE(words));
	bool has_protocol = n &&
			    strspn(words[0], "0123456789") == strlen(words[0]);

	if (client->asked == CONTROL_REQUEST_MAX) {
		answer_refusal(control, client, "request", "it is too long");
		return;
	}
	if (has_protocol && strcmp(words[0], "1") != 0) {
		answer_refusal(control, client, "protocol",
			       "the service has protocol 1");
		return;
	}
	command += has_protocol;
	n -= has_protocol;
	if (!n || n > 2)
		answer_refusal(control, client, "request",
			       "it is not a line: COMMAND [ARGUMENT]");
	else
		handle_command(control, client, command[0], command[1]);
}

_Static_assert(CONTROL_PROTOCOL == 1, "so say on_request() and the manual");

static void on_stranger(struct control_client *client, void *user)
{
	answer_refusal(user, client, "permission",
		       "only root, the user of the service and members of its group "
		       "may connect");
}

/* ---- Opening ---------------------------------------------------------------------- */

static bool is_off(const char *path)
{
	return path && !strcmp(path, "none");
}

const char *control_refuse(const char *path)
{
	char spec[512];

	if (!path || is_off(path))
		return NULL;
	if (*path != '/')
		return "path: it is neither an absolute path nor 'none'";
	snprintf(spec, sizeof(spec), "unix:%s", path);
	return listen_refuse(spec) ? "path: it is too long for a socket" : NULL;
}

/* The group need not exist: then the socket is its owner's alone. */
static int hand_over(struct control *control, const char *path)
{
	const struct group *group = getgrnam(CONTROL_GROUP);

	if (!group || chown(path, (uid_t)-1, group->gr_gid))
		return 0;
	control->clients.group = group->gr_gid;
	return chmod(path, 0660) ? -errno : 0;
}

/* Mode and owner as systemd and tmpfiles.d set them. */
static void make_default_directory(void)
{
	cleanup_free char *path = strdup(CONTROL_SOCKET);

	if (!path)
		return;
	*strrchr(path, '/') = '\0';
	if (!mkdir(path, 0755))
		chmod(path, 0755); /* whatever the umask is */
}

static int start_listening(struct control *control, const char *path)
{
	char spec[512];
	int err;

	if (!path)
		make_default_directory();
	path = path ?: CONTROL_SOCKET;
	snprintf(spec, sizeof(spec), "unix:%s", path);
	err = control_clients_open(&control->clients);
	err = err ?: server_listen(&control->clients.server, spec);
	return err ?: hand_over(control, path);
}

int control_open(const char *path, const struct control_ops *ops, void *user,
		 struct control **ret_control)
{
	struct control *control;
	int err;

	*ret_control = NULL;
	if (is_off(path))
		return 0;
	control = calloc(1, sizeof(*control));
	if (!control)
		return -ENOMEM;
	control->ops = ops;
	control->user = user;
	control->clients.group = (gid_t)-1;
	control->clients.on_stranger = on_stranger;
	control->clients.on_request = on_request;
	control->clients.user = control;
	err = start_listening(control, path);
	if (err)
		control_close(control);
	else
		*ret_control = control;
	return err;
}

/* ---- Use -------------------------------------------------------------------------- */

int control_fd(const struct control *control)
{
	return control ? control->clients.server.loop.fd : -1;
}

void control_dispatch(struct control *control)
{
	if (control)
		server_dispatch(&control->clients.server);
}

void control_flow(struct control *control, const struct netobs_flow *flow)
{
	int len;

	if (!control || !control->clients.n_live)
		return;
	len = netobs_flow_json(flow, control->flow, sizeof(control->flow) - 1);
	if (len > 0)
		control->flow[len++] = '\n';
	control_clients_flow(&control->clients, control->flow,
			     len > 0 ? (size_t)len : 0);
}

void control_interval(struct control *control)
{
	if (control)
		control_clients_mark(&control->clients);
}

void control_note(struct control *control, int level, const char *text)
{
	const size_t len = strlen(text);

	if (!control || !control->n_noting || level > NETOBS_LOG_WARNING ||
	    MESSAGES_MAX - control->messages_len < len + 2)
		return;
	control->messages[control->messages_len++] =
		level == NETOBS_LOG_WARNING ? 'W' : 'E';
	memcpy(control->messages + control->messages_len, text, len);
	control->messages_len += len;
	control->messages[control->messages_len++] = '\n';
}

void control_close(struct control *control)
{
	if (!control)
		return;
	control_clients_close(&control->clients);
	forget_status(control);
	free(control);
}
