// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "container_facts.h"

#include "base/json_reader.h"

#include <string.h>

enum {
	METADATA_MAX = 8192, /* of a container in the list of the storage */
	ID_LEN = 64,
};

/* ---- Names -------------------------------------------------------------------------------- */

/* Independent of the locale. */
static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

static size_t name_len(const char *text, const char *others)
{
	size_t len = 0;

	while (is_alnum(text[len]) ||
	       (text[len] && len && strchr(others, text[len])))
		len++;
	return len;
}

/* "" unless all of the @len bytes are a name, and fit. */
static void take_bytes(const char *text, size_t len, const char *others,
		       char *to, size_t size)
{
	*to = '\0';
	if (len >= size || name_len(text, others) < len)
		return;
	memcpy(to, text, len);
	to[len] = '\0';
}

static const char of_names[] = "._-", of_images[] = "._-:/@+";

/* A name has no escapes, so the text is read as it is in the file. */
static void take_text(struct json_value value, const char *others, char *to,
		      size_t size)
{
	const char *text = value.at && *value.at == '"' ? value.at + 1 : "";
	const size_t len = name_len(text, others);

	take_bytes(text, text[len] == '"' ? len : 0, others, to, size);
}

#define take_name(value, to) take_text(value, of_names, to, sizeof(to))

/* An image that is known only by its ID has no name. */
static void take_image(struct json_value value, struct container_facts *facts)
{
	static const char digest[] = "sha256:";

	take_text(value, of_images, facts->image, sizeof(facts->image));
	if (!strncmp(facts->image, digest, sizeof(digest) - 1))
		*facts->image = '\0';
}

static bool has_name(const struct container_facts *facts)
{
	return *facts->name || *facts->pod_container || *facts->pod_name;
}

static bool give_facts(const struct container_facts *facts,
		       struct container_facts *ret_facts)
{
	if (!has_name(facts))
		return false;
	*ret_facts = *facts;
	return true;
}

/* ---- Pods --------------------------------------------------------------------------------- */

/* The keys that a runtime uses for the data of a pod. */
struct pod_keys {
	const char *container, *name, *namespace, *uid, *image;
};

/* The kubelet's labels: of CRI-O, and of Docker. */
static const struct pod_keys kubelet_keys = {
	.container = "io.kubernetes.container.name",
	.name = "io.kubernetes.pod.name",
	.namespace = "io.kubernetes.pod.namespace",
	.uid = "io.kubernetes.pod.uid",
	.image = "io.kubernetes.cri-o.ImageName",
};

/* Versions before 1.7 have no UID. */
static const struct pod_keys containerd_keys = {
	.container = "io.kubernetes.cri.container-name",
	.name = "io.kubernetes.cri.sandbox-name",
	.namespace = "io.kubernetes.cri.sandbox-namespace",
	.uid = "io.kubernetes.cri.sandbox-uid",
	.image = "io.kubernetes.cri.image-name",
};

static void take_pod(struct json_value object, const struct pod_keys *keys,
		     struct container_facts *facts)
{
	take_name(json_member(object, keys->container), facts->pod_container);
	take_name(json_member(object, keys->name), facts->pod_name);
	take_name(json_member(object, keys->namespace), facts->pod_namespace);
	take_name(json_member(object, keys->uid), facts->pod_uid);
}

bool container_facts_are_of_pod(const struct container_facts *facts,
				const struct cgroup_names *cgroup)
{
	return *facts->pod_name && *cgroup->pod_uid &&
	       (!*facts->pod_uid || !strcmp(facts->pod_uid, cgroup->pod_uid));
}

/* ---- Files -------------------------------------------------------------------------------- */

static bool is_text(struct json_value value, const char *text)
{
	const size_t len = strlen(text);

	return value.at && *value.at == '"' &&
	       !strncmp(value.at + 1, text, len) && value.at[1 + len] == '"';
}

/* Docker's names begin with "/". Labels without a pod's UID may come from an image. */
bool container_facts_of_docker(const char *text, const char *id,
			       struct container_facts *ret_facts)
{
	const struct json_value root = json_parse(text);
	struct json_value name = json_get(root, "Name");
	struct container_facts facts = { 0 };

