// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Names of containers, in files of runtimes below a directory. */
#include "lib_test.h"
#include "lib_wait.h"
#include "lib_witness.h"

#include "lib_seed.h"
#include "who/containers.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>

#define ID "3f4c9a0b1d2e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8"
#define OTHER "00000000000000000000000000000000000000000000000000000000000000ff"
#define THIRD "1111111111111111111111111111111111111111111111111111111111111111"
#define UID "0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5f60"
#define DOCKER "var/lib/docker/containers"
#define TASKS "io.containerd.runtime.v2.task"
#define POD_OF_CONTAINERD                                                       \
	"{\"annotations\":{\"io.kubernetes.cri.container-type\":\"container\"," \
	"\"io.kubernetes.cri.container-name\":\"web\","                         \
	"\"io.kubernetes.cri.sandbox-name\":\"pod\","                           \
	"\"io.kubernetes.cri.sandbox-namespace\":\"shop\"}}"

struct fixture {
	char root[PATH_MAX - 512];
	struct loop loop;
	struct container_names *names;
	struct log log;
	struct witness witness;
};

static void begin(struct fixture *f)
{
	snprintf(f->root, sizeof(f->root), "%s/netobs-root.XXXXXX",
		 getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(f->root));
	f->log = witness_log(&f->witness);
	assert_int_equal(loop_open(&f->loop), 0);
}

static void end(struct fixture *f)
{
	char command[PATH_MAX];

	container_names_close(f->names);
	loop_close(&f->loop);
	snprintf(command, sizeof(command), "rm -rf '%s'", f->root);
	assert_int_equal(system(command), 0);
}

TEST_FIXTURE(struct fixture, begin, end)

/* ---- Files -------------------------------------------------------------------------------- */

static void path_of(const struct fixture *f, const char *path, char to[PATH_MAX])
{
	snprintf(to, PATH_MAX, "%s/%s", f->root, path);
}

/* With all above it. */
static void make_dir(const struct fixture *f, const char *path)
{
	char whole[PATH_MAX];

	path_of(f, path, whole);
	for (char *at = whole + strlen(f->root) + 1; (at = strchr(at, '/'));
	     at++) {
		*at = '\0';
		assert_true(!mkdir(whole, 0755) || errno == EEXIST);
		*at = '/';
	}
	assert_true(!mkdir(whole, 0755) || errno == EEXIST);
}

