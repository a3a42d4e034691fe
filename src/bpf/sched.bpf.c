// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What watched threads do: they run, wait for a CPU, sleep, or are stopped. While one waits, the CPU
 * time of others on its CPU is noted; and once one has waited for its quota, that of members of control groups with
 * quotas.
 *
 * The scheduler calls these programs with the lock of the run queue of the thread's CPU: changes of a
 * thread come one after another, also on several CPUs.
 */
#include "vmlinux.h"

#include "bpf/sched.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Macros of include/linux/sched.h, which BTF does not have. */
enum {
	TASK_STOPPED = 0x4,
	TASK_TRACED = 0x8,
	TASK_DEAD = 0x80,
	TASK_FROZEN = 0x8000, /* Linux 6.1 */
};

#define NO_QUOTA (~0ULL)

enum { MAX_RT_PRIO = 100 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sched_control);
} sched_control SEC(".maps");

/* By the number of the thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SCHED_THREADS_MAX);
	__type(key, __u32);
	__type(value, struct sched_thread);
} sched_threads SEC(".maps");

/* By CPU. User space sizes it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sched_cpu);
} sched_cpus SEC(".maps");

/* With memory of its own: the allocator must not be called with the lock of a run queue. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SCHED_SHARES_MAX);
	__type(key, struct sched_share_key);
	__type(value, struct sched_share);
} sched_shares SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} sched_changes SEC(".maps");

/* ---- Watched threads --------------------------------------------------------------------- */

static __always_inline struct sched_control *get_control(void)
{
	return bpf_map_lookup_elem(&sched_control, &(__u32){ 0 });
}

static __always_inline struct sched_cpu *get_cpu(__u32 cpu)
{
	return bpf_map_lookup_elem(&sched_cpus, &cpu);
}

/* A thread with the same lower bits may be watched. */
static __always_inline bool may_be_watched(const struct sched_control *control,
					   __u32 tid)
{
	return control->bits[tid / 64 % (SCHED_BITS / 64)] >> (tid % 64) & 1;
}

/* NULL: it is not watched. */
static __always_inline struct sched_thread *
find_thread(const struct sched_control *control, __u32 tid)
{
	return may_be_watched(control, tid) ?
		       bpf_map_lookup_elem(&sched_threads, &tid) :
		       NULL;
}

static __always_inline __u8 state_of(const struct sched_thread *thread)
{
	return thread->last & ((1 << SCHED_STATE_BITS) - 1);
}

