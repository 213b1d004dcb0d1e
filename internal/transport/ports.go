package transport

import (
	"context"
	"time"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/graph"
	"github.com/graphd-dev/graphd/internal/payload"
	"github.com/graphd-dev/graphd/internal/runtime"
	"github.com/graphd-dev/graphd/internal/trail"
)

// RunController begins, continues and stops runs.
type RunController interface {
	Start(ctx context.Context, req runtime.StartRequest) (*runtime.Started, error)
	Resume(ctx context.Context, req runtime.ResumeRequest) (*runtime.Started, error)
	Cancel(ctx context.Context, req runtime.CancelRequest) (checkpoint.Run, error)
}

// RunReader reads runs. It reserves memory for their large parts in the memory of
// the call.
type RunReader interface {
	// Run returns a run; an empty id means the newest run of the thread.
	Run(ctx context.Context, memory *runtime.CallMemory, thread, run string) (checkpoint.Run, error)
	// Runs lists a thread's runs, newest first, of Order smaller than before (0
	// means all). It returns fewer than limit when they have more than some bytes.
	// more reports that others follow.
	Runs(ctx context.Context, memory *runtime.CallMemory, thread string, before uint64, limit, bytes int) (runs []checkpoint.Run, more bool, err error)
	// WaitRun returns the run when it has stopped: it is final or waits for people.
	// It returns ctx's error when ctx ends first.
	WaitRun(ctx context.Context, thread, run string) (checkpoint.Run, error)
	// OutputOfWaiting returns the output keys of the state of a run that waits.
	OutputOfWaiting(ctx context.Context, memory *runtime.CallMemory, run *checkpoint.Run) (payload.JSON, error)
}

// ThreadReader reads threads.
type ThreadReader interface {
	Thread(ctx context.Context, thread string) (checkpoint.Head, error)
	Threads(ctx context.Context, memory *runtime.CallMemory, q checkpoint.ThreadQuery) ([]checkpoint.Head, error)
	ThreadPager
}

// ThreadPager passes over threads without reading them.
type ThreadPager interface {
	// SkipThreads returns the place of the last of the first n threads of a query,
	// zero when there are fewer.
	SkipThreads(ctx context.Context, q checkpoint.ThreadQuery, n int) (checkpoint.ThreadPosition, error)
	// CountThreads returns how many threads a query selects, or atMost if it selects
	// more.
	CountThreads(ctx context.Context, q checkpoint.ThreadQuery, atMost int) (int, error)
}

// ThreadWriter makes, changes and removes threads.
type ThreadWriter interface {
	CreateThread(ctx context.Context, req runtime.CreateThreadRequest) (checkpoint.Head, error)
	UpdateThread(ctx context.Context, req runtime.UpdateThreadRequest) (checkpoint.Head, error)
	ForkThread(ctx context.Context, req runtime.ForkRequest) (checkpoint.Head, error)
	CopyThread(ctx context.Context, req runtime.CopyRequest) (checkpoint.Head, error)
	PruneThread(ctx context.Context, req runtime.PruneRequest) (checkpoint.Head, error)
	// DeleteThread removes a thread that is at the revision etag (0 = any) and not
	// busy. With force it removes the thread also while a run is active.
	DeleteThread(ctx context.Context, thread string, etag uint64, force bool) error
}

// States reads and writes the state of threads.
type States interface {
	State(ctx context.Context, req runtime.StateRequest) (runtime.Snapshot, error)
	// States lists older states; more reports that there may be others.
	States(ctx context.Context, q runtime.HistoryQuery) (states []runtime.Snapshot, more bool, err error)
	UpdateState(ctx context.Context, req runtime.UpdateStateRequest) (runtime.Snapshot, error)
	BulkUpdateState(ctx context.Context, req runtime.BulkUpdateStateRequest) (runtime.Snapshot, error)
	// ValuesAt returns the output keys at a checkpoint.
	ValuesAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id string) (payload.JSON, error)
	// InputAt returns the input of a node at a checkpoint.
	InputAt(ctx context.Context, memory *runtime.CallMemory, thread, namespace, id, node string) (payload.JSON, error)
}

