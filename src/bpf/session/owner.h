/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sockets, and the processes that they belong to. Several objects have these maps, which
 * they share.
 */
#ifndef NETOBS_BPF_SESSION_OWNER_H
#define NETOBS_BPF_SESSION_OWNER_H

#include "bpf/parse/cursor.h"
#include "bpf/session.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Macros of include/linux/sched.h, socket.h and errno.h, which BTF does not have. */
enum {
	PF_KTHREAD = 0x00200000,
	AF_INET = 2,
	AF_INET6 = 10,
	ECONNABORTED = 103
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct session_socket);
} session_sockets SEC(".maps");

/* Paths of control groups. User space removes groups that no socket has any more. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SESSION_CGROUPS_MAX);
	__type(key, struct session_cgroup_key);
	__type(value, struct session_cgroup);
} session_cgroups SEC(".maps");

/*
 * Owners of sockets of MPTCP, by cookie. Processes have these sockets, packets the kernel's sockets
 * of TCP below them, from which a program can read the cookie, but cannot reach the storage.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SESSION_SHARED_MAX);
	__type(key, __u64);
	__type(value, struct session_owner);
} session_shared SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, SESSION_NAMES_MAX);
	__type(key, struct session_name_key);
	__type(value, struct session_name);
} session_names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct session_round);
} session_round SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct session_counts);
} session_counts SEC(".maps");

/* Memory in which one program at a time puts a path or a name together. */
struct session_path {
	__u32 is_busy;
	__u32 reserved;
	union {
		struct session_cgroup names;
		struct session_name name;
	};
};

/* Several per CPU: an interrupt, or a task on preemptible kernels, may run meanwhile. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SESSION_PATHS);
	__type(key, __u32);
	__type(value, struct session_path);
} session_paths SEC(".maps");

static __always_inline bool is_ip(const struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_INET ||
	       sk->__sk_common.skc_family == AF_INET6;
}

static __always_inline bool is_tcp(const struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_TCP && is_ip(sk);
}

static __always_inline bool is_mptcp(const struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_MPTCP && is_ip(sk);
}

static __always_inline bool is_udp(const struct sock *sk)
{
	return (sk->sk_protocol == IPPROTO_UDP ||
		sk->sk_protocol == IPPROTO_UDPLITE) &&
	       is_ip(sk);
}

static __always_inline bool is_kernel_thread(const struct task_struct *task)
{
	return BPF_CORE_READ(task, flags) & PF_KTHREAD;
}

/* ---- Control groups ------------------------------------------------------------------ */

/*
 * The control group of cgroup v2. If the task is in its root, as with the hierarchies of cgroup v1,
 * the group of the memory controller: containers have one there.
 */
