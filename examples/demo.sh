#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# demo.sh NETOBSCTL [ARGS]: some seconds of real traffic between two network
# namespaces, and netobsctl flows looking at it.
# demo.sh NETOBSCTL drops [ARGS]: packets that are lost between the two, and netobsctl drops.
#
# All of it lives in namespaces of its own: when the first process in there
# ends, however it ends, the kernel takes processes, links and programs away.
set -euo pipefail

if [[ -z ${DEMO_INSIDE-} ]]; then
	# Only /proc is mounted anew; the rest is left as it is, in a chroot too.
	DEMO_INSIDE=1 exec unshare --net --mount --propagation unchanged \
		--pid --fork --kill-child --mount-proc "$BASH" "$0" "$@"
fi

netobsctl=$1
shift
seconds=10

# peer COMMAND...: at the other end of the cable
peer()
{
	nsenter --target "$peer_pid" --net -- "$@"
}

make_network()
{
	# It says its process id once it is in its namespace.
	read -r peer_pid < <(exec unshare --net bash -c 'echo $$; exec sleep infinity')

	ip link set lo up
	ip link add demo0 type veth peer name demo1 netns "$peer_pid"
	ip addr add 192.0.2.1/24 dev demo0
	ip addr add 2001:db8::1/64 dev demo0 nodad
	ip link set demo0 up
	peer ip addr add 192.0.2.2/24 dev demo1
	peer ip addr add 2001:db8::2/64 dev demo1 nodad
	peer ip link set demo1 up
}

# Echoes what comes over TCP and UDP on port 7, IPv4 and IPv6 alike.
serve()
{
	peer python3 - <<-'END'
	import selectors, socket
	tcp = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
	tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
	udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
	ready = selectors.DefaultSelector()
	for sock in tcp, udp:
	    sock.bind(("::", 7))
	    ready.register(sock, selectors.EVENT_READ)
	tcp.listen()
	while True:
	    for sock in (key.fileobj for key, _ in ready.select()):
	        if sock is tcp:
	            ready.register(tcp.accept()[0], selectors.EVENT_READ)
	        elif sock is udp:
	            udp.sendto(*udp.recvfrom(65535))
	        elif data := sock.recv(65536):
	            sock.sendall(data)
	        else:
	            ready.unregister(sock)
	            sock.close()
	END
}

# tcp ADDRESS BYTES: there and back
tcp()
{
	exec 3<>"/dev/tcp/$1/7"
	head -c "$2" /dev/zero >&3 &
	head -c "$2" <&3 >/dev/null
	wait $!
	exec 3>&-
}

talk()
{
	until (: <>/dev/tcp/192.0.2.2/7) 2>/dev/null; do
		sleep 0.05
	done
	ping -q -i 0.5 192.0.2.2 >/dev/null &
	ping -q -i 0.5 2001:db8::2 >/dev/null &
	for ((i = 0; ; i++)); do
		tcp 192.0.2.2 $((500000 + i * 20000))
		tcp 2001:db8::2 100000
		echo "hello $i" >/dev/udp/192.0.2.2/7
		sleep 0.5
	done
}

# By a firewall, a full buffer, a closed port, and an address that no host has.
lose()
{
	peer nft -f - <<-'END'
	add table inet demo
	add chain inet demo input { type filter hook input priority 0; }
	add rule inet demo input tcp dport 22 counter drop
	END
	peer python3 - <<-'END' &
	import socket, time
	full = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
	full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
	full.bind(("::", 514))
	time.sleep(3600)
	END
	exec 4>/dev/udp/192.0.2.2/514
	while true; do
		(exec timeout 0.1 bash -c ': <>/dev/tcp/192.0.2.2/22') 2>/dev/null || true
		for ((n = 0; n < 10; n++)); do
			echo "line $n" >&4 || true
		done
		echo query >/dev/udp/192.0.2.2/53 || true
		echo lost >/dev/udp/192.0.2.3/7 || true
		sleep 0.2
	done
}

make_network
if [[ ${1-} == drops ]]; then
	lose 2>/dev/null &
	printf 'Packets to 192.0.2.2 and 192.0.2.3 are lost for %d seconds.\n' "$seconds" >&2
	"$netobsctl" drops -i demo0 -i demo1 --interval 2 -d "$seconds" "${@:2}"
	exit
fi
serve &
talk &
printf 'Traffic flows over demo0 for %d seconds.\n' "$seconds" >&2
"$netobsctl" flows -i demo0 --interval 2 -d "$seconds" "$@"
