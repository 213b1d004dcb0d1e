package access

// Prefixes of full method names.
const (
	graphService     = "/graphd.v1.GraphService/"
	threadService    = "/graphd.v1.ThreadService/"
	interruptService = "/graphd.v1.InterruptService/"
	registryService  = "/graphd.v1.RegistryService/"
	assistantService = "/graphd.v1.AssistantService/"
	itemService      = "/graphd.v1.ItemService/"
	cronService      = "/graphd.v1.CronService/"
	workerService    = "/graphd.v1.WorkerService/"
	nodeService      = "/graphd.v1.NodeService/"
	healthService    = "/grpc.health.v1.Health/"
)

// Scope says what a method concerns, and so which bindings give it.
type Scope string

// The scopes.
const (
	// ScopeOpen is the scope of methods that need no credentials. They are served
	// without a decision; asked about them, a Policy decides as for ScopeServer.
	ScopeOpen Scope = "open"
	// ScopeServer is the scope of methods that every authenticated caller has.
	ScopeServer Scope = "server"
	// ScopeTenant is the scope of methods that concern many graphs of a tenant. A
	// binding for some graphs gives them; what they return or touch is decided
	// again, item by item, with the item's graph and thread.
	ScopeTenant Scope = "tenant"
	// ScopeGraph is the scope of methods that concern one graph, or one thread of
	// one graph. Where the graph is not known, only bindings for all graphs count.
	ScopeGraph Scope = "graph"
	// ScopeLease is the scope of methods of workers that are checked by the lease of
	// a task. A binding for some graphs gives them.
	ScopeLease Scope = "lease"
	// ScopeEndpoint is the scope of methods that graphd calls and does not serve.
	// No caller has them.
	ScopeEndpoint Scope = "endpoint"
)

// IsForAllCallers reports whether every authenticated caller has the methods.
func (s Scope) IsForAllCallers() bool { return s == ScopeOpen || s == ScopeServer }

// MethodRow says who has a method.
type MethodRow struct {
	Method string // full name, like "/graphd.v1.GraphService/Stream"
	Scope  Scope
	Roles  []Role // empty for ScopeOpen, ScopeServer and ScopeEndpoint
}

