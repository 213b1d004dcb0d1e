package assistants_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/faulty"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/assistants"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// knownGraphs are the graphs "agent" and "acme@agent".
type knownGraphs struct{}

func (knownGraphs) FindGraph(name, _ string) (*graph.Graph, error) {
	if name != "agent" && name != "acme@agent" && name != "other" {
		return nil, runtime.Errorf(runtime.ReasonGraphNotFound, "there is no graph %q", name)
	}
	return &graph.Graph{Name: name}, nil
}

const maxBytes = 4096

func newKeeper(store checkpoint.Store, limit int) *assistants.Keeper {
	client := commit.NewStoreClient(store, 3, 5*time.Second, time.Now)
	committer := commit.NewCommitter(commit.Options{
		Store: client, Owner: "server", Attempts: 3, Timeout: 5 * time.Second, Now: client.CurrentTime, Observer: runtime.NopObserver{},
		PruneTime: func(*checkpoint.Head) time.Time { return time.Time{} }, Unknown: func(string) {},
		Committed: func(*commit.Tx, checkpoint.Head) {}, Published: func(string, []checkpoint.Event) {},
	})
	reader := query.New(query.Options{Store: client, Budget: runtime.NewReadBudget(1 << 20)})
	return assistants.New(assistants.Options{Store: client, Committer: committer, Graphs: knownGraphs{}, Requests: reader, Limit: limit, MaxBytes: maxBytes})
}

// onEachStore runs a test on each store.
func onEachStore(t *testing.T, test func(t *testing.T, k *assistants.Keeper)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, newKeeper(memory.New(memory.Options{}), 1000)) })
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "graphd.db")})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		test(t, newKeeper(s, 1000))
	})
	t.Run("redis", func(t *testing.T) {
		s, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t).URL("shared=true")})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		test(t, newKeeper(s, 1000))
	})
}

func newRequest(id, name string) runtime.CreateAssistantRequest {
	return runtime.CreateAssistantRequest{Assistant: runtime.Assistant{
		Tenant: "default", ID: id, Graph: "agent", Name: name, Description: "answers", Context: `{"model": 1.0}`, Config: `{"tags":["a"]}`,
		Metadata: map[string]string{"team": "blue"},
	}}
}

func requireReason(t *testing.T, reason string, err error) {
	t.Helper()
	require.ErrorIs(t, err, &runtime.Error{Reason: reason})
}

func TestAnAssistantHasVersions(t *testing.T) {
	onEachStore(t, func(t *testing.T, k *assistants.Keeper) {
		made, err := k.CreateAssistant(t.Context(), newRequest("a", "first"))
		require.NoError(t, err)
		require.Equal(t, 1, made.Version)
		read, err := k.GetAssistant(t.Context(), "default", "a", 0)
		require.NoError(t, err)
		require.Equal(t, payload.JSON(`{"model": 1.0}`), read.Context, "JSON is carried as it came")
		require.Equal(t, made.Revision, read.Revision)

		changed, err := k.UpdateAssistant(t.Context(), runtime.UpdateAssistantRequest{
			Tenant: "default", ID: "a", Etag: made.Revision, Name: new("second"), Graph: new("other"),
			Metadata: map[string]string{"level": "2"}, DropKeys: []string{"team"},
		})
		require.NoError(t, err)
		require.Equal(t, 2, changed.Version)
		require.Equal(t, map[string]string{"level": "2"}, changed.Metadata)
		require.Equal(t, made.Config, changed.Config, "what is not named stays")

		versions, more, err := k.ListVersions(t.Context(), runtime.AssistantVersionQuery{Tenant: "default", ID: "a", Limit: 10, MaxBytes: 1 << 20})
		require.NoError(t, err)
		require.False(t, more)
		require.Len(t, versions, 2)
		require.Equal(t, []string{"second", "first"}, []string{versions[0].Name, versions[1].Name})

		active, err := k.ActivateVersion(t.Context(), "default", "a", 1, nil)
		require.NoError(t, err)
		require.Equal(t, "first", active.Name)
		list, _, err := k.ListAssistants(t.Context(), runtime.AssistantQuery{Tenant: "default", Limit: 1, MaxBytes: 1, IsBasic: true})
		require.NoError(t, err)
		require.True(t, active.Updated.Equal(list[0].Updated), "the time of a version is the same in lists")
		third, err := k.UpdateAssistant(t.Context(), runtime.UpdateAssistantRequest{Tenant: "default", ID: "a", Description: new("more")})
		require.NoError(t, err)
		require.Equal(t, 3, third.Version)
		require.Equal(t, "agent", third.Graph, "it comes of the active version")

		_, err = k.GetAssistant(t.Context(), "default", "a", 4)
		requireReason(t, runtime.ReasonAssistantNotFound, err)
		require.NoError(t, k.DeleteAssistant(t.Context(), "default", "a", 0, nil))
		_, err = k.GetAssistant(t.Context(), "default", "a", 0)
		requireReason(t, runtime.ReasonAssistantNotFound, err)
	})
}

