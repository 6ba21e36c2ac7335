package address

import (
	"net/netip"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClass(t *testing.T) {
	for ip, want := range map[string]string{
		"8.8.8.8": Public, "2606:4700::1111": Public, "::ffff:8.8.8.8": Public, "64:ff9b::808:808": Public,
		"172.32.0.1": Public, "100.128.0.1": Public, "11.0.0.1": Public, "2a00:1450::1": Public, "2001:4860:4860::8888": Public,
		"127.0.0.1": Loopback, "127.8.8.8": Loopback, "::1": Loopback, "::ffff:127.0.0.1": Loopback,
		"10.0.0.1": Private, "172.16.0.1": Private, "192.168.1.1": Private, "fc00::1": Private, "fd12::1": Private, "::ffff:10.0.0.1": Private,
		"169.254.169.254": LinkLocal, "::ffff:169.254.169.254": LinkLocal, "fe80::1": LinkLocal, "fe80::1%eth0": LinkLocal,
		"fd00:ec2::254": LinkLocal, "fd20:ce::254": LinkLocal, "100.100.100.200": LinkLocal, "168.63.129.16": LinkLocal, "192.0.0.192": LinkLocal,
		"0.0.0.0": Unspecified, "::": Unspecified, "0.1.2.3": Reserved,
		"224.0.0.1": Multicast, "ff02::1": Multicast,

		// Every row of the IPv4 registry.
		"100.64.0.1": Reserved, "100.127.255.254": Reserved, "192.0.0.9": Reserved, "192.0.2.1": Reserved, "192.31.196.1": Reserved,
		"192.52.193.1": Reserved, "192.88.99.1": Reserved, "192.175.48.1": Reserved, "198.18.0.1": Reserved, "198.19.255.255": Reserved,
		"198.51.100.1": Reserved, "203.0.113.1": Reserved, "240.0.0.1": Reserved, "255.255.255.255": Reserved,

		// Every row of the IPv6 registry.
		"64:ff9b:1::1": Reserved, "100::1": Reserved, "100:0:0:1::1": Reserved, "2001::1": Reserved, "2001:0:4136:e378:8000:63bf:3fff:fdd2": Reserved,
		"2001:1::1": Reserved, "2001:2::1": Reserved, "2001:3::1": Reserved, "2001:4:112::1": Reserved, "2001:10::1": Reserved, "2001:1f::1": Reserved,
		"2001:20::1": Reserved, "2001:2f::1": Reserved, "2001:30::1": Reserved, "2001:db8::1": Reserved, "2620:4f:8000::1": Reserved,
		"3fff::1": Reserved, "3fff:fff::1": Reserved, "5f00::1": Reserved, "fec0::1": Reserved,

		// What is embedded counts, in every notation that holds an IPv4 address.
		"64:ff9b::a9fe:a9fe": LinkLocal, "64:ff9b::7f00:1": Loopback, "64:ff9b::a00:1": Private,
		"2002:a9fe:a9fe::1": LinkLocal, "2002:7f00:1::1": Loopback, "2002:808:808::1": Reserved,
		"::a00:1": Private, "::808:808": Reserved, "::ffff:0:7f00:1": Loopback, "::ffff:0:a9fe:a9fe": LinkLocal, "::ffff:0:808:808": Reserved,

		// What is not assigned.
		"4000::1": Reserved, "1::1": Reserved, "64:ff9b:2::1": Reserved, "e000::1": Reserved,
	} {
		if got := Class(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s is %q, want %q", ip, got, want)
		}
	}
	if got := Class(netip.Addr{}); got == Public {
		t.Error("no address is public")
	}
}

func TestLocalName(t *testing.T) {
	for host, want := range map[string]bool{
		"mcp.example.com": false, "mcp.example.com.": false, "xn--bcher-kva.ch": false, "a.b.co": false,
		"": true, "localhost": true, "LOCALHOST.": true, "a.localhost": true, "printer.local": true, "metadata.google.internal": true,
		"router.lan": true, "nas.home.arpa": true, "intranet": true, "2130706433": true, "0x7f.1": true, "127.1": true, "0177.0.0.1": true,
		"127.0.0.1": true, "8.8.8.8": true, "::1": true, "[::1]": true, "fe80::1%eth0": true, "a.test": true,
	} {
		if got := LocalName(host); got != want {
			t.Errorf("%q is local: %v, want %v", host, got, want)
		}
	}
}
