package cloudevent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/notify"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/trail"
	"github.com/graphd-dev/graphd/internal/transport/cloudevent"
	"github.com/graphd-dev/graphd/internal/transport/wire"
)

// sampleEvent returns the event of a question that shows a value.
func sampleEvent(t *testing.T, value payload.JSON) *notify.Event {
	t.Helper()
	at := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	q := &checkpoint.Interrupt{
		ID: "3f2a", Thread: "acme@order-7", Graph: "acme@refund", State: checkpoint.InterruptOpen, Created: at, Updated: at,
		Message: "Refund <b>120</b>?", Value: value,
	}
	log := q.FullTrail()
	entries, err := log.Entries()
	require.NoError(t, err)
	return &notify.Event{ID: "acme/order-7/3f2a/1", Question: q, Entry: entries[0]}
}

func TestAnEvent(t *testing.T) {
	body, err := cloudevent.Render(sampleEvent(t, `{"amount": 9007199254740993}`))
	require.NoError(t, err)
	require.Contains(t, string(body), `"value":{"amount":9007199254740993}`, "numbers stay as they are")
	var got map[string]any
	require.NoError(t, json.Unmarshal(body, &got))
	data, ok := got["data"].(map[string]any)
	require.True(t, ok)
	delete(got, "data")
	require.Equal(t, map[string]any{
		"specversion": "1.0", "id": "acme/order-7/3f2a/1", "source": "/tenants/acme/threads/order-7", "subject": "3f2a",
		"type": "dev.graphd.interrupt.asked", "time": "2026-11-27T08:00:00Z", "datacontenttype": "application/json",
	}, got)
	require.Subset(t, data["interrupt"], map[string]any{
		"interruptId": "3f2a", "threadId": "order-7", "graph": "refund", "message": "Refund <b>120</b>?", "state": "INTERRUPT_STATE_OPEN",
	})
	require.Subset(t, data["entry"], map[string]any{"number": 1.0, "kind": "TRAIL_KIND_ASKED"})
	again, err := cloudevent.Render(sampleEvent(t, `{"amount": 9007199254740993}`))
	require.NoError(t, err)
	require.Equal(t, body, again)
}

func TestALargeQuestionIsSentWithoutItsValues(t *testing.T) {
	body, err := cloudevent.Render(sampleEvent(t, payload.JSON(`"`+strings.Repeat("x", cloudevent.MaxBytes)+`"`)))
	require.NoError(t, err)
	require.Less(t, len(body), 4096)
	require.Contains(t, string(body), `"valuesLeftOut":true`)
	require.Contains(t, string(body), `"interruptId":"3f2a"`)
}

func TestEveryKindHasAName(t *testing.T) {
	require.Len(t, trail.Kinds(), len(graphdv1.TrailKind_name)-1)
	for _, kind := range trail.Kinds() {
		require.NotEqual(t, graphdv1.TrailKind_TRAIL_KIND_UNSPECIFIED, wire.TrailEntryToProto(&trail.Entry{Kind: kind}).GetKind(), kind)
	}
}
