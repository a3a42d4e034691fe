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
#ifndef NETOBS_NAT_TRANSLATION_TABLE_H
#define NETOBS_NAT_TRANSLATION_TABLE_H

#include "base/clock.h"
#include "base/util.h"
#include "bpf/nat.h"
#include "bpf/types.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Faces of translations that found no room in the table. The table may have other translations
 * with such a face, so for packets that have it, the translation is unknown. This is a set of
 * hashes: a face may be taken for a lost one by mistake, but no lost face is missed.
 */

/* The generation that programs write to, and the previous one, which is being read. */
enum { LOST_GENERATIONS = 2 };

struct lost_faces {
	uint64_t *sets[LOST_GENERATIONS]; /* take memory as they are used */
	bool is_used[LOST_GENERATIONS];
	uint32_t current;
};

enum { BEFORE, AFTER, SIDES };

/* A face is SIDES * direction + side. */
enum { FACES = NAT_DIRECTIONS * SIDES };

enum {
	TRANSLATIONS_MAX = 1 << 18,
	TRANSLATION_KEEP_S = 60, /* after its last packet or its end */
};

/* Certainty that a translation is that of a conversation that goes on. */
enum {
	STAGE_ENDED, /* the conversation has ended */
	STAGE_ASKED, /* no packet has come back */
	STAGE_ANSWERED,
	STAGE_SETTLED, /* the client has sent more after the answer */
	STAGES,
};

/* Evidence about a translation. */
enum {
	SIGN_ANSWERED = 1 << 0, /* a packet of the reply direction was seen */
	SIGN_GOES_ON =
		1 << 1, /* a later packet of the original direction than the first was seen */
	SIGN_LASTS = 1 << 2, /* packets over TRANSLATION_GRACE_NS, or the kernel says so (assured) */
};

/*
 * A translation applies to packets up to this time after its last report, since the kernel
 * forwards some packets without an entry (flowtable), and reports may be lost. The kernel keeps
 * an entry for at least as long.
 */
#define TRANSLATION_GRACE_NS (10 * NSEC_PER_SEC)

enum {
	/* The most translations with a face that are examined, from the one reported last on. */
	TRANSLATION_LOOKS = 64,
	/* A packet has the time of the clock's tick, and its report comes later. */
	TRANSLATION_SLACK_NS = 50 * NSEC_PER_MSEC,
};

struct tuple {
	struct ip_addr src, dst;
	uint16_t src_port, dst_port; /* as in keys of flows */
	uint32_t reserved;
};

struct translation {
	int64_t first_ns, last_ns; /* reported, or used before the last drain */
	int64_t used_ns; /* time of an entry of that drain that used it */
	struct tuple before[NAT_DIRECTIONS];
	/* Lists of the faces in one bucket: nodes; 0: none. */
	uint32_t next[FACES], previous[FACES];
	/* Interfaces where packets have a face: of the last report, and one before. */
	uint32_t ifindex[FACES];
	union {
		uint32_t former[FACES];
		struct {
			uint64_t cookie;
			uint32_t inode; /* of its namespace */
			bool is_another; /* another socket had its tuple just before */
			bool is_followed; /* its end is reported, although nothing is translated */
		} socket;
	};
	uint32_t serial; /* of the translation at this index; odd: the index is free */
	uint32_t drains; /* translation_table.drains when it was last reported, */
	uint32_t used_drains; /* and when used_ns was set */
	uint16_t netns;
	uint16_t zone;
	uint8_t proto;
	bool is_seen; /* a packet of it was reported */
	uint8_t stage, signs;
	uint32_t older, newer; /* of its stage: 1 + index; 0: none */
	bool of_socket; /* at its connect(); has no interfaces: see translations.h */
	bool is_partial; /* the socket's own address is not known yet: packets provide it */
	uint8_t more_ways; /* bit per face: it had more than two interfaces */

	/* For mappings.h: the lifetime of the kernel's entry. */
	int64_t born_ns;  /* 0: the entry existed before the first report */
	int64_t ended_ns; /* 0: it has not ended */
	uint32_t look_s;  /* when it is looked at next */
	uint16_t src_port; /* of the original direction, as in the kernel's tuple */
	uint16_t dst_port;
};

_Static_assert(sizeof(struct translation) == 224, "56 MiB of them");

/* Callbacks for translations that begin and end; each is valid during the call. */
struct translation_watch {
	/* The translation has been added; or it had ended, and is in use again. */
	void (*begun)(void *ctx, struct translation *translation);
	/* The translation is known to end now. */
	void (*ended)(void *ctx, struct translation *translation, int64_t now_ns);
	/* The translation is about to be removed. */
	void (*removed)(void *ctx, const struct translation *translation,
			int64_t now_ns);
	void *ctx;
};