func TestTheOldestVersionsGo(t *testing.T) {
	onEachStore(t, func(t *testing.T, k *assistants.Keeper) {
		last, err := k.CreateAssistant(t.Context(), newRequest("a", "0"))
		require.NoError(t, err)
		for i := range assistants.MaxVersions + 5 {
			last, err = k.UpdateAssistant(t.Context(), runtime.UpdateAssistantRequest{
				Tenant: "default", ID: "a", Etag: last.Revision, Name: new(fmt.Sprint(i + 1)),
			})
			require.NoError(t, err, "the etag is that after the oldest version has gone")
		}
		q := runtime.AssistantVersionQuery{Tenant: "default", ID: "a", Limit: 2 * assistants.MaxVersions, MaxBytes: 1 << 20}
		versions, more, err := k.ListVersions(t.Context(), q)
		require.NoError(t, err)
		require.False(t, more)
		require.Len(t, versions, assistants.MaxVersions)
		require.Equal(t, assistants.MaxVersions+6, versions[0].Version)
		q.Before, q.MaxBytes = 50, 1
		versions, more, err = k.ListVersions(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, versions, 1)
		require.Equal(t, 49, versions[0].Version)
		require.True(t, more, "the others are too large")
		_, err = k.ActivateVersion(t.Context(), "default", "a", 6, nil)
		requireReason(t, runtime.ReasonAssistantNotFound, err)
		oldest, err := k.ActivateVersion(t.Context(), "default", "a", 7, nil)
		require.NoError(t, err)
		require.Equal(t, payload.JSON(`{"model": 1.0}`), oldest.Context)
	})
}

// An update whose oldest version can't be dropped is done all the same, and the next one drops both.
func TestAnUpdateIsDoneWhenTheDropFails(t *testing.T) {
	inner := memory.New(memory.Options{})
	k := newKeeper(inner, 10)
	_, err := k.CreateAssistant(t.Context(), newRequest("a", "0"))
	require.NoError(t, err)
	update := runtime.UpdateAssistantRequest{Tenant: "default", ID: "a", Name: new("x")}
	for range assistants.MaxVersions - 1 {
		_, err = k.UpdateAssistant(t.Context(), update)
		require.NoError(t, err)
	}
	const callsOfUpdate = 3 // head, version, change
	broken := faulty.New(inner, faulty.Plan{At: callsOfUpdate + 1, For: -1, Mode: faulty.FailBefore})
	done, err := newKeeper(broken, 10).UpdateAssistant(t.Context(), update)
	require.NoError(t, err)
	require.Equal(t, assistants.MaxVersions+1, done.Version)
	q := runtime.AssistantVersionQuery{Tenant: "default", ID: "a", Limit: 2 * assistants.MaxVersions, MaxBytes: 1 << 20}
	for _, want := range []int{assistants.MaxVersions + 1, assistants.MaxVersions} {
		versions, _, err := k.ListVersions(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, versions, want)
		_, err = k.UpdateAssistant(t.Context(), update)
		require.NoError(t, err)
	}
}

