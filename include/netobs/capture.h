/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file capture.h
 * Packets of interfaces, whole or up to a length, and files of them.
 *
 * A capture is a struct netobs of its own kind, and independent of others: netobs_start() and the
 * functions after it in netobs.h run it, by the rules there. Its programs are attached while it runs,
 * and only then.
 *
 * matched = captured + limited + lost, for each interface, once the capture has
 * stopped: what matched is counted apart from the rest.
 */
#ifndef NETOBS_CAPTURE_H
#define NETOBS_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/netobs.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Link types of packets: numbers of pcap-linktype(7). */
enum netobs_link_type {
	NETOBS_LINK_ETHERNET = 1,
	NETOBS_LINK_RAW = 101 /**< IPv4 or IPv6: tun, WireGuard, ipip ... */
};

/** A packet, valid during the call that delivers it. */
struct netobs_packet {
	size_t sz;	 /**< sizeof(struct netobs_packet), of the library */
	int64_t time_ns; /**< since 1970 */
	/** The frame as tcpdump(8) shows it: from the link header on, with the VLAN tag
	 *  in its place, which the kernel keeps beside the frame. */
	const uint8_t *bytes;
	uint32_t captured; /**< how many bytes */
	uint32_t length; /**< of the frame; of a GSO buffer, before it is segmented */
	uint32_t interface; /**< for netobs_capture_interface() */
	uint8_t direction;  /**< NETOBS_INGRESS or NETOBS_EGRESS */
	uint8_t reserved[3];
	/** Processes that it comes from and goes to, with NETOBS_CAPTURE_PROCESSES; NULL:
	 *  not known. */
	const struct netobs_process *src_process, *dst_process;
};

/** netobs_capture_opts.flags */
enum netobs_capture_flag {
	/** Find the processes that packets of TCP and UDP come from and go to, by their sockets
	 *  on this host, in any network namespace, as NETOBS_PROCESSES does for flows. Packets
	 *  wait in the kernel until all sockets have been listed: some 20 ms, and longer with
	 *  many thousands of sockets. Listing takes up to a fifth of the time. Needs the kernel
	 *  and privileges of an observer of sessions (session.h), or netobs_start() fails. */
	NETOBS_CAPTURE_PROCESSES = 1 << 0
};

/** Options for netobs_capture_new(). Zero means "default" for every field. */
struct netobs_capture_opts {
	size_t sz; /**< sizeof(struct netobs_capture_opts) */

	/* ---- What is captured ---- */

	/** These four have the meaning of those in struct netobs_opts. */
	const char *const *interfaces;
	const char *const *exclude;
	enum netobs_direction direction;
	enum netobs_attach_order attach_order;
	/** Packets to capture, an expression of pcap-filter(7), as in struct
	 *  netobs_opts; NULL: all. Others are not counted. */
	const char *filter;
	uint64_t flags; /**< enum netobs_capture_flag */
	/** Bytes of each packet to capture; default and maximum 262144. */
	uint32_t snap_length;
	/** Packets per second, of all interfaces; default: no limit. Those beyond
	 *  it are counted as limited. */
	uint32_t rate;
	/** Kernel memory for packets that this process has not read yet; default
	 *  16 MiB, at least 1 MiB, rounded up to a power of two. It is divided among
	 *  the CPUs, which take the share of another one when their own is full. */
	uint64_t buffer_bytes;

	/* ---- Callbacks ---- */

	/** Takes a packet; a result other than 0 ends netobs_dispatch(). */
	int (*on_packet)(const struct netobs_packet *packet, void *user);
	/** A log line, without newline; NULL: nothing is logged. */
	void (*on_log)(int level, const char *message, void *user);
	void *user; /**< passed back to every callback */

	/* ---- Errors and tests ---- */

	/** Buffer for the reason why netobs_capture_new() failed; NULL: none. */
	char (*error)[NETOBS_ERROR_MAX];
	uint64_t disable_features; /**< as in struct netobs_opts */
};

/** An interface that packets came from. */
struct netobs_capture_interface {
	size_t sz; /**< sizeof(struct netobs_capture_interface), set by the caller */
	/** As it was called when its first packet came; valid until the next
	 *  netobs_dispatch(), and so is netns. */
	const char *name;
	const char *netns; /**< as in the options; NULL: where the capture started */
	uint32_t ifindex;     /**< in its network namespace */
	uint32_t link_type;   /**< enum netobs_link_type */
	uint32_t snap_length; /**< of the options */
	uint32_t reserved;    /**< 0 */
	uint64_t matched;     /**< packets */
	uint64_t captured;    /**< delivered to on_packet */
	uint64_t limited;     /**< beyond the rate */
	uint64_t lost;	      /**< this process did not read fast enough */
	const char *filter;   /**< of the options, the capture's; NULL: none */
};

/** Totals since the start of the capture, in packets. */
struct netobs_capture_stats {
	size_t sz; /**< sizeof(struct netobs_capture_stats), set by the caller */
	/** Sums of those in struct netobs_capture_interface, over all interfaces. */
	uint64_t matched;
	uint64_t captured;
	uint64_t limited;
	uint64_t lost;
	uint32_t attached; /**< interfaces that programs are on now */
	/** Interfaces for netobs_capture_interface(). */
	uint32_t interfaces;
};

