package crons_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/checkpoint/memory"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/redistest"
	"github.com/graphd-dev/graphd/internal/checkpoint/sqlite"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/runtime/commit"
	"github.com/graphd-dev/graphd/internal/runtime/crons"
	"github.com/graphd-dev/graphd/internal/runtime/query"
)

// knownGraphs are the graphs "agent" and "acme@agent".
type knownGraphs struct{}

func (knownGraphs) FindGraph(name, _ string) (*graph.Graph, error) {
	if name != "agent" && name != "acme@agent" {
		return nil, runtime.Errorf(runtime.ReasonGraphNotFound, "there is no graph %q", name)
	}
	return &graph.Graph{Name: name}, nil
}

// countedThreads counts up to a limit.
type countedThreads struct {
	store checkpoint.Store
	limit int
}

func (c *countedThreads) AddThread(ctx context.Context, _ string) (func(bool), error) {
	n, err := c.store.CountThreads(ctx, "~crons:default", c.limit)
	if err == nil && n >= c.limit {
		err = runtime.Errorf(runtime.ReasonQuotaExceeded, "there are %d", n)
	}
	return func(bool) {}, err
}

func (c *countedThreads) NoteRemoved(string) {}

// fakeRuns records the runs that are started, one for each request id.
type fakeRuns struct {
	mu      sync.Mutex
	started []runtime.StartRequest
	ttls    map[string]time.Duration
	err     error
}

func (f *fakeRuns) Start(_ context.Context, req runtime.StartRequest) (*runtime.Started, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	started := &runtime.Started{Run: checkpoint.Run{ID: req.Run, Thread: req.Thread}}
	for i := range f.started {
		if f.started[i].RequestID == req.RequestID {
			return started, nil
		}
	}
	f.started = append(f.started, req)
	return started, nil
}

func (f *fakeRuns) UpdateThread(_ context.Context, req runtime.UpdateThreadRequest) (checkpoint.Head, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ttls == nil {
		f.ttls = map[string]time.Duration{}
	}
	f.ttls[req.Thread] = req.Expiration.TTL
	return checkpoint.Head{}, nil
}

// firedOutcomes are the outcomes of firings, as metrics count them.
type firedOutcomes struct {
	runtime.NopObserver

	mu       sync.Mutex
	outcomes []string
}

func (f *firedOutcomes) CronFired(name, outcome string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcomes = append(f.outcomes, name+" "+outcome)
}

const maxBytes = 4096

// firingServer is a server that shares a store with others.
type firingServer struct {
	*crons.Keeper

	t     *testing.T
	store checkpoint.Store
	runs  *fakeRuns
	fired *firedOutcomes
}

func newServer(t *testing.T, store checkpoint.Store, limit int) *firingServer {
	t.Helper()
	client := commit.NewStoreClient(store, 3, 5*time.Second, time.Now)
	committer := commit.NewCommitter(commit.Options{
		Store: client, Owner: rand.Text(), Attempts: 3, Timeout: 5 * time.Second, Now: client.CurrentTime, Observer: runtime.NopObserver{},
		PruneTime: func(*checkpoint.Head) time.Time { return time.Time{} }, Unknown: func(string) {},
		Committed: func(*commit.Tx, checkpoint.Head) {}, Published: func(string, []checkpoint.Event) {},
	})
	s := &firingServer{t: t, store: store, runs: &fakeRuns{}, fired: &firedOutcomes{}}
	s.Keeper = crons.New(crons.Options{
		Store: client, Committer: committer, Graphs: knownGraphs{}, Requests: query.New(query.Options{Store: client, Budget: runtime.NewReadBudget(1 << 20)}),
		Counts: &countedThreads{store, limit}, Runs: s.runs, Limit: limit, MaxBytes: maxBytes, Observer: s.fired, Logger: zap.NewNop(),
		ParseRun: func(c *runtime.Cron) (runtime.StartRequest, error) {
			return runtime.StartRequest{Request: checkpoint.RunRequest{Input: c.Run}}, nil
		},
	})
	return s
}

