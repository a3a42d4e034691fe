/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "names.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netobs/flow.h>

#include "base/clock_ms.h"
#include "base/detached.h"
#include "bpf/store/hash.h"
#include "service/text/human.h"

enum {
	SETS = 1024, /* a power of two */
	WAYS = 4,
	QUEUE = 256, /* more are asked for again at the next refresh */
	THREADS = 4, /* one that waits for a dead server does not stop the others */
	LIFETIME_MS = 10 * 60 * 1000,
};

enum state { UNUSED, WANTED, FOUND, NAMELESS };

struct entry {
	struct names_question question;
	enum state state;
	int64_t since_ms;
	char name[NAMES_MAX];
};

struct names {
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	names_look_up_fn *look_up;
	struct entry entries[SETS][WAYS];
	struct names_question queue[QUEUE];
	size_t first, n; /* of the queue */
	unsigned int busy, users;
	bool is_ending;
	int fd;
};

/* ---- The databases -------------------------------------------------------------- */

static bool look_up_host(const uint8_t addr[16], char *name, size_t size)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	char text[NI_MAXHOST];
	int err;

	if (!memcmp(addr, v4, sizeof(v4))) {
		memcpy(&four.sin_addr, addr + 12, sizeof(four.sin_addr));
		err = getnameinfo((struct sockaddr *)&four, sizeof(four), text,
				  sizeof(text), NULL, 0, NI_NAMEREQD);
	} else {
		memcpy(&six.sin6_addr, addr, sizeof(six.sin6_addr));
		err = getnameinfo((struct sockaddr *)&six, sizeof(six), text,
				  sizeof(text), NULL, 0, NI_NAMEREQD);
	}
	if (!err)
		snprintf(name, size, "%.*s", (int)size - 1, text);
	return !err;
}

static bool look_up_port(uint16_t port, uint8_t proto, char *name, size_t size)
{
	const struct protoent *protocol = NULL;
	struct protoent proto_buf;
	struct servent *service = NULL, service_buf;
	char text[1024], proto_text[1024];

	if (getprotobynumber_r(proto, &proto_buf, proto_text, sizeof(proto_text),
			       (struct protoent **)&protocol) ||
	    !protocol ||
	    getservbyport_r(htons(port), protocol->p_name, &service_buf, text,
			    sizeof(text), &service) ||
	    !service)
		return false;
	snprintf(name, size, "%s", service->s_name);
	return true;
}

static bool look_up_here(const struct names_question *question, char *name,
			 size_t size)
{
	if (question->proto)
		return look_up_port(question->port, question->proto, name, size);
	return look_up_host(question->addr, name, size);
}

/* ---- The cache ------------------------------------------------------------------ */

static struct entry *names_entries_of(struct names *names,
				      const struct names_question *question)
{
	uint64_t words[2], hash;

	memcpy(words, question->addr, sizeof(words));
	hash = hash_finish(words[0] + question->port);
	hash = hash_finish(hash ^ words[1] ^ question->proto);
	return names->entries[hash % SETS];
}

static struct entry *names_find_entry(struct names *names,
				      const struct names_question *question)
{
	struct entry *entries = names_entries_of(names, question);

	for (int i = 0; i < WAYS; i++)
		if (entries[i].state != UNUSED &&
		    !memcmp(&entries[i].question, question, sizeof(*question)))
			return &entries[i];
	return NULL;
}

static struct entry *names_oldest_entry(struct names *names,
					const struct names_question *question)
{
	struct entry *entries = names_entries_of(names, question),
		     *oldest = entries;

	for (int i = 1; i < WAYS; i++)
		if (entries[i].since_ms < oldest->since_ms)
			oldest = &entries[i];
	return oldest;
}

static void names_enqueue(struct names *names,
			  const struct names_question *question, int64_t now)
{
	if (names->n == QUEUE)
		return;
	names->queue[(names->first + names->n++) % QUEUE] = *question;
	*names_oldest_entry(names, question) = (struct entry){
		.question = *question, .state = WANTED, .since_ms = now
	};
	pthread_cond_signal(&names->wanted);
}

static bool names_find(struct names *names, const struct names_question *question,
		       char *name, size_t size)
{
	const int64_t now = now_ms();
	struct entry *entry;
	bool found;

	if (!names)
		return false;
	pthread_mutex_lock(&names->lock);
	entry = names_find_entry(names, question);
	if (entry && entry->state != WANTED &&
	    now - entry->since_ms > LIFETIME_MS) {
		entry->state = UNUSED;
		entry->since_ms = 0;
		entry = NULL;
	}
	if (!entry)
		names_enqueue(names, question, now);
	found = entry && entry->state == FOUND;
	if (found)
		snprintf(name, size, "%s", entry->name);
	pthread_mutex_unlock(&names->lock);
	return found;
}

