package setup

import (
	"cmp"
	"crypto/tls"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Options configure a Store.
type Options struct {
	// URL says where the server is: redis://user:password@host:port/db, or
	// rediss:// for TLS. For a cluster it names a node, and ?addr=host:port names
	// further nodes. With ?master_name=NAME it names a Sentinel. Besides the
	// parameters of go-redis it may have prefix=, the beginning of all keys,
	// partitions=, for a new store, shared=true, when other programs use the same
	// database, and eviction=true, to accept a server that may evict keys.
	URL string
	// TLS returns the configuration of a connection that begins, with rediss://; nil =
	// the CAs of the system, and no certificate. The name that the server's certificate
	// must have comes from the URL.
	TLS func() *tls.Config
	// Prefix is the beginning of all keys when the URL names none; "" = graphd.
	Prefix string
	// Seal says whether records are compressed and encrypted.
	Seal seal.Options
	// Heartbeat is the interval at which a server publishes its capabilities; 3 s. A
	// server that misses three heartbeats counts as a server without any.
	Heartbeat time.Duration
	// Tombstones is the number of deleted versions of graphs that the store
	// remembers; default checkpoint.DefaultTombstones. Servers on the same store
	// should have the same number.
	Tombstones int
	// Logger logs panics; nil logs nothing.
	Logger *zap.Logger
}

const (
	defaultPrefix     = "graphd"
	defaultPartitions = 16
)

// storeConfig is the configuration in a URL.
type storeConfig struct {
	server          string // without the password
	standalone      *goredis.Options
	cluster         *goredis.ClusterOptions
	sentinel        *goredis.FailoverOptions
	prefix          string
	partitions      int // 0 = not said
	isShared        bool
	acceptsEviction bool
}

// parseURL reads the URL of a store and its parameters. The error is an *Error, which
// does not show the password.
func parseURL(opts Options) (*storeConfig, error) {
	u, err := url.Parse(opts.URL)
	if err != nil {
		// The error of url.Parse repeats the URL with the password in it.
		return nil, &Error{Server: "redis", Problem: ProblemURL, Is: "the URL can't be read", Want: wantURL}
	}
	w := &storeConfig{server: MaskPassword(opts.URL), prefix: opts.Prefix}
	if hasSplitPassword(u) {
		return nil, w.urlError("the password has a character that ends it, like / or ? or #, which stands as %2F or %3F or %23 in an URL")
	}
	if (u.Scheme != "redis" && u.Scheme != schemeTLS) || u.Hostname() == "" {
		return nil, w.urlError("the URL names no server")
	}
	if err := w.checkTLS(opts.TLS, u); err != nil {
		return nil, err
	}
	q := u.Query()
	if err := w.takeParameters(q); err != nil {
		return nil, err
	}
	u.RawQuery = q.Encode()
	if q.Has("master_name") {
		w.sentinel, err = goredis.ParseFailoverURL(u.String())
		if err != nil {
			return nil, w.urlError(redactURL(err, u))
		}
		w.sentinel.MaxRetries, w.sentinel.DialerRetries, w.sentinel.ContextTimeoutEnabled = -1, 1, true
		w.sentinel.Protocol = cmp.Or(w.sentinel.Protocol, respVersion)
		w.sentinel.TLSConfig = withServerName(w.sentinel.TLSConfig, u)
		w.sentinel.Dialer = useTLS(opts.TLS, w.sentinel.TLSConfig, w.sentinel.DialTimeout)
		return w, nil
	}
	if w.cluster, err = goredis.ParseClusterURL(u.String()); err != nil {
		return nil, w.urlError(redactURL(err, u))
	}
	w.cluster.MaxRetries, w.cluster.DialerRetries, w.cluster.ContextTimeoutEnabled = -1, 1, true
	w.cluster.Protocol = cmp.Or(w.cluster.Protocol, respVersion)
	w.cluster.Dialer = useTLS(opts.TLS, w.cluster.TLSConfig, w.cluster.DialTimeout)
	// A master that died can't name its replicas, and the client asks no
	// other server before this time has passed.
	w.cluster.ClusterStateReloadInterval = time.Second
	q.Del("addr")
	for _, only := range []string{"max_redirects", "read_only", "route_by_latency", "route_randomly"} {
		q.Del(only)
	}
	u.RawQuery = q.Encode()
	if w.standalone, err = goredis.ParseURL(u.String()); err != nil {
		return nil, w.urlError(redactURL(err, u))
	}
	// A call whose answer was lost may have been carried out: only a caller
	// that knows the call may repeat it.
	w.standalone.MaxRetries, w.standalone.DialerRetries, w.standalone.ContextTimeoutEnabled = -1, 1, true
	w.standalone.Protocol = cmp.Or(w.standalone.Protocol, respVersion)
	w.standalone.Dialer = useTLS(opts.TLS, w.standalone.TLSConfig, w.standalone.DialTimeout)
	return w, nil
}

// respVersion is RESP 2: nothing here uses the additions of RESP 3, and the
// client would look for pushed messages before each answer.
const respVersion = 2

func withServerName(c *tls.Config, u *url.URL) *tls.Config {
	if c != nil && c.ServerName == "" {
		c.ServerName = u.Hostname()
	}
	return c
}

// takeParameters takes graphd's own parameters out of a query.
func (s *storeConfig) takeParameters(q url.Values) error {
	if p := q.Get("prefix"); p != "" {
		s.prefix = p
	}
	if s.prefix == "" {
		s.prefix = defaultPrefix
	}
	if strings.ContainsAny(s.prefix, "{}") {
		return s.urlError("prefix has a brace in it")
	}
	if p := q.Get("partitions"); p != "" {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > layout.MaxPartitions {
			return s.urlError("partitions is " + strconv.Quote(p) + ", want 1 to " + strconv.Itoa(layout.MaxPartitions))
		}
		s.partitions = n
	}
	for name, to := range map[string]*bool{"shared": &s.isShared, "eviction": &s.acceptsEviction} {
		if v := q.Get(name); v != "" {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return s.urlError(name + " is " + strconv.Quote(v) + ", want true or false")
			}
			*to = b
		}
	}
	for _, name := range []string{"prefix", "partitions", "shared", "eviction"} {
		q.Del(name)
	}
	return nil
}