// onEachStore runs a test on each store.
func onEachStore(t *testing.T, test func(t *testing.T, s *firingServer)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, newServer(t, memory.New(memory.Options{}), 100)) })
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "graphd.db")})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		test(t, newServer(t, s, 100))
	})
	t.Run("redis", func(t *testing.T) {
		s, err := redis.Open(t.Context(), redis.Options{URL: redistest.Start(t).URL("shared=true")})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		test(t, newServer(t, s, 100))
	})
}

func newRequest(id string) runtime.CreateCronRequest {
	return runtime.CreateCronRequest{Cron: runtime.Cron{
		Tenant: "default", ID: id, Graph: "agent", Schedule: "0 9 * * *", TimeZone: "Europe/Berlin", Run: `{"input": 1.0}`, Source: `{"a": 9007199254740993}`,
		Metadata: map[string]string{"team": "blue"}, CreatedBy: "ann", StartedBy: "ann",
	}}
}

func requireReason(t *testing.T, reason string, err error) {
	t.Helper()
	require.ErrorIs(t, err, &runtime.Error{Reason: reason})
}

// inUTC returns a cron whose times have one zone.
func inUTC(c runtime.Cron) runtime.Cron {
	for _, at := range []*time.Time{&c.Created, &c.Updated, &c.Next, &c.End} {
		*at = at.UTC().Round(0)
	}
	return c
}

func (s *firingServer) update(req runtime.UpdateCronRequest) runtime.Cron {
	s.t.Helper()
	req.Tenant, req.ID = "default", "a"
	c, err := s.UpdateCron(s.t.Context(), req)
	require.NoError(s.t, err)
	return c
}

func (s *firingServer) read(id string) runtime.Cron {
	s.t.Helper()
	c, err := s.GetCron(s.t.Context(), "default", id)
	require.NoError(s.t, err)
	return c
}

func TestACronIsKept(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *firingServer) {
		made, err := s.CreateCron(t.Context(), newRequest("a"))
		require.NoError(t, err)
		require.Equal(t, inUTC(made), inUTC(s.read("a")))
		require.Equal(t, payload.JSON(`{"a": 9007199254740993}`), made.Source, "JSON is carried as it came")
		require.Equal(t, map[string]string{"team": "blue"}, made.Metadata)
		require.True(t, made.Next.After(time.Now()))
		_, err = s.CreateCron(t.Context(), newRequest("a"))
		requireReason(t, runtime.ReasonCronExists, err)

		changed := s.update(runtime.UpdateCronRequest{
			Etag: made.Revision, IsPaused: new(true), Metadata: map[string]string{"level": "2"}, DropKeys: []string{"team"},
			Run: &runtime.CronRunChange{Graph: "agent", Run: `{"input":2}`, StartedBy: "ben"},
		})
		require.Equal(t, inUTC(changed), inUTC(s.read("a")))
		require.True(t, changed.Next.IsZero())
		require.Equal(t, payload.JSON(`{"input":2}`), changed.Run)
		require.Equal(t, made.Source, changed.Source)
		require.Equal(t, []string{"ann", "ben"}, []string{changed.CreatedBy, changed.StartedBy})
		require.Equal(t, map[string]string{"level": "2"}, changed.Metadata)
		_, err = s.UpdateCron(t.Context(), runtime.UpdateCronRequest{Tenant: "default", ID: "a", Etag: made.Revision, IsPaused: new(false)})
		requireReason(t, runtime.ReasonEtagMismatch, err)
		_, err = s.UpdateCron(t.Context(), runtime.UpdateCronRequest{Tenant: "default", ID: "a", Schedule: new("0 0 31 2 *")})
		require.ErrorContains(t, err, "no day has")
		_, err = s.UpdateCron(t.Context(), runtime.UpdateCronRequest{Tenant: "default", ID: "a", Run: &runtime.CronRunChange{Graph: "other"}})
		require.ErrorContains(t, err, "cron.run.graph must stay as it is")
		require.Equal(t, inUTC(changed), inUTC(s.read("a")), "what is refused changes nothing")

		requireReason(t, runtime.ReasonEtagMismatch, s.DeleteCron(t.Context(), "default", "a", made.Revision, nil))
		requireReason(t, runtime.ReasonCronNotFound, s.DeleteCron(t.Context(), "acme", "a", 0, nil))
		require.NoError(t, s.DeleteCron(t.Context(), "default", "a", changed.Revision, nil))
		_, err = s.GetCron(t.Context(), "default", "a")
		requireReason(t, runtime.ReasonCronNotFound, err)
	})
}

