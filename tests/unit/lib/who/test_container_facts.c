// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Names in the files of container runtimes, and texts that have none. */
#include "lib_test.h"

#include "lib_seed.h"
#include "who/container_facts.h"

#define ID "3f4c9a0b1d2e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8"
#define OTHER "00000000000000000000000000000000000000000000000000000000000000ff"
#define UID "0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5f60"
#define OTHER_UID "0f3e9c1a-5b7d-4c2e-8a6f-1d2c3b4a5f61"
#define TEXT_64 \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

#define DOCKER(name, config) \
	"{\"ID\":\"" ID "\",\"Name\":" name ",\"Config\":{" config "}}"
#define LABELS                                                  \
	"\"Labels\":{\"io.kubernetes.container.name\":\"web\"," \
	"\"io.kubernetes.pod.name\":\"web-7d4b9c\","            \
	"\"io.kubernetes.pod.namespace\":\"shop\","             \
	"\"io.kubernetes.pod.uid\":\"" UID "\"}"
#define OCI(annotations) \
	"{\"ociVersion\":\"1.0.2\",\"annotations\":{" annotations "}}"
#define CRI                                                               \
	"\"io.kubernetes.cri.container-type\":\"container\","             \
	"\"io.kubernetes.cri.container-name\":\"web\","                   \
	"\"io.kubernetes.cri.image-name\":\"docker.io/library/nginx:1\"," \
	"\"io.kubernetes.cri.sandbox-name\":\"web-7d4b9c\","              \
	"\"io.kubernetes.cri.sandbox-namespace\":\"shop\""
#define CRIO                                                          \
	"\"io.container.manager\":\"cri-o\","                         \
	"\"io.kubernetes.container.name\":\"web\","                   \
	"\"io.kubernetes.cri-o.ImageName\":\"quay.io/crio/redis:7\"," \
	"\"io.kubernetes.pod.name\":\"web-7d4b9c\","                  \
	"\"io.kubernetes.pod.namespace\":\"shop\","                   \
	"\"io.kubernetes.pod.uid\":\"" UID "\""
#define LISTED(id, names, metadata) \
	"{\"id\":\"" id "\",\"names\":" names ",\"metadata\":\"" metadata "\"}"
#define OF_PODMAN \
	"{\\\"image-name\\\":\\\"docker.io/library/busybox:latest\\\",\\\"name\\\":\\\"old\\\"}"
#define OF_CRIO \
	"{\\\"pod-name\\\":\\\"k8s_web\\\",\\\"image-name\\\":\\\"redis\\\"}"

/* One of a list. */
struct wanted {
	const char *id;
	struct container_facts *ret_facts;
	bool is_found;
};

static void take_wanted(const char *id, const struct container_facts *facts,
			void *ctx)
{
	struct wanted *wanted = ctx;

	assert_int_equal(strlen(id), strlen(ID));
	if (strcmp(id, wanted->id) != 0)
		return;
	*wanted->ret_facts = *facts;
	wanted->is_found = true;
}

static bool facts_of_list(const char *text, const char *id,
			  struct container_facts *ret_facts)
{
	struct wanted wanted = { id, ret_facts, false };

	container_facts_each(text, take_wanted, &wanted);
	return wanted.is_found;
}

