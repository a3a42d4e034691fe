// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* Files of container runtimes of any bytes: what is found in them are names, and nothing else. */
#include "lib_fuzz.h"
#include "who/container_facts.h"

#define ID "3f4c9a0b1d2e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8"

static const char letters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/@+";

static void check_name(const char *name, size_t size)
{
	check(strnlen(name, size) < size && !name[strspn(name, letters)]);
}

static void check_facts(const struct container_facts *facts)
{
	check_name(facts->name, sizeof(facts->name));
	check_name(facts->image, sizeof(facts->image));
	check_name(facts->pod_container, sizeof(facts->pod_container));
	check_name(facts->pod_name, sizeof(facts->pod_name));
	check_name(facts->pod_namespace, sizeof(facts->pod_namespace));
	check_name(facts->pod_uid, sizeof(facts->pod_uid));
}

static void check_listed(const char *id, const struct container_facts *facts,
			 void *ctx)
{
	(void)ctx;
	check(strlen(id) == strlen(ID));
	check_facts(facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	container_facts_fn *const readers[] = { container_facts_of_docker,
						container_facts_of_oci,
						container_facts_of_log };
	char *text = fuzz_text(data, size);

	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		struct container_facts facts;

		if (readers[i](text, ID, &facts))
			check_facts(&facts);
	}
	container_facts_each(text, check_listed, NULL);
	free(text);
	return 0;
}
