package workers_test

import (
	"crypto/sha256"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
	"github.com/graphd-dev/graphd/internal/worker"
)

// textOf is the JSON text of a string of some bytes.
func textOf(letter string, size int) string { return `"` + strings.Repeat(letter, size-2) + `"` }

func digestOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// keepingHello is that of a worker that keeps some bytes of values, and serves a chain.
func keepingHello(bytes uint64, nodes ...string) *graphdv1.Hello {
	return &graphdv1.Hello{
		WorkerId: "w1", Credit: &graphdv1.Credit{TotalSlots: 4}, KeptBytes: bytes,
		Manifest: &graphdv1.WorkerManifest{Graphs: listSpecs(newChainGraph("g", nodes...)), Features: []string{"drift"}},
	}
}

// completeAndTake completes a task on the stream, and returns the next one.
func (w *workerSession) completeAndTake(a *graphdv1.TaskAssignment, update string) *graphdv1.TaskAssignment {
	w.t.Helper()
	answer := w.completeOnStream(a, completedResult(update))
	require.Empty(w.t, answer.GetReason())
	if next := answer.GetResponse().GetNext(); next != nil {
		return next
	}
	return w.nextTask()
}

func (w *workerSession) refuseFor(a *graphdv1.TaskAssignment, missing ...[]byte) {
	w.sendMessage(&graphdv1.ConnectRequest{Kind: &graphdv1.ConnectRequest_Nack{Nack: &graphdv1.Nack{
		LeaseToken: a.GetLease().GetToken(), Reason: "values are missing", Missing: missing,
	}}})
}

func TestAValueIsSentToAWorkerOnce(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(keepingHello(1<<20, "a", "b", "c", "d"))
	large, next := textOf("l", 6000), textOf("n", 5000)
	run := s.startRun("g", `{"x":`+large+`,"log":["small"]}`)

	a := w.nextTask()
	require.Equal(t, large, a.GetChannels()["x"].GetJson())
	require.Equal(t, map[string][]byte{"x": digestOf(large)}, a.GetKept().GetKeep(), "small values take no part")
	require.Equal(t, `["small"]`, a.GetChannels()["log"].GetJson())

	b := w.completeAndTake(a, `{"log":[`+next+`]}`)
	require.NotContains(t, b.GetChannels(), "x")
	require.Equal(t, map[string][]byte{"x": digestOf(large)}, b.GetKept().GetUse())
	list := `["small",` + next + `]`
	require.Equal(t, list, b.GetChannels()["log"].GetJson())
	require.Equal(t, map[string][]byte{"log": digestOf(list)}, b.GetKept().GetKeep(), "of a list that is stored by its elements, too")

	c := w.completeAndTake(b, `{"x":`+large+`}`)
	require.Equal(t, map[string][]byte{"x": digestOf(large), "log": digestOf(list)}, c.GetKept().GetUse(), "a value that was written again is the same")

	d := w.completeAndTake(c, `{"x":`+next+`}`)
	require.Equal(t, next, d.GetChannels()["x"].GetJson())
	require.Equal(t, map[string][]byte{"x": digestOf(next)}, d.GetKept().GetKeep())
	require.Equal(t, map[string][]byte{"log": digestOf(list)}, d.GetKept().GetUse())
	require.Empty(t, d.GetKept().GetForget())

	w.completeOnStream(d, completedResult(`{"x":1}`))
	require.JSONEq(t, `{"x":1,"log":`+list+`}`, s.waitStopped(run).GetOutput().GetJson())
	omitted, resent := s.hub.KeptValues()
	require.EqualValues(t, 2*len(large)+2*len(list), omitted)
	require.Zero(t, resent)
}

// A worker of before is sent all values each time, and so is one of a server that wants none kept.
func TestAWorkerThatKeepsNothingGetsAllValues(t *testing.T) {
	for name, c := range map[string]struct {
		kept uint64
		hub  worker.Options
	}{
		"it says nothing":       {},
		"less than one value":   {kept: 100},
		"the server wants none": {kept: 1 << 20, hub: worker.Options{MaxKeptBytes: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, config{hub: c.hub})
			w := s.connectWorker(keepingHello(c.kept, "a", "b"))
			large := textOf("l", 6000)
			s.startRun("g", `{"x":`+large+`}`)
			a := w.nextTask()
			b := w.completeAndTake(a, `{}`)
			for _, task := range []*graphdv1.TaskAssignment{a, b} {
				require.Equal(t, large, task.GetChannels()["x"].GetJson())
				require.Nil(t, task.GetKept())
			}
		})
	}
}

