// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * A datagram per message. Nothing acknowledges it, but if the collector is down, its
 * host or a router answers with an ICMP error: then all from the refused message on is
 * kept, and templates are sent each second, to all addresses of the collector in turn,
 * until they are not refused.
 */
#include "base/backoff.h"
#include "base/outage.h"
#include "base/clock_ms.h"
#include "sinks/net/resolve.h"
#include "output.h"
#include "udp_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	HOLD_MS = 300, /* how long an ICMP error about a message may take */
	BUSY_MS = 10,
	LOOK_UP_AGAIN = 30,  /* after so many refusals: it may have moved */
	LOOK_UP_MS = 300000, /* and after that time anyway */
	SIZE_V4 = 1400,
	SIZE_V6 = 1380,
};

/*
 * Limits a burst, in milliseconds of the configured pace. By default, a collector's
 * socket has room for some ninety messages, and drops further ones silently.
 */
enum { BURST_MS = 2, BURST_LEAST = 8 };

enum phase {
	UDP_WAITING, /* until the next attempt */
	UDP_RESOLVING,
	UDP_OPEN,
	UDP_REFUSED, /* it is open, but the port is closed */
};

/* ---- Messages that were sent, and may not have arrived ------------------------------ */

enum { HELD_MAX = 512 };

struct held_message {
	uint64_t at; /* when it was sent */
	uint32_t sequence;
	struct position end; /* behind its last record */
};

/* In the order in which they were sent. */
struct held {
	struct held_message ring[HELD_MAX];
	unsigned int first, n;
};

static inline struct held_message *held_get(struct held *held, unsigned int i)
{
	return &held->ring[(held->first + i) % HELD_MAX];
}

static inline void held_drop_first(struct held *held)
{
	held->first = (held->first + 1) % HELD_MAX;
	held->n--;
}

/* There must be room. */
static inline void held_add(struct held *held, struct held_message message)
{
	held->ring[(held->first + held->n++) % HELD_MAX] = message;
}

struct udp {
	struct output output;
	enum phase phase;
	struct backoff retry;	 /* while waiting, and after a refusal */
	struct resolve *resolve; /* also while a socket is open */
	int64_t look_up_ms;	 /* when to look the name up again */
	struct addrinfo *addresses;
	const struct addrinfo *current;
	unsigned int n_refused; /* addresses, one after the other */
	bool is_moving;		/* to the next of them */
	int fd;
	uint32_t watched;
	bool is_new;
	bool is_full;  /* the kernel has no room for more */
	bool is_early; /* it has, but the next message is to be sent later */
	uint64_t allowance;    /* thousandths of messages */
	int64_t allowed_ms;    /* when it was last added to */
	bool has_looked;       /* for what came back, since it was called */
	unsigned int refusals; /* since all was well */
	struct held held;
	struct outage outage;
};

static struct udp *udp_of_output(struct output *output)
{
	return (struct udp *)output;
}

/* ---- Failures ------------------------------------------------------------------ */

static void log_failure(struct udp *udp, const char *reason)
{
	outage_log(&udp->outage, udp->output.host->log, NETOBS_LOG_ERROR,
		   reason, "cannot send to %s: %s; trying again",
		   udp->output.config->address.name, reason);
}

static void note_good(struct udp *udp)
{
	udp->refusals = udp->n_refused = 0;
	outage_end(&udp->outage, udp->output.host->log, NETOBS_LOG_INFO,
		   "can send to %s again", udp->output.config->address.name);
}

static void watch_socket(struct udp *udp, uint32_t events)
{
	if (udp->fd < 0 || events == udp->watched)
		return;
	udp->output.host->ops->watch(udp->output.host, udp->fd, events);
	udp->watched = events;
}

static void close_socket(struct udp *udp)
{
	watch_socket(udp, 0);
	close_fd(&udp->fd);
	udp->held.n = 0;
}

static void wait_to_resolve(struct udp *udp, const char *reason)
{
	log_failure(udp, reason);
	close_socket(udp);
	udp->phase = UDP_WAITING;
	backoff_wait(&udp->retry, now_ms());
}

/* After EMSGSIZE: have smaller messages made. False: they cannot be smaller. */
static bool shrink_message(struct udp *udp)
{
	size_t room = udp_socket_room(udp->fd);

	if (room >= udp->output.size || room < ENCODER_SIZE_MIN)
		return false;
	udp->output.size = room;
	return true;
}

/* There is an address that has not refused since all was well. */
static bool has_more(struct udp *udp)
{
	unsigned int n = 0;

	for (const struct addrinfo *at = udp->addresses; at; at = at->ai_next)
		n++;
	if (++udp->n_refused < n)
		return true;
	udp->n_refused = 0;
	return false;
}

/* The next address is tried at once, or all of them a second later. */
static void note_refused(struct udp *udp, int err)
{
	bool is_soon = has_more(udp);

	udp->is_moving = true;
	if (!is_soon) {
		backoff_wait(&udp->retry, now_ms());
		log_failure(udp, strerror(-err));
	}
	if (++udp->refusals < LOOK_UP_AGAIN ||
	    address_is_numeric(udp->output.config->address.host, NULL))
		return;
	close_socket(udp);
	udp->refusals = 0;
	udp->phase = UDP_WAITING;
}

