// Package access decides what a caller may do: which methods, in which tenants, on
// which graphs, and with which fields of a request.
//
// A table says for every method which roles have it, and for every right that
// fields of a request need beside the method which roles have that. A policy file
// binds roles to principals and groups. Whatever no row and no binding gives is
// refused: an unknown method, an unknown role, a condition that fails.
//
// The package knows callers as data and methods by their full names. It reads no
// clock and no credentials.
package access

import "slices"

// Role names a set of methods and rights. Roles do not contain one another:
// Methods and Rights say all that a role has.
type Role string

// The roles.
const (
	Viewer   Role = "viewer"
	Answerer Role = "answerer"
	Linker   Role = "linker"
	Starter  Role = "starter"
	Worker   Role = "worker"
	Author   Role = "author"
	Operator Role = "operator"
	Admin    Role = "admin"
)

// RoleRow says what a role is for.
type RoleRow struct {
	Role    Role
	Meaning string // a sentence for people
}

// Roles lists every role, in the order of the tables.
func Roles() []RoleRow {
	return []RoleRow{
		{Viewer, "Reads threads, runs, questions, graphs, assistants, items, crons and workers."},
		{Answerer, "Reads questions and the runs that ask them, and answers."},
		{Linker, "Makes links by which other people answer, like a service that sends mails. Reads a question by its link alone."},
		{Starter, "Reads what a viewer reads, makes threads, starts and cancels runs, makes, changes and deletes crons, puts and deletes items."},
		{Worker, "Serves nodes of graphs. Reads, puts and deletes items, as nodes do."},
		{Author, "Reads, puts and deletes graphs and assistants."},
		{Operator, "Reads what a viewer reads, starts and cancels runs, changes states, copies, prunes and deletes threads, reassigns questions, changes assistants and crons, puts and deletes items."},
		{Admin, "Has every method and every right, but approve-changes, which only a binding gives."},
	}
}

// Right names what fields of a request need beside the method.
type Right string

// The rights.
const (
	DiscardQuestions Right = "discard-questions"
	OverrideQuestion Right = "override-question"
	WriteAsNode      Right = "write-as-node"
	SteerRun         Right = "steer-run"
	ReplaceSettings  Right = "replace-settings"
	AddWebhook       Right = "add-webhook"
	CancelRun        Right = "cancel-run"
	ExpireThread     Right = "expire-thread"
	DeleteInUse      Right = "delete-in-use"
	BringGraphs      Right = "bring-graphs"
	ApproveChanges   Right = "approve-changes"
	LinkOthers       Right = "link-others"
)

// Field is a place in a request that needs a right.
type Field struct {
	Method string // full name, like "/graphd.v1.GraphService/Stream"
	// Path names the field by the names of the proto, from the request inward;
	// elements of lists are not numbered. Empty stands for the request as a whole.
	Path string
	// When says which content needs the right; empty stands for any that is not the
	// default of the proto. For a field of an enum type it is the name of a value.
	When string
}

// RightRow says who has a right.
type RightRow struct {
	Right   Right
	Meaning string // what the right permits, for people
	// Roles have the right wherever a binding gives them.
	Roles []Role
	// InBindings permits to give the right by the field rights of a binding. The
	// binding must give one of Beside.
	InBindings bool
	Beside     []Role
	// Fields need the right. A right without fields has none in this version of the
	// protocol.
	Fields []Field
}

