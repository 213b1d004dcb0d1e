package egress_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/egress"
)

func newPolicy(tb testing.TB, patterns ...string) *egress.Policy {
	tb.Helper()
	p, err := egress.NewPolicy(patterns)
	require.NoError(tb, err)
	return p
}

// Each spelling has one canonical form, which gRPC dials.
func TestEndpointsHaveOneCanonicalForm(t *testing.T) {
	all := []string{
		"*", "dns://10.0.0.53/x", "dns://10.0.0.53:5353/x", "passthrough:///*", "unix:/run/x.sock", "unix-abstract:x", "unix-abstract:/x",
		"xds:///x", "169.254.0.0/16", "fe80::/10", "vsock:3:1024",
	}
	for endpoint, target := range map[string]string{
		"pricing":                               "dns:///pricing:443",
		"pricing:7801":                          "dns:///pricing:7801",
		"PRICING.Example.COM:07801":             "dns:///pricing.example.com:7801",
		"pricing.example.com.:443":              "dns:///pricing.example.com.:443",
		"dns:pricing:443":                       "dns:///pricing:443",
		"dns:/pricing:443":                      "dns:///pricing:443",
		"DNS:///Pricing":                        "dns:///pricing:443",
		"dns://10.0.0.53/X:443":                 "dns://10.0.0.53:53/x:443",
		"dns://10.0.0.53:5353/x:443":            "dns://10.0.0.53:5353/x:443",
		":7801":                                 "dns:///localhost:7801",
		"my_service:1":                          "dns:///my_service:1",
		"xn--bcher-kva.example":                 "dns:///xn--bcher-kva.example:443",
		"10.0.0.1":                              "dns:///10.0.0.1:443",
		"10.0.0.1.:80":                          "dns:///10.0.0.1:80",
		"::1":                                   "dns:///[::1]:443",
		"[::1]":                                 "dns:///[::1]:443",
		"[::1]:7801":                            "dns:///[::1]:7801",
		"[0:0:0:0:0:0:0:1]:7801":                "dns:///[::1]:7801",
		"dns:///[2001:DB8::1]:80":               "dns:///[2001:db8::1]:80",
		"[::ffff:10.0.0.1]:80":                  "dns:///10.0.0.1:80",
		"[::ffff:a00:1]:80":                     "dns:///10.0.0.1:80",
		"fe80::1%eth0":                          "dns:///[fe80::1%25eth0]:443",
		"[fe80::1%eth0]:80":                     "dns:///[fe80::1%25eth0]:80",
		"dns:///[fe80::1%25eth0]:80":            "dns:///[fe80::1%25eth0]:80",
		"169.254.169.254":                       "dns:///169.254.169.254:443",
		"passthrough:///PRICING:80":             "passthrough:///pricing:80",
		"passthrough:pricing:80":                "passthrough:///pricing:80",
		"unix:/run/x.sock":                      "unix:/run/x.sock",
		"UNIX:///run/x.sock":                    "unix:/run/x.sock",
		"unix-abstract:x":                       "unix-abstract:x",
		"unix-abstract:///x":                    "unix-abstract:/x",
		"XDS:///x":                              "xds:///x",
		"vsock:3:1024":                          "vsock:3:1024",
		"vsocket:1024":                          "dns:///vsocket:1024",
		strings.Repeat("a.", 126) + "a" + ":80": "dns:///" + strings.Repeat("a.", 126) + "a:80",
	} {
		got, _, err := newPolicy(t, all...).AdmitEndpoint(endpoint)
		require.NoError(t, err, endpoint)
		require.Equal(t, target, got, endpoint)
	}
}

