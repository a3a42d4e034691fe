// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
#include "filter_expressions.h"

/* What each direction of a packet may be about. */
#define DIRECTED(dir)                                                         \
	dir "host 10.1.0.1", dir "host 2001:db8::1", dir "net 10.0.0.0/8",    \
		dir "net 10.1", dir "net 2001:db8::/32", dir "port 443",      \
		dir "port 53", dir "portrange 1-1023", "tcp " dir "port 443", \
		"udp " dir "port 53", "sctp " dir "port 80",                  \
		"ether " dir "host 02:00:00:00:00:01",                        \
		"arp " dir "host 10.1.0.1", "rarp " dir "host 10.1.0.1",      \
		"ip " dir "host 10.1.0.1", "ip6 " dir "host 2001:db8::1",     \
		"tcp " dir "portrange 1024-65535",                            \
		"udp " dir "portrange 1-65535"

#define PROTO(proto) "ip proto " proto, "ip6 proto " proto, "proto " proto

const char *const filter_expressions[] = {
	"",
	DIRECTED(""),
	DIRECTED("src "),
	DIRECTED("dst "),
	DIRECTED("src or dst "),
	DIRECTED("src and dst "),
	"net 10.1.0.0 mask 255.255.0.0",
	"net 192.168",
	"net 10",
	"ip net 10.0.0.0/8",
	"dst net ::/0",
	"src net 0.0.0.0/0",
	"host 10.1.0.1 or host 10.1.0.2",
	"ether host 02:00:00:00:00:02",
	"ether broadcast",
	"broadcast",
	"ether multicast",
	"multicast",
	"ip multicast",
	"ip6 multicast",
	"ip",
	"ip6",
	"arp",
	"rarp",
	"tcp",
	"udp",
	"sctp",
	"icmp",
	"icmp6",
	"igmp",
	"igrp",
	"pim",
	"ah",
	"esp",
	"vrrp",
	"carp",
	"atalk",
	"aarp",
	"decnet",
	"iso",
	"stp",
	"ipx",
	"netbeui",
	"lat",
	"moprc",
	"mopdl",
	"clnp",
	"esis",
	"isis",
	PROTO("\\tcp"),
	PROTO("\\udp"),
	PROTO("\\icmp"),
	PROTO("\\sctp"),
	PROTO("47"),
	PROTO("50"),
	PROTO("4"),
	PROTO("41"),
	PROTO("58"),
	PROTO("255"),
	PROTO("0"),
	"ip6 protochain 6",
	"ip protochain 17",
	"protochain 6",
	"ip6 protochain 58",
	"ether proto 0x0800",
	"ether proto 0x86dd",
	"ether proto 0x8100",
	"ether proto 0x8847",
	"ether proto 0x8863",
	"ether proto 0x8864",
	"ether proto \\ip",
	"ether proto \\ip6",
	"ether proto \\arp",
	"ether proto 1500",
	"ether proto 0x22",
	"ether src 02:00:00:00:00:01",
	"ether dst 02:00:00:00:00:02",
	"ether src or dst 02:00:00:00:00:01",
	"vlan",
	"vlan 10",
	"vlan 100",
	"vlan and tcp",
	"vlan and vlan",
	"vlan 10 and ip6",
	"vlan and ip host 10.1.0.1",
	"vlan and not port 443",
	"not vlan",
	"vlan or tcp",
	"vlan 200 and udp port 53",
	"vlan && vlan 300 && ip",
	"mpls",
	"mpls 100",
	"mpls and ip",
	"mpls and mpls and host 10.1.0.1",
	"pppoed",
	"pppoes",
	"pppoes 1",
	"pppoes and ip",
	"pppoes and ip6 and tcp",
	"geneve",
	"geneve 42",
	"geneve and ip",
	"geneve and tcp port 443",
	"less 100",
	"greater 100",
	"len > 64",
	"len <= 128",
	"len = 60",
	"less 64 and tcp",
	"greater 1000 or udp",
	"len - 14 > 46",
	"tcp[13] & 2 != 0",
	"tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
	"tcp[tcpflags] == tcp-syn",
	"tcp[tcpflags] & tcp-ack != 0",
	"tcp[tcpflags] & (tcp-rst|tcp-push|tcp-urg) == 0",
	"tcp[tcpflags] = (tcp-syn|tcp-ack)",
	"icmp[icmptype] == icmp-echo",
	"icmp[icmptype] != icmp-echoreply",
	"icmp[icmptype] = icmp-unreach and icmp[icmpcode] = 13",
	"icmp6[icmp6type] = icmp6-echo",
	"icmp6[icmp6type] == icmp6-neighborsolicit",
	"ip[0] & 0xf != 5",
	"ip[6:2] & 0x1fff = 0",
	"ip[6] & 0x20 != 0",
	"ip[8] < 5",
	"ip[1] & 3 = 3",
	"ip[9] = 17",
	"ip[2:2] > 576",
	"ip[12:4] = 0x0a010001",
	"ip6[6] = 6",
	"ip6[0] & 0xf0 = 0x60",
	"ip6[4:2] > 100",
	"ip6[40] = 1",
	"ip6[7] > 60",
	"(ip6[0:4] & 0xfffff) != 0",
	"ether[0] & 1 = 0",
	"ether[12:2] = 0x0800",
	"ether[12:4] = 0x08004500",
	"ether[14] = 0x45",
	"ether[10:4] > 0",
	"ether[11:2] != 0",
	"ether[13:4] != 0",
	"ether[15:2] = 0x0a00",
	"ether[9:4] = 1",
	"ether[70] = 1",
	"ether[1000] = 0",
	"ether[40000] = 0",
	"ether[70000] = 0",
	"udp[0:2] > 1024",
	"udp[4:2] > 20",
	"udp[8:4] != 0",
	"udp[8] & 0x80 = 0",
	"tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420",
	"tcp[12] & 0xf0 > 0x50",
	"tcp[0:2] + tcp[2:2] > 40000",
	"tcp[4:4] - tcp[8:4] > 0",
	"tcp[14:2] * 2 > 1000",
	"tcp[14:2] / 3 < 5000",
	"tcp[14:2] % 7 = 3",
	"ip[2:2] - ((ip[0] & 0xf) << 2) > 20",
	"ip[8] ^ 0x40 = 0",
	"ip[8] | 1 = 65",
	"ip[2:2] >> 4 > 2",
	"ip[ip[0] & 0xf] > 0",
	"(ip[16] >= 224) or (ip[12] = 10)",
	"ether[ether[3]] = 0",
	"tcp[len - 40] = 0",
	"udp[ip[8]:2] > 3",
	"tcp port https",
	"udp port domain",
	"port ssh",
	"tcp dst port http or https",
	"not tcp",
	"not (tcp or udp)",
	"tcp and not port 22",
	"(src net 10.0.0.0/8 and dst port 443) or (ip6 and udp)",
	"ip and tcp and host 10.1.0.1 and port 443 and greater 60",
	"tcp[tcpflags] & tcp-syn != 0 and dst port (80 or 443) and not net 10",
	"host 10.1.0.1 or host 10.1.1.1 or host 10.1.2.1 or "
	"host 10.1.3.1 or host 10.1.4.1 or host 10.1.5.1 or "
	"host 10.1.6.1 or host 10.1.7.1 or host 10.1.8.1 or "
	"host 10.1.9.1 or host 10.1.10.1 or host 10.1.11.1 or "
	"host 10.1.12.1 or host 10.1.13.1 or host 10.1.14.1 or "
	"host 10.1.15.1 or host 10.1.16.1 or host 10.1.17.1 or "
	"host 10.1.18.1 or host 10.1.19.1 or host 10.1.20.1 or "
	"host 10.1.21.1 or host 10.1.22.1 or host 10.1.23.1 or "
	"host 10.1.24.1 or host 10.1.25.1 or host 10.1.26.1 or "
	"host 10.1.27.1 or host 10.1.28.1 or host 10.1.29.1 or "
	"host 10.1.30.1 or host 10.1.31.1 or host 10.1.32.1 or "
	"host 10.1.33.1 or host 10.1.34.1 or host 10.1.35.1 or "
	"host 10.1.36.1 or host 10.1.37.1 or host 10.1.38.1 or "
	"host 10.1.39.1 or host 10.1.40.1 or host 10.1.41.1 or "
	"host 10.1.42.1 or host 10.1.43.1 or host 10.1.44.1 or "
	"host 10.1.45.1 or host 10.1.46.1 or host 10.1.47.1 or "
	"host 10.1.48.1 or host 10.1.49.1 or host 10.1.50.1 or "
	"host 10.1.51.1 or host 10.1.52.1 or host 10.1.53.1 or "
	"host 10.1.54.1 or host 10.1.55.1 or host 10.1.56.1 or "
	"host 10.1.57.1 or host 10.1.58.1 or host 10.1.59.1",
	"port 1000 or port 1007 or port 1014 or port 1021 or "
	"port 1028 or port 1035 or port 1042 or port 1049 or "
	"port 1056 or port 1063 or port 1070 or port 1077 or "
	"port 1084 or port 1091 or port 1098 or port 1105 or "
	"port 1112 or port 1119 or port 1126 or port 1133 or "
	"port 1140 or port 1147 or port 1154 or port 1161 or "
	"port 1168 or port 1175 or port 1182 or port 1189 or "
	"port 1196 or port 1203 or port 1210 or port 1217 or "
	"port 1224 or port 1231 or port 1238 or port 1245 or "
	"port 1252 or port 1259 or port 1266 or port 1273 or "
	"port 1280 or port 1287 or port 1294 or port 1301 or "
	"port 1308 or port 1315 or port 1322 or port 1329 or "
	"port 1336 or port 1343 or port 1350 or port 1357 or "
	"port 1364 or port 1371 or port 1378 or port 1385 or "
	"port 1392 or port 1399 or port 1406 or port 1413",
	"src net 10.0.0.0/16 and dst port 1 or "
	"src net 10.1.0.0/16 and dst port 2 or "
	"src net 10.2.0.0/16 and dst port 3 or "
	"src net 10.3.0.0/16 and dst port 4 or "
	"src net 10.4.0.0/16 and dst port 5 or "
	"src net 10.5.0.0/16 and dst port 6 or "
	"src net 10.6.0.0/16 and dst port 7 or "
	"src net 10.7.0.0/16 and dst port 8 or "
	"src net 10.8.0.0/16 and dst port 9 or "
	"src net 10.9.0.0/16 and dst port 10 or "
	"src net 10.10.0.0/16 and dst port 11 or "
	"src net 10.11.0.0/16 and dst port 12 or "
	"src net 10.12.0.0/16 and dst port 13 or "
	"src net 10.13.0.0/16 and dst port 14 or "
	"src net 10.14.0.0/16 and dst port 15 or "
	"src net 10.15.0.0/16 and dst port 16 or "
	"src net 10.16.0.0/16 and dst port 17 or "
	"src net 10.17.0.0/16 and dst port 18 or "
	"src net 10.18.0.0/16 and dst port 19 or "
	"src net 10.19.0.0/16 and dst port 20 or "
	"src net 10.20.0.0/16 and dst port 21 or "
	"src net 10.21.0.0/16 and dst port 22 or "
	"src net 10.22.0.0/16 and dst port 23 or "
	"src net 10.23.0.0/16 and dst port 24 or "
	"src net 10.24.0.0/16 and dst port 25 or "
	"src net 10.25.0.0/16 and dst port 26 or "
	"src net 10.26.0.0/16 and dst port 27 or "
	"src net 10.27.0.0/16 and dst port 28 or "
	"src net 10.28.0.0/16 and dst port 29 or "
	"src net 10.29.0.0/16 and dst port 30",
	"dst host 224.0.0.251",
	"ip6 dst net ff02::/16",
	"llc",
	"llc i",
	"llc s",
	"llc u",
	"llc rr",
	"iso proto \\esis",
	"l1",
	"l2",
	"iih",
	"lsp",
	"snp",
	"csnp",
	"psnp",
};

const size_t n_filter_expressions =
	sizeof(filter_expressions) / sizeof(filter_expressions[0]);
