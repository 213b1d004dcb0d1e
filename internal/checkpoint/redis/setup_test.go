package redis_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/setup"
)

func requireSetupError(t *testing.T, url string) *setup.Error {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{URL: url})
	require.Nil(t, s)
	var problem *setup.Error
	require.ErrorAs(t, err, &problem)
	require.NotContains(t, err.Error(), "sesame", "the password is not shown")
	return problem
}

func TestBadURLs(t *testing.T) {
	for url, is := range map[string]string{
		"":                                           "names no server",
		"http://localhost":                           "names no server",
		"redis://":                                   "names no server",
		"redis://u:sesame@h:port":                    "can't be read",
		"redis://u:sesame@h:1/db":                    "db",
		"redis://:#sesame@h:1/0":                     "%23",
		"redis://:12/sesame@h:1/0":                   "%2F",
		"redis://u:12?sesame@h:1/0":                  "%3F",
		"redis://:open@12#sesame@h:1/0":              "%23",
		"redis://h:1/0?partitions=0":                 `partitions is "0", want 1 to 1024`,
		"redis://h:1/0?partitions=many":              `partitions is "many"`,
		"redis://h:1/0?shared=perhaps":               `shared is "perhaps", want true or false`,
		"redis://h:1/0?prefix={x}":                   "brace",
		"redis://u:sesame@h:1/0?no_such_option=1":    "no_such_option",
		"redis://h:1?master_name=m&no_such_option=1": "no_such_option",
	} {
		p := requireSetupError(t, url)
		require.Equal(t, setup.ProblemURL, p.Problem, url)
		require.Contains(t, p.Is, is, url)
		require.Contains(t, p.Want, "redis://")
	}
}

func TestMaskedAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"redis://user:sesame@host:1/0?a=b": "redis://user:xxxxx@host:1/0?a=b",
		"redis://host:1/0":                 "redis://host:1/0",
		"sqlite:a@b.db":                    "sqlite:a@b.db",
		"redis://:s#sesame@host:1":         "redis://xxxxx@host:1",
		"redis://:1/sesame@host:1":         "redis://xxxxx@host:1",
		"redis://:1?sesame@host:1":         "redis://xxxxx@host:1",
		"redis://:%sesame@host:1":          "redis://xxxxx@host:1",
		"redis://:se same@host:1":          "redis://xxxxx@host:1",
		"redis://:s@sesame#x@host:1/0":     "redis://xxxxx@host:1/0",

		"redis://u:sesame@h:1/0?master_name=m&password=sesame":     "redis://u:xxxxx@h:1/0?master_name=m&password=xxxxx",
		"redis://h:1/0?password=se@sa#me&master_name=m":            "redis://h:1/0?password=xxxxx&master_name=m",
		"redis://u:se/sa@h:1/0?password=sesame@x&master_name=m":    "redis://xxxxx@h:1/0?password=xxxxx&master_name=m",
		"redis://h:1/0?username=u&password=%73esame&no_password=x": "redis://h:1/0?username=u&password=xxxxx&no_password=x",
	} {
		require.Equal(t, want, setup.MaskPassword(address))
	}
}

func TestNoServer(t *testing.T) {
	server := redistest.Start(t)
	server.Kill()
	_, err := redis.Open(t.Context(), redis.Options{URL: server.URL("")})
	require.ErrorIs(t, err, checkpoint.ErrUnavailable)
	require.ErrorContains(t, err, server.Addr())
}

func TestPasswords(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "open")
	for _, url := range []string{"redis://" + server.Addr(), "redis://:sesame@" + server.Addr(), "redis://me:sesame@" + server.Addr()} {
		p := requireSetupError(t, url)
		require.Equal(t, setup.ProblemAccess, p.Problem)
		require.Contains(t, p.Want, "password")
	}
	openStore(t, "redis://:open@"+server.Addr()+"/3")
}

