// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "ipfix.h"

#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum {
	PORT = 4739,	 /* IANA: ipfix */
	TLS_PORT = 4740, /* ipfixs */
	MTU_MIN = 776,
	ROTATE_MIN = 64 << 10,
	PEN_EXAMPLE = 32473, /* RFC 5612: reserved for documentation */
	PEN_REVERSE = 29305, /* RFC 5103: means something else */
};

static const struct {
	const char *prefix;
	enum config_transport transport;
} transports[] = {
	{ "udp:", CONFIG_UDP },
	{ "tcp:", CONFIG_TCP },
	{ "tls:", CONFIG_TLS },
	{ "file:", CONFIG_FILE },
};

/* @return the text after the transport; NULL: the transport is unknown */
static const char *find_transport(struct config *config, const char *target)
{
	for (size_t i = 0; target && i < ARRAY_SIZE(transports); i++) {
		size_t len = strlen(transports[i].prefix);

		if (strncmp(target, transports[i].prefix, len))
			continue;
		config->transport = transports[i].transport;
		return target + len;
	}
	return NULL;
}

static int read_file_options(struct config *config, struct spec *spec,
			     const char *path)
{
	if (!*path) {
		spec_refuse(spec, "file: has no path");
		return -EINVAL;
	}
	config->path = strdup(path);
	config->rotates = rotate_parse(spec, ROTATE_MIN, &config->rotation);
	return config->path ? 0 : -ENOMEM;
}

static int read_target(struct config *config, struct spec *spec)
{
	const char *rest = find_transport(config, spec->target);
	bool is_tls = config->transport == CONFIG_TLS;

	if (!rest) {
		spec_refuse(spec,
			    "%s: it must begin with udp://, tcp://, tls:// or file:",
			    spec->target ?: "there is no target");
		return -EINVAL;
	}
	if (config->transport == CONFIG_FILE)
		return read_file_options(config, spec, rest);
	if (!address_parse(spec, rest, is_tls ? TLS_PORT : PORT, &config->address))
		return -EINVAL;
	address_read_source(spec, &config->source);
	if (is_tls)
		return tls_context_open(&config->tls, spec,
					config->address.host, NULL);
	tls_refuse_options(spec);
	return 0;
}

/* Different on each host, the same after a restart: 31 bits of the machine's ID. */
static uint32_t host_domain(void)
{
	cleanup_fd int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	uint32_t hash;
	char text[64];
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (len <= 0)
		len = gethostname(text, sizeof(text)) ?
			      0 :
			      (ssize_t)strnlen(text, sizeof(text));
	hash = fnv_mix(FNV_START, text, (size_t)len);
	return (hash & INT32_MAX) ?: 1;
}

static void read_layout(struct layout_options *layout, struct spec *spec)
{
	static const char *const records[] = { "basic", "extended", NULL };

	layout->is_extended = spec_choice(spec, "record", records, 0);
	layout->pen =
		(uint32_t)spec_number(spec, "pen", 1, UINT32_MAX, PEN_EXAMPLE);
	if (layout->pen == PEN_REVERSE)
		spec_refuse(spec,
			    "option pen: %u stands for the reverse direction",
			    layout->pen);
}

int config_read(struct config *config, struct spec *spec)
{
	static const char *const no_yes[] = { "no", "yes", NULL };
	int err;

	*config = (struct config){ .transport = CONFIG_UDP };
	err = read_target(config, spec);
	if (err)
		return err;
	config->mtu = spec_number(spec, "mtu", MTU_MIN, ENCODER_SIZE_MAX, 0);
	config->domain = (uint32_t)spec_number(spec, "domain", 0, UINT32_MAX,
					       host_domain());
	config->template_ms = spec_duration_ms(spec, "template_refresh", 1000,
					       24 * 60 * 60 * 1000, 60 * 1000);
	config->options_ms = spec_duration_ms(spec, "options_refresh", 1000,
					      24 * 60 * 60 * 1000,
					      10 * 60 * 1000);
	config->has_options = spec_choice(spec, "options", no_yes, 1);
	read_layout(&config->layout, spec);
	return spec->is_wrong ? -EINVAL : 0;
}

void config_free(struct config *config)
{
	tls_context_close(&config->tls);
	free(config->path);
	config->path = NULL;
}
