/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Types of the files of journeys: from events to the directions and datagrams that keep them, and to journeys. */
#ifndef NETOBS_TRACE_JOURNEY_STATE_H
#define NETOBS_TRACE_JOURNEY_STATE_H

#include <netinet/in.h>
#include <netobs/trace.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* ---- Events ------------------------------------------------------------------------------ */

struct direction;

/* An event, kept until its bytes are delivered. */
struct journey_event {
	struct netobs_journey_step step; /* its attempt is not used */
	int64_t offset, end;		 /* of the bytes */
	uint64_t id;			 /* in order of arrival */
	uint64_t buffer;
	struct direction *direction;
	TAILQ_ENTRY(journey_event)
	in_list; /* direction.sends or direction.sents */
	int64_t call_end; /* NETOBS_TRACE_SEND: the end of the bytes that the call was to write */
	uint64_t socket; /* of datagrams, as the next members */
	uint32_t ip_id, seq;
	uint32_t tid;
	bool is_fragment;
	uint8_t protocol;
	uint8_t tcp_flags;
	uint8_t limit;	 /* enum netobs_turn_limit, plus 1; 0: not known */
	uint32_t reason; /* of drops */
	bool begins_call;
	bool ends_call;	  /* the call has returned */
	uint16_t attempt; /* of the current bytes: struct journey_way */
};

TAILQ_HEAD(journey_events, journey_event);

/** @return a copy of an event, which its direction and all journeys count until it is freed; NULL: no memory */
struct journey_event *journey_event_hold(const struct journey_event *event);

/** @event: held, or NULL */
void journey_event_free(struct journey_event *event);

static inline bool journey_same_interface(const struct journey_event *a,
					  const struct journey_event *b)
{
	return a->step.ifindex == b->step.ifindex &&
	       a->step.netns_inode == b->step.netns_inode;
}

static inline bool journey_is_datagram(const struct journey_event *event)
{
	return event->protocol && event->protocol != IPPROTO_TCP;
}

static inline bool journey_is_hook(const struct journey_event *event)
{
	return event->step.point >= NETOBS_TRACE_PREROUTING &&
	       event->step.point <= NETOBS_TRACE_POSTROUTING_END;
}

static inline bool journey_is_arrival(const struct journey_event *event)
{
	return event->step.point == NETOBS_TRACE_ARRIVE ||
	       event->step.point == NETOBS_TRACE_RECEIVE;
}

/* Events ordered by a key, and by arrival if keys are equal: a binary heap. */

struct journey_queue_item {
	int64_t key;
	struct journey_event *event;
};

struct journey_queue {
	struct journey_queue_item *items; /* the least is the first */
	uint32_t n, capacity;
};

/** Make room for @n items. @return false: no memory */
bool journey_queue_reserve(struct journey_queue *queue, uint32_t n);

/** Add an event; journey_queue_reserve() has made room. */
void journey_queue_push(struct journey_queue *queue, int64_t key,
			struct journey_event *event);

/** @return the event of the least key; NULL: none is left */
struct journey_event *journey_queue_pop(struct journey_queue *queue);

/** Take out the events of @direction, in any order; @each owns them. */
void journey_queue_remove(struct journey_queue *queue,
			  const struct direction *direction,
			  void (*each)(struct journey_event *event, void *ctx),
			  void *ctx);

/* ---- The way of bytes that passed all points together ------------------------------------ */

/* The attempt that arrived, and its time. */
struct journey_way {
	/* Events of these bytes, by time; without NETOBS_TRACE_SEND and _SENT. */
	struct journey_event *const *events;
	uint32_t n;
	uint32_t sender_netns; /* of the sender's socket; 0: not known */
	bool is_sender_here;   /* an event of the sender's socket was seen */
	bool is_receiver_here;
	bool is_datagram; /* only the parts on the way and in the socket apply */

	/* Set by journey_way_find(), as are the attempts of the events: */
	uint32_t n_attempts; /* from the first interface */
	uint16_t arrived;    /* the attempt that arrived, or the last one */
	int64_t first_ns; /* when the first attempt began; INT64_MAX: none has */
	uint16_t n_begun; /* numbers of attempts that events have */
	/* Positions in events; n: none. */
	uint32_t segment, ready, read, acked;
};

/** Set the second half of @way, and the attempt of each event. */
void journey_way_find(struct journey_way *way);

/* ---- The parts of a journey's time, from its steps --------------------------------------- */

/* A step, with the attempt as in struct netobs_journey_step. */
struct journey_stop {
	const struct journey_event *event;
	uint8_t attempt;
};

struct journey_route {
	const struct journey_stop *stops; /* by time */
	uint32_t n;
	const struct journey_way *way;
};

/**
 * Fill part_ns, unknown_ns and unknown_parts, which must be 0, and netfilter_ns with its bit of record.has.
 * Hooks of netfilter are steps, but no part begins there: the parts are equal whether hooks are seen or not.
 */
void journey_parts_fill(const struct journey_route *route,
			struct netobs_journey *journey);

/* ---- A journey that grows by neighbouring bytes, as long as they passed the same points --- */

enum { JOURNEY_EVENTS_MAX = 1024 }; /* of the same bytes */

/* Data of a direction of a connection, common to all its journeys. */
struct journey_ends {
	uint64_t connection;
	uint8_t src[16], dst[16];
	uint16_t src_port, dst_port;
	uint8_t direction;
	uint8_t protocol;
	uint32_t datagram;  /* number of the datagram; 0: it is a stream */
	uint32_t ip_id;	    /* of the datagram, as in struct netobs_journey */
	uint32_t has;	    /* enum netobs_trace_field */
	uint32_t first_seq; /* of the byte at offset 0 */
	uint32_t sender_netns; /* of the sender's socket; 0: not known */
	bool has_sender, has_receiver; /* the socket of that end had an event */
	bool has_socket_ends; /* addresses are those of the sender's socket */
};