func TestCronsAreListed(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *firingServer) {
		for i := range 5 {
			req := newRequest(fmt.Sprint("c", i))
			if i%2 == 0 {
				req.Cron.Thread = "t"
			}
			_, err := s.CreateCron(t.Context(), req)
			require.NoError(t, err)
		}
		other := newRequest("c0")
		other.Cron.Tenant, other.Cron.Graph = "acme", "acme@agent"
		_, err := s.CreateCron(t.Context(), other)
		require.NoError(t, err)
		ids := func(q runtime.CronQuery) (found []string) {
			q.Tenant, q.Limit, q.MaxBytes = "default", 2, 1<<20
			for {
				list, more, err := s.ListCrons(t.Context(), q)
				require.NoError(t, err)
				for i := range list {
					require.Equal(t, q.IsBasic, list[i].Run == "")
					found = append(found, list[i].ID)
				}
				if !more {
					return found
				}
				q.After = list[len(list)-1].Position()
			}
		}
		require.ElementsMatch(t, []string{"c0", "c1", "c2", "c3", "c4"}, ids(runtime.CronQuery{}))
		require.ElementsMatch(t, []string{"c0", "c2", "c4"}, ids(runtime.CronQuery{Thread: "t", IsBasic: true}))
		require.ElementsMatch(t, []string{"c0", "c2", "c4"}, ids(runtime.CronQuery{Thread: "t", Graph: "agent", Metadata: map[string]string{"team": "blue"}}))
		require.Empty(t, ids(runtime.CronQuery{Graph: "other"}))
	})
}

func TestCronsThatAreRefused(t *testing.T) {
	s := newServer(t, memory.New(memory.Options{}), 1)
	for reason, change := range map[string]func(c *runtime.Cron){
		runtime.ReasonGraphNotFound:   func(c *runtime.Cron) { c.Graph = "none" },
		runtime.ReasonPayloadTooLarge: func(c *runtime.Cron) { c.Run = payload.JSON(strings.Repeat("x", maxBytes)) },
		runtime.ReasonInvalidField:    func(c *runtime.Cron) { c.End = time.Now().Add(time.Second) },
	} {
		req := newRequest("a")
		change(&req.Cron)
		_, err := s.CreateCron(t.Context(), req)
		requireReason(t, reason, err)
	}
	req := newRequest("")
	req.RequestID, req.Digest = "r", "d"
	made, err := s.CreateCron(t.Context(), req)
	require.NoError(t, err)
	again, err := s.CreateCron(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, inUTC(made), inUTC(again), "the request is repeated")
	req.Digest = "e"
	_, err = s.CreateCron(t.Context(), req)
	requireReason(t, runtime.ReasonRequestIDConflict, err)
	_, err = s.CreateCron(t.Context(), newRequest("b"))
	requireReason(t, runtime.ReasonTooManyCrons, err)
}

// makeDue lets the next time of a cron be a while ago.
func (s *firingServer) makeDue(id string, ago time.Duration) {
	s.t.Helper()
	head, err := s.store.Head(s.t.Context(), "~crons:default@"+id)
	require.NoError(s.t, err)
	next := s.read(id).Next.UTC().Format(time.RFC3339)
	now := head.Now.UTC().Add(-ago).Truncate(time.Second)
	labels := map[string]string{}
	for key, value := range head.Metadata {
		labels[key] = strings.Replace(value, `"next":"`+next+`"`, `"next":"`+now.Format(time.RFC3339)+`"`, 1)
	}
	head.Metadata, head.Due = labels, now
	_, err = s.store.Apply(s.t.Context(), &checkpoint.Change{Thread: head.Thread, LogID: head.LogID, Expect: head.Revision, Head: head, Op: rand.Text()})
	require.NoError(s.t, err)
	require.Equal(s.t, now, s.read(id).Next)
}

