// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Containers, pods, units and machines in paths of control groups. */
#include "lib_seed.h"

#include <ctype.h>

#include "who/container_facts.h"

#define ID "3f4c9a0b1d2e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8"
#define OTHER "00000000000000000000000000000000000000000000000000000000000000ff"
#define UID "0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5f60"
#define UID_OF_SYSTEMD "0f3e9c1a_5b7d_4c2e_8a6f_1d2c3b4a5f60"
#define STATIC_UID "7cde3aa1f3d24e1f8a9b0c1d2e3f4a5b"

static const struct {
	const char *path, *container, *pod;
} paths[] = {
	/* Docker: v1 and v2, cgroupfs and systemd */
	{ "/docker/" ID, ID, "" },
	{ "/system.slice/docker-" ID ".scope", ID, "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" ID
	  ".scope",
	  "", "" }, /* a user may have called it so */
	/* Podman, and its monitor, which is not in the container */
	{ "/machine.slice/libpod-" ID ".scope", ID, "" },
	{ "/machine.slice/libpod-" ID ".scope/container", ID, "" },
	{ "/libpod_parent/libpod-" ID, ID, "" },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "", "" },
	/* Kubernetes: Docker, containerd and CRI-O, of all classes */
	{ "/kubepods/burstable/pod" UID "/" ID, ID, UID },
	{ "/kubepods/besteffort/pod" UID "/" ID, ID, UID },
	{ "/kubepods/pod" UID "/" ID, ID, UID },
	{ "/kubepods/burstable/pod" STATIC_UID "/" ID, ID, STATIC_UID },
	{ "/kubepods/burstable/pod" UID "/crio-" ID, ID, UID },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_OF_SYSTEMD
	  ".slice/cri-containerd-" ID ".scope",
	  ID, UID },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_OF_SYSTEMD
	  ".slice/crio-" ID ".scope",
	  ID, UID },
	{ "/kubepods.slice/kubepods-pod" UID_OF_SYSTEMD ".slice/docker-" ID
	  ".scope",
	  ID, UID },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" STATIC_UID
	  ".slice/cri-containerd-" ID ".scope",
	  ID, STATIC_UID },
	{ "/kubepods.slice/kubepods-pod" UID_OF_SYSTEMD ".slice/crio-conmon-" ID
	  ".scope",
	  "", UID },
	/* containerd that does not know of systemd */
	{ "/system.slice/containerd.service/kubepods-burstable-pod" UID_OF_SYSTEMD
	  ".slice:cri-containerd:" ID,
	  ID, UID },
	/* A node in a container: groups below it may have any name */
	{ "/docker/" OTHER
	  "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	  "kubelet-kubepods-burstable-pod" UID_OF_SYSTEMD
	  ".slice/cri-containerd-" ID ".scope",
	  OTHER, "" },
	{ "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	  "kubelet-kubepods-burstable-pod" UID_OF_SYSTEMD
	  ".slice/cri-containerd-" ID ".scope",
	  ID, UID },
	{ "/kubelet/kubepods/burstable/pod" UID "/" ID, ID, UID },
	{ "/machine.slice/libpod-" ID ".scope/container/docker-" OTHER ".scope",
	  ID, "" },
	{ "/kubepods/burstable/pod" UID "/" ID "/pod" UID_OF_SYSTEMD "/" OTHER,
	  ID, UID },
	{ "/kubepods/pod" UID "/x/" ID, "", UID },
	{ "/system.slice/kubepods/pod" UID "/" ID, ID, "" },
	{ "/a.service/kubepods.slice/kubepods-pod" UID ".slice/x", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/kubepods/pod" UID "/" ID,
	  "", "" },
	{ "/system.slice/mine-" ID ".scope", "", "" },
	{ "/kubepods/xpod" UID, "", "" },
	/* ECS */
	{ "/ecs/0123456789abcdef0123456789abcdef/" ID, ID, "" },
	/* None */
	{ "", "", "" },
	{ "/", "", "" },
	{ "//", "", "" },
	{ "/user.slice/user-0.slice/session-1.scope", "", "" },
	{ "/system.slice/nginx.service", "", "" },
	{ "/docker/x" ID, "", "" },
	{ "/docker/" ID "0", "", "" },
	{ "/docker/3F4C9A0B1D2E5F60718293A4B5C6D7E8F90A1B2C3D4E5F60718293A4B5C6D7E8",
	  "", "" },
	{ "/system.slice/pod" UID ".slice", "", "" },
	{ "/kubepods/pod" UID "0", "", "" },
	{ "/kubepods/pod0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5fg0", "", "" },
};

TEST(containers_and_pods_are_found)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct cgroup_names names = cgroup_names_of(paths[i].path);

		assert_string_equal(names.container_id, paths[i].container);
		assert_string_equal(names.pod_uid, paths[i].pod);
	}
}