static void make_file(const struct fixture *f, const char *path, const char *text)
{
	char whole[PATH_MAX], dir[PATH_MAX];
	FILE *file;

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path),
		 path);
	make_dir(f, dir);
	path_of(f, path, whole);
	file = fopen(whole, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void make_docker(const struct fixture *f, const char *id, const char *name)
{
	char path[256], text[256];

	snprintf(path, sizeof(path), DOCKER "/%s/config.v2.json", id);
	snprintf(text, sizeof(text), "{\"ID\":\"%s\",\"Name\":\"/%s\"}", id,
		 name);
	make_file(f, path, text);
}

/* ---- Looking ------------------------------------------------------------------------------ */

static bool find(const struct fixture *f, struct container_facts *ret_facts,
		 int *ret_error)
{
	struct container_query query = { .id = ID };
	struct container_files files;

	assert_int_equal(container_files_open(f->root, &files), 0);
	container_places_find(&files, &query, 1);
	*ret_error = files.errors.n ? files.errors.list[0].error : 0;
	container_files_close(&files);
	if (query.is_found)
		*ret_facts = query.facts;
	return query.is_found;
}

static void assert_none(const struct fixture *f, int error)
{
	struct container_facts facts;
	int found;

	assert_false(find(f, &facts, &found));
	assert_int_equal(found, error);
}

#define CASE(name) TEST_OF(name, struct fixture *f, set_up, tear_down)

TEST_WITH(each_place_is_looked_at, set_up, tear_down)
{
	static const char listed[] =
		"[{\"id\":\"" ID "\",\"names\":[\"web\"],\"metadata\":\"{}\"}]";
	static const struct {
		const char *path, *text;
	} places[] = {
		{ DOCKER "/" ID "/config.v2.json",
		  "{\"ID\":\"" ID "\",\"Name\":\"/web\"}" },
		{ "run/containerd/" TASKS "/k8s.io/" ID "/config.json",
		  POD_OF_CONTAINERD },
		{ "run/k3s/containerd/" TASKS "/k8s.io/" ID "/config.json",
		  POD_OF_CONTAINERD },
		{ "run/k0s/containerd/" TASKS "/k8s.io/" ID "/config.json",
		  POD_OF_CONTAINERD },
		{ "var/snap/microk8s/common/run/containerd/" TASKS "/k8s.io/" ID
		  "/config.json",
		  POD_OF_CONTAINERD },
		{ "var/lib/containers/storage/overlay-containers/containers.json",
		  listed },
		{ "var/lib/containers/storage/vfs-containers/volatile-containers.json",
		  listed },
		{ "run/containers/storage/overlay-containers/" ID
		  "/userdata/config.json",
		  "{\"annotations\":{\"io.container.manager\":\"cri-o\","
		  "\"io.kubernetes.container.name\":\"web\"}}" },
		{ "var/log/containers/pod_shop_web-" ID ".log", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		struct container_facts facts = { 0 };
		struct fixture *f;
		int error;

		assert_int_equal(tear_down(state), 0);
		assert_int_equal(set_up(state), 0);
		f = *state;
		assert_none(f, 0);
		make_file(f, places[i].path, places[i].text);
		assert_true(find(f, &facts, &error));
		assert_int_equal(error, 0);
		assert_string_equal(
			*facts.name ? facts.name : facts.pod_container, "web");
	}
}

/* ---- Any place ---------------------------------------------------------------------------- */

/* What a runtime writes, where it was configured to, and the name that it has then: "" if no record can have it. */
static void random_name(char name[160])
{
	static const char letters[] = "azAZ09._-";
	const uint32_t len = 1 + test_below(test_below(2) ? 20 : 140);

	for (uint32_t i = 0; i < len; i++)
		name[i] = letters[test_below(i ? 9 : 6)];
	name[len] = '\0';
}

static void random_dir(char dir[400])
{
	const uint32_t depth = 1 + test_below(4);

	*dir = '\0';
	for (uint32_t i = 0; i < depth; i++)
		sprintf(dir + strlen(dir), "/%c%0*u", (int)('a' + test_below(26)),
			(int)(1 + test_below(test_below(4) ? 10 : 90)), i);
}

/* @return whether the configuration names @dir: else it has something else, or is damaged */
static bool configure(const struct fixture *f, bool is_docker, const char *dir)
{
	static const char *const docker[] = { "{\"data-root\":\"%s\"}",
					      "{\"a\":[1],\"graph\":\"%s\"}",
					      "{\"data-root\":\"x%s\"}",
					      "{\"data-root\":5,\"x\":\"%s\"}",
					      "{\"data-root\":\"%s\"" };
	static const char *const storage[] = {
		"[storage]\ndriver = \"overlay\"\ngraphroot = \"%s\"\n",
		"# a\n[x]\ngraphroot = \"/x\"\n[storage]\n  runroot=\"%s\"",
		"[storage.options]\ngraphroot = \"%s\"\n",
		"[storage]\n# graphroot = \"%s\"\nrunroot = \"relative\"\n",
		"[storage]\ngraphroot = \"%s\n",
	};
	static const char *const files[][2] = {
		{ "etc/containers/storage.conf",
		  "usr/share/containers/storage.conf" },
		{ "etc/docker/daemon.json",
		  "var/snap/docker/current/config/daemon.json" },
	};
	const uint32_t form = test_below(ARRAY_SIZE(docker));
	char text[512];

	snprintf(text, sizeof(text), is_docker ? docker[form] : storage[form],
		 dir);
	make_file(f, files[is_docker][test_below(2)], text);
	return form < 2;
}

static void make_container(const struct fixture *f, bool is_docker,
			   bool is_remapped, const char *dir, const char *name)
{
	char path[800], text[512];

	if (is_docker) {
		snprintf(path, sizeof(path),
			 "%s%s/containers/" ID "/config.v2.json", dir,
			 is_remapped ? "/231072.231072" : "");
		snprintf(text, sizeof(text),
			 "{\"ID\":\"" ID "\",\"Name\":\"/%s\"}", name);
	} else {
		snprintf(path, sizeof(path), "%s/%s-containers/%scontainers.json",
			 dir, test_below(2) ? "overlay" : "aufs",
			 test_below(2) ? "volatile-" : "");
		snprintf(text, sizeof(text),
			 "[{\"id\":\"" ID
			 "\",\"names\":[\"%s\"],\"metadata\":\"{}\"}]",
			 name);
	}
	make_file(f, path + (*path == '/'), text);
}

static void check_anywhere(const struct fixture *f)
{
	static const char *const known[][2] = {
		{ "var/lib/containers/storage", "run/containers/storage" },
		{ "var/lib/docker", "var/snap/docker/common/var-lib-docker" },
	};
	const bool is_docker = test_below(2), is_known = !test_below(4),
		   is_link = !is_known && !test_below(4),
		   is_remapped = test_below(2);
	struct container_facts facts = { 0 };
	char name[160], dir[400], link[PATH_MAX];
	bool is_found = true;
	int error;

	random_name(name);
	random_dir(dir);
	if (is_known)
		strcpy(dir, known[is_docker][test_below(2)]);
	else
		is_found = configure(f, is_docker, dir) &&
			   strlen(dir + 1) + (is_docker && !is_remapped ?
						      strlen("/containers") :
						      0) <
				   256;
	if (is_link) {
		make_dir(f, dir + 1);
		path_of(f, dir + 1, link);
		assert_int_equal(rmdir(link), 0);
		assert_int_equal(symlink("/elsewhere", link), 0);
		strcpy(dir, "/elsewhere");
	}
	make_container(f, is_docker, is_remapped, dir, name);
	is_found &= strlen(name) < sizeof(facts.name);
	assert_int_equal(find(f, &facts, &error), is_found);
	assert_int_equal(error, 0);
	assert_string_equal(facts.name, is_found ? name : "");
}

TEST_WITH(a_container_anywhere_has_its_own_name, set_up, tear_down)
{
	const char *given = getenv("NETOBS_TEST_PLACES");
	const unsigned long n = given ? strtoul(given, NULL, 0) : 100;

	for (unsigned long i = 0; i < n; i++) {
		check_anywhere(*state);
		assert_int_equal(tear_down(state), 0);
		assert_int_equal(set_up(state), 0);
	}
}

/* As of a root directory that another process has: a link is one of its own. */
CASE(links_to_directories_of_runtimes_stay_in_the_root)
{
	struct container_facts facts;
	char link[PATH_MAX];
	int error;

	make_dir(f, "var/lib");
	make_file(f, "data/containers/" ID "/config.v2.json",
		  "{\"ID\":\"" ID "\",\"Name\":\"/web\"}");
	path_of(f, "var/lib/docker", link);
	assert_int_equal(symlink("/data", link), 0);
	assert_true(find(f, &facts, &error));
	assert_string_equal(facts.name, "web");
}

CASE(no_link_of_a_container_is_followed)
{
	char link[PATH_MAX];

	make_docker(f, OTHER, "other");
	make_file(f, "elsewhere/secret", "{\"ID\":\"" ID "\",\"Name\":\"/web\"}");
	make_dir(f, DOCKER "/" ID);
	path_of(f, DOCKER "/" ID "/config.v2.json", link);
	assert_int_equal(symlink("../../../../../elsewhere/secret", link), 0);
	assert_none(f, -ELOOP);
	assert_int_equal(unlink(link), 0);
	path_of(f, DOCKER "/" ID, link);
	assert_int_equal(rmdir(link), 0);
	assert_int_equal(symlink(OTHER, link), 0);
	assert_none(f, -ELOOP);
}

CASE(only_files_of_some_size_are_read)
{
	static const char begin[] = "{\"ID\":\"" ID "\",\"Name\":\"/web\"}";
	char path[PATH_MAX];

	make_file(f, DOCKER "/" ID "/config.v2.json", begin);
	path_of(f, DOCKER "/" ID "/config.v2.json", path);
	assert_int_equal(truncate(path, sizeof(begin)), 0); /* with a NUL */
	assert_none(f, -EINVAL);
	assert_int_equal(truncate(path, CONTAINER_FILE_MAX + 1), 0);
	assert_none(f, -EFBIG);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_none(f, -EINVAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_none(f, -EINVAL);
}

CASE(a_file_of_another_user_is_not_read)
{
	char path[PATH_MAX];

	if (geteuid())
		skip();
	make_docker(f, ID, "web");
	path_of(f, DOCKER "/" ID "/config.v2.json", path);
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_none(f, -EPERM);
}

/* Of several thousand containers, as Podman has it. */
CASE(a_long_list_is_read)
{
	enum { LISTED = 8000 };
	static struct container_query queries[LISTED];
	const size_t size = LISTED * 512;
	char *text = calloc(1, size + 3), *to = text;
	struct container_files files;

	assert_non_null(text);
	for (unsigned int i = 0; i < LISTED; i++) {
		snprintf(queries[i].id, sizeof(queries[i].id), "%064x", i);
		to += sprintf(
			to,
			"%c{\"id\":\"%s\",\"names\":[\"box-%u\"],\"metadata\":\"{\\\"a\\\":\\\"%0200u\\\"}\"}",
			i ? ',' : '[', queries[i].id, i, i);
	}
	strcpy(to, "]");
	assert_true(strlen(text) > CONTAINER_FILE_MAX);
	make_file(f,
		  "var/lib/containers/storage/overlay-containers/containers.json",
		  text);
	free(text);
	assert_int_equal(container_files_open(f->root, &files), 0);
	container_places_find(&files, queries, LISTED);
	assert_int_equal(files.errors.n, 0);
	container_files_close(&files);
	for (unsigned int i = 0; i < LISTED; i++) {
		char name[32];

		snprintf(name, sizeof(name), "box-%u", i);
		assert_true(queries[i].is_found);
		assert_string_equal(queries[i].facts.name, name);
	}
}

/* ---- Names -------------------------------------------------------------------------------- */

static void open_names(struct fixture *f)
{
	assert_int_equal(
		container_names_open(f->root, &f->loop, &f->log, &f->names), 0);
}

/* The name; "": it is not known. @uid: of the control group's pod, or "" */
static const char *name_of(struct fixture *f, const char *id, const char *uid)
{
	static struct netobs_process process;
	struct cgroup_names cgroup = { 0 };

	process = (struct netobs_process){ 0 };
	snprintf(cgroup.container_id, sizeof(cgroup.container_id), "%s", id);
	snprintf(cgroup.pod_uid, sizeof(cgroup.pod_uid), "%s", uid);
	container_names_fill(f->names, &cgroup, CONTAINER_TEXTS(&process));
	if (!*process.pod_name)
		return process.container_name;
	assert_string_equal(process.pod_name, "pod");
	assert_string_equal(process.pod_namespace, "shop");
	assert_string_equal(process.container_name, "web");
	return process.pod_name;
}

static void await_name(struct fixture *f, const char *id, const char *name)
{
	struct pollfd fd = { .fd = f->loop.fd, .events = POLLIN };

	await_by(!strcmp(name_of(f, id, ""), name), {
		poll(&fd, 1, 100);
		loop_dispatch(&f->loop);
	});
}

/* Wait until a container is known, without asking for it. */
static void await_one(struct fixture *f)
{
	struct pollfd fd = { .fd = f->loop.fd, .events = POLLIN };

	await_by(container_names_count(f->names), {
		poll(&fd, 1, 100);
		loop_dispatch(&f->loop);
	});
	assert_int_equal(container_names_count(f->names), 1);
}

/* Without being asked for: it may be gone when its first flow is reported. */
CASE(a_container_that_comes_and_goes_has_a_name)
{
	char command[PATH_MAX + 64];

	make_dir(f, DOCKER);
	open_names(f);
	make_docker(f, ID, "web");
	await_one(f);
	snprintf(command, sizeof(command), "rm -rf '%s/" DOCKER "/" ID "'",
		 f->root);
	/* The directory may have been seen before its file. */
	await_name(f, ID, "web");
	assert_int_equal(system(command), 0);
	assert_string_equal(name_of(f, ID, ""), "web");
}

static void await_runtime(struct fixture *f, const char *parent)
{
	if (*parent)
		make_dir(f, parent);
	open_names(f);
	make_docker(f, ID, "web");
	await_one(f);
	await_name(f, ID, "web");
}

/* Whichever the directory is from which on its way is not there; one container may be gone when it is asked for. */
TEST_WITH(the_way_to_a_runtime_is_watched, set_up, tear_down)
{
	static const char *const parents[] = { "", "var", "var/lib",
					       "var/lib/docker" };

	for (size_t i = 0; i < ARRAY_SIZE(parents); i++) {
		assert_int_equal(tear_down(state), 0);
		assert_int_equal(set_up(state), 0);
		await_runtime(*state, parents[i]);
	}
}

CASE(a_pod_has_a_name_where_its_control_group_is_one)
{
	make_file(f, "run/containerd/" TASKS "/k8s.io/" ID "/config.json",
		  POD_OF_CONTAINERD);
	open_names(f);
	assert_string_equal(name_of(f, ID, UID), "pod");
	assert_string_equal(name_of(f, ID, ""), "");
}

/* Each file once. */
CASE(what_cannot_be_read_is_logged_once)
{
	struct pollfd fd = { .fd = f->loop.fd, .events = POLLIN };
	char path[PATH_MAX];

	make_docker(f, ID, "web");
	path_of(f, DOCKER "/" ID "/config.v2.json", path);
	assert_int_equal(truncate(path, CONTAINER_FILE_MAX + 1), 0);
	open_names(f);
	assert_int_equal(f->witness.n_lines, 1);
	assert_non_null(strstr(witness_last(&f->witness),
			       "/" DOCKER "/" ID "/config.v2.json"));
	make_docker(f, OTHER, "other");
	await_name(f, OTHER, "other");
	assert_string_equal(name_of(f, ID, ""), "");
	assert_int_equal(f->witness.n_lines, 1);

	make_docker(f, THIRD, "third");
	path_of(f, DOCKER "/" THIRD "/config.v2.json", path);
	assert_int_equal(truncate(path, CONTAINER_FILE_MAX + 1), 0);
	await_by(f->witness.n_lines > 1, {
		name_of(f, THIRD, "");
		poll(&fd, 1, 100);
		loop_dispatch(&f->loop);
	});
	assert_int_equal(f->witness.n_lines, 2);
	assert_non_null(strstr(witness_last(&f->witness), THIRD));
}

CASE(a_line_says_once_where_a_name_was_looked_for)
{
	struct pollfd fd = { .fd = f->loop.fd, .events = POLLIN };

	make_file(f, "etc/docker/daemon.json", "{\"data-root\":\"/mnt/docker\"}");
	open_names(f);
	await_by(f->witness.n_lines, {
		name_of(f, ID, "");
		name_of(f, OTHER, "");
		poll(&fd, 1, 100);
		loop_dispatch(&f->loop);
	});
	assert_non_null(
		strstr(witness_last(&f->witness), "/mnt/docker/containers, "));
	assert_non_null(strstr(witness_last(&f->witness),
			       "/var/lib/docker/containers, "));
	assert_non_null(strstr(witness_last(&f->witness),
			       "/var/lib/containers/storage"));
	make_docker(f, THIRD, "third");
	await_name(f, THIRD, "third");
	assert_int_equal(f->witness.n_lines, 1);
}

CASE(without_a_root_there_are_no_names)
{
	assert_int_equal(container_names_open("/nonexistent", &f->loop, &f->log,
					      &f->names),
			 0);
	assert_string_equal(name_of(f, ID, ""), "");
	assert_int_equal(f->witness.n_lines, 1);
}

/* They stay as they are once the first user closes them. */
CASE(others_may_use_the_names)
{
	struct container_names *shared;

	make_docker(f, ID, "web");
	open_names(f);
	shared = container_names_share(f->names);
	container_names_close(f->names);
	f->names = shared;
	assert_string_equal(name_of(f, ID, ""), "web");
	assert_string_equal(name_of(f, OTHER, ""), "");
	assert_string_equal(name_of(f, "short", ""), "");
	assert_int_equal(f->witness.n_lines, 0);
	loop_dispatch(&f->loop);
	container_names_leave(shared);
	f->names = NULL;
	assert_null(container_names_share(NULL));
	container_names_leave(NULL);
}

static void id_of(unsigned int i, char to[CONTAINER_ID_SIZE])
{
	snprintf(to, CONTAINER_ID_SIZE, "%064x", i);
}

/* Those that are asked for take the place of others. */
CASE(memory_is_bounded)
{
	enum { MORE = 100 };
	char id[CONTAINER_ID_SIZE];

	open_names(f);
	for (unsigned int i = 0; i < CONTAINERS_MAX + MORE; i++) {
		id_of(i, id);
		assert_string_equal(name_of(f, id, ""), "");
	}
	assert_int_equal(container_names_count(f->names), CONTAINERS_MAX);
	make_docker(f, ID, "web");
	await_name(f, ID, "web");
	assert_int_equal(container_names_count(f->names), CONTAINERS_MAX);
}

/* ---- Any order ---------------------------------------------------------------------------- */

enum { CONTAINERS = 60 };

/* Containers come and go at random; each that has a file then gets its name. */
CASE(at_any_time_containers_have_their_own_names)
{
	bool is_made[CONTAINERS] = { 0 };
	char id[CONTAINER_ID_SIZE], name[32], path[PATH_MAX];

	open_names(f);
	for (int round = 0; round < 300; round++) {
		const unsigned int i = test_below(CONTAINERS);

		id_of(i, id);
		snprintf(name, sizeof(name), "name-%u", i);
		if (test_below(3) == 0) {
			snprintf(path, sizeof(path), DOCKER "/%s", id);
			make_dir(f, path); /* its file may come later */
		} else if (!is_made[i]) {
			make_docker(f, id, name);
			is_made[i] = true;
		}
		if (test_below(2))
			loop_dispatch(&f->loop);
		assert_true(!*name_of(f, id, "") ||
			    !strcmp(name_of(f, id, ""), name));
	}
	for (unsigned int i = 0; i < CONTAINERS; i++) {
		id_of(i, id);
		snprintf(name, sizeof(name), "name-%u", i);
		if (is_made[i])
			await_name(f, id, name);
		else
			assert_string_equal(name_of(f, id, ""), "");
	}
}