// processDue looks at a cron, as the servers of a store do.
func (s *firingServer) processDue(id string) {
	s.t.Helper()
	due, _, err := s.store.Due(s.t.Context(), 0)
	require.NoError(s.t, err)
	for _, thread := range due {
		head, err := s.store.Head(s.t.Context(), thread)
		require.NoError(s.t, err)
		if err := s.ProcessDue(s.t.Context(), head); !errors.Is(err, checkpoint.ErrConflict) {
			require.NoError(s.t, err)
		}
	}
}

func TestServersFireOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *firingServer) {
		req := newRequest("a")
		req.Cron.ThreadTTL = time.Hour
		_, err := s.CreateCron(t.Context(), req)
		require.NoError(t, err)
		s.makeDue("a", time.Minute)
		var all sync.WaitGroup
		for range 4 {
			other := newServer(t, s.store, 100)
			other.runs = s.runs
			other.Keeper = s.Keeper
			all.Go(func() { other.processDue("a") })
		}
		all.Wait()
		s.processDue("a")
		require.Len(t, s.runs.started, 1)
		started := s.runs.started[0]
		require.Equal(t, "ann", started.By.Name)
		require.Equal(t, payload.JSON(`{"input": 1.0}`), started.Request.Input)
		require.True(t, started.CreateThread)
		require.Equal(t, map[string]time.Duration{started.Thread: time.Hour}, s.runs.ttls)
		c := s.read("a")
		require.Equal(t, started.Run, c.Last.Run)
		require.True(t, c.Next.After(time.Now()))
		require.Equal(t, c.Created, s.read("a").Created)
	})
}

// The runs of a tenant have its threads and graphs.
func TestACronFiresInItsTenant(t *testing.T) {
	s := newServer(t, memory.New(memory.Options{}), 10)
	for _, thread := range []string{"", "acme@t"} {
		req := newRequest("a")
		req.Cron.Tenant, req.Cron.Graph, req.Cron.Thread, req.Cron.Schedule = "acme", "acme@agent", thread, "* * * * *"
		made, err := s.CreateCron(t.Context(), req)
		require.NoError(t, err)
		head, err := s.store.Head(t.Context(), "~crons:acme@a")
		require.NoError(t, err)
		head.Now = made.Next
		require.NoError(t, s.ProcessDue(t.Context(), head))
		started := s.runs.started[len(s.runs.started)-1]
		require.Equal(t, "acme@agent", started.Graph)
		require.Equal(t, thread == "", started.CreateThread)
		if thread == "" {
			require.Regexp(t, "^acme@[0-9a-f-]{36}$", started.Thread)
		} else {
			require.Equal(t, thread, started.Thread)
		}
		require.NoError(t, s.DeleteCron(t.Context(), "acme", "a", 0, nil))
	}
	require.NotEqual(t, s.runs.started[0].RequestID, s.runs.started[1].RequestID, "a cron that was made again has other runs")
}

// A server of an earlier version knows no crons, and takes the time at which one is due. A change
// gives it back.
func TestACronThatWasPutAsideIsDueAgain(t *testing.T) {
	s := newServer(t, memory.New(memory.Options{}), 10)
	_, err := s.CreateCron(t.Context(), newRequest("a"))
	require.NoError(t, err)
	s.makeDue("a", time.Minute)
	s.runs.err = runtime.Errorf(runtime.ReasonTooManyRuns, "full")
	s.processDue("a")
	head, err := s.store.Head(t.Context(), "~crons:default@a")
	require.NoError(t, err)
	head.Due = time.Time{}
	_, err = s.store.Apply(t.Context(), &checkpoint.Change{Thread: head.Thread, LogID: head.LogID, Expect: head.Revision, Head: head, Op: rand.Text()})
	require.NoError(t, err)
	s.runs.err = nil
	s.processDue("a")
	require.Empty(t, s.runs.started)
	s.update(runtime.UpdateCronRequest{IsPaused: new(true)})
	s.processDue("a")
	require.Len(t, s.runs.started, 1)
}

