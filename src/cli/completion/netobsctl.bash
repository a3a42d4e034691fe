# SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
# bash completion for netobsctl(8); needs nothing but bash.

_netobsctl_options()
{
	case $1 in
	flows)
		echo "-h --help -i --interface -x --exclude -D --list-interfaces --direction" \
			"-o --output --by --sort --top -N --names --rules -d --duration -n --count --interval" \
			"--sampling --rtt --process --max-connections --min-bytes" \
			"--active-timeout --idle-timeout --per-interface" \
			"--timestamps --max-flows --max-memory --attach --attach-order -r --read --stats" \
			"--live --socket --metrics --metrics-listen-any --metrics-textfile" \
			"--metrics-tls-cert --metrics-tls-key --metrics-tls-ca" \
			"-v --verbose"
		;;
	top)
		echo "-h --help -i --interface -x --exclude --direction --by --sort -n --rows -N --names" \
			"--interval --once -o --output -d --duration --sampling --rtt --process --max-flows" \
			"--max-memory -r --read --stats -v --verbose"
		;;
	tcp)
		echo "-h --help -i --interface -x --exclude --sort -n --rows -N --names --interval --once" \
			"-o --output -d --duration --rtt --max-connections --process --stats -v --verbose"
		;;
	alerts)
		echo "-h --help --rule -i --interface -x --exclude -o --output -d --duration -n --count" \
			"-r --read --rtt --max-connections --process --stats -v --verbose"
		;;
	sessions)
		echo "-h --help -o --output -d --duration -n --count --interval --pid --comm" \
			"-B --buffer --stats -v --verbose"
		;;
	capture)
		echo "-h --help -i --interface -x --exclude --direction -w --write --listen" \
			"--listen-any --tls-cert --tls-key --tls-ca --format --rotate --keep -s --snap-length -c --count -d --duration --rate" \
			"--process -B --buffer --attach --attach-order --stats -v --verbose"
		;;
	run)
		echo "-h --help -c --config"
		;;
	status | metrics)
		echo "-h --help -o --output -s --socket"
		;;
	reload | reopen | log)
		echo "-h --help -s --socket"
		;;
	config)
		echo "-h --help -o --output"
		;;
	check)
		echo "-h --help -o --output --attach --persist-dir"
		;;
	detach)
		echo "-h --help --persist-dir"
		;;
	bench)
		case $2 in
		drain)
			echo "-h --help -o --output --flows --rounds --quick --sink"
			;;
		fold)
			echo "-h --help -o --output --flows --rounds --quick"
			;;
		export)
			echo "-h --help -o --output --records --rounds --quick"
			;;
		*)
			echo "-h --help -o --output --flows --records --rounds --quick" \
				"--stores --traffic --direction --live --filter --rules" \
				"--distribution --cpus --timestamps --csv --plot --sink"
			;;
		esac
		;;
	"")
		echo "-h --help --version"
		;;
	esac
}

_netobsctl_interfaces()
{
	local path

	for path in /sys/class/net/*; do
		echo "${path##*/}"
	done
	for path in /run/netns/*; do
		if [[ -e $path ]]; then
			echo "netns:${path##*/}/"
		fi
	done
}

# What follows a kind of output and its colon, beside files. Fails if files alone do.
_netobsctl_targets()
{
	case $1 in
	ipfix)
		echo "udp:// tcp:// tls:// file:"
		;;
	json)
		echo "unix: tcp:// tls://"
		;;
	*)
		return 1
		;;
	esac
}