/* In a buffer of just that size, so that the sanitizer sees who reads beyond. */
TEST(any_part_of_a_path_is_read_within_its_bounds)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		for (size_t len = strlen(paths[i].path); len--;) {
			char *part = strndup(paths[i].path, len);
			struct cgroup_names names = cgroup_names_of(part);

			assert_true(strlen(names.container_id) == 64 ||
				    !*names.container_id);
			free(part);
		}
	}
}

/* ---- Units -------------------------------------------------------------------------------- */

#define A10 "aaaaaaaaaa"
#define A90 A10 A10 A10 A10 A10 A10 A10 A10 A10

static const struct {
	const char *path, *unit, *slice, *machine;
} unit_paths[] = {
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/a.service",
	  "user@1000.service", "user-1000.slice", "" },
	{ "/system.slice/docker-" ID ".scope", "docker-" ID ".scope",
	  "system.slice", "" },
	{ "/kubepods.slice/kubepods-pod" UID_OF_SYSTEMD ".slice/crio-" ID ".scope",
	  "crio-" ID ".scope", "kubepods-pod" UID_OF_SYSTEMD ".slice", "" },
	{ "/kubepods/burstable/pod" UID "/" ID, "", "", "" },
	/* Machines */
	{ "/machine.slice/systemd-nspawn@web-1.service/payload/system.slice/a.service",
	  "systemd-nspawn@web-1.service", "machine.slice", "web-1" },
	{ "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/emulator",
	  "machine-qemu\\x2d1\\x2dweb.scope", "machine.slice", "qemu-1-web" },
	{ "/machine.slice/machine-test.slice/machine-lxc\\x2d7\\x2da.scope",
	  "machine-lxc\\x2d7\\x2da.scope", "machine-test.slice", "lxc-7-a" },
	{ "/system.slice/machine-a.scope", "machine-a.scope", "system.slice", "" },
	{ "/machine.slice/machine-a\\x2fb.scope", "machine-a\\x2fb.scope",
	  "machine.slice", "" },
	{ "/machine.slice/machine-a\\x2.scope", "machine-a\\x2.scope",
	  "machine.slice", "" },
	{ "/machine.slice/machine-a\\x00b.scope", "machine-a\\x00b.scope",
	  "machine.slice", "" },
	{ "/machine.slice/machine-.scope", "machine-.scope", "machine.slice", "" },
	{ "/lxc.payload.web/system.slice/nginx.service", "", "", "web" },
	{ "/lxc.payload.a.slice/b.service", "", "", "a.slice" },
	{ "/lxc", "", "", "" },
	{ "/system.slice/lxc/web", "", "system.slice", "" },
	/* What is no name, and what does not fit */
	{ "/user.slice/x.slice/.service", "", "x.slice", "" },
	{ "/.slice/a.service", "", "", "" },
	{ "/system.slice/a b.service", "", "system.slice", "" },
	{ "/system.slice/a\n.service", "", "system.slice", "" },
	{ "/system.slice/\xc3\xa9.service", "", "system.slice", "" },
	{ "/system.slice/" A90 A10 A10 "1234567.service",
	  A90 A10 A10 "1234567.service", "system.slice", "" },
	{ "/system.slice/" A90 A10 A10 A10 ".service", "", "system.slice", "" },
	{ "/" A90 A10 ".slice/a.service", "a.service", "", "" },
	{ "/lxc/" A90, "", "", "" },
	{ "", "", "", "" },
	{ "/", "", "", "" },
};

TEST(units_slices_and_machines_are_found)
{
	for (size_t i = 0; i < ARRAY_SIZE(unit_paths); i++) {
		struct cgroup_names names = cgroup_names_of(unit_paths[i].path);

		assert_string_equal(names.unit, unit_paths[i].unit);
		assert_string_equal(names.slice, unit_paths[i].slice);
		assert_string_equal(names.machine, unit_paths[i].machine);
	}
}

/* A path of random parts, and what is in it: the names as they were chosen, if they fit. */
struct built {
	char path[2048];
	char unit[128], slice[96], machine[72];
};

static void add_part(struct built *built, const char *before, const char *name,
		     const char *after)
{
	const size_t len = strlen(built->path);

	snprintf(built->path + len, sizeof(built->path) - len, "/%s%s%s",
		 before, name, after);
}

static void expect(char *to, size_t size, const char *name)
{
	snprintf(to, size, "%s", strlen(name) < size ? name : "");
}

