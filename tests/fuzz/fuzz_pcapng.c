// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/* pcapng files of any bytes: packets are within what was read of them, and times within bounds. */
#include "capture/capture_file.h"
#include "lib_fuzz.h"

static void check_packet(const struct file_packet *packet)
{
	uint8_t copy[PCAPNG_KEPT];

	memcpy(copy, packet->bytes, min_u64(packet->len, PCAPNG_KEPT));
	check(packet->ns >= 0 && packet->ns / NSEC_PER_SEC <= 9000000000);
	check(!packet->interface || *packet->interface);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *stream = size ? fmemopen((void *)data, size, "r") : NULL;
	struct pcapng_file *file = stream ? pcapng_open(stream) : NULL;
	struct file_packet packet;
	int ret = 1;

	while (file && (ret = pcapng_next(file, &packet)) == 1)
		check_packet(&packet);
	check(!file || !ret || (ret == -EBADMSG && *pcapng_reason(file)));
	pcapng_close(file);
	if (stream)
		fclose(stream);
	return 0;
}