/**
 * Make a capture. Checks the options; touches nothing in the kernel.
 *
 * netobs_start() needs the privileges that it needs for a context. If netobs_stop() comes first, it
 * returns 0 without waiting until all interfaces have programs.
 *
 * netobs_dispatch() delivers packets that have come, for some milliseconds, in the order of their times,
 * but for a packet that its CPU writes 100 us or more after its time. Packets wait for up to 20 ms in
 * the kernel, so that many are delivered at once. It returns what on_packet returned, if not 0. on_packet
 * may call netobs_stop(), netobs_capture_interface(), netobs_capture_stats_get() and netobs_last_error(),
 * and nothing else of this capture. netobs_free() drops packets that were not delivered.
 *
 * @param opts  copied, and may go away afterwards; on_packet must be set
 * @param ret_capture  yours: netobs_free()
 * @return 0; -EINVAL: an option is wrong, the error text names it; -E2BIG: the filter is
 *         too long; -ENOMEM
 */
NETOBS_API int netobs_capture_new(const struct netobs_capture_opts *opts,
				  struct netobs **ret_capture);

/**
 * Read about an interface.
 *
 * @param index  from 0 on, in the order of their first packets
 * @param ret_interface  its sz says how much the caller knows; filled up to that
 * @return 0; -ENOENT: there are not so many; -EINVAL: an argument is NULL, or sz is too
 *         small
 */
NETOBS_API int
netobs_capture_interface(const struct netobs *capture, uint32_t index,
			 struct netobs_capture_interface *ret_interface);

/**
 * Read the totals. Packets on their way are matched, and not captured yet.
 *
 * @param ret_stats  its sz says how much the caller knows; filled up to that
 * @return 0; -EINVAL: an argument is NULL, or sz is too small
 */
NETOBS_API int netobs_capture_stats_get(struct netobs *capture,
					struct netobs_capture_stats *ret_stats);

/** Formats of capture files, netobs_packet_writer_opts.format. */
enum netobs_packet_format {
	NETOBS_PCAPNG = 0, /**< draft-ietf-opsawg-pcapng */
	/** draft-ietf-opsawg-pcap, with nanoseconds; has one link type, and neither
	 *  interfaces, directions nor losses */
	NETOBS_PCAP = 1
};

struct netobs_packet_writer;

/** Options for netobs_packet_writer_new(). */
struct netobs_packet_writer_opts {
	size_t sz;		/**< sizeof(struct netobs_packet_writer_opts) */
	struct netobs *capture; /**< the source of the packets */
	/** Take bytes of the file, a whole number of its blocks each time. The function of
	 *  the writer that called it returns its error. */
	int (*write)(const void *bytes, size_t len, void *user);
	void *user;			  /**< passed back */
	enum netobs_packet_format format; /**< of the file */
	uint32_t reserved;		  /**< 0 */
};

/**
 * Make a writer, which forms a capture file, and write its beginning.
 *
 * @param ret_writer  yours: netobs_packet_writer_free(), before the capture is freed
 * @return 0; -EINVAL: an option is wrong; -ENOMEM; what write() returned
 */
NETOBS_API int
netobs_packet_writer_new(const struct netobs_packet_writer_opts *opts,
			 struct netobs_packet_writer **ret_writer);

/**
 * Write a packet, and before it its interface if the file does not have that yet. In pcapng, the
 * packet has its processes in comments, and the number of the sending process in an option.
 *
 * @return 0; -EPROTONOSUPPORT: pcap, and the link type differs from that of earlier
 *         packets; -ENOMEM; the error of write()
 */
NETOBS_API int netobs_packet_writer_add(struct netobs_packet_writer *writer,
					const struct netobs_packet *packet);

/**
 * Count a packet that this file lacks, because its reader was too slow.
 *
 * @return 0; -EINVAL: an argument is NULL; -ENOMEM
 */
NETOBS_API int netobs_packet_writer_miss(struct netobs_packet_writer *writer,
					 const struct netobs_packet *packet);

/**
 * Write how many packets of each interface there were and how many are missing, since the
 * writer was made. pcap has no place for it, but needs the call at the end of a file
 * without packets: it writes a header for Ethernet then, behind which packets of other
 * link types are refused.
 *
 * @return 0; -ENOMEM; what write() returned
 */
NETOBS_API int netobs_packet_writer_stats(struct netobs_packet_writer *writer);

/**
 * Write the beginning of another file, without any packets: the next bytes are its own.
 * Packets that interfaces have lost since the last netobs_packet_writer_stats() count for the new
 * file, so that no loss is missing between two files.
 *
 * @return 0; -EINVAL: @writer is NULL; -ENOMEM; what write() returned
 */
NETOBS_API int netobs_packet_writer_restart(struct netobs_packet_writer *writer);

/** Free it; writes nothing. NULL is fine. */
NETOBS_API void netobs_packet_writer_free(struct netobs_packet_writer *writer);

#ifdef __cplusplus
}
#endif

#endif