static __always_inline struct cgroup *cgroup_of(const struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup *v2 = BPF_CORE_READ(set, dfl_cgrp), *v1;
	struct cgroup_subsys_state *css = NULL;

	if (BPF_CORE_READ(v2, level) ||
	    !bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return v2;
	bpf_core_read(&css, sizeof(css),
		      &set->subsys[bpf_core_enum_value(enum cgroup_subsys_id,
						       memory_cgrp_id)]);
	v1 = BPF_CORE_READ(css, cgroup);
	return BPF_CORE_READ(v1, level) ? v1 : v2;
}

static __always_inline void read_path(struct cgroup *cgroup,
				      struct session_cgroup *path)
{
	path->n = path->is_cut = 0;
	for (int i = 0; i < SESSION_CGROUP_LEVELS; i++) {
		if (!BPF_CORE_READ(cgroup, level))
			return;
		if (bpf_probe_read_kernel_str(path->names[i], SESSION_CGROUP_NAME,
					      BPF_CORE_READ(cgroup, kn, name)) >=
		    SESSION_CGROUP_NAME)
			path->is_cut = 1;
		path->n++;
		cgroup = BPF_CORE_READ(cgroup, self.parent, cgroup);
	}
	if (BPF_CORE_READ(cgroup, level))
		path->is_cut = 1;
}

/* COMPAT(<6.18): after a helper got the address of a counter, the verifier assumes any value. */
static __always_inline struct session_path *claim_path(void)
{
	for (__u32 i = 0; i < SESSION_PATHS; i++) {
		const __u32 key = i;
		struct session_path *path =
			bpf_map_lookup_elem(&session_paths, &key);

		if (path && !__sync_val_compare_and_swap(&path->is_busy, 0, 1))
			return path;
	}
	return NULL;
}

static __always_inline void release_path(struct session_path *path)
{
	(void)__sync_lock_test_and_set(&path->is_busy, 0);
}

/*
 * Keep the path of a control group, whose directory may be gone when user space looks. If all
 * memory for paths is in use, the path stays unknown until the next time.
 */
static __always_inline void keep_path(struct cgroup *cgroup,
				      const struct session_cgroup_key *key)
{
	struct session_counts *counts =
		bpf_map_lookup_elem(&session_counts, &(__u32){ 0 });
	const struct session_round *round =
		bpf_map_lookup_elem(&session_round, &(__u32){ 0 });
	struct session_cgroup *known;
	struct session_path *path;

	if (!counts || !round)
		return;
	known = bpf_map_lookup_elem(&session_cgroups, key);
	if (known) {
		known->round = round->number;
		return;
	}
	path = claim_path();
	if (!path)
		return;
	read_path(cgroup, &path->names);
	path->names.round = round->number;
	if (bpf_map_update_elem(&session_cgroups, key, &path->names, BPF_NOEXIST))
		__sync_fetch_and_add(&counts->cgroups_lost, 1);
	else
		__sync_fetch_and_add(&counts->cgroups, 1);
	release_path(path);
}

/* ---- Names longer than the kernel keeps them ------------------------------------------ */

/* Compare the 15 bytes that the kernel keeps of a name. */
static __always_inline bool begins_with(const char *name, const char *comm)
{
	return *(const __u64 *)name == *(const __u64 *)comm &&
	       *(const __u32 *)(name + 8) == *(const __u32 *)(comm + 8) &&
	       *(const __u16 *)(name + 12) == *(const __u16 *)(comm + 12) &&
	       name[14] == comm[14];
}

/* @return false: they cannot be read now */
static __always_inline bool read_arguments(struct task_struct *task,
					   struct session_name *name)
{
	const __u64 start = BPF_CORE_READ(task, mm, arg_start);
	const __u64 size = LIMITED(BPF_CORE_READ(task, mm, arg_end) - start,
				   sizeof(name->arguments));

	name->n = size;
	return !bpf_probe_read_user(name->arguments, size, (const void *)start);
}

/*
 * The name of a script is in its arguments: its file is the interpreter. Only arguments of the current
 * task can be read, which one that holds a socket need not be.
 */
static __always_inline bool read_name(struct task_struct *task,
				      const struct session_owner *owner,
				      struct session_name *name)
{
	name->n = 0;
	bpf_probe_read_kernel_str(name->file, sizeof(name->file),
				  BPF_CORE_READ(task, mm, exe_file,
						f_path.dentry, d_name.name));
	return begins_with(name->file, owner->comm) ||
	       (owner->by > SESSION_BY_HOLDING && read_arguments(task, name));
}

static __always_inline void keep_name(struct task_struct *task,
				      const struct session_owner *owner)
{
	struct session_name_key key = {
		.exec = owner->exec,
		.tgid = owner->pid_tgid >> 32,
	};
	struct session_path *path;

	__builtin_memcpy(key.comm, owner->comm, sizeof(key.comm));
	if (bpf_map_lookup_elem(&session_names, &key))
		return;
	path = claim_path();
	if (!path)
		return;
	if (read_name(task, owner, &path->name))
		bpf_map_update_elem(&session_names, &key, &path->name, BPF_ANY);
	release_path(path);
}

/* ---- Owners -------------------------------------------------------------------------- */

static __always_inline struct session_owner read_owner(struct task_struct *task,
						       enum session_by by)
{
	struct cgroup *cgroup = cgroup_of(task);
	struct session_owner owner = {
		.pid_tgid = (__u64)BPF_CORE_READ(task, tgid) << 32 |
			    (__u32)BPF_CORE_READ(task, pid),
		.exec = BPF_CORE_READ(task, group_leader, start_boottime) +
			BPF_CORE_READ(task, self_exec_id),
		.cgroup_id = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id),
		.cgroup = {
			.id = BPF_CORE_READ(cgroup, kn, id),
			.hierarchy = BPF_CORE_READ(cgroup, root, hierarchy_id),
		},
		.uid = BPF_CORE_READ(task, cred, uid.val),
		.by = by,
	};

	BPF_CORE_READ_INTO(&owner.comm, task, group_leader, comm);
	BPF_CORE_READ_INTO(&owner.thread, task, comm);
	keep_path(cgroup, &owner.cgroup);
	if (owner.comm[SESSION_COMM_LEN - 2])
		keep_name(task, &owner);
	return owner;
}