void names_host(struct names *names, const uint8_t addr[16], char *ret_text,
		size_t size)
{
	struct names_question question = { 0 };

	memcpy(question.addr, addr, sizeof(question.addr));
	if (!names_find(names, &question, ret_text, size))
		netobs_addr_str(addr, ret_text, size);
}

void names_port(struct names *names, uint16_t port, uint8_t proto,
		char *ret_text, size_t size)
{
	const struct names_question question = { .port = port, .proto = proto };

	if (!names_find(names, &question, ret_text, size))
		snprintf(ret_text, size, "%u", port);
}

/* ---- Threads -------------------------------------------------------------------- */

/* The last one that uses it frees it; the lock is held. */
static void names_release(struct names *names)
{
	bool is_last = --names->users == 0;

	pthread_mutex_unlock(&names->lock);
	if (!is_last)
		return;
	pthread_cond_destroy(&names->wanted);
	pthread_mutex_destroy(&names->lock);
	close(names->fd);
	free(names);
}

static void names_store_answer(struct names *names,
			       const struct names_question *question,
			       bool found, const char *name)
{
	struct entry *entry = names_find_entry(names, question);

	if (!entry) /* it gave way to others */
		return;
	entry->state = found ? FOUND : NAMELESS;
	entry->since_ms = now_ms();
	if (found)
		snprintf(entry->name, sizeof(entry->name), "%s", name);
}

/* The lock is released while it waits for the answer. */
static void names_answer_next(struct names *names)
{
	struct names_question question = names->queue[names->first];
	char name[NAMES_MAX];
	bool found;

	names->first = (names->first + 1) % QUEUE;
	names->n--;
	names->busy++;
	pthread_mutex_unlock(&names->lock);
	found = names->look_up(&question, name, sizeof(name));
	if (found)
		human_clean(name); /* its owner chose it */
	pthread_mutex_lock(&names->lock);
	names->busy--;
	names_store_answer(names, &question, found, name);
	eventfd_write(names->fd, 1);
}

static void *names_run(void *arg)
{
	struct names *names = arg;

	pthread_mutex_lock(&names->lock);
	while (!names->is_ending) {
		if (names->n)
			names_answer_next(names);
		else
			pthread_cond_wait(&names->wanted, &names->lock);
	}
	names_release(names);
	return NULL;
}

int names_new(names_look_up_fn *look_up, struct names **ret_names)
{
	struct names *names = calloc(1, sizeof(*names));
	int err = 0;

	if (!names)
		return -ENOMEM;
	names->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (names->fd < 0) {
		err = -errno;
		free(names);
		return err;
	}
	pthread_mutex_init(&names->lock, NULL);
	pthread_cond_init(&names->wanted, NULL);
	names->look_up = look_up ? look_up : look_up_here;
	names->users = 1;
	pthread_mutex_lock(&names->lock);
	for (int i = 0; i < THREADS && !err; i++) {
		err = detached_run(names_run, names, false);
		names->users += !err;
	}
	pthread_mutex_unlock(&names->lock);
	if (names->users == 1) {
		names_free(names);
		return err;
	}
	*ret_names = names;
	return 0;
}

int names_fd(const struct names *names)
{
	return names ? names->fd : -1;
}

void names_clear(struct names *names)
{
	eventfd_t count;

	if (names)
		eventfd_read(names->fd, &count);
}

static bool names_is_idle(struct names *names)
{
	bool idle;

	pthread_mutex_lock(&names->lock);
	idle = !names->n && !names->busy;
	pthread_mutex_unlock(&names->lock);
	return idle;
}

void names_wait(struct names *names, int ms)
{
	const int64_t end = now_ms() + ms;
	struct pollfd fd = { .fd = names_fd(names), .events = POLLIN };

	while (names && !names_is_idle(names) && left_ms(end)) {
		poll(&fd, 1, left_ms(end));
		names_clear(names);
	}
}

void names_free(struct names *names)
{
	if (!names)
		return;
	pthread_mutex_lock(&names->lock);
	names->is_ending = true;
	pthread_cond_broadcast(&names->wanted);
	names_release(names);
}

bool names_toggle(struct names **names)
{
	struct names *before = *names;

	*names = NULL;
	if (!before)
		return names_new(NULL, names) == 0;
	names_free(before);
	return true;
}
