/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "mappings.h"

#include "base/io.h"
#include "base/util.h"
#include "host/host.h"

#include <errno.h>
#include <string.h>

enum {
	ASKED_MAX = 256,   /* entries, each MAPPING_QUESTIONS_MS */
	TRIES = 5,	   /* of a list */
	RETRY_S = 2,	   /* after a question without an answer */
	LIST_RETRY_S = 30, /* after a list that failed */
};

static int64_t find_now(const struct mapping_questions *questions)
{
	return clock_to_stamp(questions->mappings->clock, clock_boot_ns());
}

static int open_conntrack(const struct host *host, uint16_t netns)
{
	return conntrack_open_in(shared_fd_get(host->netns[netns].ns));
}

static int open_in(const struct mapping_questions *questions, uint16_t netns)
{
	return questions->open(questions->mappings->host, netns);
}

/* Asking again soon may have another outcome. */
static bool is_passing(int err)
{
	return err == -EAGAIN || err == -ENOBUFS || err == -ENOMEM ||
	       err == -EMFILE || err == -ENFILE || err == -EBADMSG;
}

static void warn_of(struct mapping_questions *questions, int err)
{
	if (questions->is_warned)
		return;
	questions->is_warned = true;
	log_warning(questions->log,
		    "translations: the kernel does not list its connections, so older translations are "
		    "not known, and ends are guessed: ctnetlink: %s%s",
		    strerror(-err),
		    err == -EPERM ? ": it needs CAP_NET_ADMIN" : "");
}

/* @err: 0: the kernel has answered in that namespace; or -errno */
static void note_answer(struct mapping_questions *questions, uint16_t netns,
			int err)
{
	struct mapping_space *space = mappings_space(questions->mappings, netns);

	if (is_passing(err))
		return;
	if (err)
		warn_of(questions, err);
	if (space)
		space->cannot_ask = err != 0;
}

/* ---- Lists ------------------------------------------------------------------------ */

static void end_list(struct mapping_questions *questions)
{
	close_fd(&questions->list.fd);
	questions->tries = 0;
	questions->mappings->table->refused += questions->list_refused;
	questions->list_refused = 0;
}

/* End a list that failed; another one may begin later. */
static void fail_list(struct mapping_questions *questions, int err)
{
	struct mapping_space *space =
		mappings_space(questions->mappings, questions->list_netns);

	note_answer(questions, questions->list_netns, err);
	if (space)
		space->retry_ns =
			find_now(questions) + LIST_RETRY_S * NSEC_PER_SEC;
	end_list(questions);
}

/* Begin a list, or begin it again: unread replies on the previous socket are discarded. */
static void begin_list(struct mapping_questions *questions)
{
	int err;

	close_fd(&questions->list.fd);
	questions->tries++;
	questions->list_refused = 0;
	questions->list.fd = open_in(questions, questions->list_netns);
	err = questions->list.fd < 0 ? questions->list.fd :
				       conntrack_list_begin(&questions->list);
	if (err)
		fail_list(questions, err);
}

static void on_listed(void *ctx, const struct conntrack_entry *entry)
{
	struct mapping_questions *questions = ctx;

	questions->list_refused += !mappings_list(questions->mappings,
						  questions->list_netns, entry,
						  find_now(questions));
}

static void retry_list(struct mapping_questions *questions)
{
	if (questions->tries < TRIES) {
		questions->n_again++;
		begin_list(questions);
		return;
	}
	if (!questions->n_incomplete++)
		log_warning(questions->log,
			    "translations: older ones are not all known: the kernel's table of "
			    "connections changes too fast to be listed");
	fail_list(questions, -EAGAIN);
}

static void complete_list(struct mapping_questions *questions)
{
	struct mapping_space *space =
		mappings_space(questions->mappings, questions->list_netns);

	note_answer(questions, questions->list_netns, 0);
	if (space)
		space->complete_ns = find_now(questions);
	end_list(questions);
}

static bool is_followed(const struct netns *netns)
{
	return netns->rtnl_fd >= 0 && !netns->is_retired;
}

/* @return whether the list's namespace is no longer followed, or another one has its index */
static bool is_list_over(const struct mapping_questions *questions)
{
	const struct host *host = questions->mappings->host;
	const struct netns *netns = &host->netns[questions->list_netns];
	const struct mapping_space *space =
		mappings_space(questions->mappings, questions->list_netns);

	return !is_followed(netns) || !space || space->inode != netns->inode;
}

void mapping_questions_read(struct mapping_questions *questions)
{
	int ret;

	if (questions->list.fd < 0)
		return;
	if (is_list_over(questions)) {
		end_list(questions);
		return;
	}
	ret = conntrack_list_read(&questions->list, false, on_listed, questions);
	if (ret == -EAGAIN)
		retry_list(questions);
	else if (ret < 0)
		fail_list(questions, ret);
	else if (ret)
		complete_list(questions);
}

static bool is_list_due(const struct mapping_questions *questions,
			const struct mapping_space *space)
{
	return questions->list.fd < 0 && !space->complete_ns &&
	       find_now(questions) >= space->retry_ns;
}