// Interrupts reads and changes interrupts of all threads.
type Interrupts interface {
	Interrupts(ctx context.Context, memory *runtime.CallMemory, q checkpoint.InterruptQuery) ([]checkpoint.Interrupt, error)
	// LatestInterruptChange returns a number that every later change of an interrupt exceeds.
	LatestInterruptChange(ctx context.Context) (uint64, error)
	// CountInterrupts returns how many open interrupts of a tenant have each of some tags.
	CountInterrupts(ctx context.Context, owner string, tags []string) ([]int, error)
	// ReadQuestionStatistics returns what became of the questions of a tenant.
	ReadQuestionStatistics(q runtime.StatisticsQuery) runtime.QuestionStatistics
	// ReadAnswerStatistics returns how the questions of a node were answered. The graph is as
	// clients know it.
	ReadAnswerStatistics(owner, graphName, node string) runtime.AnswerStatistics
	// CurrentTime returns the time by which claims end: that of the store, as far as it is known.
	CurrentTime() time.Time
	OpenInterruptIDs(ctx context.Context, thread string, most int) ([]string, error)
	// OpenInterrupts returns at most so many open interrupts of a thread; whole says that they are all of those.
	OpenInterrupts(ctx context.Context, memory *runtime.CallMemory, thread string, most int) (open []checkpoint.Interrupt, whole bool, err error)
	Interrupt(ctx context.Context, thread, id string) (checkpoint.Interrupt, error)
	// AllowedActions returns what a caller may do with a question, whatever its roles.
	// isContributor says that the caller has edited the state since the run began.
	AllowedActions(q *checkpoint.Interrupt, by runtime.Actor, isContributor bool) runtime.QuestionActions
	UpdateInterrupt(ctx context.Context, c runtime.UpdateInterruptRequest) (checkpoint.Interrupt, error)
	ClaimInterrupt(ctx context.Context, c runtime.ClaimRequest) (checkpoint.Interrupt, error)
	CheckResponses(ctx context.Context, req runtime.ResumeRequest) ([]runtime.CheckedResponse, error)
	DelegateInterrupt(ctx context.Context, c runtime.DelegateRequest) (checkpoint.Interrupt, error)
	RevealInterrupt(ctx context.Context, c runtime.RevealRequest) (runtime.Revealed, error)
	RetractResponse(ctx context.Context, c runtime.RetractRequest) (checkpoint.Interrupt, error)
	ReleaseInterrupt(ctx context.Context, c runtime.ReleaseRequest) (checkpoint.Interrupt, error)
	CommentInterrupt(ctx context.Context, c runtime.CommentRequest) (trail.Entry, error)
	// ListTrail returns what happened to a question, oldest first.
	ListTrail(ctx context.Context, question runtime.Question) ([]trail.Entry, error)
}

// Engine has the methods of the runtime that transport calls, without following.
type Engine interface {
	RunController
	RunReader
	ThreadReader
	ThreadWriter
	States
	Interrupts
}

// InterruptFollower reads changed interrupts of all threads in the order of their
// Change. One goroutine uses it.
type InterruptFollower interface {
	// Next waits for changes and returns at least one. Followers share them: they never
	// change. It returns ctx's error, or its cause, when ctx ends.
	Next(ctx context.Context) ([]*checkpoint.Interrupt, error)
	// After returns the change up to which it has looked at all changes.
	After() uint64
	Close()
}

