/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
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
#include <netobs/names.h>

#include "base/clock_ms.h"
#include "base/text.h"
#include "base/worker.h"
#include "base/hash.h"
#include "base/options.h"
#include "base/util.h"

enum {
	SETS = 1024, /* a power of two */
	WAYS = 4,
	QUEUE = 256, /* further questions wait for the next refresh */
	THREADS = 4, /* one that waits for a dead server does not stop the others */
	LIFETIME_MS = 10 * 60 * 1000,
};

struct question {
	uint8_t addr[16]; /* of a host, in network byte order; or */
	uint16_t port;	  /* a port, if @proto is not 0 */
	uint8_t proto;
	uint8_t reserved;
};

enum state { UNUSED, WANTED, FOUND, NAMELESS };

struct entry {
	struct question question;
	enum state state;
	int64_t since_ms;
	char name[NETOBS_NAME_MAX];
};

struct netobs_names {
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	struct netobs_names_opts opts;
	struct entry entries[SETS][WAYS];
	struct question queue[QUEUE];
	size_t first, n; /* of the queue */
	unsigned int busy, users;
	bool is_ending;
	int fd;
};

/* ---- The databases -------------------------------------------------------------- */

static bool look_up_host(const uint8_t addr[16], char *name, size_t size)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	char text[NI_MAXHOST];
	int err;

	if (ip_is_v4(addr)) {
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

static int look_up_here(const uint8_t *addr, uint16_t port, uint8_t proto,
			char *name, size_t size, void *user)
{
	(void)user;
	if (addr)
		return look_up_host(addr, name, size) ? 0 : -ENOENT;
	return look_up_port(port, proto, name, size) ? 0 : -ENOENT;
}

/* ---- The cache ------------------------------------------------------------------ */

static struct entry *names_entries_of(struct netobs_names *names,
				      const struct question *question)
{
	uint64_t words[2], hash;

	memcpy(words, question->addr, sizeof(words));
	hash = hash_finish(words[0] + question->port);
	hash = hash_finish(hash ^ words[1] ^ question->proto);
	return names->entries[hash % SETS];
}

static struct entry *names_find_entry(struct netobs_names *names,
				      const struct question *question)
{
	struct entry *entries = names_entries_of(names, question);

	for (int i = 0; i < WAYS; i++)
		if (entries[i].state != UNUSED &&
		    !memcmp(&entries[i].question, question, sizeof(*question)))
			return &entries[i];
	return NULL;
}

static struct entry *names_oldest_entry(struct netobs_names *names,
					const struct question *question)
{
	struct entry *entries = names_entries_of(names, question),
		     *oldest = entries;

	for (int i = 1; i < WAYS; i++)
		if (entries[i].since_ms < oldest->since_ms)
			oldest = &entries[i];
	return oldest;
}

static void names_enqueue(struct netobs_names *names,
			  const struct question *question, int64_t now)
{
	if (names->n == QUEUE)
		return;
	names->queue[(names->first + names->n++) % QUEUE] = *question;
	*names_oldest_entry(names, question) = (struct entry){
		.question = *question, .state = WANTED, .since_ms = now
	};
	pthread_cond_signal(&names->wanted);
}

static bool names_find(struct netobs_names *names,
		       const struct question *question, char *name, size_t size)
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

int netobs_names_host(struct netobs_names *names, const uint8_t addr[16],
		      char *buf, size_t size)
{
	struct question question = { 0 };
	char text[NETOBS_ADDR_STR_MAX];

	if (!addr || !buf || !size)
		return -EINVAL;
	memcpy(question.addr, addr, sizeof(question.addr));
	if (names_find(names, &question, buf, size))
		return 1;
	netobs_addr_str(addr, text, sizeof(text));
	snprintf(buf, size, "%s", text);
	return 0;
}

int netobs_names_port(struct netobs_names *names, uint16_t port, uint8_t proto,
		      char *buf, size_t size)
{
	const struct question question = { .port = port, .proto = proto };

	if (!buf || !size)
		return -EINVAL;
	if (proto && names_find(names, &question, buf, size))
		return 1;
	snprintf(buf, size, "%u", port);
	return 0;
}

/* ---- Threads -------------------------------------------------------------------- */

/* The last user frees the struct; the lock is held. */
static void names_release(struct netobs_names *names)
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

static void names_store_answer(struct netobs_names *names,
			       const struct question *question, bool found,
			       const char *name)
{
	struct entry *entry = names_find_entry(names, question);

	if (!entry) /* the entry was evicted */
		return;
	entry->state = found ? FOUND : NAMELESS;
	entry->since_ms = now_ms();
	if (found)
		snprintf(entry->name, sizeof(entry->name), "%s", name);
}

/* The lock is released during the wait for an answer. */
static void names_answer_next(struct netobs_names *names)
{
	struct question question = names->queue[names->first];
	char name[NETOBS_NAME_MAX] = "";
	bool found;

	names->first = (names->first + 1) % QUEUE;
	names->n--;
	names->busy++;
	pthread_mutex_unlock(&names->lock);
	found = names->opts.look_up(question.proto ? NULL : question.addr,
				    question.port, question.proto, name,
				    sizeof(name), names->opts.user) >= 0;
	if (found)
		safe_cell(name); /* the owner of the address chose it */
	pthread_mutex_lock(&names->lock);
	names->busy--;
	names_store_answer(names, &question, found, name);
	eventfd_write(names->fd, 1);
}

static void *names_run(void *arg)
{
	struct netobs_names *names = arg;

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

/* One thread is enough. @return 0; -errno: there is none */
static int names_start(struct netobs_names *names)
{
	int err = 0;

	pthread_mutex_lock(&names->lock);
	for (int i = 0; i < THREADS && !err; i++) {
		err = detached_run(names_run, names, false);
		names->users += !err;
	}
	err = names->users == 1 ? err : 0;
	pthread_mutex_unlock(&names->lock);
	return err;
}

int netobs_names_new(const struct netobs_names_opts *opts,
		     struct netobs_names **ret_names)
{
	const struct log log = { 0 };
	struct netobs_names *names;
	int err = 0;

	if (!ret_names || (opts && sized_check(opts, sizeof(*opts), &log) < 0))
		return -EINVAL;
	names = calloc(1, sizeof(*names));
	if (!names)
		return -ENOMEM;
	if (opts)
		memcpy(&names->opts, opts, min_u64(opts->sz, sizeof(*opts)));
	if (!names->opts.look_up)
		names->opts.look_up = look_up_here;
	names->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (names->fd < 0) {
		err = -errno;
		free(names);
		return err;
	}
	pthread_mutex_init(&names->lock, NULL);
	pthread_cond_init(&names->wanted, NULL);
	names->users = 1;
	err = names_start(names);
	if (err < 0)
		netobs_names_free(names);
	else
		*ret_names = names;
	return err;
}

int netobs_names_fd(const struct netobs_names *names)
{
	return names ? names->fd : -EINVAL;
}

static bool names_is_idle(struct netobs_names *names)
{
	bool idle;

	pthread_mutex_lock(&names->lock);
	idle = !names->n && !names->busy;
	pthread_mutex_unlock(&names->lock);
	return idle;
}

int netobs_names_poll(struct netobs_names *names, int timeout_ms)
{
	const int64_t end = now_ms() + timeout_ms;
	struct pollfd fd = { .events = POLLIN };
	eventfd_t count;

	if (!names)
		return -EINVAL;
	fd.fd = names->fd;
	eventfd_read(names->fd, &count);
	while (!names_is_idle(names)) {
		if (timeout_ms <= 0 || !left_ms(end))
			return 0;
		poll(&fd, 1, left_ms(end));
		eventfd_read(names->fd, &count);
	}
	return 1;
}

void netobs_names_free(struct netobs_names *names)
{
	if (!names)
		return;
	pthread_mutex_lock(&names->lock);
	names->is_ending = true;
	pthread_cond_broadcast(&names->wanted);
	names_release(names);
}
