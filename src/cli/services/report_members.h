/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* The members of a record's JSON that the service map uses, and their values. */
#ifndef NETOBS_CLI_SERVICES_REPORT_MEMBERS_H
#define NETOBS_CLI_SERVICES_REPORT_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/annotate/flow_fields.h"

#define REPORT_MEMBERS(X)                    \
	X(TYPE, "type")                      \
	X(SRC, "SrcAddr")                    \
	X(DST, "DstAddr")                    \
	X(SRC_PORT, "SrcPort")               \
	X(DST_PORT, "DstPort")               \
	X(PROTO, "Proto")                    \
	X(ICMP_TYPE, "IcmpType")             \
	X(ICMP_CODE, "IcmpCode")             \
	X(START_MS, "TimeFlowStartMs")       \
	X(END_MS, "TimeFlowEndMs")           \
	X(BYTES, "Bytes")                    \
	X(PACKETS, "Packets")                \
	X(FLAGS, "Flags")                    \
	X(COMBINED, "TcpCombined")           \
	X(SAMPLING, "Sampling")              \
	X(RTT, "TimeFlowRttNs")              \
	X(PATH_RTT, "PathRttNs")             \
	X(RTT_SAMPLES, "RttSamples")         \
	X(RESPONSE, "ResponseTimeNs")        \
	X(RESPONSES, "AppResponses")         \
	X(RETRANSMITS, "Retransmits")        \
	X(XLAT_SRC, "XlatSrcAddr")           \
	X(XLAT_DST, "XlatDstAddr")           \
	X(XLAT_SRC_PORT, "XlatSrcPort")      \
	X(XLAT_DST_PORT, "XlatDstPort")      \
	X(ORIG_SRC, "OrigSrcAddr")           \
	X(ORIG_DST, "OrigDstAddr")           \
	X(ORIG_SRC_PORT, "OrigSrcPort")      \
	X(ORIG_DST_PORT, "OrigDstPort")      \
	X(CONVERSATION, "ConversationId")    \
	X(SRC_PROCESS, "SrcProcess")         \
	X(DST_PROCESS, "DstProcess")         \
	X(PROCESS, "Process")                \
	X(SRC_CONTAINER, "SrcContainerName") \
	X(SRC_POD, "SrcPodName")             \
	X(SRC_NAMESPACE, "SrcPodNamespace")  \
	X(DST_CONTAINER, "DstContainerName") \
	X(DST_POD, "DstPodName")             \
	X(DST_NAMESPACE, "DstPodNamespace")  \
	X(CONTAINER, "ContainerName")        \
	X(POD, "PodName")                    \
	X(NAMESPACE, "PodNamespace")         \
	X(INTERFACES, "Interfaces")          \
	X(DIRECTIONS, "IfDirections")        \
	X(OPENED, "Opened")                  \
	X(ENDED, "Ended")                    \
	X(AGENT, "AgentIP")                  \
	X(HOST_NAME, "HostName")             \
	X(HOST_ID, "HostId")

#define REPORT_MEMBER(member, name) MEMBER_##member,
enum member { REPORT_MEMBERS(REPORT_MEMBER) MEMBERS };
#undef REPORT_MEMBER

struct members {
	struct json_value values[MEMBERS];
	char *why; /* REPORT_WHY_MAX bytes: the value that is wrong, and why; "": none so far */
};

bool members_is_json(struct json_value value, const char *text);

/** Read all members that are there and are not null; of those that come twice, the last one. */
void members_read(struct json_value record, struct members *ret_members);

/** @return @value of @member; 0, too, where it is wrong */
uint64_t members_check_number(const struct members *members, enum member member,
			      struct json_value value, uint64_t most);

/** @return 0, too, where it is absent or wrong */
uint64_t members_number(const struct members *members, enum member member,
			uint64_t most);

/** @return a count, such as that of packets; 0, too, where it is absent or wrong */
uint64_t members_count(const struct members *members, enum member member);

/** @return a mean time multiplied by @n, the number of its samples; 0, too, where it is absent or wrong */
uint64_t members_mean(const struct members *members, enum member member,
		      uint64_t n);

void members_address(const struct members *members, enum member member,
		     uint8_t ret_ip[16]);

/** @return the conversation's: up to 16 hexadecimal digits */
uint64_t members_id(const struct members *members);

#endif