/* @otherwise: the state before, if no program has seen it */
static __always_inline void change(struct sched_control *control,
				   struct sched_thread *thread, __u32 tid,
				   __u8 state, __u8 otherwise, __u64 now)
{
	const __u8 was = state_of(thread);
	struct sched_change *event;

	thread->last = now << SCHED_STATE_BITS | state;
	event = bpf_ringbuf_reserve(&sched_changes, sizeof(*event), 0);
	if (!event) {
		__sync_fetch_and_add(&control->lost, 1);
		return;
	}
	*event = (struct sched_change){
		.at_ns = now,
		.tid = tid,
		.state = state,
		.was = was == SCHED_UNKNOWN ? otherwise : was,
	};
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* ---- Who runs meanwhile ------------------------------------------------------------------ */

static __always_inline void add_share(__u32 whose,
				      const struct task_struct *task, __u64 ns)
{
	const struct sched_share_key key = { .whose = whose, .pid = task->tgid };
	struct sched_share *share = bpf_map_lookup_elem(&sched_shares, &key);
	struct sched_share first = { .ns = ns };

	if (share) {
		__sync_fetch_and_add(&share->ns, ns);
		return;
	}
	BPF_CORE_READ_INTO(&first.command, task, group_leader, comm);
	bpf_map_update_elem(&sched_shares, &key, &first, BPF_NOEXIST);
}

/* The lower half of the kernel's number of a group's directory. */
static __always_inline __u32 inode_of(__u64 id)
{
	return (__u32)id & ~SCHED_IS_GROUP;
}

/* A watched thread has waited for the quota of its group, @address. */
static __always_inline void add_throttled(__u32 tid, __u64 address, __u64 ns)
{
	const struct task_group *group = (const void *)address;
	const struct sched_share_key key = { .whose = tid };
	struct sched_share now = { .ns = ns }, *share;

	if (!bpf_core_field_exists(group->cfs_bandwidth))
		return;
	share = bpf_map_lookup_elem(&sched_shares, &key);
	if (share)
		now.ns += share->ns;
	now.group.inode = inode_of(BPF_CORE_READ(group, css.cgroup, kn, id));
	now.group.level = BPF_CORE_READ(group, css.cgroup, level);
	now.group.times = BPF_CORE_READ(group, cfs_bandwidth.nr_throttled);
	bpf_map_update_elem(&sched_shares, &key, &now, BPF_ANY);
}

static __always_inline bool has_waiters(const struct sched_cpu *cpu)
{
	__u64 any = 0;

	for (int i = 0; i < SCHED_WAITERS; i++)
		any |= cpu->waiters[i].tid;
	return any;
}

/*
 * @address: of a thread that waits. Linux 6.18 takes throttled threads out of the queue; it stays theirs. A queue
 * counts the throttled groups that it is below of. Global: the verifier follows it once.
 *
 * @return the address of its uppermost group that is throttled; 0: none is
 */
__noinline __u64 netobs_sched_group(__u64 address)
{
	const struct task_struct *task = (const void *)address;
	const struct sched_entity *entity = &task->se;
	const struct cfs_rq *queue = NULL;
	__u64 group = 0;

	if (!bpf_core_field_exists(entity->cfs_rq) ||
	    !bpf_core_field_exists(queue->throttle_count))
		return 0;
	for (int i = 0; i < SCHED_DEPTH && entity; i++) {
		queue = BPF_CORE_READ(entity, cfs_rq);
		if (!BPF_CORE_READ(queue, throttle_count))
			break;
		group = (__u64)BPF_CORE_READ(queue, tg);
		entity = BPF_CORE_READ(entity, parent);
	}
	return group;
}

/* Without a free place, the time of others is not noted for this wait. */
static __always_inline void begin_wait(struct sched_cpu *cpu,
				       const struct task_struct *task, __u64 now)
{
	for (int i = 0; i < SCHED_WAITERS; i++)
		if (!cpu->waiters[i].tid) {
			volatile __u64 *address = &cpu->waiters[i].task;

			cpu->waiters[i].since_ns = now;
			*address = (__u64)task;
			/* Global functions get numbers: so it is read again. */
			cpu->waiters[i].group = netobs_sched_group(*address);
			cpu->waiters[i].tid = task->pid;
			return;
		}
}

static __always_inline void end_wait(struct sched_cpu *cpu, __u32 tid)
{
	for (int i = 0; i < SCHED_WAITERS; i++)
		if (cpu->waiters[i].tid == tid)
			cpu->waiters[i].tid = 0;
}

/*
 * @task has run until now, while the thread waited, unless that was throttled. The idle task has no share. Clocks
 * of two CPUs may differ a little.
 */
static __always_inline void charge_waits(struct sched_control *control,
					 struct sched_cpu *cpu,
					 const struct task_struct *task,
					 __u64 now)
{
	for (int i = 0; i < SCHED_WAITERS; i++) {
		const __u32 tid = cpu->waiters[i].tid;
		const __u64 since = cpu->waiters[i].since_ns;
		const __u64 ns = now > since ? now - since : 0;

		if (!tid)
			continue;
		if (!may_be_watched(control, tid)) {
			cpu->waiters[i].tid = 0;
			continue;
		}
		if (cpu->waiters[i].group) {
			add_throttled(tid, cpu->waiters[i].group, ns);
			control->has_quota = 1;
		} else if (task->pid) {
			add_share(tid, task, ns);
		}
		cpu->waiters[i].since_ns = now;
		cpu->waiters[i].group = netobs_sched_group(cpu->waiters[i].task);
	}
}

static __always_inline bool has_quota(const struct task_group *group)
{
	return bpf_core_field_exists(group->cfs_bandwidth) &&
	       group->cfs_bandwidth.quota != NO_QUOTA;
}

/* A quota counts all CPU time of the scheduler's fair class, also that before a watched thread waits. */
static __always_inline void charge_groups(const struct task_struct *task)
{
	const struct task_group *group;
	__u64 ns;

	if (!bpf_core_field_exists(task->sched_task_group) ||
	    task->prio < MAX_RT_PRIO)
		return;
	group = task->sched_task_group;
	ns = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;
	for (int i = 0; i < SCHED_DEPTH && group; i++) {
		if (has_quota(group))
			add_share(inode_of(group->css.cgroup->kn->id) |
					  SCHED_IS_GROUP,
				  task, ns);
		group = group->parent;
	}
}

/* ---- Programs ---------------------------------------------------------------------------- */

/* A group in the freezer sleeps with a mark (cgroup v2), or has a state (v1). */
static __always_inline bool is_frozen(const struct task_struct *task, __u64 state)
{
	return state & TASK_FROZEN || (bpf_core_field_exists(task->frozen) &&
				       BPF_CORE_READ_BITFIELD(task, frozen));
}

static __always_inline __u8 state_behind(const struct task_struct *task,
					 bool is_preempted, __u64 state)
{
	if (is_preempted || !state)
		return SCHED_WAIT;
	if (state & TASK_DEAD)
		return SCHED_GONE;
	if (state & (TASK_STOPPED | TASK_TRACED) || is_frozen(task, state))
		return SCHED_STOP;
	return SCHED_SLEEP;
}

static __always_inline void leave_cpu(struct sched_control *control,
				      struct sched_cpu *cpu, __u32 number,
				      const struct task_struct *task,
				      __u8 state, __u64 now)
{
	struct sched_thread *thread = find_thread(control, task->pid);

	if (!thread)
		return;
	change(control, thread, task->pid, state, SCHED_RUN, now);
	if (state != SCHED_WAIT)
		return;
	thread->cpu = number;
	begin_wait(cpu, task, now);
}

static __always_inline void enter_cpu(struct sched_control *control,
				      struct sched_cpu *cpu,
				      const struct task_struct *task, __u64 now)
{
	struct sched_thread *thread = find_thread(control, task->pid);

	if (!thread)
		return;
	end_wait(cpu, task->pid);
	change(control, thread, task->pid, SCHED_RUN, SCHED_WAIT, now);
}

/* @state: that of @prev, in which it leaves the CPU */
static __always_inline void take_switch(bool is_preempted,
					const struct task_struct *prev,
					const struct task_struct *next,
					__u64 state)
{
	const __u32 number = bpf_get_smp_processor_id();
	struct sched_control *control = get_control();
	struct sched_cpu *cpu = get_cpu(number);
	bool has_any;
	__u64 now;

	if (!control || !cpu)
		return;
	if (control->has_quota && prev->pid)
		charge_groups(prev);
	has_any = has_waiters(cpu);
	if (!has_any && !may_be_watched(control, prev->pid) &&
	    !may_be_watched(control, next->pid))
		return;
	now = bpf_ktime_get_boot_ns();
	if (has_any)
		charge_waits(control, cpu, prev, now);
	enter_cpu(control, cpu, next, now);
	leave_cpu(control, cpu, number, prev,
		  state_behind(prev, is_preempted, state), now);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(netobs_sc_switch, bool is_preempted, const struct task_struct *prev,
	     const struct task_struct *next, unsigned int state)
{
	take_switch(is_preempted, prev, next, state);
	return 0;
}

struct task_struct___old {
	volatile long state;
};

/* COMPAT(<5.14): the member has another name. */
static __always_inline __u64 read_state(const struct task_struct *task)
{
	const struct task_struct___old *old = (const void *)task;

	if (bpf_core_field_exists(old->state))
		return BPF_CORE_READ(old, state);
	return BPF_CORE_READ(task, __state);
}

/* COMPAT(<5.18): the tracepoint does not have the state. */
SEC("tp_btf/sched_switch")
int BPF_PROG(netobs_sc_swold, bool is_preempted, const struct task_struct *prev,
	     const struct task_struct *next)
{
	take_switch(is_preempted, prev, next, read_state(prev));
	return 0;
}

struct task_struct___cpu {
	unsigned int cpu;
};

/* COMPAT(<5.16): the member is not in thread_info. */
static __always_inline __u32 cpu_of(const struct task_struct *task)
{
	const struct task_struct___cpu *old = (const void *)task;

	if (bpf_core_field_exists(old->cpu))
		return BPF_CORE_READ(old, cpu);
	return BPF_CORE_READ(task, thread_info.cpu);
}

/*
 * A thread is in the run queue of its CPU. sched_waking comes before that, and may come before the switch
 * of the thread that goes to sleep; the kernel's own run_delay counts from here, too.
 */
SEC("tp_btf/sched_wakeup")
int BPF_PROG(netobs_sc_wake, const struct task_struct *task)
{
	struct sched_control *control = get_control();
	struct sched_thread *thread =
		control ? find_thread(control, task->pid) : NULL;
	struct sched_cpu *cpu;
	__u64 now;

	if (!thread || state_of(thread) < SCHED_SLEEP || task->on_cpu)
		return 0;
	now = bpf_ktime_get_boot_ns();
	change(control, thread, task->pid, SCHED_WAIT, SCHED_SLEEP, now);
	thread->cpu = cpu_of(task);
	cpu = get_cpu(thread->cpu);
	if (cpu)
		begin_wait(cpu, task, now);
	return 0;
}

/* A waiting thread gets another CPU. Of the rest of its wait, the time of others is not noted. */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(netobs_sc_move, const struct task_struct *task, int to)
{
	struct sched_control *control = get_control();
	struct sched_thread *thread =
		control ? find_thread(control, task->pid) : NULL;
	struct sched_cpu *cpu;

	if (!thread || state_of(thread) != SCHED_WAIT)
		return 0;
	cpu = get_cpu(thread->cpu);
	if (cpu)
		end_wait(cpu, task->pid);
	return 0;
}

/* A thread that a watched one makes is watched, too: it may use a connection at once. It waits for a CPU from now on. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(netobs_sc_fork, const struct task_struct *parent,
	     const struct task_struct *child)
{
	const __u32 tid = child->pid;
	const __u64 now = bpf_ktime_get_boot_ns();
	const struct sched_thread made = { .last = now << SCHED_STATE_BITS |
						   SCHED_WAIT };
	struct sched_control *control = get_control();
	struct sched_change *event;

	if (!control || parent->tgid != child->tgid ||
	    !find_thread(control, parent->pid))
		return 0;
	event = bpf_ringbuf_reserve(&sched_changes, sizeof(*event), 0);
	if (!event)
		return 0;
	*event = (struct sched_change){
		.at_ns = now, .tid = tid, .pid = child->tgid, .state = SCHED_MADE
	};
	bpf_map_update_elem(&sched_threads, &tid, &made, BPF_ANY);
	control->bits[tid / 64 % (SCHED_BITS / 64)] |= 1ULL << (tid % 64);
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}