/* Without a name: there is none. */
static const struct {
	container_facts_fn *read;
	const char *text;
	struct container_facts facts;
} files[] = {
	/* Docker */
	{ container_facts_of_docker,
	  DOCKER("\"/shop-web-1\"", "\"Image\":\"nginx:1.25\",\"Labels\":{}"),
	  { .name = "shop-web-1", .image = "nginx:1.25" } },
	{ container_facts_of_docker,
	  DOCKER("\"/k8s_web_web-7d4b9c_shop_0\"",
		 "\"Image\":\"sha256:" OTHER "\"," LABELS),
	  { .name = "k8s_web_web-7d4b9c_shop_0",
	    .pod_container = "web",
	    .pod_name = "web-7d4b9c",
	    .pod_namespace = "shop",
	    .pod_uid = UID } },
	{ container_facts_of_docker,
	  DOCKER("\"/a\"",
		 "\"Labels\":{\"io.kubernetes.pod.name\":\"of-an-image\"}"),
	  { .name = "a" } }, /* no UID */
	{ container_facts_of_docker, DOCKER("\"a\"", ""), {} },
	{ container_facts_of_docker, DOCKER("\"/\"", ""), {} },
	{ container_facts_of_docker, DOCKER("\"/a/b\"", ""), {} },
	{ container_facts_of_docker, DOCKER("\"/.a\"", ""), {} },
	{ container_facts_of_docker, DOCKER("\"/a b\"", ""), {} },
	{ container_facts_of_docker, DOCKER("\"/a\\u001b[2J\"", ""), {} },
	{ container_facts_of_docker, DOCKER("\"/a\\u0000b\"", ""), {} },
	{ container_facts_of_docker, DOCKER("\"/\xc3\xa4\"", ""), {} },
	{ container_facts_of_docker, DOCKER("7", ""), {} },
	{ container_facts_of_docker, DOCKER("null", ""), {} },
	{ container_facts_of_docker, DOCKER("\"/" TEXT_64 TEXT_64 "\"", ""), {} },
	{ container_facts_of_docker, "{\"ID\":\"" OTHER "\",\"Name\":\"/a\"}", {} },
	{ container_facts_of_docker, "{\"Name\":\"/a\"}", {} },
	{ container_facts_of_docker, "[]", {} },
	{ container_facts_of_docker, "", {} },
	/* containerd: from 1.7 on, and before; a sandbox; nerdctl; others */
	{ container_facts_of_oci,
	  OCI(CRI ",\"io.kubernetes.cri.sandbox-uid\":\"" UID "\""),
	  { .pod_container = "web",
	    .image = "docker.io/library/nginx:1",
	    .pod_name = "web-7d4b9c",
	    .pod_namespace = "shop",
	    .pod_uid = UID } },
	{ container_facts_of_oci,
	  OCI(CRI),
	  { .pod_container = "web",
	    .image = "docker.io/library/nginx:1",
	    .pod_name = "web-7d4b9c",
	    .pod_namespace = "shop" } },
	{ container_facts_of_oci,
	  OCI("\"io.kubernetes.cri.container-type\":\"sandbox\","
	      "\"io.kubernetes.cri.sandbox-name\":\"dns\","
	      "\"io.kubernetes.cri.sandbox-namespace\":\"kube-system\""),
	  { .pod_name = "dns", .pod_namespace = "kube-system" } },
	{ container_facts_of_oci,
	  OCI("\"nerdctl/name\":\"web\""),
	  { .name = "web" } },
	{ container_facts_of_oci,
	  OCI("\"io.kubernetes.cri.sandbox-name\":\"a\""),
	  {} },
	{ container_facts_of_oci,
	  OCI("\"io.kubernetes.pod.name\":\"a\","
	      "\"io.container.manager\":\"libpod\""),
	  {} },
	{ container_facts_of_oci, "{\"annotations\":null}", {} },
	{ container_facts_of_oci, "{\"annotations\":[]}", {} },
	{ container_facts_of_oci, "{}", {} },
	/* CRI-O */
	{ container_facts_of_oci,
	  OCI(CRIO),
	  { .pod_container = "web",
	    .image = "quay.io/crio/redis:7",
	    .pod_name = "web-7d4b9c",
	    .pod_namespace = "shop",
	    .pod_uid = UID } },
	/* Podman */
	{ facts_of_list,
	  "[" LISTED(OTHER, "[\"other\"]", OF_PODMAN) "," LISTED(
		  ID, "[\"web\",\"second\"]", OF_PODMAN) "]",
	  { .name = "web", .image = "docker.io/library/busybox:latest" } },
	{ facts_of_list, "[" LISTED(ID, "[\"web\"]", "") "]", { .name = "web" } },
	{ facts_of_list, "[" LISTED(ID, "[\"k8s_web\"]", OF_CRIO) "]", {} },
	{ facts_of_list, "[" LISTED(ID, "[\"web\"]", "{") "]", {} },
	{ facts_of_list, "[" LISTED(ID, "[]", OF_PODMAN) "]", {} },
	{ facts_of_list, "[" LISTED(ID, "\"web\"", OF_PODMAN) "]", {} },
	{ facts_of_list, "[" LISTED(OTHER, "[\"web\"]", OF_PODMAN) "]", {} },
	{ facts_of_list, "[1,\"" ID "\",null,[]]", {} },
	{ facts_of_list, "{}", {} },
	/* The kubelet */
	{ container_facts_of_log,
	  "web-7d4b9c_shop_web-" ID ".log",
	  { .pod_container = "web",
	    .pod_name = "web-7d4b9c",
	    .pod_namespace = "shop" } },
	{ container_facts_of_log, "web-7d4b9c_shop_web-" OTHER ".log", {} },
	{ container_facts_of_log, "web-7d4b9c_shop_web-" ID ".log.gz", {} },
	{ container_facts_of_log, "web-7d4b9c_shop-" ID ".log", {} },
	{ container_facts_of_log, "__-" ID ".log", {} },
	{ container_facts_of_log, "-" ID ".log", {} },
	{ container_facts_of_log, ID ".log", {} },
	{ container_facts_of_log, "", {} },
};

