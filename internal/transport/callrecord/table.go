package callrecord

import "slices"

// Kind says when calls of a method are audited.
type Kind string

// The kinds of methods.
const (
	Changes Kind = "changes" // always
	Shows   Kind = "shows"   // values of users: always when refused, else unless reads are left out
	Task    Kind = "task"    // results of tasks: only what is not done, since the thread records the rest
	Plain   Kind = "plain"   // never: shows no values and changes nothing
)

// Row says how calls of a method are recorded. Paths lead from the request to fields,
// through lists to the fields of all elements.
type Row struct {
	Method string // full name, like "/graphd.v1.GraphService/Stream"
	Kind   Kind

	Thread, Run, Graph, Version, Worker string // paths to what the call concerns
	Questions                           string // path to the id of a question
	Answers                             []string
	// Shown are paths to texts, numbers, flags and words that are recorded as they are. Of
	// a map the keys are.
	Shown []string
	// Digests are paths to fields of which a digest is recorded.
	Digests []string
	// Answered are paths from the answer, or from the first message of a stream, to
	// texts that are recorded.
	Answered []string
	// Skipped are paths to values that are not recorded: what the server shows or keeps
	// itself.
	Skipped []string
}

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
)

// Methods returns the rows of all methods of graphd.v1.
func Methods() []Row {
	return slices.Concat(runMethods(), threadMethods(), cronMethods(), otherMethods())
}

func runMethods() []Row {
	start := Row{
		Kind: Changes, Thread: "run.thread_id", Run: "run.run_id", Graph: "run.graph", Version: "run.graph_version",
		Shown: []string{
			"request_id", "run.create_thread", "run.concurrency", "run.open_interrupts", "run.replay_from.checkpoint_id", "run.input_at.checkpoint_id",
			"run.expected_checkpoint_id", "run.metadata", "run.thread_metadata", "run.interrupt_before", "run.interrupt_after", "run.step_limit",
			"run.goto_targets.node", "run.goto_targets.send.node",
		},
		Digests: []string{"run.input", "run.update", "run.context", "run.goto_targets.send.input", "run.webhook"}, // its path may have a secret
	}
	resume := Row{
		Kind: Changes, Thread: "resume.thread_id", Answers: []string{"resume.single", "resume.responses"},
		Shown: []string{
			"request_id", "resume.coverage", "resume.expected_checkpoint_id", "resume.metadata", "resume.goto_targets.node",
			"resume.goto_targets.send.node", "resume.settings.interrupt_before", "resume.settings.interrupt_after", "resume.settings.step_limit",
		},
		Digests: []string{"resume.update", "resume.goto_targets.send.input", "resume.settings.context", "resume.webhook"},
	}
	stream, startRun, resumeStream, resumeRun := start, start, resume, resume
	stream.Method, startRun.Method = graphService+"Stream", graphService+"StartRun"
	resumeStream.Method, resumeRun.Method = graphService+"Resume", graphService+"ResumeRun"
	startRun.Shown, resumeRun.Shown = append(slices.Clone(start.Shown), "view"), append(slices.Clone(resume.Shown), "view")
	return []Row{
		stream, startRun, resumeStream, resumeRun,
		{Method: graphService + "Watch", Kind: Shows, Thread: "thread_id", Run: "run_id"},
		{Method: graphService + "WaitRun", Kind: Shows, Thread: "thread_id", Run: "run_id", Shown: []string{"view"}},
		{Method: graphService + "GetRun", Kind: Shows, Thread: "thread_id", Run: "run_id", Shown: []string{"view"}},
		{Method: graphService + "ListRuns", Kind: Shows, Thread: "thread_id", Shown: []string{"filter"}},
		{
			Method: graphService + "CancelRun", Kind: Changes, Thread: "thread_id", Run: "run_id",
			Shown: []string{"action"}, Digests: []string{"reason"},
		},
		{
			Method: graphService + "AddRunWebhook", Kind: Changes, Thread: "thread_id", Run: "run_id",
			Shown: []string{"webhook_id", "after_sequence"}, Digests: []string{"url"}, // its path may have a secret
		},
	}
}