const wantURL = "want redis://[user:password@]host:port/db, or rediss:// for TLS"

func (s *storeConfig) urlError(is string) *Error {
	return &Error{Server: s.server, Problem: ProblemURL, Is: is, Want: wantURL}
}

// hasSplitPassword reports whether url.Parse may have taken a part of the password for the
// path, the query or the fragment. An @ in them may be written as %40.
func hasSplitPassword(u *url.URL) bool {
	return u.Fragment != "" || strings.Contains(u.EscapedPath()+u.RawQuery, "@")
}

// queryPassword is the password of a master that Sentinels name.
var queryPassword = regexp.MustCompile(`([?&]password=)[^&]*`)

// MaskPassword returns the address of a store without its passwords, also when a password
// makes the address an invalid URL.
func MaskPassword(address string) string {
	address = queryPassword.ReplaceAllString(address, "${1}xxxxx")
	if u, err := url.Parse(address); err == nil && !hasSplitPassword(u) {
		return u.Redacted()
	}
	scheme, rest, ok := strings.Cut(address, "://")
	at := strings.LastIndexByte(rest, '@')
	if !ok || at < 0 {
		return address
	}
	return scheme + "://xxxxx" + rest[at:]
}

// redactURL takes the URL, which may hold a password, out of a message.
func redactURL(err error, u *url.URL) string {
	return strings.ReplaceAll(err.Error(), u.String(), MaskPassword(u.String()))
}