// A cron that is changed while it fires goes on as it was changed, and one that is deleted goes when
// its firing is done.
func TestACronIsChangedWhileItFires(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *firingServer) {
		req := newRequest("a")
		req.Cron.ThreadTTL = time.Hour
		_, err := s.CreateCron(t.Context(), req)
		require.NoError(t, err)
		s.makeDue("a", time.Hour)
		s.runs.err = runtime.Errorf(runtime.ReasonTooManyRuns, "full")
		s.processDue("a")
		require.Nil(t, s.read("a").Last, "the server is full, and the run waits")
		s.update(runtime.UpdateCronRequest{Run: &runtime.CronRunChange{Run: `{"input":3}`, StartedBy: "ben"}, Schedule: new("0 10 * * *")})
		head, err := s.store.Head(t.Context(), "~crons:default@a")
		require.NoError(t, err)
		require.True(t, head.Due.After(head.Now), "no other server starts it meanwhile")
		head.Due = head.Now
		s.runs.err = nil
		require.NoError(t, s.ProcessDue(t.Context(), head))
		require.Len(t, s.runs.started, 1)
		require.Equal(t, payload.JSON(`{"input":3}`), s.runs.started[0].Request.Input)

		s.makeDue("a", time.Minute)
		s.runs.err = runtime.Errorf(runtime.ReasonServerDraining, "down")
		s.processDue("a")
		require.NoError(t, s.DeleteCron(t.Context(), "default", "a", 0, nil))
		_, err = s.GetCron(t.Context(), "default", "a")
		requireReason(t, runtime.ReasonCronNotFound, err)
		list, _, err := s.ListCrons(t.Context(), runtime.CronQuery{Tenant: "default", Limit: 10, MaxBytes: 1})
		require.NoError(t, err)
		require.Empty(t, list)
		head, err = s.store.Head(t.Context(), "~crons:default@a")
		require.NoError(t, err)
		head.Due = head.Now
		s.runs.err = nil
		require.NoError(t, s.ProcessDue(t.Context(), head))
		require.Len(t, s.runs.started, 1, "a run that has not started is not started any more")
		_, err = s.store.Head(t.Context(), "~crons:default@a")
		require.ErrorIs(t, err, checkpoint.ErrThreadNotFound)
		require.Len(t, s.runs.ttls, 2, "it may have been started by a server that has died")
	})
}

func TestARefusalIsKept(t *testing.T) {
	s := newServer(t, memory.New(memory.Options{}), 1)
	_, err := s.CreateCron(t.Context(), newRequest("a"))
	require.NoError(t, err)
	s.makeDue("a", time.Hour)
	s.runs.err = runtime.Errorf(runtime.ReasonThreadBusy, "%s", strings.Repeat("busy ", 1000))
	s.processDue("a")
	last := s.read("a").Last
	require.Equal(t, runtime.ReasonThreadBusy, last.Reason)
	require.Len(t, last.Message, 500)
	require.Empty(t, last.Run)
	require.True(t, s.read("a").Next.After(time.Now()))

	s.makeDue("a", time.Minute)
	s.runs.err = runtime.Errorf(runtime.ReasonStoreUnavailable, "away")
	head, err := s.store.Head(t.Context(), "~crons:default@a")
	require.NoError(t, err)
	requireReason(t, runtime.ReasonStoreUnavailable, s.ProcessDue(t.Context(), head))
	require.Equal(t, last, s.read("a").Last, "a fault of the store is no refusal")
	s.runs.err = nil
	head, err = s.store.Head(t.Context(), "~crons:default@a")
	require.NoError(t, err)
	head.Now = head.Due
	require.NoError(t, s.ProcessDue(t.Context(), head))
	require.Equal(t, []string{"agent refused", "agent started"}, s.fired.outcomes)
}