static __always_inline struct session_owner *
valid_owner(struct session_socket *socket)
{
	return socket->valid ? &socket->owners[1] : &socket->owners[0];
}

/* @return the owner of the socket of MPTCP above this one of TCP; NULL: none, or it is not known */
static __always_inline const struct session_owner *
shared_owner(const struct sock *sk)
{
	const struct tcp_sock *tp = (const void *)sk;
	const struct mptcp_subflow_context *context;
	__u64 cookie;

	if (!is_tcp(sk) || !bpf_core_field_exists(tp->is_mptcp) ||
	    !BPF_CORE_READ(tp, is_mptcp))
		return NULL;
	context = BPF_CORE_READ((const struct inet_connection_sock *)sk,
				icsk_ulp_data);
	cookie = BPF_CORE_READ(context, conn, __sk_common.skc_cookie.counter);
	return cookie ? bpf_map_lookup_elem(&session_shared, &cookie) : NULL;
}

/* @return the owner that is known best; NULL: the socket has no storage, and none is known */
static __always_inline const struct session_owner *
owner_of(const struct sock *sk, struct session_socket *socket)
{
	const struct session_owner *own = socket ? valid_owner(socket) : NULL;
	const struct session_owner *shared = shared_owner(sk);

	return shared && (!own || shared->by > own->by) ? shared : own;
}

enum { CLAIM_TRIES = 16 };

static __always_inline bool claim_owner(struct session_socket *socket)
{
	for (int i = 0; i < CLAIM_TRIES; i++)
		if (!__sync_val_compare_and_swap(&socket->is_written, 0, 1))
			return true;
	return false;
}

/*
 * Several CPUs may use a socket at once, and take no lock: the writer fills the copy that readers do
 * not use, and a reader that it overtakes retries for some tens of nanoseconds. An owner that is
 * known better than @most stays, even if another CPU has just set it.
 */
static __always_inline void set_owner(struct session_socket *socket,
				      const struct session_owner *owner,
				      enum session_by most)
{
	if (!claim_owner(socket))
		return;
	if (valid_owner(socket)->by > most) {
		/* The known owner stays. */
	} else if (socket->valid) {
		socket->owners[0] = *owner;
		(void)__sync_lock_test_and_set(&socket->valid, 0);
	} else {
		socket->owners[1] = *owner;
		(void)__sync_lock_test_and_set(&socket->valid, 1);
	}
	(void)__sync_lock_test_and_set(&socket->is_written, 0);
}

/* Have the owner of a socket of MPTCP found from the sockets of TCP below it. */
static __always_inline void share_owner(struct sock *sk,
					struct session_socket *socket)
{
	const __u64 cookie = bpf_get_socket_cookie(sk);

	bpf_map_update_elem(&session_shared, &cookie, valid_owner(socket),
			    BPF_ANY);
}

/* The current task opens, accepts, uses or closes the socket (@by). */
static __always_inline void note_current(struct session_socket *socket,
					 enum session_by by)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct session_owner owner;

	if (valid_owner(socket)->by >= by || is_kernel_thread(task))
		return;
	owner = read_owner(task, by);
	set_owner(socket, &owner, by - 1);
}

#endif