/* The key that chooses the bucket of a face, in any namespace. */
struct face_key {
	struct tuple tuple;
	uint8_t proto;
	uint8_t side;
	bool of_socket; /* of translations by sockets, not by packets */
	uint8_t reserved;
	uint32_t reserved2;
};

/* The translations of a stage: see translation_order_add(). */
struct stage {
	uint32_t oldest, newest; /* 1 + index; 0: none */
	uint32_t n;
};

struct translation_table {
	struct translation *list; /* takes memory as it is used */
	uint32_t max;		  /* TRANSLATIONS_MAX; tests have less */
	uint32_t n;		  /* indexes that have been used */
	uint32_t first_free; /* 1 + the index of a free translation; 0: none */
	struct stage stages[STAGES];
	struct lost_faces lost;
	uint32_t *heads;
	uint32_t secret[12];
	uint32_t drains; /* that there have been */
	/* Entries since then are still unread; begun_ns applies from the next drain on. */
	int64_t unread_ns, begun_ns;
	bool is_held; /* a drain searches the table: nothing is added or removed */
	uint64_t known, refused;
	int64_t lost_ns; /* when an entry in use was last refused or removed; 0: never */
	const struct translation_watch *watch; /* or NULL */
};

/* Time of the last report or use, which is constant for all entries of one drain. */
static inline int64_t translation_last(const struct translation_table *table,
				       const struct translation *translation)
{
	const bool is_new = translation->used_drains == table->drains;

	return !is_new && translation->used_ns > translation->last_ns ?
		       translation->used_ns :
		       translation->last_ns;
}

/*
 * The choice of a translation to make room for a new one. A flood from forged addresses makes many
 * translations without further packets; conversations go on. So each translation has a stage, and
 * each stage has a list, ordered by the last packet. The work is constant.
 */

/* @translation was added to the table (add), or has had a packet (renew). */
void translation_order_add(struct translation_table *table,
			   struct translation *translation);
void translation_order_renew(struct translation_table *table,
			     struct translation *translation);

void translation_order_remove(struct translation_table *table,
			      const struct translation *translation);

/*
 * Find the translation to evict. First choice is the one that ended first. If fewer than a
 * quarter of the table are not settled, the next choice is the settled one without a packet for
 * longest, at least for a minute. Then comes the oldest of those without an answer, or of those
 * with one, whichever are more.
 *
 * @return NULL: all have to stay
 */
struct translation *
translation_order_find_first(const struct translation_table *table,
			     int64_t now_ns);

/* Add, remove and find translations, also by face. */

/** @return 0; -ENOMEM */
int translation_table_init(struct translation_table *table);

void translation_table_done(struct translation_table *table);

/* Note what a program has reported. */
void translation_table_note(struct translation_table *table,
			    const struct nat_event *event);

/*
 * Note an entry of a list of the kernel's. None of its packets has been seen: flows do not use it
 * before a packet is reported. @return its translation; NULL: there is no room
 */
struct translation *translation_table_list(struct translation_table *table,
					   const struct nat_event *event);

/* @return the translation of that entry; NULL: the table has none */
struct translation *translation_table_find(const struct translation_table *table,
					   const struct nat_event *event);

/* Note a socket's translation, with its birth. @return it in the table; NULL: there is no room */
struct translation *translation_table_take(struct translation_table *table,
					   const struct translation *wanted);

/* A socket's translation ends. @return it; NULL: the table has none, or it has ended before */
struct translation *translation_table_end_socket(struct translation_table *table,
						 const struct translation *wanted,
						 int64_t now_ns);

void translation_table_remove(struct translation_table *table,
			      struct translation *translation, int64_t now_ns);

/* The kernel no longer has its entry. */
void translation_table_end(struct translation_table *table,
			   struct translation *translation, int64_t now_ns);

/* Add evidence about @translation: SIGN_*. */
void translation_table_sign(struct translation_table *table,
			    struct translation *translation, uint8_t signs);

/* @return a translation with the data of an event */
struct translation translation_of_event(const struct nat_event *event);

static inline bool translation_is_there(const struct translation *translation)
{
	return !(translation->serial & 1);
}

/* Programs will write to another generation from now on. */
void translation_table_begin(struct translation_table *table, int64_t now_ns);

/* A face of a translation is a node: 1 + index * FACES + face. 0: there is none. */
uint32_t translation_table_first(const struct translation_table *table,
				 const struct face_key *key);
/* The next node with that face; translations reported last come first. */
uint32_t translation_table_next(const struct translation_table *table,
				uint32_t node, const struct face_key *key);

