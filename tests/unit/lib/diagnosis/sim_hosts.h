/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Two hosts that talk, and what their tracers record of it. Time passes by one clock, and is known exactly:
 * a fault says how much longer the turns took because of it. It shares no code with the library.
 */
#ifndef SIM_HOSTS_H
#define SIM_HOSTS_H

#include <netobs/diagnosis.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of time; the process that fills queues, and the last byte of its address. */
enum {
	SIM_US = 1000,
	SIM_MS = 1000 * SIM_US,
	SIM_RIVAL = 999,
	SIM_OTHER = 250
};

enum { SIM_NOISE = 2 };

enum sim_kind { SIM_TCP, SIM_UDP, SIM_STREAM };

/* Of a fault, enum netobs_verdict_place and cause name what it is. */
struct sim_fault {
	uint8_t number; /* of sim_add_fault() */
	uint8_t place, cause;
	uint8_t variant; /* of faults that show in two ways; any number */
	int64_t ns;	 /* the mean of what it adds, each time */
	double chance;	 /* of each time */
	int64_t added_ns; /* the truth: how much longer all turns of the window took */
};

struct sim {
	/* What it is made of: sim_draw() chooses, a test may change it before sim_run(). */
	uint32_t seed;
	enum sim_kind kind;
	struct sim_fault faults[SIM_NOISE + 2]; /* two, what else is lost in the window, and before */
	uint32_t n_faults;
	bool is_noisy; /* packets are lost, threads wait, and others have counted drops, at any time */
	bool has_gso;	       /* packets at the uplink have many segments */
	bool has_accept;       /* it is known when connections were accepted */
	bool has_nat[2];       /* by side: 0: the client's, 1: the server's */
	unsigned int hosts[2]; /* the numbers of their tracers */
	int64_t begin_ns, since_ns, until_ns; /* the time before, and the window */
	int64_t offset_ns; /* of the server's clock to the client's */
	double drift;
	int64_t step_ns, step_at_ns; /* it jumps by as much */
	int64_t way_ns[2];	     /* by direction */
	int64_t thinks_ns[2];	     /* by side */
	uint32_t bytes[2];	     /* the mean, by direction */
	uint32_t turns;		     /* of a connection */
	uint32_t n_data; /* datagrams have so many different data, which identify them; 0: IP does */
	uint8_t client, service; /* numbers of them, in addresses and ports */
	int way;		 /* the direction of a stream */

	/* What has happened. */
	struct netobs_record **records;
	unsigned int *makers; /* the host of each */
	uint32_t *turns_of;   /* the number of its turn */
	uint32_t n, room;
	uint64_t random;
	int64_t took_ns;	/* all turns of the window */
	uint32_t n_turns, turn; /* in the window; of all, the last one */

	/* Until it has. */
	struct sim_connection {
		uint64_t id;
		uint16_t port, wire_port;
		uint32_t seq[2];
		int64_t offset[2];
		uint32_t cwnd[2], mss;
	} connection;
	uint64_t waits[2][NETOBS_QUEUE_KINDS][128]; /* by side */
	struct netobs_host counted[2][32];	    /* by second */
	uint32_t lost_by; /* the fault that lost the last packet */
};

enum { SIM_FAULTS = 35 };

/* A random configuration without faults. */
void sim_draw(struct sim *sim, uint32_t seed, enum sim_kind kind);

/* Add a fault, by a number below SIM_FAULTS. @return false: this kind has none of it */
bool sim_add_fault(struct sim *sim, uint32_t number);

void sim_run(struct sim *sim);
void sim_clear(struct sim *sim);

/* The time by the clock of a side. */
int64_t sim_clock(const struct sim *sim, int side, int64_t ns);

/* ---- Between sim_hosts.c and sim_world.c ------------------------------------------------------- */

double sim_unit(struct sim *sim);		 /* from 0 to 1 */
uint32_t sim_below(struct sim *sim, uint32_t n); /* from the run's sequence */
int64_t sim_some(struct sim *sim, int64_t mean); /* exponential */

/* @return the fault, if it is active; NULL: it is not */
struct sim_fault *sim_find(struct sim *sim, uint8_t place, uint8_t cause,
			   int64_t at);

/* @return by how much longer it takes because of a fault, which is noted */
int64_t sim_hit(struct sim *sim, uint8_t place, uint8_t cause, int64_t at);

uint8_t sim_process(int side);
uint8_t sim_host(int side);

struct netobs_turn sim_turn(const struct sim *sim, int side, int direction,
			    uint32_t bytes);
void sim_deliver(struct sim *sim, int side, struct netobs_turn *turn);
void sim_note_wait(struct sim *sim, int side, int kind, int64_t at, int64_t ns);
void sim_count_turn(struct sim *sim, int64_t from, int64_t until);
struct netobs_host *sim_counters(struct sim *sim, int side, int64_t at);
void sim_stream(struct sim *sim);
void sim_end(struct sim *sim); /* records of queues and hosts */

#endif
