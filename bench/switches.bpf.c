// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Programs that do nothing, where those of the tracer see threads change. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("tp_btf/sched_switch")
int BPF_PROG(empty_switch)
{
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(empty_wakeup)
{
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(empty_migration)
{
	return 0;
}
