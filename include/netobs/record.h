/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/**
 * @file record.h
 * The header of all types of records. A pointer to a record is a pointer to this header; its type
 * determines the struct.
 *
 * Records have their text in arrays, so that a program keeps one by assigning it. Flows alone
 * point to text and processes that many of them share: netobs_flow_dup() copies those.
 */
#ifndef NETOBS_RECORD_H
#define NETOBS_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include <netobs/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Types of records. Later libraries have more of them. */
enum netobs_record_type {
	NETOBS_RECORD_FLOW = 0,	    /**< struct netobs_flow, flow.h */
	NETOBS_RECORD_STATS = 1,    /**< struct netobs_stats_record, stats.h */
	NETOBS_RECORD_SESSION = 2,  /**< struct netobs_session, session.h */
	NETOBS_RECORD_ALERT = 3,    /**< struct netobs_alert, alert.h */
	NETOBS_RECORD_MAPPING = 4,  /**< struct netobs_mapping, mapping.h */
	NETOBS_RECORD_GROUP = 5,    /**< struct netobs_group_record, series.h */
	NETOBS_RECORD_DROP = 6,	    /**< struct netobs_drop, drop.h */
	NETOBS_RECORD_TRACE = 7,    /**< struct netobs_trace_event, trace.h */
	NETOBS_RECORD_JOURNEY = 8,  /**< struct netobs_journey, trace.h */
	NETOBS_RECORD_TURN = 9,	    /**< struct netobs_turn, turn.h */
	NETOBS_RECORD_QUEUE = 10,   /**< struct netobs_queue, turn.h */
	NETOBS_RECORD_HOST = 11,    /**< struct netobs_host, turn.h */
	NETOBS_RECORD_VERDICT = 12, /**< struct netobs_verdict, diagnosis.h */
	NETOBS_RECORD_TYPES
};

/** The header of a record: the first member of the struct of its type. */
struct netobs_record {
	size_t sz;	 /**< of the whole struct */
	uint32_t has;	 /**< bits of optional fields that are known, by type */
	uint32_t type;	 /**< enum netobs_record_type */
	int64_t time_ns; /**< when it began or was made, ns since 1970 UTC */
};

/**
 * A process that has a socket, and where it runs. Library-allocated, read-only, grows at the
 * end.
 */
struct netobs_process {
	size_t sz; /**< sizeof(struct netobs_process) */
	uint32_t pid; /**< of the process (tgid), as the initial namespace counts */
	uint32_t uid; /**< real user, as the initial user namespace counts; ps(1) shows the effective one */
	uint64_t cgroup_id; /**< of cgroup v2 */
	/** The command of the process, as /proc/PID/comm; it may not be UTF-8. */
	char command[16];
	/** The name of the thread, if it differs from command; "": it does not, or the flow is of UDP. */
	char thread[16];
	/** The whole name, if it is longer than the 15 bytes that the kernel keeps, from the executable or the
	 *  arguments; "": it is not longer, or not known. A process can make it false. */
	char long_name[64];
	/** Path of the control group of cgroup v2; if that is the root, of the memory controller
	 *  of v1; "": not known. */
	char cgroup_path[384];
	char container_id[72]; /**< in the path; "": none */
	char pod_uid[40]; /**< of Kubernetes, if the path has one; "": none */
	/** Names of systemd in the path; "": none, or it does not fit. They consist of letters, digits and : . _ - @ and \\. */
	char unit[128]; /**< such as nginx.service, session-3.scope */
	char slice[96]; /**< the innermost one, such as system.slice */
	char machine[72]; /**< of systemd-nspawn, libvirt or LXC, which the path has */
	/** With NETOBS_CONTAINER_NAMES, names from files of the container's runtime; "": not
	 *  known. They consist of letters, digits and . _ -; that of an image also of : / @ +. */
	char container_name[128]; /**< of a pod's container, its name in the pod */
	char container_image[192];
	char pod_name[128];	/**< of Kubernetes */
	char pod_namespace[64]; /**< likewise */
};

/** The name of a type: "flow", "stats", "session", "alert", "mapping", "group",
 *  "drop", "trace", "journey", "turn", "queue", "host", "verdict"; NULL beyond the last. */
NETOBS_API const char *netobs_record_type_name(unsigned int type);

/**
 * Write a record as one JSON object, no newline. All types but flows begin with
 * {"type":"<name>","TimeMs":..; flows are as netobs_flow_json() writes them.
 *
 * @param record  of any type, also one that the program made
 * @param buf     filled and NUL-terminated
 * @param size    of @p buf
 * @return length without NUL; -ENOBUFS: @p size is too small; -EINVAL: an
 *         argument is NULL, the type is unknown, or a size in the record is wrong
 */
NETOBS_API int netobs_record_json(const struct netobs_record *record, char *buf,
				  size_t size);

/**
 * Read a record that netobs_record_json() wrote, of the types turn, queue, host and verdict. Members that the
 * text lacks are zero, or equal to those that netobs_record_json() left them out for; members that are unknown are
 * ignored, and text that has no room is cut. The text may come from anywhere.
 *
 * @param json  one object, NUL-terminated
 * @param buf  aligned as struct netobs_record; filled with the struct of its type
 * @param size  of @p buf
 * @return bytes filled; -EINVAL: an argument is NULL; -EBADMSG: it is no such object, or a value is out of
 *         range; -ENOTSUP: the type is another one; -ENOBUFS: @p size is too small
 */
NETOBS_API int netobs_record_parse(const char *json, void *buf, size_t size);

#ifdef __cplusplus
}
#endif

#endif
