package server

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/telemetry"
)

// TestProfilesAreServedWhereTheyAreAskedFor checks the server of /metrics with and
// without profiles.
func TestProfilesAreServedWhereTheyAreAskedFor(t *testing.T) {
	for asked, want := range map[bool]int{true: http.StatusOK, false: http.StatusNotFound} {
		s := &Server{log: zap.NewNop()}
		require.NoError(t, s.listenMetrics(Options{Metrics: "127.0.0.1:0", Profiles: asked}, telemetry.NewMetrics("test", 0)))
		failed := make(chan error, 1)
		s.metrics.serve("metrics", failed)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			s.metrics.url()+"/debug/pprof/heap?gc=1&debug=1", http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, want, answer.StatusCode)
		require.Equal(t, asked, len(text) > 100)
		require.NoError(t, s.metrics.close())
		require.Empty(t, failed)
	}
}