// Methods lists every method of graphd.v1, and those of gRPC itself that graphd
// serves.
func Methods() []MethodRow {
	var (
		viewers     = []Role{Viewer, Starter, Operator, Admin}
		inbox       = []Role{Viewer, Answerer, Starter, Operator, Admin}
		answerers   = []Role{Answerer, Admin}
		linkers     = []Role{Answerer, Linker, Admin}
		starters    = []Role{Starter, Operator, Admin}
		operators   = []Role{Operator, Admin}
		readGraphs  = []Role{Viewer, Starter, Author, Operator, Admin}
		authors     = []Role{Author, Admin}
		configurers = []Role{Author, Operator, Admin}
		workers     = []Role{Worker, Admin}
		readItems   = []Role{Viewer, Starter, Worker, Operator, Admin}
		putItems    = []Role{Starter, Worker, Operator, Admin}
	)
	return []MethodRow{
		{graphService + "Stream", ScopeGraph, starters},
		{graphService + "Resume", ScopeGraph, answerers},
		{graphService + "Watch", ScopeGraph, inbox},
		{graphService + "StartRun", ScopeGraph, starters},
		{graphService + "ResumeRun", ScopeGraph, answerers},
		{graphService + "WaitRun", ScopeGraph, inbox},
		{graphService + "GetRun", ScopeGraph, inbox},
		{graphService + "ListRuns", ScopeGraph, viewers},
		{graphService + "CancelRun", ScopeGraph, starters},
		{graphService + "AddRunWebhook", ScopeGraph, starters},

		{threadService + "CreateThread", ScopeGraph, starters},
		{threadService + "GetThread", ScopeGraph, inbox},
		{threadService + "ListThreads", ScopeTenant, viewers},
		{threadService + "UpdateThread", ScopeGraph, starters},
		{threadService + "DeleteThread", ScopeGraph, operators},
		{threadService + "DeleteThreads", ScopeTenant, operators},
		{threadService + "ForkThread", ScopeGraph, operators},
		{threadService + "CopyThread", ScopeGraph, operators},
		{threadService + "PruneThread", ScopeGraph, operators},
		{threadService + "GetState", ScopeGraph, viewers},
		{threadService + "UpdateState", ScopeGraph, operators},
		{threadService + "BulkUpdateState", ScopeGraph, operators},
		{threadService + "ListCheckpoints", ScopeGraph, viewers},

		{interruptService + "ListInterrupts", ScopeTenant, inbox},
		{interruptService + "CountInterrupts", ScopeTenant, inbox},
		{interruptService + "GetInterruptStatistics", ScopeTenant, inbox},
		{interruptService + "GetAnswerStatistics", ScopeTenant, inbox},
		{interruptService + "GetInterrupt", ScopeGraph, inbox},
		{interruptService + "UpdateInterrupt", ScopeGraph, operators},
		{interruptService + "WatchInterrupts", ScopeTenant, inbox},
		{interruptService + "ClaimInterrupt", ScopeGraph, answerers},
		{interruptService + "ReleaseInterrupt", ScopeGraph, answerers},
		{interruptService + "CheckResponses", ScopeGraph, answerers},
		{interruptService + "DelegateInterrupt", ScopeGraph, answerers},
		{interruptService + "RevealInterrupt", ScopeGraph, answerers},
		{interruptService + "RetractResponse", ScopeGraph, answerers},
		{interruptService + "CommentInterrupt", ScopeGraph, answerers},
		{interruptService + "MakeLink", ScopeGraph, linkers},
		{interruptService + "ListTrail", ScopeGraph, inbox},
		{interruptService + "AnswerInterrupts", ScopeTenant, answerers},

		{registryService + "GetServerInfo", ScopeServer, nil},
		{registryService + "ListGraphs", ScopeTenant, readGraphs},
		{registryService + "GetGraph", ScopeGraph, readGraphs},
		{registryService + "PutGraph", ScopeGraph, authors},
		{registryService + "DeleteGraph", ScopeGraph, authors},
		{registryService + "DeleteGraphVersion", ScopeGraph, authors},
		{registryService + "ListWorkers", ScopeTenant, readGraphs},

		{assistantService + "CreateAssistant", ScopeGraph, configurers},
		{assistantService + "GetAssistant", ScopeTenant, readGraphs},
		{assistantService + "ListAssistants", ScopeTenant, readGraphs},
		{assistantService + "UpdateAssistant", ScopeTenant, configurers},
		{assistantService + "ListAssistantVersions", ScopeTenant, readGraphs},
		{assistantService + "ActivateAssistantVersion", ScopeTenant, configurers},
		{assistantService + "DeleteAssistant", ScopeTenant, configurers},

		{itemService + "PutItem", ScopeGraph, putItems},
		{itemService + "GetItem", ScopeGraph, readItems},
		{itemService + "DeleteItem", ScopeGraph, putItems},
		{itemService + "SearchItems", ScopeGraph, readItems},
		{itemService + "ListItemNamespaces", ScopeGraph, readItems},

		{cronService + "CreateCron", ScopeGraph, starters},
		{cronService + "GetCron", ScopeTenant, viewers},
		{cronService + "ListCrons", ScopeTenant, viewers},
		{cronService + "UpdateCron", ScopeTenant, starters},
		{cronService + "DeleteCron", ScopeTenant, starters},

		{workerService + "Connect", ScopeTenant, workers},
		{workerService + "CompleteTask", ScopeLease, workers},
		{workerService + "RecordMemo", ScopeLease, workers},
		{workerService + "CallGraph", ScopeLease, workers},

		{nodeService + "Describe", ScopeEndpoint, nil},
		{nodeService + "ExecuteTask", ScopeEndpoint, nil},

		{healthService + "Check", ScopeOpen, nil},
		{healthService + "List", ScopeOpen, nil},
		{healthService + "Watch", ScopeOpen, nil},
		{"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", ScopeServer, nil},
		{"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", ScopeServer, nil},
	}
}

// Methods whose roles see a thread or a graph, see Decision.CanSee.
func threadReaders() []string {
	return []string{threadService + "GetThread", graphService + "GetRun", interruptService + "GetInterrupt"}
}

func graphReaders() []string { return []string{registryService + "GetGraph"} }