// The server says what makes place, and never refers to it afterwards.
func TestTheValueThatWasNotUsedForLongestMakesPlace(t *testing.T) {
	for name, c := range map[string]struct {
		kept uint64
		hub  worker.Options
	}{
		"as the worker says":  {kept: 13_000},
		"as the server says":  {kept: math.MaxUint64, hub: worker.Options{MaxKeptBytes: 13_000}},
		"as neither may know": {kept: 13_000, hub: worker.Options{MaxKeptBytes: 1 << 40}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, config{hub: c.hub})
			w := s.connectWorker(keepingHello(c.kept, "a", "b", "c", "d", "e"))
			one, two, three := textOf("1", 6000), textOf("2", 6000), textOf("3", 6000)
			s.startRun("g", `{"x":`+one+`}`)
			a := w.nextTask()
			b := w.completeAndTake(a, `{"x":`+two+`}`)
			require.Empty(t, b.GetKept().GetForget())
			c := w.completeAndTake(b, `{"x":`+one+`}`)
			require.Equal(t, digestOf(one), c.GetKept().GetUse()["x"])
			d := w.completeAndTake(c, `{"x":`+three+`}`)
			require.Equal(t, [][]byte{digestOf(two)}, d.GetKept().GetForget())
			e := w.completeAndTake(d, `{"x":`+two+`}`)
			require.Equal(t, two, e.GetChannels()["x"].GetJson(), "it was forgotten")
			require.Equal(t, [][]byte{digestOf(one)}, e.GetKept().GetForget())
		})
	}
}

func TestAWorkerThatLacksAValueGetsTheTaskAgain(t *testing.T) {
	s := startServer(t, config{hub: worker.Options{MaxNacks: 2}})
	w := s.connectWorker(keepingHello(1<<20, "a", "b", "c"))
	large := textOf("l", 6000)
	run := s.startRun("g", `{"x":`+large+`}`)
	b := w.completeAndTake(w.nextTask(), `{}`)
	require.Equal(t, digestOf(large), b.GetKept().GetUse()["x"])

	w.refuseFor(b, digestOf(large))
	again := w.nextTask()
	require.Equal(t, b.GetTaskId(), again.GetTaskId())
	require.Equal(t, []uint32{1, 2}, []uint32{again.GetAttempt(), again.GetDelivery()}, "no attempt is counted")
	require.Equal(t, large, again.GetChannels()["x"].GetJson())
	require.Empty(t, again.GetKept().GetKeep())
	require.Empty(t, again.GetKept().GetUse())

	c := w.completeAndTake(again, `{}`)
	require.Equal(t, large, c.GetChannels()["x"].GetJson(), "the server counts on it no more")
	require.Equal(t, digestOf(large), c.GetKept().GetKeep()["x"])
	require.Empty(t, c.GetKept().GetForget(), "it is to be kept after all")
	_, resent := s.hub.KeptValues()
	require.EqualValues(t, 1, resent)

	// Who lacks values of a task with all values has another problem.
	w.refuseFor(c, digestOf(large))
	whole := w.nextTask()
	w.refuseFor(whole, digestOf(large))
	w.refuseFor(w.nextTask(), digestOf(large))
	require.Equal(t, "Refused", s.waitStopped(run).GetFailure().GetType())
}

// A stream begins with nothing: the worker may have lost what it had.
func TestANewStreamKeepsNothingOfTheOldOne(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(keepingHello(1<<20, "a", "b"))
	large := textOf("l", 6000)
	s.startRun("g", `{"x":`+large+`}`)
	a := w.nextTask()
	hello := keepingHello(1<<20, "a", "b")
	hello.HeldLeases = [][]byte{a.GetLease().GetToken()}
	back := s.connectWorker(hello)
	b := back.completeAndTake(a, `{}`)
	require.Equal(t, large, b.GetChannels()["x"].GetJson())
	require.Equal(t, digestOf(large), b.GetKept().GetKeep()["x"])
}