// No pattern allows what resolvers and URLs read in several ways.
func TestEndpointsWithoutACanonicalFormAreRefused(t *testing.T) {
	p := newPolicy(t, "*", "0.0.0.0/0", "::/0", "passthrough:///*")
	for endpoint, problem := range map[string]string{
		"2852039166":                      "ends in a number",
		"2852039166:80":                   "ends in a number",
		"0xa9fea9fe:80":                   "ends in a number",
		"0xA9.0xFE.0xA9.0xFE:80":          "ends in a number",
		"0251.0376.0251.0376:80":          "ends in a number",
		"169.254.43518:80":                "ends in a number",
		"169.16689662":                    "ends in a number",
		"127.1:80":                        "ends in a number",
		"127.0.0.01:80":                   "ends in a number",
		"127.0.0.1.1":                     "ends in a number",
		"256.0.0.1":                       "ends in a number",
		"0:80":                            "ends in a number",
		"0x:80":                           "ends in a number",
		"example.0x7f":                    "ends in a number",
		"169.254.169.254..":               "is no name",
		"dns:443":                         "ends in a number",
		"dns:///169.254.169%2e254":        "is no name",
		"dns:///pricing:443/x":            "the port is",
		"dns:///a/b":                      "is no name",
		"pricing:https":                   "the port is",
		"pricing:":                        "the port is",
		"pricing:0":                       "the port is",
		"pricing:65536":                   "the port is",
		"pricing:+80":                     "the port is",
		"pricing:-1":                      "the port is",
		"pricing:8_0":                     "the port is",
		"user@pricing:80":                 "is no name",
		"a:b:80":                          "several colons",
		"fe80::1:80:x":                    "several colons",
		"[::1":                            "bracket is open",
		"[::1]80":                         "follows the bracket",
		"[127.0.0.1]:80":                  "no IPv6 address",
		"[pricing]:80":                    "no IPv6 address",
		"[::ffff:127.0.0.1%eth0]:80":      "has a zone",
		"..":                              "is no name",
		".":                               "is no name",
		"a..b":                            "is no name",
		"-.a b":                           "has the character",
		"a\x00b":                          "has the character",
		"a\tb":                            "has the character",
		"pricing:80?x":                    "has the character",
		"pricing:80#x":                    "has the character",
		`pricing\x`:                       "has the character",
		"１６９.254.169.254":                 "beyond ASCII",
		"169。254。169。254":                 "beyond ASCII",
		"bücher.example":                  "beyond ASCII",
		"ⓔxample.com":                     "beyond ASCII",
		strings.Repeat("a", 64):           "is no name",
		strings.Repeat("a.", 127) + "aa":  "is no name",
		"unix:run/x.sock":                 "no absolute path",
		"unix://run/x.sock":               "no absolute path",
		"unix:/run/../x.sock":             "no absolute path",
		"unix:/run/./x.sock":              "no absolute path",
		"unix:/run//x.sock":               "no absolute path",
		"unix:////run/x.sock":             "no absolute path",
		"unix:/run/":                      "no absolute path",
		"unix:/run/%2e%2e/x":              "an escape",
		"unix:":                           "no absolute path",
		"unix:443":                        "no absolute path",
		"unix-abstract:":                  "no name of a socket",
		"unix-abstract://a/x":             "an authority",
		"unix-abstract:%00x":              "no name of a socket",
		"unix-abstract:////x":             "no name of a socket",
		"passthrough:///pricing":          "no port",
		"passthrough://a/pricing:80":      "an authority",
		"passthrough:///unix:/run/x.sock": "the port is",
		"passthrough:///unix:///x":        "the port is",
		"passthrough:///127.1:80":         "ends in a number",
		"[fe80::1%e%41]:80":               "the zone",
		"dns:///[fe80::1%25e/1]:80":       "the zone",
		"fe80::1%a:b":                     "the zone",
		"dns://0x7f000001/x":              "of its DNS server",
		"dns://[fe80::1%25eth0]:53/x":     "has a zone",
		"dns://[fe80::1%eth0]:53/x":       "has a zone",
	} {
		err := p.CheckEndpoint(endpoint)
		var form *egress.FormError
		require.ErrorAs(t, err, &form, endpoint)
		require.Contains(t, form.Problem, problem, endpoint)
		_, _, admitErr := p.AdmitEndpoint(endpoint)
		require.Equal(t, err, admitErr, endpoint)
	}
}