func TestListsOfAssistants(t *testing.T) {
	onEachStore(t, func(t *testing.T, k *assistants.Keeper) {
		for i := range 7 {
			req := newRequest(fmt.Sprint("a", i), fmt.Sprint("name ", i))
			req.Assistant.Metadata = map[string]string{"parity": fmt.Sprint(i % 2)}
			_, err := k.CreateAssistant(t.Context(), req)
			require.NoError(t, err)
		}
		foreign := newRequest("a0", "of another tenant")
		foreign.Assistant.Tenant, foreign.Assistant.Graph = "acme", "acme@agent"
		_, err := k.CreateAssistant(t.Context(), foreign)
		require.NoError(t, err, "tenants have ids of their own")

		for _, isBasic := range []bool{true, false} {
			var names []string
			q := runtime.AssistantQuery{Tenant: "default", Limit: 3, MaxBytes: 1 << 20, IsBasic: isBasic}
			for {
				page, more, err := k.ListAssistants(t.Context(), q)
				require.NoError(t, err)
				for _, a := range page {
					names = append(names, a.Name)
					require.Equal(t, isBasic, a.Context == "")
					require.Equal(t, 1, a.Version)
					require.Len(t, a.Metadata, 1)
				}
				if !more {
					break
				}
				q.After = page[len(page)-1].Position()
			}
			require.Equal(t, []string{"name 6", "name 5", "name 4", "name 3", "name 2", "name 1", "name 0"}, names)
		}
		odd, _, err := k.ListAssistants(t.Context(), runtime.AssistantQuery{
			Tenant: "default", Graph: "agent", Metadata: map[string]string{"parity": "1"}, Limit: 10, MaxBytes: 1 << 20,
		})
		require.NoError(t, err)
		require.Len(t, odd, 3)
		few, more, err := k.ListAssistants(t.Context(), runtime.AssistantQuery{Tenant: "default", Limit: 10, MaxBytes: 1})
		require.NoError(t, err)
		require.Len(t, few, 1)
		require.True(t, more, "the others are too large")
	})
}

func TestRefusals(t *testing.T) {
	k := newKeeper(memory.New(memory.Options{}), 2)
	made, err := k.CreateAssistant(t.Context(), newRequest("a", "first"))
	require.NoError(t, err)
	_, err = k.CreateAssistant(t.Context(), newRequest("a", "again"))
	requireReason(t, runtime.ReasonAssistantExists, err)
	unknown := newRequest("b", "x")
	unknown.Assistant.Graph = "unknown"
	_, err = k.CreateAssistant(t.Context(), unknown)
	requireReason(t, runtime.ReasonGraphNotFound, err)
	_, err = k.UpdateAssistant(t.Context(), runtime.UpdateAssistantRequest{Tenant: "default", ID: "a", Graph: new("unknown")})
	requireReason(t, runtime.ReasonGraphNotFound, err)
	_, err = k.UpdateAssistant(t.Context(), runtime.UpdateAssistantRequest{Tenant: "default", ID: "a", Etag: made.Revision + 1, Name: new("x")})
	requireReason(t, runtime.ReasonEtagMismatch, err)
	requireReason(t, runtime.ReasonEtagMismatch, k.DeleteAssistant(t.Context(), "default", "a", made.Revision+1, nil))
	_, err = k.UpdateAssistant(t.Context(), runtime.UpdateAssistantRequest{Tenant: "acme", ID: "a", Name: new("x")})
	requireReason(t, runtime.ReasonAssistantNotFound, err)
	_, err = k.CreateAssistant(t.Context(), newRequest("b", "second"))
	require.NoError(t, err)
	_, err = k.CreateAssistant(t.Context(), newRequest("c", "third"))
	requireReason(t, runtime.ReasonTooManyAssistants, err)

	denied := runtime.Errorf(runtime.ReasonAccessDenied, "no")
	admits := func(graph string) error {
		require.Equal(t, "agent", graph)
		return denied
	}
	for _, update := range []runtime.UpdateAssistantRequest{{Name: new("x")}, {Etag: made.Revision + 1}, {Graph: new("unknown")}} {
		update.Tenant, update.ID, update.Admits = "default", "a", admits
		_, err = k.UpdateAssistant(t.Context(), update)
		requireReason(t, runtime.ReasonAccessDenied, err)
	}
	_, err = k.ActivateVersion(t.Context(), "default", "a", 1, admits)
	requireReason(t, runtime.ReasonAccessDenied, err)
	requireReason(t, runtime.ReasonAccessDenied, k.DeleteAssistant(t.Context(), "default", "a", 0, admits))
	read, err := k.GetAssistant(t.Context(), "default", "a", 0)
	require.NoError(t, err)
	require.Equal(t, made.Revision, read.Revision, "nothing was changed")
}