// Another worker may not have what this one has, whatever it says.
func TestAValueIsReferredToWhereItWasSent(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(keepingHello(1<<20, "a", "b"))
	large := textOf("l", 6000)
	s.startRun("g", `{"x":`+large+`}`)
	a := w.nextTask()
	hello := keepingHello(math.MaxUint64, "a", "b")
	hello.WorkerId = "w2"
	other := s.connectWorker(hello)
	other.refuseFor(a, digestOf(large)) // neither its task nor its value
	w.sendCredit(&graphdv1.Credit{Revision: 1})
	w.completeOnStream(a, completedResult(`{}`)) // behind the credit
	b := other.nextTask()
	require.Equal(t, large, b.GetChannels()["x"].GetJson())
	require.Equal(t, digestOf(large), b.GetKept().GetKeep()["x"])
}

// The answer to a call is in no order with the stream: it tells of nothing to keep.
func TestTheAnswerToACallOnlyRefersToValues(t *testing.T) {
	s := startServer(t, config{})
	w := s.connectWorker(keepingHello(1<<20, "a", "b"))
	one, two := textOf("1", 6000), textOf("2", 6000)
	for range 100 { // the server waits a moment for the next task, which a busy machine may miss
		run := s.startRun("g", `{"x":`+one+`}`)
		a := w.nextTask()
		answer, err := w.client.CompleteTask(t.Context(), &graphdv1.CompleteTaskRequest{
			LeaseToken: a.GetLease().GetToken(), Result: completedResult(`{"log":[` + two + `]}`), TakeNext: true,
		})
		require.NoError(t, err)
		b := answer.GetNext()
		if b == nil {
			w.completeOnStream(w.nextTask(), completedResult(`{}`))
			s.waitStopped(run)
			continue
		}
		require.Equal(t, map[string][]byte{"x": digestOf(one)}, b.GetKept().GetUse())
		require.Empty(t, b.GetKept().GetKeep())
		require.Equal(t, `[`+two+`]`, b.GetChannels()["log"].GetJson())
		return
	}
	require.Fail(t, "no answer had the next task")
}

func TestWhatAWorkerSaysOfMissingValuesIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		missing [][]byte
		want    string
	}{
		"no digest": {[][]byte{[]byte("short")}, "nack.missing[0]: has 5 bytes; a SHA-256 has 32"},
		"too many":  {make([][]byte, 1025), "nack.missing: has 1025 entries; at most 1024 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, config{})
			w := s.connectWorker(keepingHello(1<<20, "a"))
			s.startRun("g", `{"x":1}`)
			w.refuseFor(w.nextTask(), c.missing...)
			err := receiveOrFail(t, w.end, "the end of the stream")
			require.Equal(t, "INVALID_FIELD", reasonOf(t, err))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A task that fits into a message only without what its worker has is refused as for any other
// worker: whether a run succeeds does not depend on what its worker did before.
func TestATaskIsAsLargeAsAllOfItsValues(t *testing.T) {
	s := startServer(t, config{limits: pregel.Limits{MaxValueBytes: 16 << 20, MaxStateBytes: 16 << 20, MaxWriteBytes: 16 << 20}})
	g := newChainGraph("g", "a", "b", "c", "d")
	for i, reads := range []string{"x", "p", "q"} {
		g.Nodes[i].Reads = []string{reads}
	}
	for _, key := range []string{"p", "q", "r"} {
		g.Channels = append(g.Channels, &graphdv1.ChannelSpec{Name: key})
	}
	hello := keepingHello(64 << 20)
	hello.Manifest.Graphs = listSpecs(g)
	w := s.connectWorker(hello)
	run := s.startRun("g", `{"x":0}`)
	for _, key := range []string{"p", "q", "r"} { // d reads all, and the worker has p and q
		_, err := w.completeTask(w.nextTask(), completedResult(`{"`+key+`":`+textOf(key, 3_500_000)+`}`))
		require.NoError(t, err)
	}
	failure := s.waitStopped(run).GetFailure()
	require.Equal(t, "OUTPUT_TOO_LARGE", failure.GetReason(), failure.GetMessage())
}