func threadMethods() []Row {
	return []Row{
		{
			Method: threadService + "CreateThread", Kind: Changes, Thread: "thread_id",
			Graph: "thread.graph", Version: "thread.graph_version",
			Shown: []string{"request_id", "thread.metadata", "thread.keep_checkpoints"}, Skipped: []string{"thread.values", "thread.interrupts"},
		},
		{Method: threadService + "GetThread", Kind: Shows, Thread: "thread_id", Shown: []string{"view"}},
		{Method: threadService + "ListThreads", Kind: Shows, Shown: []string{"filter", "view", "offset", "count_total"}},
		{
			Method: threadService + "UpdateThread", Kind: Changes, Thread: "thread.thread_id",
			Graph: "thread.graph", Version: "thread.graph_version",
			Shown:   []string{"update_mask.paths", "thread.metadata", "thread.keep_checkpoints", "thread.etag"},
			Skipped: []string{"thread.values", "thread.interrupts"},
		},
		{Method: threadService + "DeleteThread", Kind: Changes, Thread: "thread_id", Shown: []string{"etag", "force"}},
		{Method: threadService + "DeleteThreads", Kind: Changes, Shown: []string{"thread_ids", "force"}},
		{
			Method: threadService + "ForkThread", Kind: Changes, Thread: "source_thread_id",
			Shown: []string{"request_id", "thread_id", "at.checkpoint_id", "metadata"}, Answered: []string{"thread_id"},
		},
		{
			Method: threadService + "CopyThread", Kind: Changes, Thread: "source_thread_id",
			Shown: []string{"request_id", "thread_id", "metadata"}, Answered: []string{"thread_id"},
		},
		{Method: threadService + "PruneThread", Kind: Changes, Thread: "thread_id", Shown: []string{"keep_checkpoints", "etag"}},
		{Method: threadService + "GetState", Kind: Shows, Thread: "thread_id", Shown: []string{"at.checkpoint_id", "keys"}},
		{
			Method: threadService + "UpdateState", Kind: Changes, Thread: "thread_id",
			Shown:   []string{"request_id", "at.checkpoint_id", "as_node", "expected_checkpoint_id", "supersede_interrupts"},
			Digests: []string{"values"}, Answered: []string{"checkpoint.checkpoint_id"},
		},
		{
			Method: threadService + "BulkUpdateState", Kind: Changes, Thread: "thread_id",
			Shown: []string{
				"request_id", "at.checkpoint_id", "expected_checkpoint_id", "supersede_interrupts", "supersteps.updates.as_node",
				"supersteps.updates.task_id", "supersteps.updates.goto_targets.node", "supersteps.updates.goto_targets.send.node",
			},
			Digests:  []string{"supersteps.updates.values", "supersteps.updates.goto_targets.send.input"},
			Answered: []string{"checkpoint.checkpoint_id"},
		},
		{Method: threadService + "ListCheckpoints", Kind: Shows, Thread: "thread_id", Shown: []string{"include_values"}},
	}
}