// Registry stores graphs.
type Registry interface {
	// ListGraphs returns the newest versions of at most limit graphs of a tenant by
	// name, of those after a name, and reports whether there are more.
	ListGraphs(ctx context.Context, owner, after string, limit int) (list []runtime.GraphEntry, more bool, err error)
	// GetGraph returns a version of a graph; an empty version means the newest.
	GetGraph(ctx context.Context, name, version string) (runtime.GraphEntry, error)
	// ParseGraph reads the graph of a request without checking it. It returns a
	// *graph.BuildError for a document that can't be read.
	ParseGraph(put runtime.PutGraphRequest) (*graph.Spec, error)
	// PutGraph checks and stores a graph. It returns a *graph.BuildError for a
	// graph with problems.
	PutGraph(ctx context.Context, put runtime.PutGraphRequest) (runtime.GraphEntry, error)
	// DeleteGraph removes versions of a graph, and returns the removed versions.
	DeleteGraph(ctx context.Context, d runtime.DeleteGraphRequest) ([]string, error)
}

// AssistantReader reads assistants.
type AssistantReader interface {
	// GetAssistant returns a version of an assistant, 0 = the active one.
	GetAssistant(ctx context.Context, owner, id string, version int) (runtime.Assistant, error)
	// ListAssistants lists the active versions; more reports that others follow.
	ListAssistants(ctx context.Context, q runtime.AssistantQuery) (list []runtime.Assistant, more bool, err error)
	// ListVersions lists versions, the newest first; more reports that others follow.
	ListVersions(ctx context.Context, q runtime.AssistantVersionQuery) (list []runtime.Assistant, more bool, err error)
}

// Assistants keeps assistants. admits refuses what the caller may not change, nil = nothing.
type Assistants interface {
	AssistantReader
	CreateAssistant(ctx context.Context, req runtime.CreateAssistantRequest) (runtime.Assistant, error)
	UpdateAssistant(ctx context.Context, req runtime.UpdateAssistantRequest) (runtime.Assistant, error)
	ActivateVersion(ctx context.Context, owner, id string, version int, admits func(name string) error) (runtime.Assistant, error)
	DeleteAssistant(ctx context.Context, owner, id string, etag uint64, admits func(name string) error) error
}

// RunWebhooks keeps addresses that are told when runs stop.
type RunWebhooks interface {
	// AddWebhook keeps a webhook until it was called.
	AddWebhook(ctx context.Context, w runtime.RunWebhook) error
}

// ItemReader reads items.
type ItemReader interface {
	// GetItem returns an item. With refresh it lives for its TTL from now on.
	GetItem(ctx context.Context, owner string, namespace []string, key string, refresh bool) (runtime.Item, error)
	// SearchItems finds items, the newest first.
	SearchItems(ctx context.Context, q runtime.ItemQuery) ([]runtime.Item, error)
	// ListNamespaces lists namespaces that have items, in the order of their labels.
	ListNamespaces(ctx context.Context, q runtime.ItemNamespaceQuery) ([][]string, error)
}

// Items keeps items.
type Items interface {
	ItemReader
	// PutItem puts an item, and returns it with its times.
	PutItem(ctx context.Context, item runtime.Item) (runtime.Item, error)
	// DeleteItem deletes an item, if there is one.
	DeleteItem(ctx context.Context, owner string, namespace []string, key string) error
}

// CronReader reads crons.
type CronReader interface {
	GetCron(ctx context.Context, owner, id string) (runtime.Cron, error)
	// ListCrons lists crons, the newest first; more reports that others follow.
	ListCrons(ctx context.Context, q runtime.CronQuery) (list []runtime.Cron, more bool, err error)
}

// Crons keeps crons. admits refuses what the caller may not change, nil = nothing.
type Crons interface {
	CronReader
	CreateCron(ctx context.Context, req runtime.CreateCronRequest) (runtime.Cron, error)
	UpdateCron(ctx context.Context, req runtime.UpdateCronRequest) (runtime.Cron, error)
	DeleteCron(ctx context.Context, owner, id string, etag uint64, admits func(c *runtime.Cron) error) error
}

// Workers knows the connected workers.
type Workers interface {
	// Workers lists them by id.
	Workers(ctx context.Context) ([]runtime.Worker, error)
}
