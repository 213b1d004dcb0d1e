package transport_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/transport"
)

// fakeRunWebhooks records what it is told to keep.
type fakeRunWebhooks struct{ kept []runtime.RunWebhook }

func (f *fakeRunWebhooks) AddWebhook(_ context.Context, w runtime.RunWebhook) error {
	f.kept = append(f.kept, w)
	return nil
}

func TestWebhooksOfRunsAreChecked(t *testing.T) {
	hooks := &fakeRunWebhooks{}
	c := startServer(t, newFakeEngine(), func(o *transport.Options) { o.RunWebhooks = hooks })
	right := func() *graphdv1.AddRunWebhookRequest {
		return &graphdv1.AddRunWebhookRequest{ThreadId: "t1", RunId: "r1", WebhookId: "w1", AfterSequence: 4, Url: "https://example.com/"}
	}
	for field, change := range map[string]func(*graphdv1.AddRunWebhookRequest){
		"thread_id":  func(r *graphdv1.AddRunWebhookRequest) { r.ThreadId = "" },
		"run_id":     func(r *graphdv1.AddRunWebhookRequest) { r.RunId = "a/b" },
		"webhook_id": func(r *graphdv1.AddRunWebhookRequest) { r.WebhookId = "" },
	} {
		wrong := right()
		change(wrong)
		_, err := c.AddRunWebhook(t.Context(), wrong)
		require.Equal(t, field, requireErrorInfo(t, err).GetMetadata()["field"])
	}
	require.Empty(t, hooks.kept)
	_, err := c.AddRunWebhook(t.Context(), right())
	require.NoError(t, err)
	require.Equal(t, []runtime.RunWebhook{{Thread: "t1", Run: "r1", ID: "w1", After: 4, URL: "https://example.com/"}}, hooks.kept)
}
