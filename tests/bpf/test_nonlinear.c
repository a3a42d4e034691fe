// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Frames of which the kernel has next to nothing in the linear part: headers
 * have to be pulled. A tap device makes them: of a frame of more than a page, as
 * much is linear as the virtio header says. What is more, the kernel takes the
 * outermost VLAN tag out of the frame before the program sees it.
 */
#include "prog_skeleton.h"
#include "prog_test.h"

#include "bpf/parse/wire.h"
#include "host.h"
#include "samples.h"
#include "lib_wait.h"

#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { LINEAR = 14, FRAME = 6000 };

/* By link kind: a tap and a tun device. */
static struct device {
	struct prog prog;
	int fd;
	unsigned int ifindex;
} devices[2] = { { .fd = -1 }, { .fd = -1 } };

static struct prog_flows flows;

static int open_device(struct device *device, enum link_kind link)
{
	struct ifreq ifr = { .ifr_flags = IFF_NO_PI | IFF_VNET_HDR };
	int sock, err;

	ifr.ifr_flags |= link == LINK_ETHERNET ? IFF_TAP : IFF_TUN;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "test%d", link);
	device->fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (device->fd < 0 || ioctl(device->fd, TUNSETIFF, &ifr))
		return -1;
	device->ifindex = if_nametoindex(ifr.ifr_name);

	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ifr.ifr_flags = IFF_UP;
	err = ioctl(sock, SIOCSIFFLAGS, &ifr);
	close(sock);
	return err;
}

static int attach(struct device *device)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = device->ifindex,
		    .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts);
	int err = bpf_tc_hook_create(&hook);

	opts.prog_fd = bpf_program__fd(device->prog.skel->progs.netobs_ingress);
	return err ?: bpf_tc_attach(&hook, &opts);
}

/* A network namespace of its own, which goes with the process. */
static int setup(void **state)
{
	int err = unshare(CLONE_NEWNET);

	(void)state;
	for (int link = LINK_ETHERNET; link <= LINK_NONE && !err; link++) {
		struct prog_options options = { .link = link };

		err = open_device(&devices[link], link);
		err = err ?: prog_open(&devices[link].prog, &options);
		err = err ?: attach(&devices[link]);
	}
	if (err)
		perror("tap device with BPF program (root is needed)");
	return err;
}

static int teardown(void **state)
{
	(void)state;
	for (int link = LINK_ETHERNET; link <= LINK_NONE; link++) {
		if (devices[link].prog.skel)
			prog_close(&devices[link].prog);
		if (devices[link].fd >= 0)
			close(devices[link].fd);
	}
	return 0;
}

static void receive(struct device *device, uint8_t *frame, size_t len)
{
	struct virtio_net_hdr header = { .hdr_len = LINEAR };
	struct iovec parts[] = { { &header, 10 }, { frame, len } };

	assert_int_equal(writev(device->fd, parts, 2), 10 + len);
	await(prog_counters(&device->prog, 0).seen.packets);
}

/*
 * What the parser makes of the frame in one piece, once the outermost tag is
 * where the kernel has put it: beside the frame.
 */
static struct outcome parse_linear(const struct device *device,
				   const uint8_t *bytes, struct buffer *ret_buf)
{
	struct packet start = { .key.ifindex = device->ifindex };
	enum link_kind link = device->prog.options.link;
	unsigned int type = bytes[12] << 8 | bytes[13];
	uint8_t frame[FRAME];

	*ret_buf = (struct buffer){ .len = FRAME };
	memcpy(frame, bytes, FRAME);
	if (link == LINK_ETHERNET &&
	    (type == ETHERTYPE_8021Q || type == ETHERTYPE_8021AD)) {
		push_vlan(&start, bytes[14] << 8 | bytes[15]);
		memmove(frame + 12, frame + 16, FRAME - 16);
		ret_buf->len -= 4;
		ret_buf->tag_len = 4;
	}
	return host_parse_from(start, link, frame, ret_buf->len);
}

static void headers_are_pulled(void **state)
{
	const struct sample *sample = *state;
	struct device *device = &devices[sample->link];
	struct packet_bytes packet;
	struct outcome want;
	struct buffer buf;
	struct wire_size size;
	struct counters counters;

	packet_build(sample->layers, &packet);
	memset(packet.bytes + packet.len, 0x5a, FRAME - packet.len);
	want = parse_linear(device, packet.bytes, &buf);
	size = wire_size(&want.pkt, &buf);
	assert_int_equal(prog_reset(&device->prog), 0);
	receive(device, packet.bytes, FRAME);

	counters = prog_counters(&device->prog, 0);
	assert_int_equal(counters.seen.packets, 1);
	assert_int_equal(prog_flows(&device->prog, 0, &flows), 0);
	if (want.ret) {
		assert_int_equal(flows.n, 0);
		assert_int_equal(
			counters.unparsed[reject_reason(want.ret)].packets, 1);
		return;
	}
	if (want.pkt.fragment == FRAGMENT_LATER)
		want.pkt.key.flags |= KEY_NO_TRANSPORT;
	assert_int_equal(flows.n, 1);
	assert_memory_equal(&flows.entries[0].key, &want.pkt.key,
			    sizeof(want.pkt.key));
	assert_int_equal(flows.entries[0].tally.bytes, size.bytes);
	assert_int_equal(flows.entries[0].tally.l2_bytes,
			 want.pkt.attrs.has_mac ? size.l2_bytes : 0);
}

enum { MAX_CASES = 512 };

int main(void)
{
	static struct CMUnitTest cases[MAX_CASES];
	size_t n = 0;

	for (size_t i = 0; i < n_samples; i++) {
		/* A tun device takes nothing but IP. */
		if (samples[i].link == LINK_NONE && samples[i].expected.ret)
			continue;
		cases[n].name = samples[i].name;
		cases[n].test_func = headers_are_pulled;
		cases[n].initial_state = (void *)&samples[i];
		n++;
	}
	return _cmocka_run_group_tests("nonlinear", cases, n, setup, teardown);
}
