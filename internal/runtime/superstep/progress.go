package superstep

import (
	"strings"

	"github.com/graphd-dev/graphd/internal/checkpoint"
	"github.com/graphd-dev/graphd/internal/runtime/pregel"
)

// progress is the stored progress of a superstep that was begun before.
type progress struct {
	tasks      map[string]checkpoint.Task
	commands   []checkpoint.Task // writes of calls, in the order in which they came
	preview    *checkpoint.Task  // the writes of finished siblings, as workers have combined them
	memos      map[string][]checkpoint.Memo
	interrupts map[string][]checkpoint.Interrupt
}

func newProgress(p checkpoint.Pending) progress {
	out := progress{}
	if len(p.Tasks) > 0 {
		out.tasks = make(map[string]checkpoint.Task, len(p.Tasks))
	}
	for i := range p.Tasks {
		switch t := &p.Tasks[i]; {
		case strings.HasPrefix(t.ID, commandPrefix):
			out.commands = append(out.commands, *t)
		case t.ID == previewID:
			out.preview = t
		default:
			out.tasks[t.ID] = *t
		}
	}
	if len(p.Memos) > 0 {
		out.memos = make(map[string][]checkpoint.Memo)
	}
	for _, m := range p.Memos {
		out.memos[m.Task] = append(out.memos[m.Task], m)
	}
	if len(p.Interrupts) > 0 {
		out.interrupts = make(map[string][]checkpoint.Interrupt)
	}
	for _, i := range p.Interrupts {
		out.interrupts[i.Task] = append(out.interrupts[i.Task], i)
	}
	return out
}

// currentInterrupt returns the interrupt that was asked last at a place of a task, nil
// for none.
func (p *progress) currentInterrupt(task, scope, key string, index int) *checkpoint.Interrupt {
	var last *checkpoint.Interrupt
	asked := p.interrupts[task]
	for i := range asked {
		q := &asked[i]
		if q.Scope == scope && q.Key == key && q.Index == index && (last == nil || q.Round > last.Round) {
			last = q
		}
	}
	return last
}

// buildJournal returns the answers and memos that a task must see again.
func (p *progress) buildJournal(task string) pregel.Journal {
	j := pregel.Journal{Memos: p.memos[task]}
	asked := p.interrupts[task]
	for k := range asked {
		switch i := &asked[k]; i.State {
		case checkpoint.InterruptAnswered, checkpoint.InterruptConsumed, checkpoint.InterruptExpired:
			value, err := i.RestoreResponse()
			if err != nil {
				continue // the node asks again, and fails, because the question has an answer
			}
			j.Answers = append(j.Answers, pregel.Answer{
				InterruptID: i.ID, Scope: i.Scope, Key: i.Key, Index: i.Index, Value: value,
				HiddenDigest: i.HiddenDigest(), HasSecrets: !i.Hidden.Response.IsEmpty(),
				Dismissed: i.Dismissed, Reason: i.Note,
				Expired:     i.State == checkpoint.InterruptExpired && i.Response == "",
				ShownDigest: i.DigestShown(), Asked: i,
			})
		default: // no answer came, or none will
		}
	}
	return j
}

// setAnswers shows a superstep the answers that are about to be stored.
func (p *progress) setAnswers(answered []checkpoint.Interrupt) {
	for _, a := range answered {
		for i := range p.interrupts[a.Task] {
			if p.interrupts[a.Task][i].ID == a.ID {
				p.interrupts[a.Task][i] = a
			}
		}
	}
}

func (p *progress) interruptState(task, id string) checkpoint.InterruptState {
	for _, i := range p.interrupts[task] {
		if i.ID == id {
			return i.State
		}
	}
	return ""
}

// commandPrefix begins the ids of task records that hold the writes of a call.
const commandPrefix = "!command-"

// previewID is the id of the task record that keeps the values that workers have
// combined for display, so that reading a state needs no worker. It holds for the number
// of finished tasks that its Attempt names.
const previewID = "!preview"
