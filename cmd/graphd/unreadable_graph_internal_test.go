package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	grpcmetadata "google.golang.org/grpc/metadata"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/identity/apikey"
	"github.com/graphd-dev/graphd/internal/server"
)

const askingAroundGraph = `graph: outer
channels: {x: {}}
nodes:
  gate: {ask: {message: "'pay?'"}}
  inner: {graph: inner}
edges: [{from: __start__, to: gate}, {from: gate, to: inner}]
`

// An admin deletes a graph that asks nothing, inside a graph that asks. No server can read the
// outer graph any more. It still takes the right to replace or delete it.
func TestGraphsThatCanNotBeReadKeepTheirQuestions(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	_, token, err := apikey.Create(t.Context(), keys, apikey.Key{Name: "mallory", Roles: []string{"admin"}}, time.Now())
	require.NoError(t, err)
	ctx := grpcmetadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	connect := func(t *testing.T, store string) graphdv1.RegistryServiceClient {
		started := startServerWith(t, server.Options{Store: store, CallerOptions: server.CallerOptions{APIKeys: keys}})
		conn, err := grpc.NewClient(started.server, grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
		return graphdv1.NewRegistryServiceClient(conn)
	}
	put := func(s graphdv1.RegistryServiceClient, document string) error {
		_, err := s.PutGraph(ctx, &graphdv1.PutGraphRequest{Definition: &graphdv1.PutGraphRequest_Document{Document: document}})
		return err
	}
	const plain = "channels: {x: {}}\nnodes: {n: {expr: {update: {x: \"1\"}}}}\nedges: [{from: __start__, to: n}]\n"
	for name, before := range map[string]string{"no version is left": "", "an older version is left": "graph: outer\n" + plain} {
		t.Run(name, func(t *testing.T) {
			store := "sqlite:" + filepath.Join(t.TempDir(), "graphd.db")
			t.Run("first server", func(t *testing.T) {
				first := connect(t, store)
				if before != "" {
					require.NoError(t, put(first, before))
				}
				require.NoError(t, put(first, "graph: inner\n"+plain))
				require.NoError(t, put(first, askingAroundGraph))
				_, err := first.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: "inner", Force: true})
				require.NoError(t, err)
			})
			second := connect(t, store) // nothing is compiled
			err := put(second, "graph: outer\ndescription: other\n"+plain)
			require.Equal(t, "right: approve-changes", metadataOf(err)["rule"], "%v", err)
			_, err = second.DeleteGraph(ctx, &graphdv1.DeleteGraphRequest{Graph: "outer", Force: true})
			require.Equal(t, "right: approve-changes", metadataOf(err)["rule"], "%v", err)
		})
	}
}