func TestServerThatEvicts(t *testing.T) {
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	p := requireSetupError(t, server.URL(""))
	require.Equal(t, setup.ProblemEviction, p.Problem)
	require.Contains(t, p.Is, "allkeys-lru")
	require.Contains(t, p.Want, "noeviction")
	require.Contains(t, openStore(t, server.URL("eviction=true")).Warnings()[0], "may throw threads away")
}

func TestServerWithoutAOF(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "no")
	require.Contains(t, openStore(t, server.URL("")).Warnings()[0], "appendonly is off")
	require.Empty(t, openStore(t, redistest.Start(t).URL("")).Warnings())
}

func TestReplica(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.Start(t)
	host, port := master.HostPort()
	require.NoError(t, replica.Client.ReplicaOf(t.Context(), host, port).Err())
	p := requireSetupError(t, replica.URL(""))
	require.Equal(t, setup.ProblemReplica, p.Problem)
	require.Contains(t, p.Want, master.Addr())
}

func TestForeignDatabase(t *testing.T) {
	server := redistest.Start(t)
	require.NoError(t, server.Client.Set(t.Context(), "shop:1", "x", 0).Err())
	p := requireSetupError(t, server.URL(""))
	require.Equal(t, setup.ProblemForeign, p.Problem)
	require.Contains(t, p.Is, "holds 1 keys")
	require.Contains(t, p.Want, "shared=true")
	openStore(t, server.URL("shared=true"))
	openStore(t, server.URL("")) // it is graphd's by now

	require.NoError(t, server.Client.Set(t.Context(), "a{meta}:format", "x", 0).Err())
	require.Equal(t, setup.ProblemForeign, requireSetupError(t, server.URL("prefix=a")).Problem)
	require.NoError(t, server.Client.HSet(t.Context(), "b{meta}:format", "x", "y").Err())
	require.Equal(t, setup.ProblemForeign, requireSetupError(t, server.URL("prefix=b")).Problem)
}

// Servers that start at once on an empty database do not take one another for
// another program.
func TestManyFirstServers(t *testing.T) {
	server := redistest.Start(t, "--appendfsync", "no")
	for range 10 {
		require.NoError(t, server.Client.FlushAll(t.Context()).Err())
		var all errgroup.Group
		for range 8 {
			all.Go(func() error {
				s, err := redis.Open(t.Context(), redis.Options{URL: server.URL("")})
				if err != nil {
					return err
				}
				return s.Close()
			})
		}
		require.NoError(t, all.Wait())
	}
}

func TestOtherFormats(t *testing.T) {
	server := redistest.Start(t)
	openStore(t, server.URL("partitions=4"))
	openStore(t, server.URL(""))
	p := requireSetupError(t, server.URL("partitions=8"))
	require.Equal(t, setup.ProblemFormat, p.Problem)
	require.Contains(t, p.Is, "made with 4 partitions")

	require.NoError(t, server.Client.HSet(t.Context(), "graphd{meta}:format", "format", redis.Format+1).Err())
	p = requireSetupError(t, server.URL(""))
	require.Equal(t, setup.ProblemFormat, p.Problem)
	require.Contains(t, p.Is, fmt.Sprintf("format %d, this graphd knows up to %d", redis.Format+1, redis.Format))
	require.NoError(t, server.Client.HSet(t.Context(), "graphd{meta}:format", "format", 1).Err())
	p = requireSetupError(t, server.URL(""))
	require.Equal(t, setup.ProblemFormat, p.Problem)
	require.Contains(t, p.Is, "format 1, which no released graphd wrote")
	require.NoError(t, server.Client.HSet(t.Context(), "graphd{meta}:format", "format", redis.Format, "partitions", "x").Err())
	require.Equal(t, setup.ProblemFormat, requireSetupError(t, server.URL("")).Problem)
}

func TestDatabaseNumber(t *testing.T) {
	server := redistest.Start(t)
	p := requireSetupError(t, "redis://"+server.Addr()+"/99")
	require.Equal(t, setup.ProblemURL, p.Problem)
	require.Contains(t, p.Is, "no database")
}