	if (!is_text(json_get(root, "ID"), id))
		return false;
	if (name.at && name.at[0] == '"' && name.at[1] == '/') {
		const char *begin = name.at + 2;
		const size_t len = name_len(begin, of_names);

		take_bytes(begin, begin[len] == '"' ? len : 0, of_names,
			   facts.name, sizeof(facts.name));
	}
	take_image(json_get(root, "Config.Image"), &facts);
	take_pod(json_get(root, "Config.Labels"), &kubelet_keys, &facts);
	if (!*facts.pod_uid)
		*facts.pod_container = *facts.pod_name = *facts.pod_namespace =
			'\0';
	return give_facts(&facts, ret_facts);
}

/* For a container in no pod, only annotations of nerdctl are written by the runtime. */
bool container_facts_of_oci(const char *text, const char *id,
			    struct container_facts *ret_facts)
{
	const struct json_value annotations =
		json_member(json_parse(text), "annotations");
	struct container_facts facts = { 0 };
	const struct pod_keys *keys = NULL;

	(void)id;
	if (is_text(json_member(annotations, "io.container.manager"), "cri-o"))
		keys = &kubelet_keys;
	else if (json_member(annotations, "io.kubernetes.cri.container-type").at)
		keys = &containerd_keys;
	if (keys) {
		take_pod(annotations, keys, &facts);
		take_image(json_member(annotations, keys->image), &facts);
	} else {
		take_name(json_member(annotations, "nerdctl/name"), facts.name);
	}
	return give_facts(&facts, ret_facts);
}

/* Containers of CRI-O are in this list, too, but their config.json has better names. */
static bool facts_of_listed(struct json_value listed,
			    struct container_facts *ret_facts)
{
	struct container_facts facts = { 0 };
	struct json_item first = { 0 };
	char metadata[METADATA_MAX];
	struct json_value more;

	json_text(json_member(listed, "metadata"), metadata, sizeof(metadata));
	more = json_parse(metadata);
	if ((*metadata && !more.at) || json_member(more, "pod-name").at)
		return false;
	if (json_next(json_member(listed, "names"), &first))
		take_name(first.value, facts.name);
	take_image(json_member(more, "image-name"), &facts);
	return give_facts(&facts, ret_facts);
}

void container_facts_each(const char *text,
			  void (*take)(const char *id,
				       const struct container_facts *facts,
				       void *ctx),
			  void *ctx)
{
	const struct json_value list = json_parse(text);
	struct json_item item = { 0 };

	if (!list.at || *list.at != '[')
		return;
	while (json_next(list, &item)) {
		struct container_facts facts;
		char id[ID_LEN + 2];

		json_text(json_member(item.value, "id"), id, sizeof(id));
		if (strlen(id) == ID_LEN && facts_of_listed(item.value, &facts))
			take(id, &facts, ctx);
	}
}

bool container_facts_of_log(const char *text, const char *id,
			    struct container_facts *ret_facts)
{
	static const char end[] = ".log";
	const size_t len = strlen(text), after = 1 + ID_LEN + sizeof(end) - 1;
	struct container_facts facts = { 0 };
	const char *namespace, *container, *dash;

	if (len <= after)
		return false;
	dash = text + len - after;
	namespace = memchr(text, '_', (size_t)(dash - text));
	container = namespace ? memchr(namespace + 1, '_',
				       (size_t)(dash - namespace - 1)) :
				NULL;
	if (*dash != '-' || !container || strcmp(dash + 1 + ID_LEN, end) != 0 ||
	    strncmp(dash + 1, id, ID_LEN) != 0)
		return false;
	take_bytes(text, (size_t)(namespace - text), of_names, facts.pod_name,
		   sizeof(facts.pod_name));
	take_bytes(namespace + 1, (size_t)(container - namespace - 1), of_names,
		   facts.pod_namespace, sizeof(facts.pod_namespace));
	take_bytes(container + 1, (size_t)(dash - container - 1), of_names,
		   facts.pod_container, sizeof(facts.pod_container));
	return give_facts(&facts, ret_facts);
}
