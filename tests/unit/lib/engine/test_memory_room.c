// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* What control groups leave, read from trees as kernels show them. */
#include "engine/control_group.h"

#include "lib_test.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

enum { FILES = 12 };

#define MIB(n) ((uint64_t)(n) << 20)
#define M64 "67108864\n"
#define V2 \
	"30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1                                                            \
	"34 32 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" \
	"35 32 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

struct case_ {
	const char *name;
	struct {
		const char *path, *text;
	} files[FILES];
	uint64_t room;
};

static const struct case_ cases[] = {
	{ "nothing is mounted", { { "proc/self/cgroup", "0::/\n" } }, UINT64_MAX },
	{ "version 2 without a limit",
	  { { "proc/self/mountinfo", V2 },
	    { "proc/self/cgroup", "0::/a\n" },
	    { "sys/fs/cgroup/a/memory.max", "max\n" },
	    { "sys/fs/cgroup/a/memory.high", "max\n" } },
	  UINT64_MAX },
	{ "version 2, the group's own",
	  { { "proc/self/mountinfo", V2 },
	    { "proc/self/cgroup", "0::/a/b\n" },
	    { "sys/fs/cgroup/a/b/memory.max", M64 },
	    { "sys/fs/cgroup/a/b/memory.current", "16777216\n" } },
	  MIB(48) },
	{ "memory.high counts as well, caches do not",
	  { { "proc/self/mountinfo", V2 },
	    { "proc/self/cgroup", "0::/a\n" },
	    { "sys/fs/cgroup/a/memory.max", "max\n" },
	    { "sys/fs/cgroup/a/memory.high", M64 },
	    { "sys/fs/cgroup/a/memory.current", "16777216\n" },
	    { "sys/fs/cgroup/a/memory.stat",
	      "anon 1\ninactive_file 4194304\nactive_file 4194304\n" } },
	  MIB(56) },
	{ "an ancestor's is less, and shared",
	  { { "proc/self/mountinfo", V2 },
	    { "proc/self/cgroup", "0::/a/b\n" },
	    { "sys/fs/cgroup/a/memory.max", M64 },
	    { "sys/fs/cgroup/a/memory.current", "58720256\n" },
	    { "sys/fs/cgroup/a/b/memory.max", M64 },
	    { "sys/fs/cgroup/a/b/memory.current", "0\n" } },
	  MIB(8) },
	{ "a container that sees its own group as the root",
	  { { "proc/self/mountinfo", V2 },
	    { "proc/self/cgroup", "0::/\n" },
	    { "sys/fs/cgroup/memory.max", M64 },
	    { "sys/fs/cgroup/memory.current", "0\n" } },
	  MIB(64) },
	{ "a container that sees only its own group in the mount",
	  { { "proc/self/mountinfo",
	      "30 23 0:26 /pods/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n" },
	    { "proc/self/cgroup", "0::/pods/x/inner\n" },
	    { "sys/fs/cgroup/inner/memory.max", M64 },
	    { "sys/fs/cgroup/inner/memory.current", "4194304\n" } },
	  MIB(60) },
	{ "a group outside of the mount",
	  { { "proc/self/mountinfo", V2 },
	    { "proc/self/cgroup", "0::/../x\n" },
	    { "sys/fs/cgroup/memory.max", M64 } },
	  MIB(64) },
	{ "version 1 beside version 2",
	  { { "proc/self/mountinfo", V1
	      "36 32 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n" },
	    { "proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/s/x\n0::/\n" },
	    { "sys/fs/cgroup/memory/s/x/memory.limit_in_bytes", M64 },
	    { "sys/fs/cgroup/memory/s/x/memory.usage_in_bytes", "8388608\n" },
	    { "sys/fs/cgroup/memory/s/x/memory.stat",
	      "inactive_file 1\ntotal_inactive_file 4194304\n" },
	    { "sys/fs/cgroup/memory/memory.limit_in_bytes",
	      "9223372036854771712\n" } },
	  MIB(60) },
	{ "version 1 without a limit, pages of 64 KiB",
	  { { "proc/self/mountinfo", V1 },
	    { "proc/self/cgroup", "4:memory:/\n" },
	    { "sys/fs/cgroup/memory/memory.limit_in_bytes",
	      "9223372036854710272\n" } },
	  UINT64_MAX },
	{ "more is used than there should be",
	  { { "proc/self/mountinfo", V2 },
	    { "proc/self/cgroup", "0::/a\n" },
	    { "sys/fs/cgroup/a/memory.high", M64 },
	    { "sys/fs/cgroup/a/memory.current", "77108864\n" } },
	  0 },
	{ "lines that are cut",
	  { { "proc/self/mountinfo", "30 23 0:26\n - cgroup2\n" V2 },
	    { "proc/self/cgroup", "\n0\n0:\n0::\n" } },
	  UINT64_MAX },
};

static void write_file(const char *root, const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int remove_one(const char *path, const struct stat *stat, int type,
		      struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

TEST(room_is_the_least_of_all_groups)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char root[] = "/tmp/netobs-room-XXXXXX";
		uint64_t room;

		assert_non_null(mkdtemp(root));
		for (int k = 0; k < FILES && cases[i].files[k].path; k++)
			write_file(root, cases[i].files[k].path,
				   cases[i].files[k].text);
		room = memory_room(root);
		nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
		if (room != cases[i].room)
			fail_msg("%s: %llu", cases[i].name,
				 (unsigned long long)room);
	}
}

TEST(plans_stay_within_the_room)
{
	for (uint64_t room = 0; room < MIB(1024); room += MIB(1) / 2) {
		struct memory_plan plan = memory_plan(room);

		if (room < memory_room_least()) {
			assert_int_equal(plan.entry_bytes, 0);
			continue;
		}
		assert_true(plan.entry_bytes >= MIB(1));
		assert_true(plan.process_bytes > 0);
		assert_true(plan.entry_bytes + plan.process_bytes + MIB(12) <=
			    room);
	}
}