/* Lists are read one after the other. */
static void begin_next_list(struct mapping_questions *questions)
{
	const struct host *host = questions->mappings->host;

	for (uint32_t i = 0; i < host->n_netns; i++) {
		const struct netns *netns = &host->netns[i];
		struct mapping_space *space =
			mappings_space(questions->mappings, i);

		if (!space)
			return;
		if (!is_followed(netns)) {
			*space = (struct mapping_space){ 0 };
			continue;
		}
		if (space->inode != netns->inode)
			*space = (struct mapping_space){ .inode = netns->inode };
		if (is_list_due(questions, space)) {
			questions->list_netns = (uint16_t)i;
			begin_list(questions);
		}
	}
}

/* ---- Single entries --------------------------------------------------------------- */

/* Up to CONNTRACK_ASK_MAX entries of one namespace, to ask for together. */
struct batch {
	struct mapping_questions *questions;
	struct translation *asked[CONNTRACK_ASK_MAX];
	bool is_there[CONNTRACK_ASK_MAX];
	uint8_t answers[CONNTRACK_ASK_MAX];
	uint32_t n;
	int64_t now_ns;
};

/* An entry with the same original direction may be a later one, translated in another way. */
static void on_answer(void *ctx, uint32_t i, const struct conntrack_entry *entry)
{
	struct batch *batch = ctx;
	struct translation *asked = batch->asked[i];

	batch->answers[i]++;
	if (!entry || mappings_find_entry(batch->questions->mappings,
					  asked->netns, entry) != asked)
		return;
	batch->is_there[i] = true;
	mappings_answer(batch->questions->mappings, asked, entry, batch->now_ns);
}

/* With a zone, there are two answers (conntrack.h). */
static bool is_answered(const struct batch *batch, uint32_t i)
{
	return batch->answers[i] == (batch->asked[i]->zone ? 2 : 1);
}

static int ask_batch(struct batch *batch, int fd)
{
	struct mapping_questions *questions = batch->questions;
	struct conntrack_entry wanted[CONNTRACK_ASK_MAX];
	int err;

	for (uint32_t i = 0; i < batch->n; i++)
		wanted[i] = mapping_question(batch->asked[i]);
	err = fd < 0 ? fd : conntrack_ask(fd, wanted, batch->n, on_answer, batch);
	for (uint32_t i = 0; i < batch->n; i++) {
		if (batch->is_there[i])
			continue;
		if (!is_answered(batch, i)) {
			questions->n_asked_again++;
			mappings_go_on(batch->asked[i], batch->now_ns, RETRY_S);
		} else {
			mappings_end(questions->mappings, batch->asked[i],
				     batch->now_ns);
		}
	}
	return err;
}

/* Move the entries of the first one's namespace from @due to @batch. */
static void take_batch(struct batch *batch, struct translation **due,
		       uint32_t *n_due)
{
	const uint16_t netns = due[0]->netns;
	uint32_t n_left = 0;

	for (uint32_t i = 0; i < *n_due; i++) {
		if (batch->n < CONNTRACK_ASK_MAX && due[i]->netns == netns)
			batch->asked[batch->n++] = due[i];
		else
			due[n_left++] = due[i];
	}
	*n_due = n_left;
}

/* @fd: a socket in *@at_netns; it is replaced if @netns is another namespace */
static int open_for(const struct mapping_questions *questions, uint16_t netns,
		    uint16_t *at_netns, int fd)
{
	if (fd >= 0 && netns == *at_netns)
		return fd;
	close_fd(&fd);
	*at_netns = netns;
	return open_in(questions, netns);
}

static void ask_entries(struct mapping_questions *questions)
{
	struct translation *due[ASKED_MAX];
	const int64_t now_ns = find_now(questions);
	uint32_t n = mappings_due(questions->mappings, now_ns, due, ASKED_MAX);
	cleanup_fd int fd = -1;
	uint16_t netns = 0;

	while (n) {
		struct batch batch = { .questions = questions, .now_ns = now_ns };
		int err;

		take_batch(&batch, due, &n);
		fd = open_for(questions, batch.asked[0]->netns, &netns, fd);
		err = ask_batch(&batch, fd);
		/* Answers may be left on the socket. */
		if (err)
			close_fd(&fd);
		note_answer(questions, batch.asked[0]->netns, err);
	}
}

/* ---- Life ------------------------------------------------------------------------- */

void mapping_questions_init(struct mapping_questions *questions,
			    struct mappings *mappings, const struct log *log)
{
	*questions = (struct mapping_questions){ .mappings = mappings,
						 .log = log,
						 .open = open_conntrack,
						 .list = { .fd = -1 } };
}

void mapping_questions_done(struct mapping_questions *questions)
{
	if (!questions->mappings)
		return;
	close_fd(&questions->list.fd);
	*questions = (struct mapping_questions){ .list = { .fd = -1 } };
}

int mapping_questions_fd(const struct mapping_questions *questions)
{
	return questions->mappings ? questions->list.fd : -1;
}

void mapping_questions_ask(struct mapping_questions *questions)
{
	if (questions->list.fd >= 0 && is_list_over(questions))
		end_list(questions);
	begin_next_list(questions);
	ask_entries(questions);
}
