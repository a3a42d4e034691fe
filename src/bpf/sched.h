/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Types that the programs about threads share with user space. */
#ifndef NETOBS_BPF_SCHED_H
#define NETOBS_BPF_SCHED_H

#include "bpf/types.h"

enum {
	SCHED_THREADS_MAX = 4096,
	SCHED_BITS = 1 << 16,
	SCHED_WAITERS =
		4, /* watched threads that wait for a CPU, of which the time of others is noted */
	SCHED_SHARES_MAX = 4096,
	SCHED_DEPTH = 6, /* of control groups, from the thread's own one upwards */
};

/* The values of enum netobs_thread_state, and: */
enum sched_thread_state {
	SCHED_RUN,
	SCHED_WAIT,
	SCHED_SLEEP,
	SCHED_STOP,
	SCHED_GONE,    /* the thread has ended */
	SCHED_UNKNOWN, /* there was no change since it is watched */
	SCHED_MADE, /* of changes: a watched thread of its process has made it */
};

/* A watched thread has changed its state. */
struct sched_change {
	__u64 at_ns; /* CLOCK_BOOTTIME */
	__u32 tid;
	__u32 pid;  /* of SCHED_MADE: its process */
	__u8 state; /* enum sched_thread_state */
	__u8 was;   /* the state before */
	__u8 reserved[6];
};

/* A watched thread: in one word, so that user space reads parts that belong together. */
struct sched_thread {
	__u64 last; /* its last change: at_ns << SCHED_STATE_BITS | state */
	__u32 cpu;  /* where it waits */
	__u32 reserved;
};

enum { SCHED_STATE_BITS = 3 };

/* Programs read it at each switch. User space sets the bits. */
struct sched_control {
	__u64 bits[SCHED_BITS / 64]; /* a bit for each watched thread, by the lower bits of its number */
	__u64 lost;	 /* changes that the ring had no room for */
	__u64 has_quota; /* a watched thread has waited for the quota of its group */
};

/* The watched threads that wait for a CPU. Who holds the lock of its run queue may write. */
struct sched_cpu {
	struct {
		__u64 since_ns;
		__u64 task;  /* its address in the kernel */
		__u64 group; /* whose quota is used up, its address; 0: none */
		__u64 tid;   /* 0: none */
	} waiters[SCHED_WAITERS];
};

enum { SCHED_IS_GROUP = 1U << 31 };

/* CPU time that a process had while a thread waited, or as a member of a control group. */
struct sched_share_key {
	__u32 whose; /* the thread; or the inode of the group | SCHED_IS_GROUP */
	__u32 pid;   /* 0: none, since the thread's group was throttled */
};

struct sched_share {
	__u64 ns;
	union {
		char command[16];
		/* The group that was throttled, if pid is 0. */
		struct {
			__u32 inode, level; /* of its directory; 0: the root */
			__u32 times; /* that it has been throttled, as cpu.stat has it */
		} group;
	};
};

#endif