func TestPatternsAllowEndpoints(t *testing.T) {
	for pattern, c := range map[string]struct{ allowed, refused []string }{
		"*": {
			allowed: []string{"pricing", "pricing:1", "127.0.0.1:80", "[::1]:80", "10.0.0.1", "dns:///a.b:1", "metadata-store:80", "0.0.0.0:80"},
			refused: []string{
				"169.254.169.254", "169.254.169.254.:80", "[::ffff:169.254.169.254]:80", "[::ffff:a9fe:a9fe]:80", "[::169.254.169.254]:80",
				"[64:ff9b::a9fe:a9fe]:80", "[2002:a9fe:a9fe::]:80",
				"[64:ff9b:1::a9fe:a9fe]:80", "[64:ff9b:1:a9fe:a9:fe00::]:80", "[64:ff9b:1:a9:fe:a9fe::]:80", "[64:ff9b:1:0:a9:fea9:fe00:0]:80",
				"[::ffff:0:a9fe:a9fe]:80", "[fe80::1]:80", "[fe80::1%eth0]:80", "[FEBF::1]:80", "169.254.0.1:7801",
				"[fd00:ec2::254]:80", "[fd20:ce::254]:80", "100.100.100.200:80", "168.63.129.16:80", "192.0.0.192",
				"metadata.google.internal", "METADATA.google.INTERNAL.:80", "metadata:80", "a.metadata.google.internal", "metadata.goog", "instance-data",
				"passthrough:///pricing:80", "unix:/run/x.sock", "unix-abstract:x", "vsock:3:1024", "xds:///x", "http://pricing:80", "https://pricing",
				"foo:///pricing", "dns://10.0.0.53/pricing:80", "ipv4:10.0.0.1:80",
			},
		},
		"*:443":                    {[]string{"pricing", "10.0.0.1:443"}, []string{"pricing:80", "169.254.169.254:443"}},
		"pricing":                  {[]string{"pricing:1", "PRICING.:443", "dns:///pricing"}, []string{"pricing.example", "a.pricing"}},
		"PRICING.example.:7801":    {[]string{"pricing.example:7801", "dns:pricing.EXAMPLE.:7801"}, []string{"pricing.example", "pricing.example:7802"}},
		"dns:///pricing:443":       {[]string{"pricing"}, []string{"passthrough:///pricing:443"}},
		"*.example.com:443":        {[]string{"a.example.com", "b.A.EXAMPLE.com.:443"}, []string{"example.com", "aexample.com", "a.example.com:80", "a.example.com.evil.org"}},
		"*.internal":               {[]string{"a.internal:1"}, []string{"metadata.google.internal", "internal"}},
		"metadata.google.internal": {[]string{"metadata.google.internal:80"}, []string{"a.metadata.google.internal"}},
		"10.0.0.1:80":              {[]string{"10.0.0.1:80", "[::ffff:10.0.0.1]:80"}, []string{"10.0.0.2:80", "10.0.0.1", "[2002:a00:1::]:80"}},
		"10.0.0.0/8:7777":          {[]string{"10.1.2.3:7777", "[::ffff:10.1.2.3]:7777"}, []string{"11.0.0.1:7777", "10.1.2.3", "pricing:7777"}},
		"10.0.0.0/8":               {[]string{"10.1.2.3:1"}, []string{"9.0.0.1:1"}},
		"0.0.0.0/0":                {[]string{"1.2.3.4:1"}, []string{"169.254.169.254", "[::1]:1", "168.63.129.16:80"}},
		"169.254.0.0/16":           {[]string{"169.254.169.254", "[::ffff:169.254.1.1]:1"}, []string{"169.253.1.1"}},
		"169.254.0.0/15":           {nil, []string{"169.254.169.254"}},
		"169.254.169.254:80":       {[]string{"169.254.169.254:80"}, []string{"169.254.169.254", "169.254.169.253:80"}},
		"fd00::/8":                 {[]string{"[fd12::1]:1"}, []string{"[fd00:ec2::254]:80"}},
		"[fd00::/8]:443":           {[]string{"[fd12::1]"}, []string{"[fd12::1]:80"}},
		"fe80::/10":                {[]string{"[fe80::1%eth0]:1", "[fe80::1]:1"}, []string{"[fec0::1]:1"}},
		"[fe80::1%eth0]:80":        {[]string{"[fe80::1%eth0]:80", "dns:///[fe80::1%25eth0]:80"}, []string{"[fe80::1%eth1]:80", "[fe80::1]:80"}},
		"[::1]:80":                 {[]string{"[0::1]:80"}, []string{"127.0.0.1:80"}},
		"::1":                      {[]string{"[::1]:80"}, []string{"[::2]:80"}},
		"unix:///run/x.sock":       {[]string{"unix:/run/x.sock"}, []string{"unix:/run/x.sock2", "unix-abstract:/run/x.sock", "pricing"}},
		"unix-abstract:x":          {[]string{"unix-abstract:x"}, []string{"unix-abstract:/x", "unix:/x"}},
		"passthrough:///*.a:80":    {[]string{"passthrough:///b.a:80"}, []string{"b.a:80", "passthrough:///a:80"}},
		"dns://10.0.0.53/*":        {[]string{"dns://10.0.0.53:53/x"}, []string{"x", "dns://10.0.0.54/x"}},
		"vsock:3:1024":             {[]string{"VSOCK:3:1024"}, []string{"vsock:3:1025", "vsock:3"}},
		"xds:///x":                 {[]string{"xds:///x"}, []string{"xds:///X", "xds:x"}},
	} {
		p := newPolicy(t, pattern)
		for _, endpoint := range c.allowed {
			require.NoError(t, p.CheckEndpoint(endpoint), pattern)
		}
		for _, endpoint := range c.refused {
			err := p.CheckEndpoint(endpoint)
			var refused *egress.RefusalError
			require.ErrorAs(t, err, &refused, "%s allows %s", pattern, endpoint)
			require.NotEmpty(t, refused.Pattern)
			require.NoError(t, newPolicy(t, refused.Pattern).CheckEndpoint(endpoint), "the pattern %s of the error", refused.Pattern)
		}
	}
	require.Error(t, newPolicy(t).CheckEndpoint("localhost:1"), "no pattern allows nothing")
}

