/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The translations that the programs have reported: a table of conntrack entries.
 *
 * An entry has a tuple for each direction, as packets of that direction are before
 * translation. So it has four faces: in both directions before and after. A packet that comes in
 * at an interface has its face before, and one that leaves has its face after. Say 10.0.0.2
 * asks 192.0.2.1 through a router with the address 198.51.100.1:
 *
 *	original, before	10.0.0.2 > 192.0.2.1		comes in from the client
 *	original, after		198.51.100.1 > 192.0.2.1	leaves to the server
 *	reply, before		192.0.2.1 > 198.51.100.1	comes in from the server
 *	reply, after		192.0.2.1 > 10.0.0.2		leaves to the client
 *
 * A tuple may be a face of several translations: of one after another, and with zones at the same
 * time.
 */
#ifndef NETOBS_FLOWS_TRANSLATION_H
#define NETOBS_FLOWS_TRANSLATION_H

#include "base/clock.h"
#include "base/util.h"
#include "bpf/nat.h"
#include "bpf/types.h"
#include "lost_faces.h"

#include <stdbool.h>
#include <stdint.h>

enum { BEFORE, AFTER, SIDES };

/* A face is SIDES * direction + side. */
enum { FACES = NAT_DIRECTIONS * SIDES };

enum {
	TRANSLATIONS_MAX = 1 << 18,
	TRANSLATION_KEEP_S = 60, /* after its last packet or its end */
};

/* How surely a translation is that of a conversation that goes on. */
enum {
	STAGE_ENDED, /* it does not */
	STAGE_ASKED, /* nothing has come back */
	STAGE_ANSWERED,
	STAGE_SETTLED, /* the one that asked has gone on then */
	STAGES,
};

/* What was noticed of it. */
enum {
	SIGN_ANSWERED = 1 << 0, /* a packet of the reply direction */
	SIGN_GOES_ON =
		1 << 1, /* one of the original direction that is not its first one */
	SIGN_LASTS = 1 << 2, /* packets over TRANSLATION_GRACE_NS, or the kernel says so (assured) */
};

/*
 * A translation is used for packets up to so long after the last report of it: of packets that the
 * kernel forwards without an entry (flowtable), and of those whose report was lost. The kernel
 * keeps an entry for at least as long.
 */
#define TRANSLATION_GRACE_NS (10 * NSEC_PER_SEC)

enum {
	/* With a face, from that which was reported last on, that are looked at. */
	TRANSLATION_LOOKS = 64,
	/* A packet has the time of the clock's tick, and is reported some time after it came in. */
	TRANSLATION_SLACK_NS = 50 * NSEC_PER_MSEC,
};

struct tuple {
	struct ip_addr src, dst;
	uint16_t src_port, dst_port; /* as in keys of flows */
	uint32_t reserved;
};

struct translation {
	int64_t first_ns, last_ns; /* reported, or used before the last drain */
	int64_t used_ns;	   /* by an entry of that drain */
	struct tuple before[NAT_DIRECTIONS];
	/* Lists of what has one place: nodes; 0: none. */
	uint32_t next[FACES], previous[FACES];
	/* Where packets have it: the interface of the last report, and another one before. */
	uint32_t ifindex[FACES];
	union {
		uint32_t former[FACES];
		struct {
			uint64_t cookie;
			uint32_t inode; /* of its namespace */
			bool is_another; /* another one had its tuple just before */
			bool is_followed; /* its end is known, although it changes nothing */
		} socket;
	};
	uint32_t serial; /* of what is at its place; odd: nothing is */
	uint32_t drains; /* as translation_table.drains, when it was reported last, */
	uint32_t used_drains; /* and when used_ns was set */
	uint16_t netns;
	uint16_t zone;
	uint8_t proto;
	bool is_seen; /* a packet of it was reported */
	uint8_t stage, signs;
	uint32_t older, newer; /* of its stage: 1 + index; 0: none */
	bool of_socket; /* as it connects; it has no interfaces: see socket_translations.h */
	bool is_partial; /* the socket's own address is not known: packets complete it */
	uint8_t more_ways; /* faces that packets had at other interfaces, too, before both of these */

	/* Of mappings.h: the life of the kernel's entry. */
	int64_t born_ns;  /* 0: it is older than what is known of it */
	int64_t ended_ns; /* 0: it has not */
	uint32_t look_s;  /* when it is looked at next */
	uint16_t src_port; /* of the original direction, as in the kernel's tuple */
	uint16_t dst_port;
};

_Static_assert(sizeof(struct translation) == 224, "56 MiB of them");

/* Callbacks for translations that begin and end; each is valid during the call. */
struct translation_watch {
	/* It has been added; or it had ended, and is in use again. */
	void (*begun)(void *ctx, struct translation *translation);
	/* It is known that it ends now. */
	void (*ended)(void *ctx, struct translation *translation, int64_t now_ns);
	/* It is about to be removed. */
	void (*removed)(void *ctx, const struct translation *translation,
			int64_t now_ns);
	void *ctx;
};

/* What chooses the place of a face, in any namespace. */
struct face_key {
	struct tuple tuple;
	uint8_t proto;
	uint8_t side;
	bool of_socket; /* others than those of packets */
	uint8_t reserved;
	uint32_t reserved2;
};

/* The translations of a stage: translation_order.h. */
struct stage {
	uint32_t oldest, newest; /* 1 + index; 0: none */
	uint32_t n;
};

struct translation_table {
	struct translation *list; /* takes memory as it is used */
	uint32_t max;		  /* TRANSLATIONS_MAX; tests have less */
	uint32_t n;		  /* of these, that have been used */
	uint32_t first_free;	  /* 1 + its index; 0: none */
	struct stage stages[STAGES];
	struct lost_faces lost;
	uint32_t *heads;
	uint32_t secret[12];
	uint32_t drains; /* that there have been */
	/* Entries are still to be read from that time on; the second one: from the next drain on. */
	int64_t unread_ns, begun_ns;
	bool is_held; /* entries are searched for: what is there stays */
	uint64_t known, refused;
	int64_t lost_ns; /* when one of conntrack was refused or removed last that may go on; 0: never */
	const struct translation_watch *watch; /* or NULL */
};

/* When it was reported or used last: during a drain the same for all entries. */
static inline int64_t translation_last(const struct translation_table *table,
				       const struct translation *translation)
{
	const bool is_new = translation->used_drains == table->drains;

	return !is_new && translation->used_ns > translation->last_ns ?
		       translation->used_ns :
		       translation->last_ns;
}

#endif