/* From message @i of those that are held on, all is sent again later. */
static void go_back(struct udp *udp, unsigned int i, int err)
{
	struct output *output = &udp->output;
	bool is_too_large = err == -EMSGSIZE && shrink_message(udp);

	if (i)
		output_ack(output, held_get(&udp->held, i - 1)->end);
	output->sequence = held_get(&udp->held, i)->sequence;
	udp->held.n = 0;
	udp->phase = UDP_REFUSED;
	udp->retry.due_ms = now_ms();
	udp->is_moving = false;
	if (!is_too_large)
		note_refused(udp, err);
}

/* The first that was refused; where ICMP does not say, the last that was sent. */
static unsigned int find_refused(struct udp *udp, const struct udp_error *error)
{
	for (unsigned int i = 0; error->has_sequence && i < udp->held.n; i++)
		if (held_get(&udp->held, i)->sequence == error->sequence)
			return i;
	return udp->held.n - 1;
}

/* Take errors that ICMP reported. True: the collector refused a message. */
static bool take_errors(struct udp *udp)
{
	unsigned int first = udp->held.n;
	struct udp_error error;
	int err = 0;

	udp->has_looked = true;
	while (udp_socket_error(udp->fd, &error)) {
		udp->output.counts.refused_messages++;
		if (!udp->held.n) /* it came too late */
			continue;
		first = (unsigned int)min_u64(first, find_refused(udp, &error));
		err = error.err;
	}
	if (first == udp->held.n)
		return false;
	go_back(udp, first, err);
	return true;
}

/* ---- Opening ------------------------------------------------------------------- */

static void choose_size(struct udp *udp, int family)
{
	size_t wanted = udp->output.config->mtu ?:
				(family == AF_INET6 ? SIZE_V6 : SIZE_V4);

	udp->output.size = wanted;
	shrink_message(udp);
}

/* False: it cannot be looked up, now. */
static bool look_up(struct udp *udp)
{
	int err = resolve_start(udp->output.host, &udp->output.config->address,
				SOCK_DGRAM, &udp->resolve);

	udp->look_up_ms = now_ms() + LOOK_UP_MS;
	if (err && udp->phase == UDP_WAITING)
		wait_to_resolve(udp, strerror(-err));
	return !err;
}

static void forget_addresses(struct udp *udp)
{
	if (udp->addresses)
		freeaddrinfo(udp->addresses);
	udp->addresses = NULL;
	udp->current = NULL;
}

static const struct addrinfo *find_next_address(const struct udp *udp,
						const struct addrinfo *address)
{
	return address->ai_next ?: udp->addresses;
}

/* To the first address from @from on that there is a way to. */
static void open_socket(struct udp *udp, const struct addrinfo *from)
{
	const struct addrinfo *at = from;
	int fd = udp_socket_open(at, &udp->output.config->source);

	close_socket(udp);
	while (fd < 0 && find_next_address(udp, at) != from) {
		at = find_next_address(udp, at);
		fd = udp_socket_open(at, &udp->output.config->source);
	}
	if (fd < 0) {
		wait_to_resolve(udp, strerror(-fd));
		return;
	}
	udp->fd = fd;
	udp->current = at;
	choose_size(udp, at->ai_family);
	watch_socket(udp, EPOLLERR);
	udp->phase = UDP_OPEN;
	udp->is_new = true;
	udp->is_full = false;
	udp->output.sequence = 0;
	udp->output.counts.sessions++;
}

static const struct addrinfo *find_address(const struct addrinfo *list,
					   const struct addrinfo *wanted)
{
	for (; list && wanted; list = list->ai_next)
		if (list->ai_addrlen == wanted->ai_addrlen &&
		    !memcmp(list->ai_addr, wanted->ai_addr, list->ai_addrlen))
			return list;
	return NULL;
}

/* The address that is in use is kept while the name has it. */
static void take_addresses(struct udp *udp, struct addrinfo *list)
{
	const struct addrinfo *same = find_address(list, udp->current);

	forget_addresses(udp);
	udp->addresses = list;
	udp->current = same;
	udp->n_refused = 0;
	if (!same || udp->phase == UDP_RESOLVING)
		open_socket(udp, same ?: list);
}

/* A failed lookup is ignored while there are addresses. */
static void finish_resolving(struct udp *udp)
{
	struct addrinfo *list = NULL;
	int err = resolve_take(udp->resolve, &list);

	if (err == -EAGAIN)
		return;
	if (!err)
		take_addresses(udp, list);
	else if (udp->phase == UDP_RESOLVING)
		wait_to_resolve(udp, resolve_error(udp->resolve));
	resolve_close(TAKE_PTR(udp->resolve));
}

static void look_up_again(struct udp *udp)
{
	if (!udp->resolve && udp->phase == UDP_OPEN &&
	    now_ms() >= udp->look_up_ms &&
	    !address_is_numeric(udp->output.config->address.host, NULL))
		look_up(udp);
}

/* ---- Use ----------------------------------------------------------------------- */

