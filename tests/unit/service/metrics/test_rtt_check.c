// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
/*
 * Which sessions and flows are compared: random ones, and a model without hashes. NETOBS_TEST_SEED
 * repeats them.
 */
#include "lib_seed.h"
#include "lib_test.h"

#include <stdio.h>
#include <stdlib.h>

#include <netobs/flow.h>
#include <netobs/session.h>

#include "service/metrics/rtt_check.h"

#define S 1000000000LL

enum { PORTS = 16, FIRST_PORT = 40000, SERVER_PORT = 443, ROUNDS = 100000 };

/* The kernel's time of what waits, by port, address and namespace: 4 at a port. 0: nothing. */
struct model {
	uint64_t waiting[PORTS][2][2];
	uint64_t n, sum_ns;
};

static struct netobs_session a_session(void)
{
	struct netobs_session session = {
		.record = { .has = NETOBS_SESSION_HAS_START |
				   NETOBS_SESSION_HAS_MIN_RTT },
		.local_addr = { 1 },
		.remote_addr = { 2 },
		.local_port = FIRST_PORT,
		.remote_port = SERVER_PORT,
		.ended = NETOBS_SESSION_FIN,
		.start_ns = 100 * S,
		.end_ns = 101 * S,
		.min_rtt_ns = 1000,
		.netns_inode = 7,
	};

	return session;
}

static struct netobs_point a_point(void)
{
	return (struct netobs_point){ .netns_inode = 7,
				      .direction = NETOBS_EGRESS };
}

static struct netobs_flow a_flow(const struct netobs_point *point)
{
	struct netobs_flow flow = {
		.sz = sizeof(flow),
		.has = NETOBS_HAS_RTT,
		.src = { 1 },
		.dst = { 2 },
		.src_port = FIRST_PORT,
		.dst_port = SERVER_PORT,
		.proto = 6,
		.start_ns = 100 * S,
		.end_ns = 101 * S,
		.rtt_min_ns = 1400,
		.n_points = 1,
		.point_size = sizeof(*point),
		.points = point,
	};

	return flow;
}

enum { SESSION_FAULTS = 5, FLOW_FAULTS = 13 };

static void spoil_session(struct netobs_session *session, int fault)
{
	switch (fault) {
	case 1:
		session->ended = NETOBS_SESSION_OPEN;
		break;
	case 2:
		session->record.has &= ~NETOBS_SESSION_HAS_START;
		break;
	case 3:
		session->record.has &= ~NETOBS_SESSION_HAS_MIN_RTT;
		break;
	case 4:
		session->min_rtt_ns = 0;
		break;
	case SESSION_FAULTS:
		session->start_ns = session->end_ns - 10 * S - 1;
		break;
	}
}

/* The flow is of the session that a_session() makes. */
static void spoil_flow(struct netobs_flow *flow, struct netobs_point *point,
		       int fault)
{
	switch (fault) {
	case 1:
		flow->proto = 17;
		break;
	case 2:
		flow->has = 0;
		break;
	case 3:
		flow->src[15] = 1;
		break;
	case 4:
		flow->dst[15] = 1;
		break;
	case 5:
		flow->src_port++;
		break;
	case 6:
		flow->dst_port++;
		break;
	case 7:
		flow->end_ns = 100 * S - S - 1;
		break;
	case 8:
		flow->end_ns = 101 * S + S + 1;
		break;
	case 9:
		point->netns_inode++;
		break;
	case 10:
		point->direction = NETOBS_INGRESS;
		break;
	case 11:
		flow->n_points = 0;
		break;
	case 12:
		flow->src_port = SERVER_PORT;
		flow->dst_port = FIRST_PORT;
		break;
	case FLOW_FAULTS:
		flow->rtt_min_ns = 0;
		break;
	}
}

static void each_condition_matters(void **state)
{
	(void)state;
	for (int fault = 0; fault <= SESSION_FAULTS + FLOW_FAULTS; fault++) {
		struct netobs_session session = a_session();
		struct netobs_point point = a_point();
		struct netobs_flow flow = a_flow(&point);
		struct rtt_check *check = calloc(1, sizeof(*check));

		spoil_session(&session, fault);
		spoil_flow(&flow, &point, fault - SESSION_FAULTS);
		rtt_check_session(check, &session);
		rtt_check_flow(check, &flow);
		assert_int_equal(check->differences.n, fault == 0);
		assert_int_equal(check->differences.sum_ns, fault ? 0 : 400);
		/* Once. */
		rtt_check_flow(check, &flow);
		assert_int_equal(check->differences.n, fault == 0);
		free(check);
	}
}