func cronMethods() []Row {
	write := Row{
		Kind: Changes, Thread: "cron.run.thread_id", Graph: "cron.run.graph", Version: "cron.run.graph_version",
		Shown: []string{
			"cron.schedule", "cron.time_zone", "cron.paused", "cron.metadata", "cron.run.create_thread", "cron.run.concurrency", "cron.run.open_interrupts",
			"cron.run.replay_from.checkpoint_id", "cron.run.input_at.checkpoint_id", "cron.run.expected_checkpoint_id", "cron.run.metadata",
			"cron.run.thread_metadata", "cron.run.interrupt_before", "cron.run.interrupt_after", "cron.run.step_limit", "cron.run.goto_targets.node",
			"cron.run.goto_targets.send.node",
		},
		Digests: []string{"cron.run.input", "cron.run.update", "cron.run.context", "cron.run.goto_targets.send.input", "cron.run.webhook"}, // its path may have a secret
		Skipped: []string{"cron.source"},                                                                                                   // of what stands in the run
	}
	create, update := write, write
	create.Method, update.Method = cronService+"CreateCron", cronService+"UpdateCron"
	create.Shown = append([]string{"request_id", "cron_id"}, write.Shown...)
	create.Answered = []string{"cron_id"}
	update.Shown = append([]string{"cron.cron_id", "cron.etag", "update_mask.paths"}, write.Shown...)
	return []Row{
		create, update,
		{Method: cronService + "GetCron", Kind: Shows, Shown: []string{"cron_id"}},
		{Method: cronService + "ListCrons", Kind: Shows, Graph: "graph", Thread: "thread_id", Shown: []string{"metadata", "view"}},
		{Method: cronService + "DeleteCron", Kind: Changes, Shown: []string{"cron_id", "etag"}},
	}
}