/* Messages without an ICMP error in time count as delivered: UDP gives no better signal. */
static void let_arrive(struct udp *udp)
{
	uint64_t now = (uint64_t)now_ms();
	struct position end = { 0 };
	bool is_good = false;

	while (udp->held.n && held_get(&udp->held, 0)->at + HOLD_MS <= now) {
		end = held_get(&udp->held, 0)->end;
		held_drop_first(&udp->held);
		is_good = true;
	}
	if (!is_good)
		return;
	output_ack(&udp->output, end);
	note_good(udp);
}

static enum peer_state proceed_open(struct udp *udp)
{
	if (!udp->has_looked && take_errors(udp))
		return PEER_AWAY;
	let_arrive(udp);
	if (!udp->is_new)
		return PEER_READY;
	udp->is_new = false;
	return PEER_NEW;
}

/* Send refused messages again: to the next address, if there are several. */
static void leave_refused(struct udp *udp)
{
	take_errors(udp); /* about what is sent again anyway */
	if (!backoff_is_due(&udp->retry))
		return;
	if (udp->is_moving && udp->addresses->ai_next) {
		open_socket(udp, find_next_address(udp, udp->current));
		return;
	}
	udp->phase = UDP_OPEN;
	udp->is_new = true;
}

static enum peer_state udp_prepare(struct output *output)
{
	struct udp *udp = udp_of_output(output);

	if (udp->phase == UDP_WAITING && backoff_is_due(&udp->retry) &&
	    !udp->resolve && look_up(udp))
		udp->phase = UDP_RESOLVING;
	look_up_again(udp);
	if (udp->resolve)
		finish_resolving(udp);
	if (udp->phase == UDP_REFUSED)
		leave_refused(udp);
	return udp->phase == UDP_OPEN ? proceed_open(udp) : PEER_AWAY;
}

static void hold_message(struct udp *udp, const struct held_message *message)
{
	if (udp->held.n == HELD_MAX) {
		output_ack(&udp->output, held_get(&udp->held, 0)->end);
		held_drop_first(&udp->held);
	}
	held_add(&udp->held, *message);
}

/* send(2) also reports the refusal of an earlier message. */
static int explain_failure(struct udp *udp, const struct held_message *message,
			   int err)
{
	if (err == -EAGAIN || err == -ENOBUFS) {
		udp->is_full = true;
		return -EAGAIN;
	}
	hold_message(udp, message);
	if (take_errors(udp))
		return err;
	udp->output.counts.failed_messages++;
	go_back(udp, udp->held.n - 1, err);
	return err;
}

/* False: so many messages were sent lately that the next has to wait. */
static bool take_allowance(struct udp *udp)
{
	uint64_t pace = udp->output.config->pace;
	uint64_t most = max_u64(BURST_MS * pace, BURST_LEAST * 1000);
	int64_t now = now_ms();

	if (!pace)
		return true;
	udp->allowance += (uint64_t)(now - udp->allowed_ms) * pace;
	udp->allowance = min_u64(udp->allowance, most);
	udp->allowed_ms = now;
	if (udp->allowance < 1000)
		return false;
	udp->allowance -= 1000;
	return true;
}

static int udp_send(struct output *output, const struct output_message *message)
{
	const struct encoder_message *encoded = &message->encoded;
	struct udp *udp = udp_of_output(output);
	struct held_message held = { .at = (uint64_t)now_ms(),
				     .sequence = encoded->sequence,
				     .end = message->end };
	ssize_t n;

	udp->is_early = !take_allowance(udp);
	if (udp->is_early)
		return -EAGAIN;
	do {
		n = send(udp->fd, encoded->bytes, encoded->len,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return explain_failure(udp, &held, -errno);
	udp->is_full = false;
	output_count(output, message);
	hold_message(udp, &held);
	return 0;
}

static int udp_rest(struct output *output)
{
	struct udp *udp = udp_of_output(output);

	udp->has_looked = false;
	watch_socket(udp, udp->is_full ? EPOLLOUT : EPOLLERR);
	if (udp->phase == UDP_WAITING || udp->phase == UDP_REFUSED)
		return left_ms(udp->retry.due_ms);
	if (udp->is_early || udp->is_full)
		return udp->is_early ? 1 : BUSY_MS;
	if (!udp->held.n)
		return -1;
	return left_ms((int64_t)held_get(&udp->held, 0)->at + HOLD_MS);
}

static int udp_open(struct output *output)
{
	struct udp *udp = udp_of_output(output);

	output->host->outage = &udp->outage;
	udp->fd = -1;
	/* Steadily: an address that refuses costs little, and may come back soon. */
	udp->retry.most_ms = BACKOFF_FIRST_MS;
	return 0;
}

static void udp_close(struct output *output)
{
	struct udp *udp = udp_of_output(output);

	close_socket(udp);
	resolve_close(TAKE_PTR(udp->resolve));
	forget_addresses(udp);
}

const struct output_ops output_udp = {
	.size = sizeof(struct udp),
	.open = udp_open,
	.prepare = udp_prepare,
	.send = udp_send,
	.rest = udp_rest,
	.close = udp_close,
};
