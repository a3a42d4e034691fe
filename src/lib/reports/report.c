/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
#include "services.h"

#include <stdio.h>
#include <string.h>

#include <netobs/flow.h>
#include <netobs/session.h>

#include "base/util.h"

void report_add_face(struct service_report *report, const struct flow_face *face)
{
	if (!flow_face_equal(face, &report->face))
		report->others[report->n_others++] = *face;
}

void report_name_workload(char *ret_name, const char *container,
			  const char *pod, const char *namespace)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/";

	if (*pod)
		snprintf(ret_name, REPORT_WORKLOAD_MAX, "%.63s%s%.127s",
			 namespace, *namespace ? "/" : "", pod);
	else
		snprintf(ret_name, REPORT_WORKLOAD_MAX, "%.127s", container);
	if (ret_name[strspn(ret_name, letters)])
		*ret_name = '\0';
}

static struct flow_face make_face(const uint8_t src[16], uint16_t src_port,
				  const uint8_t dst[16], uint16_t dst_port,
				  uint8_t proto)
{
	struct flow_face face = { .src_port = src_port,
				  .dst_port = dst_port,
				  .proto = proto };

	memcpy(face.src, src, sizeof(face.src));
	memcpy(face.dst, dst, sizeof(face.dst));
	return face;
}

static void take_others(const struct netobs_flow *flow,
			struct service_report *report)
{
	struct flow_face face;

	if (flow->has & NETOBS_HAS_XLAT) {
		face = make_face(flow->xlat_src, flow->xlat_src_port,
				 flow->xlat_dst, flow->xlat_dst_port,
				 flow->proto);
		report_add_face(report, &face);
	}
	if (flow->has & NETOBS_HAS_ORIG) {
		face = make_face(flow->orig_src, flow->orig_src_port,
				 flow->orig_dst, flow->orig_dst_port,
				 flow->proto);
		report_add_face(report, &face);
	}
}

static void take_process(struct service_report *report, int end,
			 const struct netobs_process *process)
{
	if (!process)
		return;
	snprintf(report->processes[end], REPORT_PROCESS_MAX, "%s",
		 process->command);
	report_name_workload(report->workloads[end], process->container_name,
			     process->pod_name, process->pod_namespace);
}

void report_of_flow(const struct netobs_flow *flow,
		    struct service_report *ret_report)
{
	*ret_report = (struct service_report){
		.kind = REPORT_FLOW,
		.face = make_face(flow->src, flow->src_port, flow->dst,
				  flow->dst_port, flow->proto),
		.conversation_id = flow->conversation_id,
		.icmp = (uint16_t)(flow->icmp_type << 8 | flow->icmp_code),
		.start_ms = flow->start_ns / NSEC_PER_MSEC,
		.end_ms = flow->end_ns / NSEC_PER_MSEC,
		.start_ns = flow->start_ns,
		.packets = flow->packets,
		.bytes = flow->bytes,
		.retransmits = flow->retransmits,
		.retransmitted_bytes = flow->retransmitted_bytes,
		.late_unknown = flow->late_unknown,
		.rtt_ns = flow->path_rtt_ns ?: flow->rtt_ns,
		.rtt_samples = flow->rtt_samples,
		.response_ns = flow->response_time_ns,
		.responses = flow->app_responses,
		.sampling = flow->sampling,
		.tcp_flags = flow->tcp_flags,
		.tcp_combined = flow->tcp_combined,
		.has_combined = flow->has & NETOBS_HAS_TCP,
	};
	take_others(flow, ret_report);
	take_process(ret_report, 0, flow->src_process);
	take_process(ret_report, 1, flow->dst_process);
}

void report_of_session(const struct netobs_session *session,
		       struct service_report *ret_report)
{
	static const uint8_t none[16] = { 0 };

	*ret_report = (struct service_report){
		.kind = memcmp(session->local_addr, none, sizeof(none)) ?
				REPORT_SESSION :
				REPORT_NONE,
		.face = make_face(session->local_addr, session->local_port,
				  session->remote_addr, session->remote_port,
				  session->protocol),
		.conversation_id = session->conversation_id,
		.start_ms = session->start_ns / NSEC_PER_MSEC,
		.end_ms = session->end_ns / NSEC_PER_MSEC,
		.opened = session->opened,
		.ended = session->ended,
	};
	snprintf(ret_report->processes[0], REPORT_PROCESS_MAX, "%s",
		 session->process);
	report_name_workload(ret_report->workloads[0], session->container_name,
			     session->pod_name, session->pod_namespace);
}