/* The kernel has it in its minimum. */
static void the_handshake_is_a_sample(void **state)
{
	struct netobs_point point = a_point();
	struct netobs_flow flow = a_flow(&point);
	struct netobs_session session = a_session();
	struct rtt_check *check = calloc(1, sizeof(*check));

	(void)state;
	flow.handshake_rtt_ns = 900;
	for (int has = 0; has < 4; has++) {
		flow.has = (has & 1 ? NETOBS_HAS_RTT : 0) |
			   (has & 2 ? NETOBS_HAS_HANDSHAKE_RTT : 0);
		rtt_check_session(check, &session);
		rtt_check_flow(check, &flow);
	}
	assert_int_equal(check->differences.n, 3);
	assert_int_equal(check->differences.sum_ns, 400 + 100 + 100);
	free(check);
}

static void take_session(struct model *model, struct rtt_check *check)
{
	const int port = rand() % PORTS, address = rand() % 2, netns = rand() % 2;
	struct netobs_session session = a_session();

	session.local_port = (uint16_t)(FIRST_PORT + port);
	session.local_addr[15] = (uint8_t)address;
	session.netns_inode = 7 + (uint32_t)netns;
	session.min_rtt_ns = (uint64_t)(rand() % 3) * 1000;
	rtt_check_session(check, &session);
	if (session.min_rtt_ns)
		model->waiting[port][address][netns] = session.min_rtt_ns;
}

static void take_flow(struct model *model, struct rtt_check *check)
{
	const int port = rand() % PORTS, address = rand() % 2, netns = rand() % 2;
	uint64_t *waiting = &model->waiting[port][address][netns];
	struct netobs_point points[2] = { a_point(), a_point() };
	struct netobs_flow flow = a_flow(points);

	flow.src_port = (uint16_t)(FIRST_PORT + port);
	flow.src[15] = (uint8_t)address;
	flow.rtt_min_ns = (uint64_t)(rand() % 5000);
	flow.n_points = 2;
	points[0].netns_inode = 9;
	points[1].netns_inode = 7 + (uint32_t)netns;
	rtt_check_flow(check, &flow);
	if (!*waiting || !flow.rtt_min_ns)
		return;
	model->sum_ns +=
		(uint64_t)llabs((int64_t)flow.rtt_min_ns - (int64_t)*waiting);
	model->n++;
	*waiting = 0;
}

/* Others of the same ends, and of the same bucket. */
static void the_oldest_gives_its_place(void **state)
{
	struct rtt_check *check = calloc(1, sizeof(*check));
	struct netobs_session session = a_session();
	struct netobs_point point = a_point();
	struct netobs_flow flow = a_flow(&point);

	(void)state;
	for (int i = 0; i < RTT_CHECK_WAYS + 2; i++) {
		session.local_addr[15] = (uint8_t)i;
		session.end_ns = 101 * S + i;
		rtt_check_session(check, &session);
		rtt_check_session(check, &session);
	}
	assert_int_equal(check->n, RTT_CHECK_WAYS);
	for (int i = 0; i < RTT_CHECK_WAYS + 2; i++) {
		flow.src[15] = (uint8_t)i;
		rtt_check_flow(check, &flow);
		assert_int_equal(check->differences.n, i < 2 ? 0 : i - 1);
	}
	free(check);
}

static void random_ones_are_those_of_the_model(void **state)
{
	struct rtt_check *check = calloc(1, sizeof(*check));
	struct model *model = calloc(1, sizeof(*model));
	uint32_t waiting = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++)
		(rand() % 2 ? take_session : take_flow)(model, check);
	for (int i = 0; i < PORTS * 4; i++)
		waiting += !!(&model->waiting[0][0][0])[i];
	assert_true(model->n > ROUNDS / 100);
	assert_int_equal(check->differences.n, model->n);
	assert_int_equal(check->differences.sum_ns, model->sum_ns);
	assert_int_equal(check->n, waiting);
	free(model);
	free(check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_condition_matters),
		cmocka_unit_test(the_handshake_is_a_sample),
		cmocka_unit_test(the_oldest_gives_its_place),
		cmocka_unit_test(random_ones_are_those_of_the_model),
	};

	srand(test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
