/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What the files of the room have in common: kept records, joined messages, turns and their parts. */
#ifndef NETOBS_DIAGNOSIS_STATE_H
#define NETOBS_DIAGNOSIS_STATE_H

#include "base/slots.h"
#include "base/util.h"
#include "drops/drop_class.h"

#include <netobs/diagnosis.h>

/* ---- Records (diagnosis.c) ------------------------------------------------------------------ */

/* Times up to here can be added and subtracted, also if a host lies. */
#define DIAGNOSIS_TIME_MAX (4 * 1000000000LL * NSEC_PER_SEC)

/* A later record with an equal key replaces the one before. */
struct kept_key {
	uint64_t connection; /* of queues and hosts: the network namespace and the interface, or the thread */
	int64_t at;	     /* offset; of queues and hosts: their time */
	uint32_t host;
	uint8_t direction, kind;
	uint8_t reserved[2];
};

struct kept_turn {
	struct kept_key key;
	struct netobs_turn turn;
};

struct kept_queue {
	struct kept_key key;
	struct netobs_queue queue;
};

struct kept_host {
	struct kept_key key;
	struct netobs_host host;
};

/* What is normal for a service: a verdict that was added. */
struct norm_key {
	uint8_t server[16];
	uint16_t port;
	uint8_t protocol;
	uint8_t reserved[5];
};

struct norm {
	struct norm_key key;
	struct netobs_verdict verdict;
};

struct netobs_diagnosis {
	uint32_t max_turns;
	struct slots turns, queues, hosts, norms;
	uint64_t left_out; /* records that cannot be, and those that newer ones took the room of */
};

/* ---- The records of a client and a service (join.c) ------------------------------------------- */

enum { CLIENT = 0, SERVER = 1, ENDS = 2 };

#define NO_HOST UINT32_MAX

/* A tuple, the client's end first. */
struct tuple {
	uint8_t client[16], server[16];
	uint16_t client_port, server_port;
	uint8_t protocol;
	uint8_t reserved[3];
};

/* A record, and where it belongs. */
struct entry {
	struct tuple tuple; /* at the uplink; without one, at the socket */
	uint32_t host;
	uint8_t from; /* CLIENT, SERVER: who sends */
	const struct netobs_turn *turn;
};

/* A message, as the sender's and the receiver's host saw it. NULL: it has no record. */
struct message {
	const struct netobs_turn *s, *r;
	struct tuple tuple;
	uint8_t from;
	bool is_by_order; /* nothing else tells that s and r are of one message */
	int64_t time_ns; /* it begins, by the client's clock */
};

/* How far the server's clock is ahead of the client's. */
struct clocks {
	int64_t offset_ns;
	uint64_t bound_ns; /* 0: not known */
	bool jumped;
};

/* All that one client does with one service. */
struct talk {
	const struct netobs_diagnosis *diagnosis;
	uint32_t hosts[ENDS];	  /* NO_HOST: it has no records */
	struct message *messages; /* by tuple and time */
	uint32_t n;
	bool has_equal[ENDS]; /* by sender: which ones of several datagrams with equal data were lost is not known */
	struct clocks clocks;
	int64_t before_ns, since_ns, until_ns; /* by the client's clock */
};

/** @return all records in an array of entries, by client and service; NULL: no memory, or there are none */
struct entry *join_entries(const struct netobs_diagnosis *diagnosis,
			   uint32_t *ret_n);

/** @return whether two entries are of the same client and service */
bool join_is_same_talk(const struct entry *a, const struct entry *b);

/** Pair the records of @entries, which are sorted. @return 0; -ENOMEM */
int join_messages(struct talk *talk, struct entry *entries, uint32_t n);

static inline bool message_is_of_tuple(const struct message *message,
				       const struct message *of)
{
	return !memcmp(&message->tuple, &of->tuple, sizeof(of->tuple));
}

/** Estimate the clocks in the window from what was sent once. */
void clocks_estimate(struct talk *talk);

/** @return a time of an end's host by the client's clock; 0 of 0 */
static inline int64_t clocks_local(const struct talk *talk, int end, int64_t ns)
{
	return !ns || end == CLIENT ? ns : ns - talk->clocks.offset_ns;
}

static inline bool talk_hears(const struct talk *talk, int end)
{
	return talk->hosts[end] != NO_HOST;
}

/* ---- What hosts counted, and who filled queues (evidence.c) ------------------------------------ */

/** @return what the last drop of a record comes from */
static inline enum drop_class class_of_drop(const struct netobs_turn *turn)
{
	return drop_class(turn->drop_cause, turn->drop_function);
}

struct evidence {
	struct netobs_host sums[ENDS]; /* of the window; accept_queue is the largest */
	bool has_host[ENDS], has_queues[ENDS]; /* there are records of it */
	uint32_t missing_points;
	int64_t cpu_ns[ENDS]; /* how long threads waited for a CPU in the window */
	/* Bytes that arrived at the uplink while traced packets did: of other flows, and of all; before, and now. */
	uint64_t others[ENDS][2], all[ENDS][2];
};

void evidence_collect(const struct talk *talk, struct evidence *evidence);

/** @return whether other flows fill the last link in front of an end since the window has begun */
bool evidence_is_full(const struct evidence *evidence, int end);

/** @return the cause of drops of an end's host */
uint8_t evidence_drop_cause(const struct evidence *evidence, int end,
			    enum drop_class class);

