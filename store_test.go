package graphd_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd"
	"github.com/graphd-dev/graphd/internal/testkit/process"
)

// Errors of stores name what a Go program has, and no options of a server.
func TestErrorsOfStores(t *testing.T) {
	for text, store := range map[string]graphd.Store{
		"graphd: the URL of Redis is none: want one like redis://127.0.0.1:6379/0, or rediss:// for TLS": graphd.Redis("localhost:6379"),
		`graphd: SQLite has no path: want a file, like SQLite("app.db")`:                                 graphd.SQLite(""),
		`graphd: there is no store: want Memory(), SQLite("app.db") or Redis(url)`:                       graphd.Redis(""),
	} {
		_, err := graphd.Open(t.Context(), store)
		require.EqualError(t, err, text)
	}
	path := filepath.Join(t.TempDir(), "app.db")
	e, err := graphd.Open(t.Context(), graphd.SQLite(path))
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close(context.WithoutCancel(t.Context()))) }()
	for want, store := range map[string]graphd.Store{
		"choose another file with graphd.SQLite(PATH), or let servers share a store with graphd.Redis(": graphd.SQLite(path),
		"no-such":                          graphd.SQLite(filepath.Join(t.TempDir(), "no-such", "app.db")),
		"another server with graphd.Redis": graphd.Redis("redis://" + process.FreeAddress(t) + "/0"),
	} {
		_, err := graphd.Open(t.Context(), store)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "--store")
	}
}
