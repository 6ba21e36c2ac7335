// Package address says which network addresses are part of the public internet.
//
// It owns the one table of special-purpose networks, with the RFC of each, and the
// list of host names that never leave a local network. It does not own the decision
// what may be connected to: packages auth and upstream ask it about every resolved
// address when they connect, and package config about the addresses in files.
package address

import (
	"net/netip"
	"strings"
	"sync"
)

// The classes of addresses that are not public, as messages name them.
const (
	Public      = ""
	Unspecified = "unspecified"
	Loopback    = "loopback"
	LinkLocal   = "link-local or metadata"
	Private     = "private"
	Multicast   = "multicast"
	Reserved    = "reserved"
)

// network is a row of the table. If v4 is not 0, an IPv4 address is embedded at that
// byte, and the class of that address counts where it is not public.
type network struct {
	prefix netip.Prefix
	class  string
	v4     int
}

// Class says in which way an address is not public; [Public] when it is.
func Class(ip netip.Addr) string {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() {
		return Unspecified
	}
	for _, n := range table() {
		if !n.prefix.Contains(ip) {
			continue
		}
		if n.v4 != 0 {
			raw := ip.As16()
			if class := Class(netip.AddrFrom4([4]byte(raw[n.v4 : n.v4+4]))); class != Public {
				return class
			}
		}
		return n.class
	}
	return Public
}

// table lists the networks, the first that holds an address counts. It has all rows of
// the IANA IPv4 and IPv6 special-purpose address registries, the metadata services of
// clouds at addresses outside of them, multicast, and what is not assigned at all.
var table = sync.OnceValue(func() []network {
	var out []network
	for _, row := range []struct {
		prefix, class string
		v4            int
	}{
		// Metadata services of clouds, before the networks that they lie in.
		{"100.100.100.200/32", LinkLocal, 0}, // Alibaba Cloud
		{"168.63.129.16/32", LinkLocal, 0},   // Azure
		{"192.0.0.192/32", LinkLocal, 0},     // Oracle Cloud
		{"fd00:ec2::/32", LinkLocal, 0},      // AWS
		{"fd20:ce::254/128", LinkLocal, 0},   // Google Cloud

		{"0.0.0.0/32", Unspecified, 0},   // RFC 1122: this host
		{"0.0.0.0/8", Reserved, 0},       // RFC 791: this network
		{"10.0.0.0/8", Private, 0},       // RFC 1918
		{"100.64.0.0/10", Reserved, 0},   // RFC 6598: carrier-grade NAT
		{"127.0.0.0/8", Loopback, 0},     // RFC 1122
		{"169.254.0.0/16", LinkLocal, 0}, // RFC 3927
		{"172.16.0.0/12", Private, 0},    // RFC 1918
		{"192.0.0.0/24", Reserved, 0},    // RFC 6890: protocol assignments
		{"192.0.2.0/24", Reserved, 0},    // RFC 5737: documentation
		{"192.31.196.0/24", Reserved, 0}, // RFC 7535: AS112
		{"192.52.193.0/24", Reserved, 0}, // RFC 7450: AMT
		{"192.88.99.0/24", Reserved, 0},  // RFC 7526: 6to4 relays
		{"192.168.0.0/16", Private, 0},   // RFC 1918
		{"192.175.48.0/24", Reserved, 0}, // RFC 7534: AS112
		{"198.18.0.0/15", Reserved, 0},   // RFC 2544: benchmarks
		{"198.51.100.0/24", Reserved, 0}, // RFC 5737: documentation
		{"203.0.113.0/24", Reserved, 0},  // RFC 5737: documentation
		{"224.0.0.0/4", Multicast, 0},    // RFC 5771
		{"240.0.0.0/4", Reserved, 0},     // RFC 1112; holds 255.255.255.255, RFC 8190

		{"::/128", Unspecified, 0},         // RFC 4291
		{"::1/128", Loopback, 0},           // RFC 4291
		{"::/96", Reserved, 12},            // RFC 4291: IPv4-compatible
		{"::ffff:0:0:0/96", Reserved, 12},  // RFC 2765: IPv4-translated
		{"64:ff9b::/96", Public, 12},       // RFC 6052: NAT64
		{"64:ff9b:1::/48", Reserved, 0},    // RFC 8215: NAT64 for local use
		{"100::/64", Reserved, 0},          // RFC 6666: discard
		{"100:0:0:1::/64", Reserved, 0},    // RFC 9780: dummy
		{"2001::/32", Reserved, 0},         // RFC 4380: Teredo
		{"2001:2::/48", Reserved, 0},       // RFC 5180: benchmarks
		{"2001:10::/28", Reserved, 0},      // RFC 4843: ORCHID
		{"2001:20::/28", Reserved, 0},      // RFC 7343: ORCHIDv2
		{"2001:30::/28", Reserved, 0},      // RFC 9374: drone remote ID
		{"2001::/23", Reserved, 0},         // RFC 2928: protocol assignments
		{"2001:db8::/32", Reserved, 0},     // RFC 3849: documentation
		{"2002::/16", Reserved, 2},         // RFC 3056: 6to4
		{"2620:4f:8000::/48", Reserved, 0}, // RFC 7534: AS112
		{"3fff::/20", Reserved, 0},         // RFC 9637: documentation
		{"5f00::/16", Reserved, 0},         // RFC 9602: segment routing
		{"fc00::/7", Private, 0},           // RFC 4193
		{"fe80::/10", LinkLocal, 0},        // RFC 4291
		{"fec0::/10", Reserved, 0},         // RFC 3879: site-local
		{"ff00::/8", Multicast, 0},         // RFC 4291
		{"2000::/3", Public, 0},            // RFC 4291: global unicast
		{"::/0", Reserved, 0},              // RFC 4291: not assigned
	} {
		out = append(out, network{netip.MustParsePrefix(row.prefix), row.class, row.v4})
	}
	return out
})

// localSuffixes are names below which there is no public host: RFC 6761 and 6762,
// RFC 8375 (home.arpa), ICANN's private-use name "internal", and names that routers
// and offices use.
var localSuffixes = []string{
	"localhost", "local", "internal", "intranet", "private", "corp", "home", "lan",
	"home.arpa", "localdomain", "test",
}

// LocalName reports whether a host name, or an address written in place of one, does
// not name a host on the public internet: it has no dot, ends in a name for local use,
// or is an IP address in any spelling. What it does not find is decided when the name
// is resolved.
func LocalName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil || strings.Contains(host, ":") {
		return true
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == host || last == "" || last[0] >= '0' && last[0] <= '9' { // 127.1, 0x7f.1
		return true
	}
	for _, s := range localSuffixes {
		if host == s || strings.HasSuffix(host, "."+s) {
			return true
		}
	}
	return false
}
