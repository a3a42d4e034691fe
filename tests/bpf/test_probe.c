// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What the probes say of this kernel, and that they leave nothing behind. */
#include "lib_lab.h"
#include "lib_test.h"
#include "base/privilege.h"
#include "attach/attach.h"

#include <bpf/bpf.h>
#include <netobs/probe.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* As a program calls it. */
static int probe(uint64_t disable, struct netobs_feature *features)
{
	return netobs_probe(disable, NULL, NULL, features, NETOBS_FEATURES,
			    sizeof(features[0]));
}

static ino_t own_netns(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/thread-self/ns/net", &st), 0);
	return st.st_ino;
}

/*
 * Loading all programs takes seconds, and half a minute in an emulated machine: one probe for several.
 * Those that need not know better leave out what is optional.
 */
struct all {
	struct netobs_feature features[NETOBS_FEATURES];
	int ret;
	uint64_t optional;
	int fds_before, fds_after;
	ino_t netns_before, netns_after;
};

static int setup_all(void **state)
{
	static struct all all;

	memset(&all, 0xee, sizeof(all));
	all.fds_before = lab_count_fds();
	all.netns_before = own_netns();
	all.ret = probe(0, all.features);
	all.fds_after = lab_count_fds();
	all.netns_after = own_netns();
	all.optional = 0;
	for (int i = 0; i < NETOBS_FEATURES; i++)
		if (all.features[i].need == NETOBS_NEED_OPTIONAL)
			all.optional |= 1ULL << i;
	*state = &all;
	return 0;
}

TEST(probe_describes_every_feature)
{
	const struct all *all = *state;
	const struct netobs_feature *features = all->features;

	assert_true(all->ret >= 0);
	for (int i = 0; i < NETOBS_FEATURES; i++) {
		assert_true(strlen(features[i].name) > 0);
		assert_true(strlen(features[i].description) > 0);
		assert_true(strlen(features[i].without) > 0);
		assert_true(features[i].need <= NETOBS_NEED_OPTIONAL);
		assert_int_equal(features[i].available, features[i].error == 0);
		assert_true(features[i].error <= 0);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(features[i].name,
						features[k].name);
	}
}

/* The other tests here need all features; this one names those that are absent. */
TEST(probe_finds_what_flows_need)
{
	const struct all *all = *state;

	for (int i = 0; i < NETOBS_FEATURES; i++)
		if (all->features[i].need == NETOBS_NEED_REQUIRED &&
		    !all->features[i].available)
			fail_msg("%s: %s", all->features[i].name,
				 strerror(-all->features[i].error));
	assert_int_equal(all->ret, 1);
}

/* Features @disabled are absent; of all others, only those the kernel lacks. */
static int probe_without(const struct all *all, uint64_t disabled)
{
	struct netobs_feature features[NETOBS_FEATURES];
	int ret = probe(disabled, features);

	for (int i = 0; i < NETOBS_FEATURES; i++) {
		if (!(disabled >> i & 1)) {
			assert_int_equal(features[i].available,
					 all->features[i].available);
			continue;
		}
		assert_false(features[i].available);
		assert_true(features[i].error < 0);
	}
	return ret;
}

TEST(probe_needs_each_required_feature)
{
	const struct all *all = *state;

	for (int i = 0; i < NETOBS_FEATURES; i++)
		if (all->features[i].need == NETOBS_NEED_REQUIRED)
			assert_int_equal(
				probe_without(all, all->optional | 1ULL << i), 0);
}

TEST(probe_needs_no_optional_feature)
{
	const struct all *all = *state;

	assert_true(all->optional);
	assert_int_equal(probe_without(all, all->optional), 1);
}

/* Of those that the programs of one part decide, others are known. */
TEST(probe_tries_what_is_left_of_a_part)
{
	static const enum netobs_feature_id disabled[] = {
		NETOBS_FEATURE_SESSIONS, NETOBS_FEATURE_DROPS,
		NETOBS_FEATURE_TRACE, NETOBS_FEATURE_BTF
	};
	uint64_t some = 0;

	for (size_t i = 0; i < ARRAY_SIZE(disabled); i++)
		some |= 1ULL << disabled[i];
	assert_int_equal(probe_without(*state, some), 1);
}

TEST(probe_finds_tcx_where_it_is)
{
	const struct all *all = *state;

	assert_int_equal(all->features[NETOBS_FEATURE_TCX].available,
			 lab_has_tcx());
}

TEST(probe_needs_one_way_to_attach)
{
	const struct all *all = *state;
	const uint64_t tcx = all->optional | 1 << NETOBS_FEATURE_TCX;
	const uint64_t clsact = all->optional | 1 << NETOBS_FEATURE_CLSACT;

	assert_int_equal(probe_without(all, tcx), 1);
	assert_int_equal(probe_without(all, clsact), lab_has_tcx());
	assert_int_equal(probe_without(all, tcx | clsact), 0);
}

