/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Structs that the programs which follow TCP sockets and user space share. */
#ifndef NETOBS_BPF_SESSION_H
#define NETOBS_BPF_SESSION_H

#include "types.h"

/* Evidence that a process owns a socket; a higher one replaces a lower one. */
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

/* Key of a control group, in all hierarchies. */
struct session_cgroup_key {
	__u64 id; /* in its hierarchy */
	__u32 hierarchy;
	__u32 reserved;
};

enum {
	SESSION_COMM_LEN = 16,
	SESSION_CGROUP_LEVELS = 10, /* levels of a path that are kept */
	SESSION_CGROUP_NAME = 128,  /* bytes of a level's name, with its NUL */
	SESSION_CGROUPS_MAX =
		16384, /* groups with a kept path; groups of sockets go first */
	SESSION_PATHS = 4, /* paths that a CPU can put together at a time */
	SESSION_SHARED_MAX = 4096, /* sockets of MPTCP with a known owner */
	SESSION_NAMES_MAX = 1024,  /* processes whose whole names are known */
};

/* The names in the path of a control group, its own first. */
struct session_cgroup {
	__u32 round; /* last session_round.number in which a socket had the group */
	__u16 n;
	__u16 is_cut; /* the path has more levels, or longer names */
	char names[SESSION_CGROUP_LEVELS][SESSION_CGROUP_NAME];
};

/* Rounds in which user space looks for control groups that no socket has. */
struct session_round {
	__u32 number;
};

/* A process whose name fills the 15 bytes that the kernel keeps. */
struct session_name_key {
	__u64 exec; /* as in session_owner */
	__u32 tgid;
	__u32 reserved;
	char comm[SESSION_COMM_LEN];
};

/* Where its whole name may be. */
struct session_name {
	char file[68]; /* name of the file that it executes, perhaps cut */
	__u32 n;       /* bytes of arguments */
	char arguments[312];
};

struct session_owner {
	__u64 pid_tgid; /* as bpf_get_current_pid_tgid() */
	__u64 exec; /* differs for another process with this number, and another program in it */
	__u64 cgroup_id; /* of cgroup v2 */
	struct session_cgroup_key cgroup;
	__u32 uid;
	__u8 by; /* enum session_by */
	__u8 reserved[3];
	char comm[SESSION_COMM_LEN]; /* of the thread group's leader: /proc/PID/comm */
	char thread[SESSION_COMM_LEN]; /* of the thread; "": not known */
};

/* The end of a connection, as its socket saw it. */
struct session_end {
	__u64 time_ns;	  /* CLOCK_BOOTTIME; 0: it has not ended */
	__u16 error;	  /* sk_err */
	__u8 state;	  /* before TCP_CLOSE */
	__u8 is_followed; /* the socket connects again, and has other addresses */
	__u8 reserved[4];
};

/* Storage of a socket. */
struct session_socket {
	struct session_owner owners[2]; /* one is valid while the other is written */
	__u32 valid;			/* index of the valid one */
	__u32 is_written;	/* another CPU is writing the other one */
	__u64 start_ns;		/* CLOCK_BOOTTIME; 0: unknown */
	struct session_end end; /* not reported yet */
	__u8 opened;		/* enum session_opened */
	__u8 is_shared;		/* several processes held it at the start */
	__u8 is_kept; /* session_queued has a copy of the connection as it ended */
	__u8 state; /* last state, if the end may be missed; or 0 */
	/* For UDP sockets only, but is_unreported: */
	__u32 ends; /* ends_of() when the owner was last reported */
	__u64 reported_ns;
	__u16 is_unreported; /* the owner has changed since; of MPTCP, since it was shared */
	__u16 n_in_row; /* reports of changes, each soon after the previous one */
	__u32 listed; /* session_list.number of the last list by files that has it */
	/* TCP, in kernel ticks: limited by the send buffer, which the kernel does not count. */
	__u32 full_ticks;
	__u32 full_until; /* when that was last added to */
};

/* The list of sockets that is being written. */
struct session_list {
	__u32 number;
	__u32 is_last; /* the other programs do not run any more */
	__u32 room;    /* bytes of the ring buffer that it may fill */
};

/*
 * A connection in the ring buffer, when it ends and in lists of open connections. With
 * config_owners, only the first SESSION_OWNED_SIZE bytes, also for UDP sockets.
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
	__u8 is_dual; /* not IPV6_V6ONLY: the local address :: includes IPv4 */
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
	/*
	 * Kernel ticks with data in flight; of these, limited by the receiver's window; by the send
	 * buffer.
	 */
	__u32 busy_ticks, rwnd_ticks, sndbuf_ticks;
};

enum {
	SESSION_OWNED_SIZE = __builtin_offsetof(struct session_event, bytes_acked)
};

/* Counters of connections per CPU; only sums over all CPUs are meaningful. */
struct session_counts {
	__u64 open; /* connections with a start that have not ended */
	__u64 ended;
	__u64 lost; /* ended connections that found no room in the ring buffer */
	__u64 cgroups;	    /* paths that are kept */
	__u64 cgroups_lost; /* paths that found no room */
	__u64 owners_lost; /* owners of UDP sockets, not reported: ring buffer full */
};

#endif