static bool is_known(const struct container_facts *facts)
{
	return *facts->name || *facts->pod_container || *facts->pod_name;
}

TEST(each_runtime_is_read)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		const struct container_facts *expected = &files[i].facts;
		struct container_facts facts;

		memset(&facts, 0x5a, sizeof(facts));
		if (!is_known(expected)) {
			assert_false(files[i].read(files[i].text, ID, &facts));
			assert_int_equal(facts.name[0], 0x5a);
			continue;
		}
		assert_true(files[i].read(files[i].text, ID, &facts));
		assert_string_equal(facts.name, expected->name);
		assert_string_equal(facts.image, expected->image);
		assert_string_equal(facts.pod_container, expected->pod_container);
		assert_string_equal(facts.pod_name, expected->pod_name);
		assert_string_equal(facts.pod_namespace, expected->pod_namespace);
		assert_string_equal(facts.pod_uid, expected->pod_uid);
	}
}

static bool has_letters_only(const char *text, const char *others)
{
	for (; *text; text++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
			    *text) &&
		    !strchr(others, *text))
			return false;
	return true;
}

static void check_any(container_facts_fn *read, const char *text)
{
	struct container_facts facts;

	if (!read(text, ID, &facts))
		return;
	assert_true(is_known(&facts));
	assert_true(has_letters_only(facts.name, "._-"));
	assert_true(has_letters_only(facts.pod_container, "._-"));
	assert_true(has_letters_only(facts.pod_name, "._-"));
	assert_true(has_letters_only(facts.pod_namespace, "._-"));
	assert_true(has_letters_only(facts.pod_uid, "._-"));
	assert_true(has_letters_only(facts.image, "._-:/@+"));
}

/* In memory of its own length, so that a sanitizer sees a byte too far. */
TEST(any_part_of_a_file_is_read_within_its_bounds)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		for (size_t len = strlen(files[i].text); len--;) {
			char *part = strndup(files[i].text, len);

			check_any(files[i].read, part);
			free(part);
		}
	}
}

TEST(changed_files_have_names_or_none)
{
	for (int round = 0; round < 20000; round++) {
		const size_t i = test_below(ARRAY_SIZE(files));
		char *text = strdup(files[i].text);
		const size_t len = strlen(text);

		for (int n = 1 + test_below(4); len && n; n--)
			text[test_below(len)] = (char)(1 + test_below(255));
		check_any(files[i].read, text);
		check_any(files[test_below(ARRAY_SIZE(files))].read, text);
		free(text);
	}
}

TEST(pods_are_those_of_the_control_group)
{
	const struct container_facts facts = { .pod_name = "web", .pod_uid = UID };
	const struct container_facts without = { .pod_name = "web" };
	const struct container_facts none = { .name = "web" };
	const struct cgroup_names pod = { .pod_uid = UID },
				  other = { .pod_uid = OTHER_UID },
				  alone = { .container_id = ID };

	assert_true(container_facts_are_of_pod(&facts, &pod));
	assert_true(container_facts_are_of_pod(&without, &pod));
	assert_false(container_facts_are_of_pod(&facts, &other));
	assert_false(container_facts_are_of_pod(&facts, &alone));
	assert_false(container_facts_are_of_pod(&without, &alone));
	assert_false(container_facts_are_of_pod(&none, &pod));
}