TEST(probe_leaves_nothing_behind)
{
	const struct all *all = *state;

	assert_int_equal(all->fds_after, all->fds_before);
	assert_int_equal(all->netns_after, all->netns_before);
}

static int load_program(void)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = -1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "probe", "GPL", insns,
			     ARRAY_SIZE(insns), NULL);
}

/* What is asked instead of tried without CAP_SYS_ADMIN. */
TEST(asking_says_what_trying_does)
{
	static const char *const qdiscs[] = { NULL, "clsact", "ingress" };
	int program = load_program();
	struct lab lab;

	lab_enter(&lab);
	assert_int_equal(tcx_probe(program) == 0, lab_has_tcx());
	for (size_t i = 0; i < ARRAY_SIZE(qdiscs); i++) {
		if (qdiscs[i])
			lab_run("tc qdisc add dev lo %s", qdiscs[i]);
		assert_int_equal(clsact_probe("clsact"), 0);
		if (qdiscs[i])
			lab_run("tc qdisc del dev lo %s", qdiscs[i]);
		else
			assert_true(clsact_probe("netobs") < 0);
		assert_true(lab_is_bare("lo"));
	}
	lab_leave(&lab);
	close(program);
}

/* In a child, that asserts nothing: cmocka's is the parent. */
static int probe_with(uint64_t held, uint64_t disable,
		      struct netobs_feature *features)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{ .effective = (uint32_t)held, .permitted = (uint32_t)held },
		{ .effective = (uint32_t)(held >> 32),
		  .permitted = (uint32_t)(held >> 32) },
	};
	const size_t size = NETOBS_FEATURES * sizeof(*features);
	int pipe_fds[2], status;
	pid_t child;

	assert_int_equal(pipe(pipe_fds), 0);
	child = fork();
	if (!child) {
		if (syscall(SYS_capset, &header, data))
			_exit(255);
		status = probe(disable, features);
		_exit(write(pipe_fds[1], features, size) < 0 ? 255 : status);
	}
	assert_int_equal(read(pipe_fds[0], features, size), size);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	return WEXITSTATUS(status);
}

/* Flows need three capabilities, and so the probe does. */
TEST(probe_names_the_capability_that_is_missing)
{
	const uint64_t all = PRIVILEGE_PROGRAMS;
	const uint64_t optional = ((const struct all *)*state)->optional;
	const int needed[] = { CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON };
	struct netobs_feature features[NETOBS_FEATURES];

	assert_int_equal(probe_with(all,
				    optional & ~(1ULL << NETOBS_FEATURE_NETNS),
				    features),
			 1);
	assert_int_equal(features[NETOBS_FEATURE_TCX].available, lab_has_tcx());
	assert_true(features[NETOBS_FEATURE_CLSACT].available);
	assert_int_equal(features[NETOBS_FEATURE_NETNS].missing_capabilities,
			 1ULL << CAP_SYS_ADMIN);
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		const uint64_t bit = 1ULL << needed[i];

		assert_int_equal(probe_with(all & ~bit, optional, features), 0);
		assert_int_equal(
			features[NETOBS_FEATURE_PROGRAMS].missing_capabilities,
			bit);
	}
}

/* The caller knows less, or more, than the library. */
TEST(probe_fills_what_the_caller_has)
{
	struct {
		struct netobs_feature feature;
		uint64_t more;
	} larger[NETOBS_FEATURES + 1];
	struct {
		char bytes[offsetof(struct netobs_feature, error)];
	} smaller[2];
	const uint64_t optional = ((const struct all *)*state)->optional;
	struct netobs_feature features[NETOBS_FEATURES];
	int ret = probe(optional, features);

	memset(larger, 0xee, sizeof(larger));
	assert_int_equal(netobs_probe(optional, NULL, NULL, &larger[0].feature,
				      NETOBS_FEATURES + 1, sizeof(larger[0])),
			 ret);
	for (int i = 0; i < NETOBS_FEATURES; i++) {
		assert_memory_equal(&larger[i].feature, &features[i],
				    sizeof(features[i]));
		assert_int_equal(larger[i].more, 0);
	}
	assert_null(larger[NETOBS_FEATURES].feature.name);
	assert_int_equal(netobs_probe(optional, NULL, NULL,
				      (struct netobs_feature *)smaller, 2,
				      sizeof(smaller[0])),
			 ret);
	for (int i = 0; i < 2; i++)
		assert_memory_equal(&smaller[i], &features[i],
				    sizeof(smaller[i]));
}

TEST(probe_without_room_is_refused)
{
	assert_int_equal(netobs_probe(0, NULL, NULL, NULL, 0, 0), -EINVAL);
}

int main(void)
{
	return tests_run(setup_all, NULL);
}