func otherMethods() []Row {
	return []Row{
		{Method: interruptService + "ListInterrupts", Kind: Shows, Thread: "thread_id", Shown: []string{"filter"}},
		{Method: interruptService + "GetInterrupt", Kind: Shows, Thread: "thread_id", Questions: "interrupt_id"},
		{
			Method: interruptService + "UpdateInterrupt", Kind: Changes, Thread: "interrupt.thread_id", Questions: "interrupt.interrupt_id",
			Shown:   []string{"update_mask.paths", "interrupt.assignees", "interrupt.etag"},
			Skipped: []string{"interrupt.value", "interrupt.response_schema", "interrupt.default_response", "interrupt.response", "interrupt.votes"},
		},
		{Method: interruptService + "ClaimInterrupt", Kind: Changes, Thread: "thread_id", Questions: "interrupt_id"},
		{
			Method: interruptService + "CheckResponses", Kind: Shows, Thread: "thread_id", Questions: "responses.interrupt_id",
			Skipped: []string{"responses.value", "responses.dismissal.reason", "responses.note"},
		},
		{Method: interruptService + "DelegateInterrupt", Kind: Changes, Thread: "thread_id", Questions: "interrupt_id", Shown: []string{"to"}, Digests: []string{"note"}},
		{Method: interruptService + "RevealInterrupt", Kind: Changes, Thread: "thread_id", Questions: "interrupt_id", Shown: []string{"pointers"}, Digests: []string{"note"}},
		{
			Method: interruptService + "MakeLink", Kind: Changes, Thread: "thread_id", Questions: "interrupt_id",
			Shown: []string{"principal", "groups", "bound"}, Skipped: []string{"valid", "preset"},
		},
		{Method: interruptService + "RetractResponse", Kind: Changes, Thread: "thread_id", Questions: "interrupt_id", Digests: []string{"note"}},
		{Method: interruptService + "ReleaseInterrupt", Kind: Changes, Thread: "thread_id", Questions: "interrupt_id", Digests: []string{"note"}},
		{
			Method: interruptService + "CommentInterrupt", Kind: Changes, Thread: "thread_id", Questions: "interrupt_id",
			Shown: []string{"request_id"}, Digests: []string{"text"},
		},
		{
			Method: interruptService + "AnswerInterrupts", Kind: Changes, Questions: "targets.targets.interrupt_id",
			Shown: []string{"request_id", "filter", "expected_count", "targets.targets.thread_id"}, Digests: []string{"dismissal.reason", "note"},
			Skipped: []string{"value"}, // the records of its answers have digests of it
		},
		{Method: interruptService + "ListTrail", Kind: Shows, Thread: "thread_id", Questions: "interrupt_id"},
		{Method: interruptService + "CountInterrupts", Kind: Plain},
		{Method: interruptService + "GetInterruptStatistics", Kind: Plain},
		{Method: interruptService + "GetAnswerStatistics", Kind: Plain},
		{Method: interruptService + "WatchInterrupts", Kind: Shows, Shown: []string{"filter", "start_now"}},

		{Method: registryService + "GetServerInfo", Kind: Plain},
		{Method: registryService + "ListGraphs", Kind: Plain},
		{Method: registryService + "GetGraph", Kind: Plain},
		{
			Method: registryService + "PutGraph", Kind: Changes, Graph: "spec.name", Version: "spec.version",
			Shown: []string{"document_name", "validate_only"}, Digests: []string{"spec", "document"},
		},
		{Method: registryService + "DeleteGraph", Kind: Changes, Graph: "graph", Shown: []string{"force"}, Answered: []string{"versions"}},
		{
			Method: registryService + "DeleteGraphVersion", Kind: Changes, Graph: "graph", Version: "version",
			Shown: []string{"force"}, Answered: []string{"versions"},
		},
		{Method: registryService + "ListWorkers", Kind: Plain},

		{
			Method: assistantService + "CreateAssistant", Kind: Changes, Graph: "assistant.graph",
			Shown:   []string{"request_id", "assistant_id", "assistant.name", "assistant.metadata"},
			Digests: []string{"assistant.context", "assistant.config"}, Answered: []string{"assistant_id"},
			Skipped: []string{"assistant.description"},
		},
		{Method: assistantService + "GetAssistant", Kind: Shows, Shown: []string{"assistant_id", "version"}},
		{Method: assistantService + "ListAssistants", Kind: Shows, Graph: "graph", Shown: []string{"metadata", "view"}},
		{
			Method: assistantService + "UpdateAssistant", Kind: Changes, Graph: "assistant.graph",
			Shown:   []string{"assistant.assistant_id", "assistant.name", "assistant.metadata", "assistant.etag", "update_mask.paths"},
			Digests: []string{"assistant.context", "assistant.config"}, Answered: []string{"version"},
			Skipped: []string{"assistant.description"},
		},
		{Method: assistantService + "ListAssistantVersions", Kind: Shows, Shown: []string{"assistant_id"}},
		{Method: assistantService + "ActivateAssistantVersion", Kind: Changes, Shown: []string{"assistant_id", "version"}},
		{Method: assistantService + "DeleteAssistant", Kind: Changes, Shown: []string{"assistant_id", "etag"}},

		{
			Method: itemService + "PutItem", Kind: Changes, Shown: []string{"namespace", "key"}, Digests: []string{"value"},
		},
		{Method: itemService + "GetItem", Kind: Shows, Shown: []string{"namespace", "key", "refresh_ttl"}},
		{Method: itemService + "DeleteItem", Kind: Changes, Shown: []string{"namespace", "key"}},
		{
			Method: itemService + "SearchItems", Kind: Shows, Shown: []string{"namespace_prefix", "limit", "offset", "refresh_ttl"}, Digests: []string{"filter"},
			Skipped: []string{"query"},
		},
		{Method: itemService + "ListItemNamespaces", Kind: Shows, Shown: []string{"prefix", "suffix", "max_depth", "limit", "offset"}},

		{
			Method: workerService + "Connect", Kind: Changes, Worker: "hello.worker_id",
			Shown:    []string{"hello.manifest.deployment", "hello.manifest.build_id", "hello.manifest.nodes.node", "hello.manifest.graphs.name"},
			Digests:  []string{"hello.manifest"},
			Answered: []string{"welcome.session_id", "welcome.graphs.graph", "welcome.graphs.version"},
			Skipped:  []string{"update", "complete", "batch"},
		},
		{Method: workerService + "CompleteTask", Kind: Task},
		{Method: workerService + "RecordMemo", Kind: Task},
		{Method: workerService + "CallGraph", Kind: Task},

		{Method: nodeService + "Describe", Kind: Plain},
		{Method: nodeService + "ExecuteTask", Kind: Plain},
	}
}
