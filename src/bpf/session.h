/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the programs that follow TCP sockets and user space share. */
#ifndef NETOBS_BPF_SESSION_H
#define NETOBS_BPF_SESSION_H

#include "types.h"

/* How a process is known to own a socket; a higher one replaces a lower one. */
enum session_by {
	SESSION_BY_NONE, /* no process is known */
	SESSION_BY_HOLDING, /* it alone had the socket open when the programs started */
	SESSION_BY_CLOSING, /* it closed the socket or shut it down */
	SESSION_BY_OPENING, /* it connected, or accepted */
	SESSION_BY_USING,   /* it sent or received last */
};

enum session_opened {
	SESSION_OPENED_UNKNOWN,
	SESSION_OPENED_ACTIVE,
	SESSION_OPENED_PASSIVE,
};

/* Of a control group, in all hierarchies. */
struct session_cgroup_key {
	__u64 id; /* in its hierarchy */
	__u32 hierarchy;
	__u32 reserved;
};

enum {
	SESSION_COMM_LEN = 16,
	SESSION_CGROUP_LEVELS = 10, /* of a path that is known */
	SESSION_CGROUP_NAME = 128,  /* bytes of a name in it, with its NUL */
	SESSION_CGROUPS_MAX =
		16384, /* groups with a kept path; groups of sockets go first */
	SESSION_PATHS = 4, /* put together on a CPU at a time */
};

/* The names in the path of a control group, its own first. */
struct session_cgroup {
	__u32 round; /* session_round.number, in which a socket had it */
	__u16 n;
	__u16 is_cut; /* there are more, or longer ones */
	char names[SESSION_CGROUP_LEVELS][SESSION_CGROUP_NAME];
};

/* How often user space has looked for those that no socket has. */
struct session_round {
	__u32 number;
	__u32 left; /* sockets that a read of the iterator that marks may still visit */
};

struct session_owner {
	__u64 pid_tgid;	 /* as bpf_get_current_pid_tgid() */
	__u64 cgroup_id; /* of cgroup v2 */
	struct session_cgroup_key cgroup;
	__u32 uid;
	__u8 by; /* enum session_by */
	__u8 reserved[3];
	char comm[SESSION_COMM_LEN];
};

/* How a connection ended, as far as its socket has seen. */
struct session_end {
	__u64 time_ns;	  /* CLOCK_BOOTTIME; 0: it has not ended */
	__u16 error;	  /* sk_err */
	__u8 state;	  /* before TCP_CLOSE */
	__u8 is_followed; /* the socket connects again, and has other addresses */
	__u8 reserved[4];
};

/* What is kept with a socket. */
struct session_socket {
	struct session_owner owners[2]; /* one is valid while the other is written */
	__u32 valid;			/* its index */
	__u32 is_written;		/* the other one, by another CPU */
	__u64 start_ns;			/* CLOCK_BOOTTIME; 0: unknown */
	struct session_end end;		/* to be reported */
	__u8 opened;			/* enum session_opened */
	__u8 is_shared; /* several processes held it at the start */
	__u8 is_kept;	/* session_queued has a copy, as of its end */
	__u8 state;	/* last state seen, if the end was missed; or 0 */
	/* Of UDP, when its owner was last reported: */
	__u32 ends; /* what its addresses and ports were */
	__u64 reported_ns;
	__u16 is_unreported; /* it has changed since */
	__u16 n_in_row; /* reports of that, each soon after the one before */
	__u32 listed; /* session_list.number, by which it was last listed by its files */
};

/* The list of sockets that is being made. */
struct session_list {
	__u32 number;
	__u32 is_last; /* no other program runs any more */
};

/*
 * A connection, in the ring buffer once it has ended, and when those that live are listed. Where
 * only owners are wanted, the first SESSION_OWNED_SIZE bytes, also of sockets of UDP.
 */
struct session_event {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u64 start_ns;
	struct session_end end;
	struct session_owner owner;
	__u8 local[16], remote[16]; /* IPv4 as ::ffff:a.b.c.d */
	__u16 local_port, remote_port;
	__u32 netns;  /* inode */
	__u64 cookie; /* of the socket */
	__u8 opened;  /* enum session_opened */
	__u8 state;
	__u8 protocol;
	__u8 is_dual; /* bound to no address of IPv6, and so to none of IPv4 */
	__u8 has_fin; /* of the other end; bytes_received counts it */
	__u8 reserved[3];
	__u64 bytes_acked;
	__u64 bytes_received;
	__u64 bytes_sent;
	__u64 bytes_retrans;
	__u32 segs_out, segs_in;
	__u32 data_segs_out, data_segs_in;
	__u32 retransmits;
	__u32 lost;
	__u32 reordering;
	__u32 reordered; /* segments seen out of order */
	__u32 delivered, delivered_ce;
	__u32 dsack_dups;
	__u32 srtt_us, rttvar_us;
	__u32 min_rtt_us; /* UINT32_MAX: none was measured */
	__u32 cwnd;
	__u32 mss;
	/* Ticks of the kernel: with data in flight; of these, limited by either. */
	__u32 busy_ticks, rwnd_ticks, sndbuf_ticks;
};

enum {
	SESSION_OWNED_SIZE = __builtin_offsetof(struct session_event, bytes_acked)
};

/* Of connections; only the sums over all CPUs mean something. */
struct session_counts {
	__u64 open; /* that have a start and have not ended */
	__u64 ended;
	__u64 lost;	    /* of these: there was no room in the ring buffer */
	__u64 cgroups;	    /* paths kept */
	__u64 cgroups_lost; /* there was no room */
	__u64 owners_lost; /* owners of UDP sockets, not reported: ring buffer full */
};

#endif