/* @return whether packets may have had a translation with that face that found no room */
bool translation_table_has_lost(const struct translation_table *table,
				const struct face_key *key);

static inline struct translation *
translation_of(const struct translation_table *table, uint32_t node)
{
	return &table->list[(node - 1) / FACES];
}

static inline uint32_t translation_node(const struct translation_table *table,
					const struct translation *translation,
					uint32_t face)
{
	return 1 + (uint32_t)(translation - table->list) * FACES + face;
}

static inline uint32_t face_of(uint32_t node)
{
	return (node - 1) % FACES;
}

/* The tuple of packets with that face. */
struct tuple translation_tuple(const struct translation *translation,
			       uint32_t face);

/* @return whether its packets get other addresses or ports */
bool translation_changes(const struct translation *translation);

/* An entry uses a face of a translation, although reports of its packets may have ended. */
void translation_use(struct translation_table *table, uint32_t node,
		     const struct flow_tally *tally);

/* @return whether all entries with packets of the translation have been read */
static inline bool translation_is_read(const struct translation_table *table,
				       const struct translation *translation)
{
	return translation_last(table, translation) < table->unread_ns;
}

/*
 * Finds the translation of an entry's packets: the one with that tuple that was in use at the same time
 * and place. Several translations may have the same tuple, so an answer may be ambiguous.
 */

/*
 * Finds the socket whose translation packets with a tuple have, by its namespace and the time.
 * Several sockets may have the same tuple, so an answer may be ambiguous.
 */

struct host;

struct search_result {
	uint32_t node; /* of the table; 0: none */
	bool is_ambiguous; /* other sockets are as likely, with another tuple on the other side */
};

/* The tuple to search, where packets have it, and when. */
struct socket_search {
	const struct host *host; /* NULL: it is not known */
	const struct translation_table *table;
	const struct flow_entry *entry; /* has the time and the protocol */
	struct tuple tuple;
	uint16_t netns;
	uint32_t ifindex;
	bool is_sent_here; /* a socket of that namespace sent the packets */
	uint32_t inode; /* of the socket's namespace; 0: unknown, see netns */
};

/*
 * @return whether some packets of that time belong to other sockets: they were sent with the
 * same tuple before this socket connected, or after its end
 */
bool socket_has_others(const struct translation *translation, int64_t first_ns,
		       int64_t last_ns);

/* Find the translation of the socket that sends (NAT_ORIGINAL) or receives such packets. */
struct search_result search_socket(const struct socket_search *search,
				   uint32_t dir);

/* The face to search for an entry: its tuple and place. */
struct face_search {
	const struct host *host; /* NULL: it is not known */
	const struct translation_table *table;
	const struct flow_entry *entry;
	struct tuple tuple;
	uint16_t netns;
	uint8_t side;
	bool is_elsewhere; /* in other namespaces of the same domain, */
	bool is_own_tuple; /* and in this one, if packets were sent back; it is the entry's own */
	bool is_anywhere; /* also in this one, at the entry's interface, or any if it has none */
};

/* @return a search for the entry's own tuple at its own interface */
struct face_search search_for(const struct host *host,
			      const struct translation_table *table,
			      const struct flow_entry *entry);

struct search_result search_face(const struct face_search *search);

/* The flow's tuple where its packets came in, before the first translation that is known. */
struct origin {
	struct tuple tuple;
	uint32_t hops; /* translations from there to the entry */
	uint32_t node; /* face of the entry in the last of these translations */
	uint32_t known; /* as node; also set for packets that a process sends there */
	uint32_t first;	   /* node of the first translation that is known */
	bool is_ambiguous; /* the last translation is not known */
};

struct origin search_origin(const struct host *host,
			    const struct translation_table *table,
			    const struct flow_entry *entry);

/* Find where packets were before the translation of @node, a face after it; 0: at the entry. */
struct socket_search search_sender(const struct host *host,
				   const struct translation_table *table,
				   const struct flow_entry *entry, uint32_t node);

/*
 * Find the conversation's tuple: that of its first packet, before any translation of this host,
 * with the address that the process asked for. @return whether it is known: translations of
 * several namespaces may lead back to each other
 */
bool search_conversation(const struct host *host,
			 const struct translation_table *table,
			 const struct flow_entry *entry, uint32_t node,
			 struct tuple *ret_tuple);

/* Like search_conversation(), for packets seen anywhere on their way, or at its end. */
bool search_passing(const struct host *host,
		    const struct translation_table *table,
		    const struct flow_entry *entry, struct tuple *ret_tuple);

uint64_t tuple_conversation(const struct tuple *tuple, uint8_t proto);

#endif