// Rights lists every right.
func Rights() []RightRow {
	operators := []Role{Operator, Admin}
	return []RightRow{
		{
			Right: DiscardQuestions, Meaning: "Drop open questions instead of answering them.", Roles: operators,
			Fields: []Field{
				{graphService + "Stream", "run.open_interrupts", "OPEN_INTERRUPT_POLICY_DISCARD"},
				{graphService + "StartRun", "run.open_interrupts", "OPEN_INTERRUPT_POLICY_DISCARD"},
				{cronService + "CreateCron", "cron.run.open_interrupts", "OPEN_INTERRUPT_POLICY_DISCARD"},
				{cronService + "UpdateCron", "cron.run.open_interrupts", "OPEN_INTERRUPT_POLICY_DISCARD"},
				{threadService + "UpdateState", "supersede_interrupts", ""},
				{threadService + "BulkUpdateState", "supersede_interrupts", ""},
			},
		},
		{
			Right: LinkOthers, Meaning: "Make a link by which another one answers.", Roles: []Role{Linker, Admin},
			Fields: []Field{
				{interruptService + "MakeLink", "principal", ""},
				{interruptService + "MakeLink", "groups", ""},
			},
		},
		{Right: OverrideQuestion, Meaning: "Answer a question against its policy.", Roles: operators},
		{
			Right: WriteAsNode, Meaning: "Write to a state in the name of a node.", Roles: operators,
			Fields: []Field{
				{threadService + "UpdateState", "as_node", ""},
				{threadService + "BulkUpdateState", "supersteps.updates.as_node", ""},
			},
		},
		{
			Right:   SteerRun,
			Meaning: "Write to a state besides the input, choose the next nodes, run again from an earlier checkpoint, or have other breakpoints than the graph: each may pass by a question.",
			Roles:   operators,
			Fields: []Field{
				{graphService + "Stream", "run.update", ""},
				{graphService + "Stream", "run.goto_targets", ""},
				{graphService + "Stream", "run.replay_from", ""},
				{graphService + "Stream", "run.input_at", ""},
				{graphService + "Stream", "run.interrupt_before", ""},
				{graphService + "Stream", "run.interrupt_after", ""},
				{graphService + "StartRun", "run.update", ""},
				{graphService + "StartRun", "run.goto_targets", ""},
				{graphService + "StartRun", "run.replay_from", ""},
				{graphService + "StartRun", "run.input_at", ""},
				{graphService + "StartRun", "run.interrupt_before", ""},
				{graphService + "StartRun", "run.interrupt_after", ""},
				{cronService + "CreateCron", "cron.run.update", ""},
				{cronService + "CreateCron", "cron.run.goto_targets", ""},
				{cronService + "CreateCron", "cron.run.replay_from", ""},
				{cronService + "CreateCron", "cron.run.input_at", ""},
				{cronService + "CreateCron", "cron.run.interrupt_before", ""},
				{cronService + "CreateCron", "cron.run.interrupt_after", ""},
				{cronService + "UpdateCron", "cron.run.update", ""},
				{cronService + "UpdateCron", "cron.run.goto_targets", ""},
				{cronService + "UpdateCron", "cron.run.replay_from", ""},
				{cronService + "UpdateCron", "cron.run.input_at", ""},
				{cronService + "UpdateCron", "cron.run.interrupt_before", ""},
				{cronService + "UpdateCron", "cron.run.interrupt_after", ""},
				{graphService + "Resume", "resume.update", ""},
				{graphService + "Resume", "resume.goto_targets", ""},
				{graphService + "Resume", "resume.settings.interrupt_before", ""},
				{graphService + "Resume", "resume.settings.interrupt_after", ""},
				{graphService + "ResumeRun", "resume.update", ""},
				{graphService + "ResumeRun", "resume.goto_targets", ""},
				{graphService + "ResumeRun", "resume.settings.interrupt_before", ""},
				{graphService + "ResumeRun", "resume.settings.interrupt_after", ""},
			},
		},
		{
			Right: ReplaceSettings, Meaning: "Replace the context and the step limit of a run that goes on, and have it go by the breakpoints of its graph.",
			Roles: []Role{Starter, Operator, Admin},
			Fields: []Field{
				{graphService + "Resume", "resume.settings", ""},
				{graphService + "ResumeRun", "resume.settings", ""},
			},
		},
		{
			Right: AddWebhook, Meaning: "Have a URL called when the run stops next.", Roles: []Role{Starter, Operator, Admin},
			Fields: []Field{
				{graphService + "Stream", "run.webhook", ""},
				{graphService + "StartRun", "run.webhook", ""},
				{cronService + "CreateCron", "cron.run.webhook", ""},
				{cronService + "UpdateCron", "cron.run.webhook", ""},
				{graphService + "Resume", "resume.webhook", ""},
				{graphService + "ResumeRun", "resume.webhook", ""},
			},
		},
		{
			Right: CancelRun, Meaning: "Cancel the run when the client goes away.", Roles: []Role{Starter, Operator, Admin},
			Fields: []Field{
				{graphService + "Stream", "on_disconnect", "DISCONNECT_POLICY_CANCEL"},
				{graphService + "Resume", "on_disconnect", "DISCONNECT_POLICY_CANCEL"},
			},
		},
		{
			Right: ExpireThread, Meaning: "Let a thread, or a part of its history, end earlier or later.", Roles: operators,
			Fields: []Field{
				{threadService + "UpdateThread", "thread.expire_time", ""},
				{threadService + "UpdateThread", "thread.ttl", ""},
				{threadService + "UpdateThread", "thread.keep_checkpoints", ""},
				{threadService + "UpdateThread", "update_mask", "it names ttl, expire_time or keep_checkpoints, or is *"},
			},
		},
		{
			Right: DeleteInUse, Meaning: "Delete a graph that threads or other graphs need.", Roles: operators,
			Fields: []Field{
				{registryService + "DeleteGraph", "force", ""},
				{registryService + "DeleteGraphVersion", "force", ""},
			},
		},
		{
			Right: BringGraphs, Meaning: "Bring a version of a graph along that the server does not have.", Roles: []Role{Author, Admin},
			Fields: []Field{{workerService + "Connect", "hello.manifest.graphs", "the server lacks one of them"}},
		},
		{
			Right: ApproveChanges, Meaning: "Change a graph so that a question is removed or bypassed.",
			InBindings: true, Beside: []Role{Author, Admin},
			Fields: []Field{
				{registryService + "PutGraph", "", "the version removes or bypasses a question of an earlier one"},
				{registryService + "DeleteGraph", "", "a version asks a question"},
				{registryService + "DeleteGraphVersion", "", "the version asks a question that the newest one left lacks"},
				{workerService + "Connect", "hello.manifest.graphs", "a version that the server lacks removes or bypasses a question"},
			},
		},
	}
}

// roleSet has a bit for each role, in the order of Roles.
type roleSet uint16

// roleBit returns the bit of a role, 0 for a name that is no role.
func roleBit(name string) roleSet {
	switch Role(name) {
	case Viewer:
		return 1 << 0
	case Answerer:
		return 1 << 1
	case Linker:
		return 1 << 2
	case Starter:
		return 1 << 3
	case Worker:
		return 1 << 4
	case Author:
		return 1 << 5
	case Operator:
		return 1 << 6
	case Admin:
		return 1 << 7
	}
	return 0
}

func makeRoleSet(roles []Role) roleSet {
	var set roleSet
	for _, r := range roles {
		set |= roleBit(string(r))
	}
	return set
}

// rightSet has a bit for each right, in the order of Rights.
type rightSet uint16

// unknownRight stands for names that are no rights: no caller has it.
const unknownRight rightSet = 1 << 15

// rightBit returns the bit of a right.
func (p *Policy) rightBit(name Right) rightSet {
	i := slices.IndexFunc(p.rights, func(r rightRule) bool { return r.name == name })
	if i < 0 {
		return unknownRight
	}
	return 1 << i
}