/** Name who filled the queue or used the CPU that is to blame. */
void evidence_blame(const struct talk *talk, const struct evidence *evidence,
		    struct netobs_verdict *verdict);

/* ---- Turns and their parts (turns.c, chain.c) --------------------------------------------------- */

enum { PARTS = NETOBS_VERDICT_PARTS_MAX };

struct part_key {
	uint8_t place, cause;
};

struct turn {
	int64_t begin_ns, end_ns; /* by the client's clock */
	uint32_t weight;
	bool is_connect;
	bool is_now;
	int64_t ns[PARTS];
};

struct account {
	const struct talk *talk;
	const struct evidence *evidence;
	struct part_key parts[PARTS];
	uint32_t n_parts;
	struct turn *turns;
	uint32_t n, capacity;
	const struct message *back; /* the message in the other direction of the turn */
	bool is_largest; /* of streams: no part grew, so the largest is blamed */
	bool is_ways;	 /* turns are the ways of many messages at once */
	uint32_t missing;
	uint64_t lost_bytes, dropped;
	int64_t unseen_ns,
		unlimited_ns; /* of the window: without states of threads, limits of TCP */
	int64_t lost_ns,
		guess_ns; /* of the window: by losses in the network, and of these without a record */
	int64_t assumed_ns; /* of the window: SYNs that came, and were not answered for a reason that is not known */
	const struct netobs_turn *dropping; /* the last record with drops */
	int64_t large_ns; /* of lost_ns, by messages of which no large packet arrived as before */
	uint32_t largest[ENDS]; /* the largest range from each end that arrived before */
	const struct netobs_turn *drops_of[ENDS]; /* that an end's host dropped in the window as it sent it; NULL: none */
	const struct netobs_turn *drops_at[ENDS]; /* that it dropped as it received it */
	int64_t queued_ns[ENDS][2]; /* the mean wait of messages from each end in their host's queue; before, and now */
	int64_t stopped_ns; /* how long the server's process was stopped in the window */
	uint32_t n_whole; /* messages of the window that lost nothing */
	/* Turns of the window with a last answer: what the client did until its next connection is not known. */
	uint32_t n_last;
	struct stream_sums {
		uint64_t out, in; /* bytes that left and arrived, all in all */
		uint64_t again;	  /* that were sent once more */
		uint64_t out_now, in_now; /* in the window */
	} streams[ENDS];		  /* by sender */
	uint64_t bytes[2];		  /* of streams: before, and now */
	int64_t first_ns; /* of streams: the first slice begins */
};

/** Add time to a part. */
void account_give(struct account *account, struct turn *turn, uint8_t place,
		  uint8_t cause, int64_t ns);

/** @return the place between the hosts; if the @other one is silent, it is not known apart from that host */
uint8_t account_between(const struct account *account, int other);

/** Time that a thread spends: running and asleep is the process's, the rest its host's or who stopped it. */
void account_threads(struct account *account, struct turn *turn, int end,
		     uint8_t cause, const struct netobs_turn *record, int phase,
		     int64_t ns);

/** Time that goes by because bytes were lost: find where. @r: NULL: it has no record */
void account_loss(struct account *account, struct turn *turn, int sender,
		  const struct netobs_turn *s, const struct netobs_turn *r,
		  int64_t ns);

/** @return bytes that a host has dropped, and that were missing then */
uint64_t account_dropped(const struct netobs_turn *record);

/** Time that goes by because an end's host has dropped packets, which @record counts. */
void account_drop(struct account *account, struct turn *turn, int end,
		  const struct netobs_turn *record, int64_t ns);

/** Time that TCP does not send in, by what keeps it. */
void account_limits(struct account *account, struct turn *turn, int sender,
		    const struct netobs_turn *s, const struct netobs_turn *r,
		    int64_t ns);

/** Divide the time of a request and its answer. @answer: NULL: none */
void chain_divide(struct account *account, struct turn *turn,
		  const struct message *request, const struct message *answer);

/** Divide the time of a handshake. */
void chain_connect(struct account *account, struct turn *turn,
		   const struct message *connect);

/** Make turns of all messages. @return 0; -ENOMEM */
int turns_make(struct account *account);

/** Make turns of the slices of streams, each as long as its slice. @return 0; -ENOMEM */
int streams_make(struct account *account);

/** Make a turn of each slice of many messages at once: of how long the bytes take, the mean. @return 0; -ENOMEM */
int ways_make(struct account *account);

/** @return a turn that is added; NULL: no memory */
struct turn *turns_add(struct account *account, int64_t begin_ns,
		       int64_t end_ns, uint32_t weight);

static inline uint8_t host_place(int end)
{
	return end == CLIENT ? NETOBS_PLACE_CLIENT_HOST :
			       NETOBS_PLACE_SERVER_HOST;
}

static inline uint8_t process_place(int end)
{
	return end == CLIENT ? NETOBS_PLACE_CLIENT_PROCESS :
			       NETOBS_PLACE_SERVER_PROCESS;
}

/* ---- Blame (blame.c) ------------------------------------------------------------------------------ */

/** Judge the turns. @norm: NULL: only the time before tells what is normal */
void blame_judge(struct account *account, const struct netobs_verdict *norm,
		 struct netobs_verdict *verdict);

#endif