# Values of option $2 of verb $1. Fails when these are not words of a list.
_netobsctl_values()
{
	local keys

	case $1:$2 in
	flows:-i | flows:--interface | flows:-x | flows:--exclude | \
		top:-i | top:--interface | top:-x | top:--exclude | \
		tcp:-i | tcp:--interface | tcp:-x | tcp:--exclude | \
		alerts:-i | alerts:--interface | alerts:-x | alerts:--exclude | \
		capture:-i | capture:--interface | capture:-x | capture:--exclude)
		_netobsctl_interfaces
		;;
	flows:--sampling | top:--sampling)
		echo "10 100 1000 flow:10 flow:100 flow:1000"
		;;
	flows:--direction | top:--direction | capture:--direction)
		echo "both ingress egress"
		;;
	flows:-o | flows:--output)
		echo "table json json: json:unix: json:tcp:// json:tls:// ipfix:udp://" \
			"ipfix:tcp:// ipfix:tls:// ipfix:file: kafka:// grpc:// http:// https://"
		;;
	flows:--by | top:--by)
		keys=(src dst client service host tuple pair port proto interface direction
			vlan tunnel process container pod)
		if [[ $cur == *,* ]]; then
			keys=("${keys[@]/#/${cur%,*},}")
		else
			keys+=(flow)
		fi
		printf '%s\n' "${keys[@]}"
		;;
	sessions:-o | sessions:--output | alerts:-o | alerts:--output)
		echo "table json json: json:unix: json:tcp:// json:tls:// ipfix:udp:// ipfix:tcp:// ipfix:tls:// ipfix:file: kafka:// grpc:// http:// https://"
		;;
	flows:--sort)
		echo "bytes packets flows sent duration time rtt retransmits"
		;;
	top:--sort)
		echo "bytes packets flows sent rtt retransmits"
		;;
	flows:--rtt= | top:--rtt= | tcp:--rtt= | alerts:--rtt=) # without "=", it has no value
		echo "timers lru"
		;;
	tcp:--sort)
		echo "rate rtt retransmits app bytes age"
		;;
	flows:--timestamps | bench:--timestamps)
		echo "coarse precise"
		;;
	capture:--listen | flows:--metrics)
		echo "127.0.0.1: unix:"
		;;
	capture:--format)
		echo "pcapng pcap"
		;;
	flows:--attach | capture:--attach | check:--attach)
		echo "auto tcx clsact"
		;;
	flows:--attach-order | capture:--attach-order)
		echo "first last"
		;;
	top:-o | top:--output | tcp:-o | tcp:--output | check:-o | check:--output | config:-o | config:--output | status:-o | status:--output | bench:-o | bench:--output)
		echo "table json"
		;;
	metrics:-o | metrics:--output)
		echo "prometheus json"
		;;
	bench:--stores)
		echo "empty empty2 ringbuf hash hash_spinlock percpu_hash" \
			"overflow netobs filtered rtt rtt_lru" \
			"alerts alerts_none alerts_held alerts_storm"
		;;
	bench:--traffic)
		echo "udp4 udp6 tcp4 tcp6 talk4 talk6"
		;;
	bench:--direction)
		echo "ingress egress"
		;;
	bench:--distribution)
		echo "uniform zipf"
		;;
	bench:--cpus)
		echo "1 all"
		;;
	bench:--flows | bench:--records | bench:--rounds | bench:--filter | bench:--sink) ;;
	flows:-d | flows:--duration | flows:-n | flows:--count | flows:--interval | \
		flows:--top | flows:--active-timeout | flows:--idle-timeout | flows:--max-flows | \
		flows:--max-memory | top:-n | top:--rows | top:--interval | top:-d | top:--duration | \
		top:--max-flows | top:--max-memory | flows:--max-connections | tcp:-n | tcp:--rows | \
		tcp:--interval | tcp:-d | tcp:--duration | tcp:--max-connections)
		;;
	sessions:-d | sessions:--duration | sessions:-n | sessions:--count | sessions:--interval | \
		sessions:--pid | sessions:--comm | sessions:-B | sessions:--buffer) ;;
	flows:--min-bytes | alerts:--rule | alerts:-d | alerts:--duration | alerts:-n | \
		alerts:--count | alerts:--max-connections) ;;
	capture:--rotate | capture:--keep | capture:-s | capture:--snap-length | capture:-c | \
		capture:--count | capture:-d | capture:--duration | capture:--rate | capture:-B | \
		capture:--buffer)
		;;
	*)
		return 1
		;;
	esac
}

_netobsctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]}
	local option=${COMP_WORDS[COMP_CWORD - 1]} words kind=

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words="flows top tcp sessions alerts capture run status metrics reload reopen log detach config check bench help $(_netobsctl_options "")"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		return
	fi
	if [[ $verb == help ]]; then
		((COMP_CWORD == 2)) && mapfile -t COMPREPLY < <(compgen -W "flows top tcp sessions alerts capture run status metrics reload reopen log detach config check bench help" -- "$cur")
		return
	fi

	# bash makes words of their own of "=" and ":".
	if [[ $cur == [=:] ]]; then
		option=${COMP_WORDS[COMP_CWORD - 1]}
		[[ $cur == = && $option == --rtt ]] && option=--rtt=
		[[ $cur == : ]] && option=: kind=${COMP_WORDS[COMP_CWORD - 1]}
		cur=
	elif [[ $option == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
		[[ $option == --rtt ]] && option=--rtt=
	elif [[ $option == : ]]; then
		kind=${COMP_WORDS[COMP_CWORD - 2]}
	fi
	if [[ $option == : ]] && words=$(_netobsctl_targets "$kind"); then
		[[ $kind == json ]] && mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$words" -- "$cur")
		compopt -o nospace 2>/dev/null
	elif [[ $option == : || $option == -r || $option == --read || $option == --rules ||
		$option == -w || $option == --write || $option == --tls-* || $option == --metrics-t* ||
		$option == --csv || $option == --plot || $option == --socket || $option == --persist-dir ||
		$option == -s && $verb != capture || $verb:$option == run:-c || $verb:$option == run:--config ||
		$verb:$option == config:check || $verb:$option == config:show ]]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif words=$(_netobsctl_values "$verb" "$option"); then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
		[[ ${COMPREPLY[*]} == *[:/] ]] && compopt -o nospace 2>/dev/null
	else
		words=$(_netobsctl_options "$verb" "${COMP_WORDS[2]}")
		[[ $verb == log ]] && words+=" error warning info debug"
		[[ $verb == config ]] && ((COMP_CWORD == 2)) && words+=" check show import-env"
		[[ $verb == bench ]] && ((COMP_CWORD == 2)) && words+=" datapath drain fold export"
		[[ $verb:${COMP_WORDS[2]} == bench:export && $cur != -* ]] &&
			words="json: json:tcp:// ipfix:udp:// ipfix:tcp:// ipfix:file: kafka:// grpc:// http://"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	fi
}

complete -F _netobsctl netobsctl
