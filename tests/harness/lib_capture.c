/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "lib_capture.h"

#include "lib_test.h"

#include <sys/mman.h>

void capture_create(struct capture *capture)
{
	capture->fd = memfd_create("capture", MFD_CLOEXEC);
	assert_true(capture->fd >= 0);
	snprintf(capture->path, sizeof(capture->path), "/proc/self/fd/%d",
		 capture->fd);
}

void capture_remove(struct capture *capture)
{
	close(capture->fd);
}

void capture_write(struct capture *capture, const void *bytes, size_t len)
{
	if (len)
		assert_int_equal(write(capture->fd, bytes, len), len);
}

/* draft-ietf-opsawg-pcap, 4. */
static void start(struct capture *capture, uint32_t magic, uint32_t link)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t reserved[2];
		uint32_t snaplen;
		uint32_t link;
	} header = { magic, 2, 4, { 0, 0 }, 65535, link };

	capture_write(capture, &header, sizeof(header));
}

void capture_start(struct capture *capture, uint32_t link)
{
	start(capture, 0xa1b2c3d4, link);
}

void capture_start_nano(struct capture *capture, uint32_t link)
{
	start(capture, 0xa1b23c4d, link);
}

void capture_packet(struct capture *capture, uint32_t seconds, uint32_t fraction,
		    const void *bytes, uint32_t len, uint32_t wire_len)
{
	const uint32_t header[] = { seconds, fraction, len, wire_len };

	capture_write(capture, header, sizeof(header));
	capture_write(capture, bytes, len);
}

/* draft-ietf-opsawg-pcapng, 4.1 and 4.2: section header, interface. */
void capture_start_ng(struct capture *capture, uint32_t link)
{
	const uint32_t section[] = { 0x0a0d0d0a, 28,	     0x1a2b3c4d, 1,
				     UINT32_MAX, UINT32_MAX, 28 };
	const uint32_t interface[] = { 1, 20, link, 65535, 20 };

	capture_write(capture, section, sizeof(section));
	capture_write(capture, interface, sizeof(interface));
}

/* 4.3: enhanced packet. */
void capture_packet_ng(struct capture *capture, uint64_t us, const void *bytes,
		       uint32_t len, uint32_t wire_len)
{
	static const uint8_t padding[4];
	uint32_t padded = (len + 3) / 4 * 4, total = 32 + padded;
	const uint32_t header[] = { 6, total, 0, us >> 32, us, len, wire_len };

	capture_write(capture, header, sizeof(header));
	capture_write(capture, bytes, len);
	capture_write(capture, padding, padded - len);
	capture_write(capture, &total, sizeof(total));
}