/* A range of bytes, and all events with them. */
struct journey_range {
	int64_t offset, end;
	int64_t now_ns; /* of a range without events */
	/* NULL: not seen. The call may have begun with bytes before these, at @called. */
	const struct journey_event *called, *copied, *sent;
	struct journey_event *const *events; /* others, by time */
	uint32_t n;			     /* JOURNEY_EVENTS_MAX at most */
	bool is_cut;			     /* there were more events */
};

struct journey_draft {
	void (*on_journey)(struct netobs_journey *journey, void *ctx);
	void *ctx;
	bool is_used;
	bool is_early; /* journeys are delivered before they have ended */
	uint64_t n_early;
	struct netobs_journey journey;
	uint64_t ids[NETOBS_JOURNEY_STEPS_MAX]; /* of its steps */
	uint64_t acked_id;
	uint32_t n_all; /* steps, including those that were left out */
	/* All steps of the current range, and the indexes of those that are kept. */
	struct journey_stop stops[JOURNEY_EVENTS_MAX + 3];
	uint16_t kept[NETOBS_JOURNEY_STEPS_MAX];
	uint32_t n_kept;
};

/** Add a range to the journey; if it does not fit, deliver that and begin another one. */
void journey_draft_add(struct journey_draft *draft,
		       const struct journey_ends *ends,
		       const struct journey_range *range);

/** Deliver the journey, if there is one. */
void journey_draft_flush(struct journey_draft *draft);

/* ---- A direction of a connection --------------------------------------------------------- */

/*
 * A direction has its events until their bytes are delivered. TCP delivers bytes in order, so all
 * bytes before one offset are delivered, and none after it.
 */

enum { JOURNEY_HELD_MAX = 65536 }; /* events of a direction */

/* Time that forwarded bytes wait for events, since nothing ends them: later events are left out. */
#define JOURNEY_FORWARDED_NS (1000 * 1000 * 1000LL)

struct direction {
	struct journey_ends ends;
	/* Datagrams that have not ended: all that UDP and ICMP use of this struct. */
	LIST_HEAD(, datagram) datagrams;
	uint32_t n_datagrams; /* so far */
	uint32_t n_held;      /* events, including those in journeys.waiting */
	uint64_t *n_held_by_all; /* events of all directions in memory */
	bool has_done;
	bool has_end;
	int64_t end; /* offset behind the last byte known to be in the stream */
	int64_t done;	       /* the first byte that is not delivered */
	int64_t now_ns;	       /* time of the last event that was taken */
	int64_t mark, mark_ns; /* the end as it was then */
	bool has_mark;
	int64_t cut_until; /* some events of bytes before it were left out */
	struct journey_queue pending; /* events that begin behind @done, by offset */
	struct journey_event **active; /* events whose bytes include @done, by time */
	uint32_t n_active, active_capacity;
	struct journey_events sends, sents; /* by offset */
	uint32_t n_listed;		    /* in these two */
	struct journey_event *called; /* the last call that has written @done or bytes before it */
	struct journey_event *copied; /* the last SEND of it for @done or bytes before it; may be @called */
	struct journey_event *last_call; /* the last call of all that were seen */
};

/** @param n_held_by_all  events of all directions in memory */
void direction_init(struct direction *direction, uint64_t *n_held_by_all);

/** Make room for two more events. @return 0; -ENOMEM */
int direction_reserve(struct direction *direction);

/** Take an event, the next one by time, which then belongs to the direction; direction_reserve() made room. */
void direction_take(struct direction *direction, struct journey_event *event);

/** Deliver the bytes before @until that have events. */
void direction_deliver(struct direction *direction, int64_t until,
		       struct journey_draft *draft);

/** Deliver all bytes that are known to be in the stream. */
void direction_deliver_all(struct direction *direction,
			   struct journey_draft *draft);

/** Deliver bytes that are only forwarded, some time after their last event. */
void direction_forward(struct direction *direction, struct journey_draft *draft);

/** Deliver the first bytes if there are more than JOURNEY_HELD_MAX events. */
void direction_limit(struct direction *direction, struct journey_draft *draft);

/** Deliver the first half of the events: memory is short. */
void direction_halve(struct direction *direction, struct journey_draft *draft);

/** Free all events. */
void direction_clear(struct direction *direction);

/* ---- Datagrams --------------------------------------------------------------------------- */

/*
 * The datagrams of all connections, and which one an event belongs to: the one with its buffer, or,
 * where the buffer changes, with the number in its header that fragments and echoes have.
 */

struct datagrams;

/** @return 0; -ENOMEM */
int datagrams_new(struct datagrams **ret_datagrams);

/** Call it after datagrams_end() of each direction. */
void datagrams_free(struct datagrams *datagrams);

/**
 * Take an event, the next one by time, which then belongs to the table. Deliver the datagrams that it
 * ends.
 */
void datagrams_take(struct datagrams *datagrams, struct journey_event *event,
		    struct journey_draft *draft);

/** Deliver the datagrams of which no more events are expected at @now_ns. */
void datagrams_advance(struct datagrams *datagrams, int64_t now_ns,
		       struct journey_draft *draft);

/** Deliver the older half of the datagrams on their way: memory is short. */
void datagrams_halve(struct datagrams *datagrams, struct journey_draft *draft);

/** Deliver all datagrams of a direction; with @draft NULL, discard them. */
void datagrams_end(struct datagrams *datagrams, struct direction *direction,
		   struct journey_draft *draft);

#endif
