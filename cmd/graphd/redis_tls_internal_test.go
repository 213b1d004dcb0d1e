package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/cli/exit"
	"github.com/graphd-dev/graphd/internal/server"
	"github.com/graphd-dev/graphd/internal/testkit/process"
)

// startSecureRedis starts a Redis that serves TLS, demands certificates of a CA, and has
// the user that docs/redis.md shows. It returns the URL of graphd. The plain port is for
// the test.
func startSecureRedis(t *testing.T, file func(name string) string) (redis *redistest.Server, url string) {
	t.Helper()
	_, port, err := net.SplitHostPort(process.FreeAddress(t))
	require.NoError(t, err)
	redis = redistest.Start(t, "--tls-port", port, "--tls-cert-file", file("server.pem"), "--tls-key-file", file("server-key.pem"),
		"--tls-ca-cert-file", file("ca.pem"), "--tls-auth-clients", "yes")
	page, err := os.ReadFile("../../docs/redis.md")
	require.NoError(t, err)
	rights := regexp.MustCompile("(?s)ACL SETUSER graphd on >PASSWORD (.*?)\n```").FindStringSubmatch(string(page))
	require.NotNil(t, rights)
	rule := []any{"ACL", "SETUSER", "graphd", "on", ">sesame"}
	for right := range strings.FieldsSeq(strings.ReplaceAll(rights[1], "\\\n", " ")) {
		rule = append(rule, right)
	}
	require.NoError(t, redis.Client.Do(t.Context(), rule...).Err())
	return redis, "rediss://graphd:sesame@127.0.0.1:" + port + "/0"
}

// Two servers share a Redis over TLS with certificates, as a user with the documented
// rights. Commands on the store use the same files.
func TestServersShareARedisOverTLS(t *testing.T) {
	file := makeCertificates(t, "--client", "graphd")
	redis, url := startSecureRedis(t, file)
	own := server.RedisTLSOptions{RedisTLSCA: file("ca.pem"), RedisTLSCert: file("client-graphd.pem"), RedisTLSKey: file("client-graphd-key.pem")}
	o := server.Options{Store: url, Graphs: []string{examplesDir}, RedisTLSOptions: own}
	asks, answers := startServerWith(t, o), startServerWith(t, o)
	r := asks.runCommand(t, "run", "refund-review", "--thread", "t1", "--input", refundInput)
	require.Equal(t, 3, r.code, r.err)
	watched, leave := asks.startCommand(t, "watch", "t1")
	defer leave()
	r = answers.runCommand(t, "resume", "t1", "--value", `{"decision": "approved"}`)
	require.Equal(t, exit.CodeDone, r.code, r.err)
	watched.waitForMatch(t, regexp.MustCompile("Your refund has been approved"))

	env := map[string]string{
		"GRAPHD_STORE": url, "GRAPHD_REDIS_TLS_CA": own.RedisTLSCA, "GRAPHD_REDIS_TLS_CERT": own.RedisTLSCert, "GRAPHD_REDIS_TLS_KEY": own.RedisTLSKey,
	}
	for _, command := range [][]string{{"dump", "t1"}, {"migrate"}, {"repair"}} {
		r = commandRunner{env: env}.runCommand(t, append([]string{"store"}, command...)...)
		require.Equal(t, exit.CodeDone, r.code, "%v: %s", command, r.err)
	}
	log, err := redis.Client.Do(t.Context(), "ACL", "LOG").Slice()
	require.NoError(t, err)
	require.Empty(t, log)
}

// What a store over TLS refuses is told at the start, with the option that helps.
func TestRedisOverTLSThatDoesNotFit(t *testing.T) {
	file, other := makeCertificates(t, "--client", "graphd"), makeCertificates(t, "--client", "mallory")
	redis, url := startSecureRedis(t, file)
	ca := []string{"--redis-tls-ca", file("ca.pem")}
	own := slices.Concat(ca, []string{"--redis-tls-cert", file("client-graphd.pem"), "--redis-tls-key", file("client-graphd-key.pem")})
	foreign := []string{"--redis-tls-cert", other("client-mallory.pem"), "--redis-tls-key", other("client-mallory-key.pem")}
	plain := redis.URL("")
	for name, c := range map[string]struct {
		store string
		args  []string
		code  int
		says  []string
	}{
		"no certificate":     {url, ca, exit.CodeError, []string{"certificate required", "--redis-tls-cert"}},
		"of another CA":      {url, slices.Concat(ca, foreign), exit.CodeError, []string{"unknown", "--redis-tls-cert"}},
		"another CA":         {url, append([]string{"--redis-tls-ca", other("ca.pem")}, own[2:]...), exit.CodeError, []string{"can't be trusted", "--redis-tls-ca"}},
		"CAs of the system":  {url, nil, exit.CodeError, []string{"can't be trusted", "--redis-tls-ca"}},
		"wrong password":     {strings.Replace(url, "sesame", "sesame2", 1), own, exit.CodeError, []string{"WRONGPASS", "user and password"}},
		"another prefix":     {url + "?prefix=other", own, exit.CodeError, []string{"NOPERM"}},
		"plain text":         {plain, own, exit.CodeUsage, []string{"needs a store with TLS", "rediss://"}},
		"no key":             {url, own[:4], exit.CodeUsage, []string{"--redis-tls-cert needs --redis-tls-key"}},
		"a file that is not": {url, []string{"--redis-tls-ca", file("none.pem")}, exit.CodeUsage, []string{"--redis-tls-ca ", "no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := commandRunner{}.runCommand(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--store", c.store, "--log-level", "error"}, c.args...)...)
			require.Equal(t, c.code, r.code, r.err)
			for _, words := range c.says {
				require.Contains(t, r.err, words)
			}
			require.NotContains(t, r.err, "sesame")
		})
	}
}

// A server takes up new files for its next connections to Redis.
func TestAServerPresentsItsNewCertificateToRedis(t *testing.T) {
	file, next := makeCertificates(t, "--client", "first"), makeCertificates(t, "--client", "second")
	redis, url := startSecureRedis(t, file)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	replace := func(from, name string) {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(at("new"), text, 0o600))
		require.NoError(t, os.Rename(at("new"), at(name)))
	}
	replace(file("client-first.pem"), "own.pem")
	replace(file("client-first-key.pem"), "own-key.pem")
	s := startServerWith(t, server.Options{Store: url, RedisTLSOptions: server.RedisTLSOptions{
		RedisTLSCA: file("ca.pem"), RedisTLSCert: at("own.pem"), RedisTLSKey: at("own-key.pem"),
	}})
	require.Equal(t, exit.CodeDone, s.runCommand(t, "threads", "list").code)
	replace(next("client-second-key.pem"), "own-key.pem")
	replace(next("client-second.pem"), "own.pem")
	require.NoError(t, redis.Client.ConfigSet(t.Context(), "tls-ca-cert-file", next("ca.pem")).Err())
	require.NoError(t, redis.Client.Do(t.Context(), "CLIENT", "KILL", "USER", "graphd").Err())
	require.Eventually(t, func() bool {
		return s.runCommand(t, "threads", "list").code == exit.CodeDone
	}, time.Minute, 50*time.Millisecond)
}