static const char *random_name(char name[160], const char *more)
{
	static const char letters[] = "abcxyzABCXYZ0189";
	static const char *const words[] = {
		"memory", "tasks", "a.service", "b.slice",	"c.scope",
		"user@1", "lxc",   "x-1",	"lxc.payload.b"
	};
	const size_t len = 1 + test_below(test_below(8) ? 20 : 140);

	for (size_t i = 0; i < len; i++)
		name[i] = test_below(4) ?
				  letters[test_below(16)] :
				  more[test_below((uint32_t)strlen(more))];
	name[len] = '\0';
	if (!test_below(4))
		strcpy(name, words[test_below(ARRAY_SIZE(words))]);
	return name;
}

/* As systemd: systemd.unit(5), and cg_escape() of its source. */
static const char *escape_of(const char *name)
{
	return *name == '_' || *name == '.' || !strncmp(name, "memory.", 7) ?
		       "_" :
		       "";
}

static const char *random_unit(char unit[192])
{
	static const char *const types[] = { "service", "scope", "socket",
					     "mount", "swap" };
	char name[160];

	snprintf(unit, 192, "%s.%s", random_name(name, ":_.@-"),
		 types[test_below(ARRAY_SIZE(types))]);
	return unit;
}

static void add_slices(struct built *built)
{
	for (uint32_t n = test_below(4); n--;) {
		char name[160], slice[192];

		snprintf(slice, sizeof(slice), "s%s.slice",
			 random_name(name, ":_.-"));
		add_part(built, escape_of(slice), slice, "");
		expect(built->slice, sizeof(built->slice), slice);
	}
}

static void add_machine(struct built *built)
{
	static const char hex[] = "0123456789abcdef";
	char name[160], escaped[640] = "", unit[704];
	bool is_nspawn = test_below(2);

	random_name(name, is_nspawn ? "._-" : "._-@");
	for (size_t i = 0, at = 0; name[i]; i++)
		if (is_nspawn || isalnum((unsigned char)name[i]) ||
		    strchr("._", name[i]))
			escaped[at++] = name[i];
		else
			at += (size_t)sprintf(escaped + at, "\\x%c%c",
					      hex[name[i] >> 4],
					      hex[name[i] & 15]);
	add_part(built, "", "machine.slice", "");
	strcpy(built->slice, "machine.slice");
	snprintf(unit, sizeof(unit), "%s%s%s",
		 is_nspawn ? "systemd-nspawn@" : "machine-", escaped,
		 is_nspawn ? ".service" : ".scope");
	add_part(built, "", unit, "");
	expect(built->unit, sizeof(built->unit), unit);
	expect(built->machine, sizeof(built->machine), name);
}

static void add_lxc(struct built *built)
{
	static const char *const kinds[] = { "lxc/", "lxc.payload/",
					     "lxc.payload.", "lxc.monitor.",
					     "lxc.monitor/" };
	const uint32_t kind = test_below(ARRAY_SIZE(kinds));
	char name[160];

	add_part(built, kinds[kind], random_name(name, "._-@"), "");
	if (kind < 3)
		expect(built->machine, sizeof(built->machine), name);
}

static void build(struct built *built)
{
	static const char *const others[] = { "docker",	     "kubepods",
					      "a b.service", "\xff.scope",
					      ".service",    "x" };
	char unit[192];

	switch (test_below(4)) {
	case 0:
		add_lxc(built);
		break;
	case 1:
		add_machine(built);
		break;
	case 2:
		add_slices(built);
		add_part(built, "", others[test_below(ARRAY_SIZE(others))], "");
		break;
	default:
		add_slices(built);
		random_unit(unit);
		/* At the top, this would be a group of LXC. */
		if (!*built->path && !strncmp(unit, "lxc", 3))
			unit[0] = 'L';
		add_part(built, escape_of(unit), unit, "");
		expect(built->unit, sizeof(built->unit), unit);
	}
	/* Groups below may have any name. */
	for (uint32_t n = test_below(3); n--;)
		add_part(built, "", random_unit(unit),
			 test_below(2) ? ".slice" : "");
}

TEST(names_are_those_that_a_path_was_built_from)
{
	const char *given = getenv("NETOBS_TEST_PATHS");
	const unsigned long n = given ? strtoul(given, NULL, 0) : 20000;

	for (unsigned long i = 0; i < n; i++) {
		struct built built = { 0 };
		char *path;
		struct cgroup_names names;

		build(&built);
		path = strdup(built.path); /* so that the sanitizer sees who reads beyond */
		names = cgroup_names_of(path);
		if (strcmp(names.unit, built.unit) ||
		    strcmp(names.slice, built.slice) ||
		    strcmp(names.machine, built.machine))
			fail_msg("%s: '%s' '%s' '%s', and not '%s' '%s' '%s'",
				 path, names.unit, names.slice, names.machine,
				 built.unit, built.slice, built.machine);
		free(path);
	}
}