// A creation whose answer is lost is repeated by its id, whichever call to the store was broken.
func TestARepeatedCreationMakesOneAssistant(t *testing.T) {
	for at := 1; at <= 12; at++ {
		for _, mode := range []faulty.FaultMode{faulty.FailBefore, faulty.FailAfter} {
			inner := memory.New(memory.Options{})
			req := newRequest("", "one")
			req.RequestID, req.Digest = "r1", "digest"
			first, err := newKeeper(faulty.New(inner, faulty.Plan{At: at, For: -1, Mode: mode}), 10).CreateAssistant(t.Context(), req)
			again, repeated := newKeeper(inner, 10).CreateAssistant(t.Context(), req)
			require.NoError(t, repeated, "at %d", at)
			if err == nil {
				require.Equal(t, first.ID, again.ID)
			}
			n, err := inner.CountThreads(t.Context(), "~assistants:default", 10)
			require.NoError(t, err)
			require.Equal(t, 1, n, "at %d", at)
			req.Digest = "other"
			_, err = newKeeper(inner, 10).CreateAssistant(t.Context(), req)
			requireReason(t, runtime.ReasonRequestIDConflict, err)
		}
	}
}

func TestChangesAtOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, k *assistants.Keeper) {
		_, err := k.CreateAssistant(t.Context(), newRequest("a", "first"))
		require.NoError(t, err)
		const writers = 8
		failures := make([]error, writers)
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				_, failures[i] = k.UpdateAssistant(context.WithoutCancel(t.Context()), runtime.UpdateAssistantRequest{
					Tenant: "default", ID: "a", Metadata: map[string]string{fmt.Sprint("w", i): "done"},
				})
			})
		}
		all.Wait()
		for _, err := range failures {
			require.NoError(t, err)
		}
		last, err := k.GetAssistant(t.Context(), "default", "a", 0)
		require.NoError(t, err)
		require.Equal(t, writers+1, last.Version)
		require.Len(t, last.Metadata, writers+1, "no change is lost")
	})
}

func TestAVersionThatIsTooLargeIsRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, k *assistants.Keeper) {
		long := strings.Repeat("x", maxBytes)
		object := payload.JSON(`{"k":"` + long + `"}`)
		for field, a := range map[string]runtime.Assistant{
			"assistant.context":     {Context: object, Name: "n"},
			"assistant.config":      {Config: object},
			"assistant.metadata":    {Metadata: map[string]string{"k": long, "l": "1"}},
			"assistant.description": {Description: long, Name: "n"},
			"assistant.name":        {Name: long, Context: "{}"},
		} {
			a.Tenant, a.Graph = "default", "agent"
			_, err := k.CreateAssistant(t.Context(), runtime.CreateAssistantRequest{Assistant: a})
			requireTooLarge(t, field, err)
		}
		half := payload.JSON(`{"k":"` + long[:maxBytes/2-16] + `"}`)
		made, err := k.CreateAssistant(t.Context(), runtime.CreateAssistantRequest{Assistant: runtime.Assistant{Tenant: "default", Graph: "agent", Context: half, Config: half}})
		require.NoError(t, err)
		name := long[:17]
		_, err = k.UpdateAssistant(t.Context(), runtime.UpdateAssistantRequest{Tenant: "default", ID: made.ID, Name: &name})
		requireTooLarge(t, "assistant.context", err)
		name = name[:16]
		_, err = k.UpdateAssistant(t.Context(), runtime.UpdateAssistantRequest{Tenant: "default", ID: made.ID, Name: &name})
		require.NoError(t, err)
	})
}

func requireTooLarge(t *testing.T, field string, err error) {
	t.Helper()
	var refusal *runtime.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, runtime.ReasonPayloadTooLarge, refusal.Reason)
	require.Equal(t, field, refusal.Meta["field"])
	require.Equal(t, "4096", refusal.Meta["limitBytes"])
}