func TestWrongPatternsAreRefused(t *testing.T) {
	for pattern, problem := range map[string]string{
		"":                       "empty",
		" ":                      "has the character",
		"*example.com":           "a * stands for",
		"*.":                     "a * stands for",
		"*.*.com":                "a * stands for",
		"*.10.0.0.1":             "a * stands for",
		"a.*.com":                "is no name",
		"*:x":                    "the port is",
		"10.0.0.0/8:x":           "the port is",
		"10.0.0.1/8":             "write 10.0.0.0/8",
		"10.0.0.0/33":            "no range",
		"::ffff:10.0.0.0/104":    "no range",
		"pricing/8":              "no range",
		"/8":                     "no range",
		"127.1":                  "ends in a number",
		"unix:run/x":             "no absolute path",
		"passthrough://a/x:80":   "an authority",
		"dns://127.1/x":          "of its DNS server",
		"dns://[fe80::1%e]:53/x": "has a zone",
	} {
		_, err := egress.NewPolicy([]string{"pricing", pattern})
		var wrong *egress.PatternError
		require.ErrorAs(t, err, &wrong, pattern)
		require.Equal(t, pattern, wrong.Pattern)
		require.ErrorContains(t, err, problem)
	}
}

// A name was allowed as a name; where it leads is checked as well.
func TestAddressesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		patterns         []string
		endpoint         string
		allowed, refused []string // NETWORK ADDRESS
	}{
		"a name": {
			[]string{"*"},
			"pricing:80",
			[]string{"tcp4 10.0.0.1:80", "tcp4 127.0.0.1:80", "tcp6 [2001:db8::1]:80"},
			[]string{
				"tcp4 169.254.169.254:80", "tcp6 [fe80::1%eth0]:80", "tcp6 [::ffff:169.254.169.254]:80", "tcp6 [64:ff9b::a9fe:a9fe]:80",
				"tcp6 [fd00:ec2::254]:80", "tcp4 10.0.0.1:81", "unix /run/x.sock", "udp4 10.0.0.1:80", "tcp pricing:80",
			},
		},
		"a name and its address": {
			[]string{"pricing:80", "169.254.1.1:80"},
			"pricing:80",
			[]string{"tcp4 169.254.1.1:80"},
			[]string{"tcp4 169.254.1.2:80"},
		},
		"an address at another port": {
			[]string{"pricing:80", "169.254.1.1:81"}, "pricing:80", nil, []string{"tcp4 169.254.1.1:80"},
		},
		"a wide range": {
			[]string{"pricing", "0.0.0.0/0"}, "pricing:80", []string{"tcp4 1.2.3.4:80"}, []string{"tcp4 169.254.1.1:80"},
		},
		"a metadata service by name": {
			[]string{"metadata.google.internal"}, "metadata.google.internal:80", nil, []string{"tcp4 169.254.169.254:80"},
		},
		"an address": {
			[]string{"10.0.0.0/8"}, "10.0.0.1:80", []string{"tcp4 10.0.0.1:80"}, []string{"tcp4 10.0.0.2:80", "tcp4 10.0.0.1:81"},
		},
		"passthrough": {
			[]string{"passthrough:///pricing:80"},
			"passthrough:///pricing:80",
			[]string{"tcp4 10.0.0.1:80"},
			[]string{"tcp4 169.254.169.254:80", "unix /run/x.sock"},
		},
		"a socket": {
			[]string{"unix:/run/x.sock"}, "unix:///run/x.sock", []string{"unix /run/x.sock"}, []string{"unix /run/y.sock", "tcp4 10.0.0.1:80"},
		},
		"an abstract socket": {
			[]string{"unix-abstract:x"}, "unix-abstract:x", []string{"unix @x"}, []string{"unix x", "unix @y"},
		},
		"another scheme": {
			[]string{"xds:///x"}, "xds:///x", []string{"tcp4 10.0.0.1:80"}, []string{"tcp4 169.254.169.254:80", "unix /run/x.sock"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, check, err := newPolicy(t, c.patterns...).AdmitEndpoint(c.endpoint)
			require.NoError(t, err)
			for _, at := range c.allowed {
				network, address, _ := strings.Cut(at, " ")
				require.NoError(t, check(network, address))
			}
			for _, at := range c.refused {
				network, address, _ := strings.Cut(at, " ")
				var refused *egress.RefusalError
				require.ErrorAs(t, check(network, address), &refused, at)
				require.Equal(t, address, refused.Address)
				require.Equal(t, c.endpoint, refused.Endpoint)
			}
		})
	}
}

func TestErrorsNameThePattern(t *testing.T) {
	p := newPolicy(t, "*")
	require.EqualError(t, p.CheckEndpoint("unix:///run/x.sock"),
		`endpoint "unix:///run/x.sock" is not allowed; the server would allow it with --endpoint-allow unix:/run/x.sock`)
	require.EqualError(t, p.CheckEndpoint("[::FFFF:169.254.169.254]"),
		`endpoint "[::FFFF:169.254.169.254]" is not allowed; the server would allow it with --endpoint-allow 169.254.169.254:443`)
	_, check, err := p.AdmitEndpoint("pricing:80")
	require.NoError(t, err)
	require.EqualError(t, check("tcp4", "169.254.169.254:80"), `endpoint "pricing:80" leads to "169.254.169.254:80", which is not allowed; `+
		`the server would allow it with --endpoint-allow 169.254.169.254:80`)
	require.Less(t, len(p.CheckEndpoint(strings.Repeat("a", 10_000)).Error()), 1000)
}
