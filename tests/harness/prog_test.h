/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* What tests of the flow programs have in common. Failures end the test. */
#ifndef HARNESS_PROG_TEST_H
#define HARNESS_PROG_TEST_H

#include "lib_test.h"
#include "packet.h"
#include "prog.h"

/* Programs with these knobs, without flows. The last ones end with the process. */
struct prog *prog_test_open(const struct prog_options *options);

/* Run a packet once. */
void prog_test_layers(struct prog *prog, const struct layer *layers);

/* An IPv4 TCP segment without payload, told apart by its source port. */
void prog_test_tcp(struct prog *prog, uint16_t src_port, uint8_t flags);
enum { PROG_TEST_TCP_BYTES = 40, PROG_TEST_TCP_FRAME = 54 };

/* The key that the programs give to it. */
struct flow_key prog_test_tcp_key(uint16_t src_port);

/* The @n-th source port, from 0, that puts a flow into the same L1 set as port 1. */
uint16_t prog_test_rival(const struct prog *prog, unsigned int n);

/* All flows of a generation; nothing is unaccounted for. */
const struct prog_flows *prog_test_flows(struct prog *prog, uint32_t generation);

/* One of them, which has to exist. */
const struct flow_tally *prog_test_tally(const struct prog_flows *flows,
					 const struct flow_key *key);

/* The entry of a connection, which has to exist. */
struct connection prog_test_connection(struct prog *prog,
				       const struct flow_key *key);

#endif
